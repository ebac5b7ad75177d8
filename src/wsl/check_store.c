/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The files of a GPU-PV driver. After an update in Windows a store that was shared before may show its files empty or
 * stale; in a Hyper-V guest it is a copy that may lack some. Which files a driver has changes with every version, so
 * only those are missed without which it never worked.
 */

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/paths.h"
#include "wsl/check.h"
#include "wsl/loaders.h"

enum { FILES_MAX = 4096 };

/* What is wrong with the files of a directory. */
struct flaws {
	char first[80];   /* a name */
	const char *what; /* NULL: nothing */
	size_t count, files;
	char closed[80]; /* what others than root cannot read, "." for the directory; "": nothing */
};

static bool stores_matters(const char *name)
{
	return strstr(name, ".so") || strstr(name, ".bin") || strcmp(name, "nvidia-smi") == 0;
}

static const char *store_defect(int directory, const char *name, struct flaws *flaws)
{
	struct stat st;

	if (fstatat(directory, name, &st, 0) < 0)
		return errno == ESTALE   ? "is a stale handle"
		       : errno == ENOENT ? "leads nowhere"
					 : "cannot be looked at";
	if (!flaws->closed[0] && (st.st_mode & (S_ISDIR(st.st_mode) ? 05 : 04)) != (S_ISDIR(st.st_mode) ? 05 : 04))
		(void)snprintf(flaws->closed, sizeof(flaws->closed), "%.79s", name);
	return S_ISREG(st.st_mode) && st.st_size == 0 ? "is empty" : NULL;
}

/* Return: 0 or negative errno of the directory. */
static int stores_look(const char *path, struct flaws *ret)
{
	_cleanup_dir_ DIR *directory = opendir(path);
	const struct dirent *entry;

	if (!directory)
		return -errno;
	(void)store_defect(directory_fd(directory), ".", ret);
	while (ret->files < FILES_MAX && (entry = readdir(directory))) {
		const char *what;

		if (entry->d_name[0] == '.' || !stores_matters(entry->d_name))
			continue;
		ret->files++;
		what = store_defect(directory_fd(directory), entry->d_name, ret);
		if (!what || ret->count++ > 0)
			continue;
		ret->what = what;
		(void)snprintf(ret->first, sizeof(ret->first), "%.79s", entry->d_name);
	}
	return 0;
}

static const char *stores_missing(const char *directory, const char *const *names)
{
	for (; *names; names++) {
		_cleanup_free_ char *path = NULL;
		struct stat st;

		if (str_format(&path, "%s/%s", directory, *names) == 0 && stat(path, &st) < 0 && errno == ENOENT)
			return *names;
	}
	return NULL;
}

/* Return: whether all is well with it. */
static bool stores_check_directory(struct findings *findings, const char *path, const char *const *needed)
{
	const char *missing, *remedy = loaders_remedy(NULL, check_is_wsl());
	struct flaws flaws = {0};
	int r;

	r = stores_look(path, &flaws);
	missing = stores_missing(path, needed);
	if (r < 0)
		findings_add(findings, r == -ENOENT ? "store.missing" : "store.unreadable", SEVERITY_PROBLEM,
			     "%s: %s\n%s", path, strerror(-r), remedy);
	else if (flaws.count > 0)
		findings_add(findings, "store.stale", SEVERITY_PROBLEM, "%s: %s %s (%zu of %zu files)\n%s", path,
			     flaws.first, flaws.what, flaws.count, flaws.files, remedy);
	else if (missing)
		findings_add(findings, "store.incomplete", SEVERITY_PROBLEM, "%s has no %s\n%s", path, missing,
			     loaders_remedy(missing, check_is_wsl()));
	else if (flaws.closed[0])
		findings_add(findings, "store.closed", SEVERITY_WARNING,
			     "%s%s%s: only root may read it, so programs of other users find no driver, in containers "
			     "too\n"
			     "%s",
			     path, streq(flaws.closed, ".") ? "" : "/", streq(flaws.closed, ".") ? "" : flaws.closed,
			     check_is_wsl() ? "Run wsl --update, then wsl --shutdown in Windows."
					    : "sudo chmod -R a+rX " PATH_WSL_LIB " " PATH_WSL_DRIVERS);
	return r == 0 && flaws.count == 0 && !missing && !flaws.closed[0];
}

/* Of adapters with one driver the store is one. */
static bool stores_listed_before(const struct inventory *inventory, size_t number)
{
	for (size_t i = 0; i < number; i++)
		if (inventory->adapters[i].driver_store &&
		    streq(inventory->adapters[i].driver_store, inventory->adapters[number].driver_store))
			return true;
	return false;
}

void check_stores(struct doctor_context *examination)
{
	static const char *const libraries[][4] = {{"libdxcore.so"},
						   {"libdxcore.so", "libcuda.so.1", "libnvidia-ml.so.1"}};
	static const char *const drivers[][3] = {{NULL}, {"libcuda.so.1.1", "libnvidia-ml.so.1"}};
	struct findings *findings = &examination->findings;
	bool well = true, nvidia = false;
	size_t stores = 0;

	for (size_t i = 0; i < examination->usable; i++) {
		const struct adapter *adapter = &examination->inventory->adapters[i];
		bool is_nvidia = adapter->vendor_id == PCI_VENDOR_NVIDIA;

		if (!adapter->driver_store || stores_listed_before(examination->inventory, i))
			continue;
		stores++;
		nvidia |= is_nvidia;
		well &= stores_check_directory(findings, adapter->driver_store, drivers[is_nvidia]);
	}
	if (stores == 0)
		return;
	well &= stores_check_directory(findings, PATH_WSL_LIB, libraries[nvidia]);
	if (well)
		findings_add(findings, "store.complete", SEVERITY_OK,
			     "%zu driver store%s and " PATH_WSL_LIB ": no file missing, empty or stale", stores,
			     stores == 1 ? "" : "s");
}

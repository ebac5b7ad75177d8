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
#include "cli/doctor/doctor.h"
#include "wsl/paths.h"

enum { FILES_MAX = 4096 };

/* What is wrong with the files of a directory. */
struct flaws {
	char first[80];   /* a name */
	const char *what; /* NULL: nothing */
	size_t count, files;
};

static const char *stores_flaw(const struct stat *st, int error)
{
	if (error == ESTALE)
		return "is a stale handle";
	if (error != 0)
		return "cannot be looked at";
	return S_ISREG(st->st_mode) && st->st_size == 0 ? "is empty" : NULL;
}

static void stores_note(struct flaws *flaws, const char *name, const char *what)
{
	if (!what)
		return;
	if (flaws->count++ > 0)
		return;
	flaws->what = what;
	(void)snprintf(flaws->first, sizeof(flaws->first), "%.79s", name);
}

static bool stores_matters(const char *name)
{
	return strstr(name, ".so") || strstr(name, ".bin") || strcmp(name, "nvidia-smi") == 0;
}

/* Return: 0 or negative errno of the directory. */
static int stores_look(const char *path, struct flaws *ret)
{
	DIR *directory = opendir(path);
	const struct dirent *entry;
	struct stat st;

	if (!directory)
		return -errno;
	while (ret->files < FILES_MAX && (entry = readdir(directory))) {
		int error;

		if (entry->d_name[0] == '.' || !stores_matters(entry->d_name))
			continue;
		ret->files++;
		error = fstatat(directory_fd(directory), entry->d_name, &st, 0) < 0 ? errno : 0;
		stores_note(ret, entry->d_name, stores_flaw(&st, error));
	}
	(void)closedir(directory);
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

static const char *stores_remedy(const struct examination *examination)
{
	return examination->wsl
		       ? "Run wsl --shutdown in Windows; if that does not help, install the GPU's driver there again."
		       : "Copy the whole directory from the host again: from DriverStore\\FileRepository, and "
			 "lxss\\lib for " WSL_LIB ".";
}

/* Return: whether all is well with it. */
static bool stores_check_directory(struct examination *examination, const char *path, const char *const *needed)
{
	struct findings *findings = &examination->findings;
	struct flaws flaws = {0};
	const char *missing;
	int r;

	r = stores_look(path, &flaws);
	if (r < 0) {
		findings_add(findings, r == -ENOENT ? "store.missing" : "store.unreadable", SEVERITY_PROBLEM, "%s: %s",
			     path, strerror(-r));
	} else if (flaws.count > 0) {
		findings_add(findings, "store.stale", SEVERITY_PROBLEM, "%s: %s %s (%zu of %zu files)", path,
			     flaws.first, flaws.what, flaws.count, flaws.files);
	} else if ((missing = stores_missing(path, needed))) {
		findings_add(findings, "store.incomplete", SEVERITY_PROBLEM, "%s has no %s", path, missing);
		if (streq(missing, "libdxcore.so") && !examination->wsl) {
			findings_advise(findings, "Copy libdxcore.so, libd3d12.so and libd3d12core.so to it from "
						  "C:\\Program Files\\WSL\\lib of a Windows host.");
			return false;
		}
	} else {
		return true;
	}
	findings_advise(findings, "%s", stores_remedy(examination));
	return false;
}

/* Of adapters with one driver the store is one. */
static bool stores_seen_before(const struct inventory *inventory, size_t number)
{
	for (size_t i = 0; i < number; i++)
		if (inventory->adapters[i].driver_store &&
		    streq(inventory->adapters[i].driver_store, inventory->adapters[number].driver_store))
			return true;
	return false;
}

void check_stores(struct examination *examination)
{
	static const char *const lib[] = {"libdxcore.so", NULL}, *const lib_nvidia[] = {"libdxcore.so", "libcuda.so.1",
											"libnvidia-ml.so.1", NULL};
	static const char *const store_nvidia[] = {"libcuda.so.1.1", "libnvidia-ml.so.1", NULL}, *const store[] = {
													 NULL};
	bool well = true, nvidia = false;
	size_t stores = 0;

	if (!examination->gpu_pv || !examination->host || examination->usable == 0)
		return;
	for (size_t i = 0; i < examination->usable; i++) {
		const struct adapter *adapter = &examination->host->inventory.adapters[i];
		bool is_nvidia = adapter->vendor_id == PCI_VENDOR_NVIDIA;

		if (!adapter->driver_store || stores_seen_before(&examination->host->inventory, i))
			continue;
		stores++;
		nvidia |= is_nvidia;
		well &= stores_check_directory(examination, adapter->driver_store, is_nvidia ? store_nvidia : store);
	}
	if (stores == 0)
		return;
	well &= stores_check_directory(examination, WSL_LIB, nvidia ? lib_nvidia : lib);
	if (well)
		findings_add(&examination->findings, "store.complete", SEVERITY_OK,
			     "%zu driver store%s and " WSL_LIB ": no file missing, empty or stale", stores,
			     stores == 1 ? "" : "s");
}

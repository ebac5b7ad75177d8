/* SPDX-License-Identifier: Apache-2.0 */

/* What `ctr-gpu doctor` asks of a GPU-PV host. */

#include "wsl/internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "base/fd.h"
#include "base/paths.h"
#include "driverd/driverd.h"
#include "dxg/dxg.h"
#include "guard/choice.h"
#include "guard/helper.h"
#include "ldcache/ldcache.h"
#include "system/machine.h"
#include "system/own_programs.h"
#include "system/trusted_file.h"

enum { MODE_FOR_ALL = 0666 };

/* ---- the kind of host ---- */

/* A comment may be behind the value. */
static bool check_is_false(const char *value)
{
	value += strspn(value, " \t\"");
	return strncasecmp(value, "false", strlen("false")) == 0;
}

/* Whether /etc/wsl.conf turns the GPU off: "enabled = false" under "[gpu]". */
static bool check_conf_disables(void)
{
	_cleanup_free_ char *text = file_text("/etc/wsl.conf");
	_cleanup_strv_ struct strv lines = {0};
	bool gpu = false;

	if (!text || strv_split(text, "\n", &lines) < 0)
		return false;
	for (size_t i = 0; i < lines.count; i++) {
		const char *line = lines.items[i] + strspn(lines.items[i], " \t"), *value = strchr(line, '=');

		if (line[0] == '[')
			gpu = strncasecmp(line, "[gpu]", strlen("[gpu]")) == 0;
		else if (gpu && value && strncasecmp(line, "enabled", strlen("enabled")) == 0)
			return check_is_false(value + 1);
	}
	return false;
}

/* With gpuSupport=false in .wslconfig there is the device, and neither an adapter nor any file of a driver. */
static bool check_is_unsupported(void)
{
	return !file_exists(PATH_WSL) && (wsl_version() != WSL_NONE || ioctl_has_no_adapters());
}

/* A kernel that the user built may not have WSL in its name; then WSL's mounts tell, or /etc/wsl.conf. */
static bool check_is_wsl(void)
{
	return wsl_version() != WSL_NONE || check_conf_disables() || check_is_unsupported();
}

static const char *check_describe_host(const char **ret_id)
{
	bool wsl = check_is_wsl();

	*ret_id = wsl ? "host.wsl" : "host.hyper-v";
	return wsl ? "WSL2, GPUs behind " PATH_DXG : "Hyper-V guest, GPUs behind " PATH_DXG;
}

/* What dxgkrnl drives (drivers/hv/dxgkrnl/dxgmodule.c): virtual render devices, compute accelerators. */
static bool check_is_paravirtual(const struct pci_function *function)
{
	return function->vendor == PCI_VENDOR_MICROSOFT && (function->device == 0x008e || function->device == 0x008a);
}

static void check_explain_no_dxg(struct findings *findings)
{
	enum wsl_version kind = wsl_version();
	struct pci_function function;

	if (kind != WSL_NONE)
		findings_add(findings, "host.no-device", SEVERITY_PROBLEM, "%s without " PATH_DXG "\n%s",
			     kind == WSL_1 ? "WSL1" : "WSL2",
			     kind == WSL_1 ? "WSL1 has no GPU: run wsl --set-version DISTRIBUTION 2 in Windows."
			     : check_conf_disables()
				     ? "/etc/wsl.conf turns it off: set enabled=true under [gpu], then run wsl "
				       "--shutdown in Windows."
				     : "Run wsl --update in Windows, keep gpuSupport on in .wslconfig, then wsl "
				       "--shutdown; Windows 10 needs 21H2.");
	else if (pci_find("/sys", check_is_paravirtual, &function))
		findings_add(
			findings, "host.no-device", SEVERITY_PROBLEM,
			"a Hyper-V guest with a GPU (PCI %s) without " PATH_DXG "\n"
			"sudo modprobe dxgkrnl; if that module is missing, build it for this kernel (dxgkrnl-dkms).",
			function.address);
}

/* WSL keeps the device then, and shares no driver: what is said of stores and libraries is only what follows. */
static void check_turned_off(struct doctor_context *examination)
{
	bool gone = !file_exists(PATH_WSL_LIB);

	if (!check_conf_disables() && check_is_unsupported())
		findings_add(
			&examination->findings, "host.turned-off", SEVERITY_PROBLEM,
			"Windows shares no GPU with this machine: there is " PATH_DXG " and no /usr/lib/wsl\n"
			"Set gpuSupport=true under [wsl2] in the Windows user's .wslconfig, then run wsl --shutdown%s.",
			wsl_version() != WSL_NONE ? "" : "; a Hyper-V guest: Add-VMGpuPartitionAdapter");
	if (!check_conf_disables())
		return;
	findings_add(&examination->findings, "host.turned-off", gone ? SEVERITY_PROBLEM : SEVERITY_WARNING,
		     "/etc/wsl.conf turns the GPU off%s\n"
		     "Set enabled=true under [gpu] in /etc/wsl.conf, then run wsl --shutdown in Windows.",
		     gone ? ", so " PATH_WSL_LIB " is missing" : ", from the next start on");
}

static void check_dxg(struct doctor_context *examination)
{
	struct findings *findings = &examination->findings;
	struct stat st;

	if (!file_may_open(PATH_DXG)) {
		findings_add(findings, "device.permission", SEVERITY_PROBLEM,
			     "you may not open " PATH_DXG "\n"
			     "sudo chmod 0666 " PATH_DXG
			     "; the kernel makes it so, look for a udev rule that changes it.");
	} else if (stat(PATH_DXG, &st) == 0 && (st.st_mode & MODE_FOR_ALL) != MODE_FOR_ALL) {
		findings_add(findings, "device.permission", SEVERITY_WARNING,
			     PATH_DXG " has mode %04o: users other than root cannot open it, in containers too\n"
				      "sudo chmod 0666 " PATH_DXG,
			     (unsigned)st.st_mode & 07777);
	} else {
		findings_add(findings, "device.dxg", SEVERITY_OK, PATH_DXG " is there, for everybody to open");
	}
}

/* ---- adapters ---- */

/* Whether ctr-gpu-driverd, as a user of its own, can do what it is asked for; if not, another check tells. */
static bool check_may_load(const char *library)
{
	struct statvfs mount;
	struct stat st;

	return statvfs(library, &mount) == 0 && !(mount.f_flag & ST_NOEXEC) && stat(PATH_DXG, &st) == 0 &&
	       (st.st_mode & MODE_FOR_ALL) == MODE_FOR_ALL;
}

/* We can do without libdxcore, but what a driver's libraries load in a container is this file. */
static void check_dxcore(struct doctor_context *examination)
{
	const struct settings *settings = examination->settings;
	_cleanup_free_ char *library = NULL, *program = NULL;
	struct dxg_facts *facts = NULL;
	struct err err = {0};
	size_t count = 0;
	int r;

	if (findings_block(&examination->findings) || dxcore_find(settings, &library) < 0 || !library ||
	    !check_may_load(library) || own_programs_find_driverd(settings, NULL, &program, &err) != 0 ||
	    ioctl_has_no_adapters())
		return;
	r = driverd_dxcore_adapters(settings, library, &facts, &count, &err);
	/* driverd runs as a user of its own; the check of the stores reports files that only root may read. */
	if (r < 0 && r != -ETIMEDOUT)
		findings_add(&examination->findings, "adapter.dxcore", SEVERITY_WARNING,
			     "%.*s, and so libdxcore was not tried\n"
			     "See what limits processes and memory here (ulimit -a), and try again.",
			     (int)strcspn(err.text, ";"), err.text);
	else if (r != 0 && !strstr(err.text, strerror(EACCES)))
		findings_add(&examination->findings, "adapter.dxcore", SEVERITY_PROBLEM,
			     "%.*s, and programs in containers ask it, too\n"
			     "%s",
			     (int)strcspn(err.text, ";"), err.text,
			     check_is_wsl() ? "Run wsl --update, then wsl --shutdown in Windows; if that does not "
					      "help, install the GPU's driver there again."
					    : "Copy libdxcore.so again from C:\\Program Files\\WSL\\lib of a Windows "
					      "host.");
	dxg_facts_free(facts, count);
}

static const char *check_advise_no_adapter(void)
{
	return check_is_wsl()
		       ? "Install the GPU's current driver in Windows (not in TCC mode), then run wsl --shutdown there."
		       : "Give this machine a partition of a GPU on the Hyper-V host (Add-VMGpuPartitionAdapter).";
}

/* On a computer with two vendors' GPUs people look for NVIDIA's, which Windows keeps to itself in TCC mode. */
static void check_vendors(struct doctor_context *examination)
{
	const struct inventory *inventory = examination->inventory;

	if (examination->usable == 0)
		return;
	for (size_t i = 0; i < inventory->count; i++)
		if (inventory->adapters[i].vendor_id == PCI_VENDOR_NVIDIA)
			return;
	findings_add(&examination->findings, "adapter.no-nvidia", SEVERITY_NOTE,
		     "none of them is NVIDIA's: CUDA programs will find no device\n"
		     "If the host has one: install its driver in Windows; one in TCC mode is not shared (nvidia-smi "
		     "-dm 0).");
}

/* ---- files of another driver ---- */

static bool check_is_foreign(const char *real)
{
	_cleanup_free_ char *own = realpath(PATH_WSL_LIB "/libcuda.so.1", NULL);

	return real && !str_is_below(real, PATH_WSL_LIB) && !str_is_below(real, PATH_WSL_DRIVERS) &&
	       !(own && streq(real, own));
}

/* A libcuda that is not the one WSL brings; owned by the caller; NULL if there is none. */
static char *check_find_foreign(void)
{
	_cleanup_free_ char *path = NULL, *real = NULL;

	if (ldcache_find_here("libcuda.so.1", &path) < 0)
		return NULL;
	real = path ? realpath(path, NULL) : NULL;
	for (const char *const *directory = ldcache_directories; *directory && !check_is_foreign(real); directory++) {
		free(path);
		free(real);
		real = str_format(&path, "%s/libcuda.so.1", *directory) == 0 ? realpath(path, NULL) : NULL;
	}
	return check_is_foreign(real) ? steal_ptr(real) : NULL;
}

/* A host that also has GPUs of its own needs their driver. */
static void check_foreign(struct doctor_context *examination)
{
	_cleanup_free_ char *real = examination->here[1] ? NULL : check_find_foreign(), *package = NULL;

	if (!real)
		return;
	package = package_of_file(real);
	findings_add(&examination->findings, "driver.linux-in-wsl", SEVERITY_WARNING,
		     "NVIDIA's driver for Linux is installed here (%s%s%s), where the one in Windows serves\n"
		     "Remove that driver: sudo apt purge %s; only the CUDA toolkit may be installed, without a driver.",
		     real, package ? ", package " : "", package ? package : "",
		     package ? package : "'libnvidia-*' 'nvidia-driver-*'");
}

/* ---- the driver stores ---- */

/*
 * After an update in Windows a store that was shared before may show its files empty or
 * stale; in a Hyper-V guest it is a copy that may lack some. Which files a driver has changes with every version, so
 * only those are missed without which it never worked.
 */

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

static void check_stores(struct doctor_context *examination)
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

/* ---- the table ---- */

static void check_host(struct doctor_context *examination)
{
	check_turned_off(examination);
	check_dxcore(examination);
}

/* ---- the guard ---- */

/* A container that gets all of them works in any case. */
static enum severity check_guard_severity(enum choice_grade grade)
{
	return grade == CHOICE_STRICT || grade == CHOICE_GUARD ? SEVERITY_WARNING : SEVERITY_NOTE;
}

static void check_guard_report(struct doctor_context *examination, const char *obstacle)
{
	const enum choice_grade grade = examination->settings->choice;

	findings_add(&examination->findings, "choice.not-held", check_guard_severity(grade),
		     "%s: %s\n"
		     "%s",
		     grade == CHOICE_STRICT ? "a container that chooses a GPU does not start"
					    : "a choice of GPUs is not held",
		     obstacle,
		     grade == CHOICE_STRICT
			     ? "Mend that, or set \"choice\" to \"auto\" in /etc/ctr-gpu/config.json."
			     : "Install ctr-gpu-guard on a kernel that can hold it (docs/guard.md) and run ctr-gpu "
			       "refresh, or choose all GPUs.");
	/* A hook cannot, and a CDI spec must not, as several of its devices may be asked for. */
	if (grade != CHOICE_STRICT && grade != CHOICE_STORE)
		findings_add(&examination->findings, "choice.variables", SEVERITY_NOTE,
			     "only the runtime nvidia sets all variables that name a chosen GPU\n"
			     "docker run --runtime=nvidia -e NVIDIA_VISIBLE_DEVICES=1, instead of --gpus");
}

static void check_guard_add(struct doctor_context *examination, const char *weakness)
{
	const bool refused = weakness && examination->settings->choice == CHOICE_STRICT;

	if (!weakness)
		findings_add(&examination->findings, "choice.held", SEVERITY_OK,
			     "a choice among the GPUs is held by the guard, which %s",
			     helper_is_loaded() ? "is loaded" : "the first container that chooses loads");
	else
		findings_add(&examination->findings, "choice.held-weakly", refused ? SEVERITY_WARNING : SEVERITY_NOTE,
			     "%s: %s, and " PREEMPT_EFFECT "\n"
			     "Boot a kernel that does not (with preempt=voluntary, if it takes that)%s.",
			     refused ? "a container that chooses a GPU does not start"
				     : "a choice among the GPUs is held by the guard against honest programs",
			     weakness, refused ? ", or set \"choice\" to \"guard\" in /etc/ctr-gpu/config.json" : "");
}

/* Root alone can look. */
static void check_guard_racers(struct doctor_context *examination)
{
	_cleanup_choices_ struct choices choices = CHOICES_NONE;
	size_t condemned = choices_open(&choices) == 0 ? choice_count_marked_for_kill(&choices) : 0;

	if (condemned > 0)
		findings_add(&examination->findings, "choice.raced", SEVERITY_WARNING,
			     "%zu cgroups have raced with the guard for an adapter that was not chosen for them, "
			     "and make no further call\n"
			     "ctr-gpu-guard status names them; look at what runs in those containers.",
			     condemned);
}

/* Whether a choice among the GPUs of this host would be held. */
static void check_guard(struct doctor_context *examination)
{
	const struct inventory *inventory = examination->inventory;
	const enum choice_grade grade = examination->settings->choice;
	_cleanup_free_ char *obstacle = NULL, *weakness = NULL;
	bool choosable = false;

	for (size_t i = 0; inventory && i < inventory->count; i++)
		choosable = choosable || adapter_is_choosable(&inventory->adapters[i]);
	if (!choosable)
		return;
	if (grade == CHOICE_STORE || grade == CHOICE_ENVIRONMENT)
		check_guard_report(examination, "the configuration's \"choice\" wants no guard");
	else if (helper_check(&obstacle) == 0 && obstacle)
		check_guard_report(examination, obstacle);
	else if (preempt_check(&weakness) == 0)
		check_guard_add(examination, weakness);
	check_guard_racers(examination);
}

/* ---- the table ---- */

static const struct check checks[] = {
	{CHECK_DEVICES, "the kind of host", check_turned_off}, {CHECK_DEVICES, "the device nodes", check_dxg},
	{CHECK_ADAPTERS, "the driver stores", check_stores},   {CHECK_ADAPTERS, "the adapters", check_dxcore},
	{CHECK_ADAPTERS, "the adapters", check_vendors},       {CHECK_ADAPTERS, "the choice of GPUs", check_guard},
	{CHECK_DRIVER, "the driver", check_foreign},           {0},
};

const struct backend_checks checks_gpu_pv = {
	.backend = &backend_gpu_pv,
	.driver = "the driver in Windows",
	.advise_no_adapter = check_advise_no_adapter,
	.describe = check_describe_host,
	.explain = check_explain_no_dxg,
	.check_host = check_host,
	.checks = checks,
};

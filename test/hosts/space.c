/* SPDX-License-Identifier: Apache-2.0 */

#include "space.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <sched.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "kept.h"
#include "native.h"
#include "tree.h"

/* A directory that every machine has and that nothing needs while a host is built: a scratch tmpfs lies over it. */
#define SCRATCH "/mnt"

static inline void cleanup_closedirp(DIR **directory)
{
	if (*directory)
		(void)closedir(*directory);
}

static int complain(const char *what)
{
	(void)fprintf(stderr, "enter: %s: %s\n", what, strerror(errno));
	return -1;
}

dev_t space_default_device(void)
{
	/* hwrng first: no engine's default rules allow it. It opens for reading only. */
	static const unsigned minors[] = {183, 229, 237};
	_cleanup_fclose_ FILE *misc = fopen("/proc/misc", "re");
	unsigned minor_number, best = sizeof(minors) / sizeof(minors[0]);

	while (misc && fscanf(misc, "%u %*s", &minor_number) == 1)
		for (unsigned i = 0; i < best; i++)
			if (minors[i] == minor_number)
				best = i;
	return best < sizeof(minors) / sizeof(minors[0]) ? makedev(10, minors[best]) : 0;
}

/* Lays SCRATCH/name over a directory of the machine. What is mounted below it is carried over by the caller. */
static int overlay(const char *name, const char *directory)
{
	char options[256];

	(void)snprintf(options, sizeof(options), "lowerdir=%s,upperdir=" SCRATCH "/%s,workdir=" SCRATCH "/%s.work",
		       directory, name, name);
	if (mount("overlay", directory, "overlay", 0, options) < 0)
		return complain(directory);
	return 0;
}

static int scratch_directories(void)
{
	static const char *const names[] = {"dev",   "dev.work",  "etc",      "etc.work", "etc/ld.so.conf.d",
					    "usr",   "usr/lib",   "usr.work", "pci",      "pci.work",
					    "class", "class.work"};
	char path[64];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		(void)snprintf(path, sizeof(path), SCRATCH "/%s", names[i]);
		if (tree_mkdir(path) < 0)
			return -1;
	}
	return 0;
}

/* Takes a file of the machine away: in an overlay's upper layer a device 0:0 says that the name is not there. */
static int hide(const char *upper, const char *name)
{
	char path[320];

	(void)snprintf(path, sizeof(path), "%s/%s", upper, name);
	return mknod(path, S_IFCHR, makedev(0, 0)) < 0 ? complain(path) : 0;
}

/*
 * The same for what is in a directory, which stays: NVIDIA's capability nodes and IMEX channels, and any vendor's
 * cards.
 */
static int hide_inside(const char *path)
{
	if (tree_mkdir(path) < 0)
		return -1;
	return setxattr(path, "trusted.overlay.opaque", "y", 1, 0) < 0 ? complain(path) : 0;
}

static int hide_entry(const struct dirent *entry)
{
	static const char *const directories[] = {"nvidia-caps", "nvidia-caps-imex-channels", "dri", "accel"};
	char path[64];

	for (size_t i = 0; i < sizeof(directories) / sizeof(directories[0]); i++) {
		if (strcmp(entry->d_name, directories[i]) != 0)
			continue;
		(void)snprintf(path, sizeof(path), SCRATCH "/dev/%s", directories[i]);
		return hide_inside(path);
	}
	if (strcmp(entry->d_name, "dxg") != 0 && strcmp(entry->d_name, "kfd") != 0 &&
	    strncmp(entry->d_name, "nvidia", 6) != 0)
		return 0;
	return hide(SCRATCH "/dev", entry->d_name);
}

/* Real GPUs of the machine, so that a contributor may have some. */
static int hide_real(void)
{
	_cleanup_(cleanup_closedirp) DIR *dev = opendir("/dev");
	const struct dirent *entry;

	while (dev && (entry = readdir(dev)))
		if (hide_entry(entry) < 0)
			return -1;
	return access("/usr/lib/wsl", F_OK) == 0 ? hide(SCRATCH "/usr/lib", "wsl") : 0;
}

/* The nodes of the host, then the machine's /dev with them in it, and all that is mounted below it as it was. */
static int make_dev(const struct space *space)
{
	static const char *const below[] = {"pts", "shm", "mqueue", "hugepages"};
	int trees[sizeof(below) / sizeof(below[0])];
	char path[64];

	if (hide_real() < 0)
		return -1;
	if (space->profile->dxg && tree_node(SCRATCH "/dev/dxg", 0666, space->device) < 0)
		return -1;
	if (space->profile->native.present && native_nodes(&space->profile->native, SCRATCH "/dev") < 0)
		return -1;
	for (size_t i = 0; i < sizeof(below) / sizeof(below[0]); i++) {
		(void)snprintf(path, sizeof(path), "/dev/%s", below[i]);
		trees[i] = open_tree(AT_FDCWD, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
	}
	if (overlay("dev", "/dev") < 0)
		return -1;
	for (size_t i = 0; i < sizeof(below) / sizeof(below[0]); i++) {
		(void)snprintf(path, sizeof(path), "/dev/%s", below[i]);
		if (trees[i] < 0)
			continue;
		if (move_mount(trees[i], "", AT_FDCWD, path, MOVE_MOUNT_F_EMPTY_PATH) < 0)
			return complain(path);
		(void)close(trees[i]);
	}
	return 0;
}

/* WSL lays an overlay over what Windows shares, so that ldconfig may make its links there. */
static int mount_lib(const struct space *space, const char *lib)
{
	static const char options[] =
		"lowerdir=" SCRATCH "/lib,upperdir=" SCRATCH "/lib.upper,workdir=" SCRATCH "/lib.work";

	if (tree_mkdir(SCRATCH "/lib") < 0 || tree_mkdir(SCRATCH "/lib.upper") < 0 ||
	    tree_mkdir(SCRATCH "/lib.work") < 0 || tree_lib(space->profile, space->files, SCRATCH "/lib") < 0)
		return -1;
	return mount("none", lib, "overlay", MS_NOSUID | MS_NODEV | MS_NOATIME, options) < 0 ? complain(lib) : 0;
}

static int make_lib(const struct space *space, const char *lib)
{
	const char *behind = space->profile->lib_behind;

	if (space->profile->wsl_mounts && !behind)
		return mount_lib(space, lib);
	if (!behind)
		return tree_lib(space->profile, space->files, lib);
	if (tree_mkdirs(behind) < 0 || tree_lib(space->profile, space->files, behind) < 0)
		return -1;
	return tree_links(behind, lib);
}

static int make_wsl(const struct space *space)
{
	static const char lib[] = "/usr/lib/wsl/lib", drivers[] = "/usr/lib/wsl/drivers";
	bool mounts = space->profile->wsl_mounts;

	if (!space->profile->libdxcore && space->profile->lib_count == 0)
		return 0;
	if (tree_mkdir("/usr/lib/wsl") < 0 || tree_mkdir(lib) < 0 || tree_mkdir(drivers) < 0)
		return -1;
	if (mounts && mount("drivers", drivers, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOATIME, "mode=555") < 0)
		return complain(drivers);
	if (make_lib(space, lib) < 0 || tree_drivers(space->profile, space->files, drivers) < 0)
		return -1;
	if (mounts &&
	    mount(NULL, drivers, NULL, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOATIME, NULL) < 0)
		return complain(drivers);
	return 0;
}

/* The GPUs among this machine's PCI devices; a machine without a PCI bus shows none. */
static int make_sys(const struct space *space)
{
	static const char devices[] = "/sys/bus/pci/devices";

	if (access(devices, F_OK) < 0)
		return 0;
	return native_sys(&space->profile->native, SCRATCH "/pci") < 0 ? -1 : overlay("pci", devices);
}

/*
 * What a contributor's machine has of these classes is not the host's. Where neither has anything, nothing is mounted:
 * the kernel gives user namespaces no sysfs of their own while a mount covers a part of it.
 */
static int make_class(const struct space *space)
{
	static const char *const classes[] = {"drm", "accel", "kfd"};
	const struct profile_native *native = &space->profile->native;
	bool needed = native->card_count > 0 || native->accelerator_count > 0;
	char path[64];

	for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++) {
		(void)snprintf(path, sizeof(path), "/sys/class/%s", classes[i]);
		if (access(path, F_OK) < 0)
			continue;
		needed = true;
		(void)snprintf(path, sizeof(path), SCRATCH "/class/%s", classes[i]);
		if (hide_inside(path) < 0)
			return -1;
	}
	if (!needed)
		return 0;
	return native_class(native, SCRATCH "/class") < 0 ? -1 : overlay("class", "/sys/class");
}

/* /proc/driver/nvidia and the line for each driver in /proc/devices. */
static int make_proc(const struct space *space)
{
	if (native_proc(&space->profile->native, SCRATCH "/proc") < 0)
		return -1;
	if (mount(SCRATCH "/proc/driver", "/proc/driver", NULL, MS_BIND, NULL) < 0)
		return complain("/proc/driver");
	if (mount(SCRATCH "/proc/devices", "/proc/devices", NULL, MS_BIND, NULL) < 0)
		return complain("/proc/devices");
	return 0;
}

/* The machine's own cache of ldconfig(8) */
static int hide_ldconfig_cache(void)
{
	if (access("/var/cache/ldconfig", F_OK) == 0 &&
	    mount("none", "/var/cache/ldconfig", "tmpfs", 0, "mode=700") < 0)
		return complain("/var/cache/ldconfig");
	return 0;
}

/* What WSL's init does at boot, or a driver package. */
static int run_ldconfig(const char *option, const char *argument)
{
	char *const argv[] = {(char *)"ldconfig", (char *)option, (char *)argument, NULL};
	char *const envp[] = {NULL};
	posix_spawn_file_actions_t actions;
	int status = -1, result;
	pid_t pid;

	(void)posix_spawn_file_actions_init(&actions);
	(void)posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
	result = posix_spawn(&pid, "/sbin/ldconfig", &actions, NULL, argv, envp);
	(void)posix_spawn_file_actions_destroy(&actions);
	errno = result;
	if (result || waitpid(pid, &status, 0) < 0 || status != 0)
		return complain("ldconfig");
	return 0;
}

/* Also makes the links by which libraries are found; where no cache may know them, it is written where nobody looks. */
static int make_loader_cache(const struct profile *profile, const struct kept *kept)
{
	const struct profile_native *native = &profile->native;

	if (hide_ldconfig_cache() < 0)
		return -1;
	if (kept_use(kept, "/usr/lib/wsl/lib"))
		return 0;
	if (native->nvidia && native->root[0] && run_ldconfig("-r", native->root) < 0)
		return -1;
	if (native->nvidia && !native->loader_cache && run_ldconfig("-C", SCRATCH "/ld.so.cache") < 0)
		return -1;
	if (!profile->loader_cache && (!native->nvidia || !native->loader_cache || native->root[0]))
		return 0;
	if (run_ldconfig(NULL, NULL) < 0)
		return -1;
	kept_save(kept, SCRATCH "/lib.upper");
	return 0;
}

static int make_native(const struct space *space)
{
	if (make_sys(space) < 0)
		return -1;
	if (!space->profile->native.nvidia)
		return 0;
	return make_proc(space) < 0 || native_files(&space->profile->native, space->files) < 0 ? -1 : 0;
}

/* What programs remember of this host until its next boot, and what they have set up on it, is nothing for another. */
static int make_states(void)
{
	static const char *const directories[] = {"/run/ctr-gpu", "/var/lib/ctr-gpu"};

	for (size_t i = 0; i < sizeof(directories) / sizeof(directories[0]); i++)
		if (tree_mkdir(directories[i]) < 0 ||
		    mount("none", directories[i], "tmpfs", MS_NOSUID | MS_NODEV, "mode=755") < 0)
			return complain(directories[i]);
	return 0;
}

/* Engines would find in the simulated host what is installed and set up on the machine, as users of ctr-gpu have it. */
static int hide_installed(void)
{
	static const char *const patterns[] = {
		"/usr/bin/nvidia-c[dot]*", /* nvidia-cdi-hook, nvidia-container-…, nvidia-ctk */
		"/usr/bin/ctr-gpu*",
		"/usr/libexec/ctr-gpu/ctr-gpu-*",
		"/usr/share/ctr-gpu/unregister",
		"/usr/share/ctr-gpu/selinux",
		"/usr/share/doc/ctr-gpu-nvidia-compat/*",
		"/usr/share/doc/ctr-gpu-nvidia-compat",
		"/usr/share/containers/oci/hooks.d/ctr-gpu.json",
		"/usr/share/containers/oci/hooks.d/*nvidia*",
		"/etc/cdi/ctr-gpu-*",
		"/etc/containers/containers.conf.d/99-ctr-gpu.conf",
		"/etc/ctr-gpu/config.json",
		"/etc/docker/daemon.json",
	};
	glob_t found = {0};
	int r = 0;

	for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++)
		(void)glob(patterns[i], i > 0 ? GLOB_APPEND : 0, NULL, &found);
	for (size_t i = 0; i < found.gl_pathc && r == 0; i++)
		if (remove(found.gl_pathv[i]) < 0)
			r = complain(found.gl_pathv[i]);
	globfree(&found);
	return r;
}

static int make_host(const struct space *space)
{
	const struct profile *profile = space->profile;
	struct kept kept;

	kept_find(profile, space->files, &kept);
	if (make_states() < 0)
		return -1;
	if (make_dev(space) < 0 || make_class(space) < 0 || overlay("etc", "/etc") < 0 || overlay("usr", "/usr") < 0 ||
	    hide_installed() < 0)
		return -1;
	if (profile->dxg && make_wsl(space) < 0)
		return -1;
	if (profile->native.present && make_native(space) < 0)
		return -1;
	if (profile->loader_cache && tree_write("/etc/ld.so.conf.d/ld.wsl.conf", "/usr/lib/wsl/lib\n") < 0)
		return -1;
	return make_loader_cache(profile, &kept);
}

int space_enter(const struct space *space)
{
	if (unshare(CLONE_NEWNS) < 0)
		return complain("a mount namespace of its own");
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return complain(
			errno == EINVAL
				? "/ is not a mount point, as in a plain chroot; run this in a container or on a machine"
				: "/");
	if (mount("none", SCRATCH, "tmpfs", 0, "mode=755") < 0)
		return complain(SCRATCH);
	if (scratch_directories() < 0 || make_host(space) < 0)
		return -1;
	if (space->cgroup2 && mount("none", "/sys/fs/cgroup", "cgroup2", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0)
		return complain("/sys/fs/cgroup");
	if (umount2(SCRATCH, MNT_DETACH) < 0)
		return complain(SCRATCH);
	return 0;
}

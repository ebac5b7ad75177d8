/* SPDX-License-Identifier: Apache-2.0 */

/* `ctr-gpu load` on a host with NVIDIA's driver: its kernel modules and device nodes. */

#include "nvidia/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"
#include "model/backend.h"
#include "root/rootfs.h"

/* ---- programs ---- */

/*
 * The host's modprobe(8) loads modules with what they need and as /etc/modprobe.d says, and its restorecon(8) knows the
 * label that SELinux's policy has for a node. Besides them, ctr-gpu-driverd and ctr-gpu-guard the library starts no
 * program, and them only for a caller that asks for modules and nodes.
 */

/* The path of a program in one of the directories @programs; NULL if there is none or no memory. */
static char *program_find(const char *programs, const char *name)
{
	_cleanup_strv_ struct strv directories = {0};

	if (strv_split(programs, ":", &directories) < 0)
		return NULL;
	for (size_t i = 0; i < directories.count; i++) {
		_cleanup_free_ char *path = NULL;
		struct stat st;

		if (str_format(&path, "%s/%s", directories.items[i], name) < 0)
			return NULL;
		if (stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0)
			return steal_ptr(path);
	}
	return NULL;
}

/* Without environment and without our descriptors. @errors: what it writes its errors to. Return: 0; -errno. */
static int program_spawn(const char *path, char *const *arguments, int errors, pid_t *ret)
{
	static char *const environment[] = {NULL};
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t all, none;
	int r;

	(void)sigfillset(&all);
	(void)sigemptyset(&none);
	if (posix_spawn_file_actions_init(&actions) != 0)
		return -ENOMEM;
	if (posix_spawnattr_init(&attributes) != 0) {
		(void)posix_spawn_file_actions_destroy(&actions);
		return -ENOMEM;
	}
	(void)posix_spawnattr_setsigdefault(&attributes, &all);
	(void)posix_spawnattr_setsigmask(&attributes, &none);
	(void)posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
	r = posix_spawn_file_actions_adddup2(&actions, errors, STDERR_FILENO);
	if (r == 0)
		r = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDWR, 0);
	if (r == 0)
		r = posix_spawn_file_actions_adddup2(&actions, STDIN_FILENO, STDOUT_FILENO);
	if (r == 0)
		r = posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
	if (r == 0)
		r = posix_spawn(ret, path, &actions, &attributes, arguments, environment);
	(void)posix_spawnattr_destroy(&attributes);
	(void)posix_spawn_file_actions_destroy(&actions);
	return -r;
}

/* Return: 0 if it succeeded, or if its status cannot be known; 1 if it failed; -errno. */
static int program_wait(pid_t pid)
{
	int wait_status, r;

	do
		r = waitpid(pid, &wait_status, 0) < 0 ? -errno : 0;
	while (r == -EINTR);
	/* A caller that ignores SIGCHLD gets no status; /proc shows whether the module is loaded. */
	if (r < 0)
		return r == -ECHILD ? 0 : r;
	return !WIFEXITED(wait_status) || WEXITSTATUS(wait_status) != 0;
}

/* ---- modprobe ---- */

enum { REPORT_ERROR_MAX = 320 };

/* @errors: what modprobe wrote; its first line is the reason, and what follows repeats it for each dependency. */
static int program_modprobe_error(const char *module, const char *release, int errors, struct err *err)
{
	char message[REPORT_ERROR_MAX];
	ssize_t size = pread(errors, message, sizeof(message) - 1, 0);

	message[size > 0 ? size : 0] = '\0';
	message[strcspn(message, "\n")] = '\0';
	str_make_printable(message);
	if (strstr(message, "not found"))
		return err_set_advised(err, CTR_GPU_E_KERNEL_MODULE, ("cannot load the module %s: %s", module, message),
				       ("Install NVIDIA's driver for kernel %s.", release));
	if (strstr(message, "No such device"))
		return err_set_advised(
			err, CTR_GPU_E_KERNEL_MODULE, ("cannot load the module %s: %s", module, message),
			("It found no GPU that it can drive: another driver (nouveau, vfio-pci) may have it; lspci -k "
			 "shows that."));
	return err_set_advised(
		err, CTR_GPU_E_KERNEL_MODULE,
		("cannot load the module %s: %s", module, *message ? message : "modprobe failed and said nothing"),
		("The kernel may have said more: dmesg shows it."));
}

/*
 * Has modprobe load a module.
 * @programs:    directories to search for modprobe, with colons between them
 * @driver_root: modules are taken from there if it has some for this kernel; NULL: "/"
 *
 * modprobe gets no environment, no shell, and none of our descriptors. Return: 0; CTR_GPU_E_KERNEL_MODULE or negative
 * errno with @err set.
 */
static int program_modprobe(const char *programs, const char *driver_root, const char *module, struct err *err)
{
	/* A file and no pipe: what modprobe starts in turn may hold it open for as long as it likes. */
	_cleanup_close_ int errors = memfd_create("modprobe", MFD_CLOEXEC);
	_cleanup_free_ char *path = program_find(programs, "modprobe");
	_cleanup_free_ char *modules = NULL;
	const char *from_root[] = {path, "-d", driver_root, "--", module, NULL}, *plain[] = {path, "--", module, NULL};
	bool in_root = driver_root && !streq(driver_root, "/");
	struct utsname name = {0};
	pid_t pid = -1;
	int r;

	if (errors < 0)
		return err_set(err, -errno, "cannot make a file for what modprobe says: %m");
	if (!path)
		return err_set_advised(
			err, CTR_GPU_E_KERNEL_MODULE,
			("modprobe is missing from %s, and nothing else can load kernel modules", programs),
			("Install kmod."));
	(void)uname(&name);
	/* A driver in a root of its own often brings modules for the kernel that runs. */
	if (in_root && str_format(&modules, "%s/lib/modules/%s", driver_root, name.release) < 0)
		return err_set(err, -ENOMEM, "%m");
	r = program_spawn(path, (char *const *)(in_root && access(modules, F_OK) == 0 ? from_root : plain), errors,
			  &pid);
	if (r < 0)
		return err_set(err, r, "cannot run %s: %m", path);
	r = program_wait(pid);
	if (r < 0)
		return err_set(err, r, "cannot wait for %s: %m", path);
	return r == 0 ? 0 : program_modprobe_error(module, name.release, errors, err);
}

/* ---- which modules and nodes are missing: nothing is changed here ---- */

static const struct {
	const char *name, *directory, *reason; /* in /sys/module a dash is an underscore */
	bool modeset;
} modules[] = {
	{"nvidia", "nvidia", "the driver itself", false},
	{"nvidia-uvm", "nvidia_uvm", "unified memory, without which CUDA does not start", false},
	{"nvidia-modeset", "nvidia_modeset", "display modes", true},
};

static int load_add_modules(const struct load_host *host, const struct load_options *options, const char *devices,
			    struct load *load)
{
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(modules) && r == 0; i++) {
		_cleanup_free_ char *path = NULL;
		unsigned number;
		bool loaded;

		if (str_format(&path, "%s/module/%s", host->sys, modules[i].directory) < 0)
			return -ENOMEM;
		/* A driver that has a number is loaded; nvidia-modeset has none of its own. */
		loaded = module_major(devices, modules[i].name, &number) == 0 || access(path, F_OK) == 0;
		if (!modules[i].modeset || options->modeset || loaded)
			r = load_add(load, &(struct load_step){
						   .kind = LOAD_MODULE,
						   .state = loaded ? LOAD_THERE : LOAD_MISSING,
						   .name = strdup(modules[i].name),
						   .reason = strdup(modules[i].reason),
					   });
	}
	return r;
}

/*
 * A driver in a root of its own may have a second /dev there, for programs that are run in that root. It may also be
 * this machine's, or missing.
 */
static int load_find_second_dev(const struct load_host *host, const char *driver_root, char **ret)
{
	_cleanup_rootfs_ struct rootfs rootfs = ROOTFS_CLOSED;
	_cleanup_close_ int fd = -1;
	_cleanup_free_ char *link = NULL;
	struct stat own, other;

	*ret = NULL;
	if (!driver_root || streq(driver_root, "/") || rootfs_open(AT_FDCWD, driver_root, &rootfs) < 0)
		return 0;
	fd = rootfs_open_path(&rootfs, "dev", O_PATH | O_DIRECTORY);
	if (fd < 0 || fstat(fd, &other) < 0 || stat(host->dev, &own) < 0)
		return 0;
	if (own.st_dev == other.st_dev && own.st_ino == other.st_ino)
		return 0;
	/* The kernel's name of what was found inside the root, symlinks resolved there. */
	if (str_format(&link, "/proc/self/fd/%d", fd) < 0)
		return -ENOMEM;
	return fd_read_link_at(AT_FDCWD, link, ret);
}

static int load_add_all_nodes(const struct load_host *host, const struct load_options *options, const char *devices,
			      struct load *load, struct err *err)
{
	_cleanup_free_ char *second = NULL;
	int r = load_add_nodes(host, options, devices, host->dev, load, err);

	if (r == 0)
		r = load_find_second_dev(host, options->driver_root, &second);
	return r == 0 && second ? load_add_nodes(host, options, devices, second, load, err) : r;
}

/* Nothing is done where something else is in a node's place. */
static int load_refuse_wrong(const struct load *load, struct err *err)
{
	for (size_t i = 0; i < load->count; i++)
		if (load->steps[i].state == LOAD_WRONG)
			return err_set_advised(
				err, CTR_GPU_E_WRONG_NODE,
				("%s should be %s, and is %s", load->steps[i].name,
				 load->steps[i].kind == LOAD_NODE ? "a node of NVIDIA's driver" : "a directory",
				 load->steps[i].found),
				("Look at what made it; ctr-gpu load --replace puts the right one in its place."));
	return 0;
}

int load_decide(const struct load_host *host, const struct load_options *options, struct load *ret, struct err *err)
{
	_cleanup_load_ struct load load = {0};
	_cleanup_free_ char *path = NULL, *devices = NULL;
	struct pci_function gpu;
	int r;

	if (str_format(&path, "%s/devices", host->proc) < 0)
		return -ENOMEM;
	r = module_read_file(path, &devices);
	if (r < 0)
		return err_set(err, r, "cannot read %s: %m", path);
	r = load_add_modules(host, options, devices, &load);
	if (r < 0)
		return r;
	/* The first is the driver itself. */
	if (load.steps[0].state == LOAD_THERE)
		r = load_add_all_nodes(host, options, devices, &load, err);
	else if (pci_find(host->sys, module_is_gpu, &gpu))
		r = strv_format(&load.remarks, "which device nodes are missing shows when the module nvidia is loaded");
	else
		r = err_set_advised(
			err, CTR_GPU_E_NO_DEVICE,
			("this machine has no GPU of NVIDIA: none in %s/bus/pci/devices, and no module of its driver "
			 "is loaded",
			 host->sys),
			("In a virtual machine, the GPU must be passed through to it first."));
	if (r == 0 && !options->replace)
		r = load_refuse_wrong(&load, err);
	if (r == 0)
		*ret = steal_struct(&load);
	return r;
}

/* ---- doing it ---- */

/* Modules come first: once they are loaded, the missing nodes are known. */

static bool load_is_pending(const struct load_step *step)
{
	return step->state == LOAD_MISSING || step->state == LOAD_WRONG;
}

static int load_apply_modules(const struct load_host *host, const struct load_options *options, struct load *load,
			      struct err *err)
{
	_cleanup_strv_ struct strv loaded = {0};
	_cleanup_load_ struct load before = {0};
	int r = 0;

	for (size_t i = 0; i < load->count && r == 0; i++) {
		const struct load_step *step = &load->steps[i];

		if (step->kind != LOAD_MODULE || step->state != LOAD_MISSING)
			continue;
		r = program_modprobe(host->programs, options->driver_root, step->name, err);
		if (r == 0)
			r = strv_add(&loaded, step->name);
	}
	if (r != 0 || loaded.count == 0)
		return r;
	before = steal_struct(load);
	r = load_decide(host, options, load, err);
	for (size_t i = 0; i < load->count && r == 0; i++) {
		struct load_step *step = &load->steps[i];

		if (step->kind != LOAD_MODULE || !strv_contains(&loaded, step->name))
			continue;
		/*
		 * modprobe succeeds, too, where /etc/modprobe.d has it do something else ("install nvidia /bin/true").
		 */
		if (step->state == LOAD_MISSING)
			return err_set_advised(
				err, CTR_GPU_E_KERNEL_MODULE,
				("modprobe %s said nothing, and the module is not loaded all the same", step->name),
				("A file in /etc/modprobe.d may forbid it: modprobe --showconfig | grep nvidia"));
		step->state = LOAD_DONE;
	}
	return r;
}

static int load_make(int parent, const char *name, const struct load_step *step)
{
	bool node = step->kind == LOAD_NODE;
	int r;

	if ((node ? mknodat(parent, name, S_IFCHR | 0600, step->number) : mkdirat(parent, name, step->mode)) < 0)
		return -errno;
	if ((!node || fchownat(parent, name, step->uid, step->gid, AT_SYMLINK_NOFOLLOW) == 0) &&
	    fchmodat(parent, name, step->mode, 0) == 0)
		return 0;
	r = -errno;
	(void)unlinkat(parent, name, node ? 0 : AT_REMOVEDIR);
	return r;
}

/*
 * The node gets its mode under a temporary name and is then renamed. So no process sees it with a wrong mode, and a
 * node that it replaces is there until then.
 */
static int load_apply_step(const struct load_step *step)
{
	const char *name = strrchr(step->name, '/') + 1;
	_cleanup_free_ char *temporary = NULL, *directory = strndup(step->name, (size_t)(name - step->name));
	_cleanup_close_ int parent = -1;
	unsigned random;
	int r;

	if (!directory)
		return -ENOMEM;
	/* A symlink in the directory's place must not lead elsewhere: O_NOFOLLOW. */
	if (name - step->name > 1)
		directory[name - step->name - 1] = '\0';
	parent = open(directory, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (parent < 0)
		return -errno;
	if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
		return -EIO;
	if (str_format(&temporary, ".ctr-gpu-%08x", random) < 0)
		return -ENOMEM;
	r = load_make(parent, temporary, step);
	if (r < 0)
		return r;
	/* A file gives way to a node, a file or a node to a directory only when it is gone. */
	if (step->state == LOAD_WRONG && step->kind == LOAD_DIRECTORY)
		(void)unlinkat(parent, name, 0);
	if (renameat2(parent, temporary, parent, name, step->state == LOAD_MISSING ? RENAME_NOREPLACE : 0) < 0)
		r = -errno;
	if (r < 0)
		(void)unlinkat(parent, temporary, step->kind == LOAD_NODE ? 0 : AT_REMOVEDIR);
	return r;
}

static int load_apply_error(const struct load_step *step, int r, struct err *err)
{
	r = err_set(err, r, "cannot make %s: %m", step->name);
	return r == -EPERM ? err_advise(err, r, "In a user namespace the kernel lets no process make device nodes.")
			   : r;
}

static int load_apply_files(struct load *load, struct err *err)
{
	for (size_t i = 0; i < load->count; i++) {
		struct load_step *step = &load->steps[i];
		struct stat st;
		int r;

		if (step->kind == LOAD_MODULE || !load_is_pending(step))
			continue;
		r = load_apply_step(step);
		/* udev or another run may have been faster; then it is what was wanted, or an error. */
		if (r == -EEXIST && lstat(step->name, &st) == 0 &&
		    (step->kind == LOAD_NODE ? S_ISCHR(st.st_mode) && st.st_rdev == step->number
					     : S_ISDIR(st.st_mode))) {
			step->state = LOAD_THERE;
			continue;
		}
		if (r < 0)
			return load_apply_error(step, r, err);
		step->state = LOAD_DONE;
	}
	return 0;
}

/* Whether the kernel has SELinux, and the machine what knows its policy's labels. */
static bool load_has_labels(const struct load_host *host, const char *restorecon)
{
	_cleanup_free_ char *path = NULL;

	return restorecon && str_format(&path, "%s/fs/selinux/enforce", host->sys) == 0 && access(path, F_OK) == 0;
}

/*
 * What udev makes has the label that SELinux's policy has for it; what we made has the directory's, and no container
 * may use it. Without the label the nodes are there all the same: doctor says what they lack.
 */
static void load_label_files(const struct load_host *host, const struct load *load)
{
	_cleanup_free_ char *restorecon = program_find(host->programs, "restorecon");
	_cleanup_free_ const char **arguments = calloc(load->count + 3, sizeof(*arguments));
	_cleanup_close_ int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	size_t count = 0;
	pid_t pid = -1;

	if (!arguments || null < 0 || !load_has_labels(host, restorecon))
		return;
	arguments[count++] = restorecon;
	arguments[count++] = "--";
	for (size_t i = 0; i < load->count; i++)
		if (load->steps[i].kind != LOAD_MODULE && load->steps[i].state == LOAD_DONE)
			arguments[count++] = load->steps[i].name;
	if (count > 2 && program_spawn(restorecon, (char *const *)arguments, null, &pid) == 0)
		(void)program_wait(pid);
}

int load_apply(const struct load_host *host, const struct load_options *options, struct load *load, struct err *err)
{
	bool pending = false;
	int r;

	for (size_t i = 0; i < load->count; i++)
		pending = pending || load_is_pending(&load->steps[i]);
	if (!pending)
		return 0;
	if (geteuid() != 0)
		return err_set_advised(err, CTR_GPU_E_NO_PERMISSION,
				       ("only root may load kernel modules and make device nodes"),
				       ("ctr-gpu load --dry-run shows what is missing."));
	r = load_apply_modules(host, options, load, err);
	if (r == 0)
		r = load_apply_files(load, err);
	load_label_files(host, load);
	return r;
}

/* ---- this host ---- */

static const struct load_host this_host = {
	.proc = "/proc", .sys = "/sys", .dev = "/dev", .programs = "/sbin:/usr/sbin:/bin:/usr/bin"};

static int load_decide_here(const struct load_options *options, struct load *ret, struct err *err)
{
	return load_decide(&this_host, options, ret, err);
}

static int load_apply_here(const struct load_options *options, struct load *load, struct err *err)
{
	return load_apply(&this_host, options, load, err);
}

const struct backend_load loader_nvidia = {.decide = load_decide_here, .apply = load_apply_here};

/* SPDX-License-Identifier: Apache-2.0 */

#include "nvidia/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/str.h"

char *program_find(const char *programs, const char *name)
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

int program_spawn(const char *path, char *const *arguments, int errors, pid_t *ret)
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

int program_wait(pid_t pid)
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

int program_modprobe(const char *programs, const char *driver_root, const char *module, struct err *err)
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

/* SPDX-License-Identifier: Apache-2.0 */

#include "nvidia/internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/str.h"

enum { REPORT_ERROR_MAX = 320 };

/* @errors: what modprobe wrote; its first line is the reason, and what follows repeats it for each dependency. */
static int modprobe_log(const char *module, const char *release, int errors, struct err *err)
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

int modprobe_load(const char *programs, const char *driver_root, const char *module, struct err *err)
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
	return r == 0 ? 0 : modprobe_log(module, name.release, errors, err);
}

/* SPDX-License-Identifier: Apache-2.0 */

#include "nvidia/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/fd.h"
#include "base/paths.h"
#include "base/str.h"
#include "model/adapter.h"

enum {
	SMALL_FILE_MAX = 4095,
	PROC_FILE_MAX = 256 * 1024,
};

void module_clear(struct module *module)
{
	free(module->version);
	free(module->devices);
	*module = (struct module){0};
}

/* Below /proc it is one record of the kernel's, which one read gives whole. */
int module_read_small(const char *path, char **ret)
{
	return fd_read_kernel_file(AT_FDCWD, path, SMALL_FILE_MAX, ret);
}

int module_read_file(const char *path, char **ret)
{
	return fd_read_file_at(AT_FDCWD, path, PROC_FILE_MAX, ret, NULL);
}

/* Drivers before 550 register one "frontend" for all nodes of major 195. */
int module_major(const char *devices, const char *driver, unsigned *ret)
{
	int r = proc_device_major(devices, driver, ret);

	if (r == -ENOENT && streq(driver, "nvidia"))
		return proc_device_major(devices, "nvidia-frontend", ret);
	return r;
}

static int module_check_node(const struct module *module, const struct stat *st, const char *driver,
			     unsigned node_minor)
{
	unsigned number;

	if (!S_ISCHR(st->st_mode))
		return -ENODEV;
	if (module_major(module->devices, driver, &number) < 0)
		return -ENXIO;
	return st->st_rdev == makedev(number, node_minor) ? 0 : -ENODEV;
}

int module_node(const struct module *module, const char *path, const char *driver, unsigned node_minor,
		struct stat *ret)
{
	struct stat st;
	int r;

	if (stat(path, &st) < 0)
		return -errno;
	r = module_check_node(module, &st, driver, node_minor);
	if (r == 0)
		*ret = st;
	return r;
}

static int module_read_version(char **ret)
{
	_cleanup_free_ char *text = NULL;
	int r;

	r = module_read_small(PATH_PROC_NVIDIA "/version", &text);
	return r < 0 ? r : proc_driver_version(text, ret);
}

int module_read(struct module *ret, struct err *err)
{
	_cleanup_module_ struct module module = {0};
	struct stat st;
	int r;

	/* Nothing else decides whether this kind of device is here. */
	if (stat(PATH_NVIDIACTL, &st) < 0 || !S_ISCHR(st.st_mode))
		return CTR_GPU_E_NO_DEVICE;
	r = module_read_version(&module.version);
	if (r == -ENOENT)
		return err_set_advised(err, CTR_GPU_E_NO_ADAPTER,
				       (PATH_NVIDIACTL
					" is there, but NVIDIA's kernel module is not loaded (%s/version is missing)",
					PATH_PROC_NVIDIA),
				       ("Load the module: sudo ctr-gpu load. If that fails, dmesg says why."));
	if (r < 0)
		return err_set(err, r, "cannot read " PATH_PROC_NVIDIA "/version: %m");
	r = module_read_file("/proc/devices", &module.devices);
	if (r < 0)
		return err_set(err, r, "cannot read /proc/devices: %m");
	if (module_check_node(&module, &st, "nvidia", MINOR_CONTROL) < 0)
		return err_set_advised(err, CTR_GPU_E_NO_ADAPTER,
				       (PATH_NVIDIACTL " is device %u:%u, and by /proc/devices that is another",
					major(st.st_rdev), minor(st.st_rdev)),
				       ("Put the right one there: ctr-gpu load --replace"));
	*ret = steal_struct(&module);
	return 0;
}

bool module_is_gpu(const struct pci_function *function)
{
	return function->display && function->vendor == PCI_VENDOR_NVIDIA;
}

/* SPDX-License-Identifier: Apache-2.0 */

/* Which modules and nodes a host has and lacks. Nothing is changed here. */

#include "nvidia/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "root/rootfs.h"

static const struct {
	const char *name, *directory, *reason; /* in /sys/module a dash is an underscore */
	bool modeset;
} modules[] = {
	{"nvidia", "nvidia", "the driver itself", false},
	{"nvidia-uvm", "nvidia_uvm", "unified memory, without which CUDA does not start", false},
	{"nvidia-modeset", "nvidia_modeset", "display modes", true},
};

/* ---- modules ---- */

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

/* ---- directories of nodes ---- */

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

/* ---- all of it ---- */

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

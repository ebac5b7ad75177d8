/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a program in a container sees of a GPU. It knows nothing of this project: it asks the loader for the driver by its
 * SONAME, as every CUDA program does, walks down to the device and prints what it met, one "name=value" per line.
 *
 *	probe            the whole chain
 *	probe open PATH  open one device file, "PATH=ok" or "PATH=EPERM"
 *	probe node MAJOR MINOR PATH   make a device file, then open it
 */

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* CUresult and CUdevice are ints in the driver API. */
typedef int cu_init_fn(unsigned flags);
typedef int cu_count_fn(int *count);
typedef int cu_get_fn(int *device, int ordinal);
typedef int cu_name_fn(char *name, int size, int device);

static const struct {
	int number;
	const char *name;
} errors[] = {
	{0, "ok"},          {EPERM, "EPERM"},   {ENOENT, "ENOENT"}, {EACCES, "EACCES"},
	{ENODEV, "ENODEV"}, {ENXIO, "ENXIO"},   {EBUSY, "EBUSY"},   {EINVAL, "EINVAL"},
	{EROFS, "EROFS"},   {EEXIST, "EEXIST"}, {EBADF, "EBADF"},
};

static const char *error_name(int number)
{
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		if (errors[i].number == number)
			return errors[i].name;
	}
	return strerror(number);
}

static void open_device(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	printf("%s=%s\n", path, error_name(fd < 0 ? errno : 0));
	if (fd >= 0)
		close(fd);
}

static int make_device(char **argv)
{
	dev_t number = makedev((unsigned)atoi(argv[0]), (unsigned)atoi(argv[1]));

	if (mknod(argv[2], S_IFCHR | 0666, number) < 0 && errno != EEXIST) {
		printf("%s=mknod: %s\n", argv[2], error_name(errno));
		return 1;
	}
	open_device(argv[2]);
	return 0;
}

static int print_library(struct dl_phdr_info *info, size_t size, void *unused)
{
	(void)size;
	(void)unused;
	if (info->dlpi_name[0] == '/')
		printf("library=%s\n", info->dlpi_name);
	return 0;
}

static void *symbol(void *library, const char *name)
{
	void *found = dlsym(library, name);

	if (!found)
		printf("%s=missing\n", name);
	return found;
}

static int ask_driver(void *library)
{
	cu_init_fn *init = (cu_init_fn *)symbol(library, "cuInit");
	cu_count_fn *count_devices = (cu_count_fn *)symbol(library, "cuDeviceGetCount");
	cu_get_fn *get = (cu_get_fn *)symbol(library, "cuDeviceGet");
	cu_name_fn *name_of = (cu_name_fn *)symbol(library, "cuDeviceGetName");
	int result, count = 0, device;
	char name[256];

	if (!init || !count_devices || !get || !name_of)
		return 1;
	result = init(0);
	printf("cuInit=%d\n", result);
	if (result != 0)
		return 1;
	result = count_devices(&count);
	printf("count=%d\n", result == 0 ? count : -1);
	for (int i = 0; i < count; i++) {
		if (get(&device, i) != 0 || name_of(name, sizeof(name), device) != 0)
			return 1;
		printf("device=%.*s\n", (int)sizeof(name), name);
	}
	return 0;
}

static int walk_chain(void)
{
	void *library;
	int result;

	open_device("/dev/dxg");
	library = dlopen("libcuda.so.1", RTLD_NOW);
	if (!library) {
		printf("libcuda.so.1=%s\n", dlerror());
		return 1;
	}
	result = ask_driver(library);
	dl_iterate_phdr(print_library, NULL);
	return result;
}

int main(int argc, char **argv)
{
	if (argc == 3 && strcmp(argv[1], "open") == 0) {
		open_device(argv[2]);
		return 0;
	}
	if (argc == 5 && strcmp(argv[1], "node") == 0)
		return make_device(argv + 2);
	return walk_chain();
}

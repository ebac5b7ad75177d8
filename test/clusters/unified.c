/* SPDX-License-Identifier: Apache-2.0 */

/*
 * unified.so, for LD_PRELOAD of slurmd: what it and its slurmstepds read as /proc/self/cgroup has the line of cgroup
 * version 2 alone. They refuse machines that have version 1 besides, though all that they use is of version 2 where
 * that is mounted on /sys/fs/cgroup.
 */

#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PATH_MEMBERSHIP "/proc/self/cgroup"
#define VERSION_2 "0::"

static int unified_open_file(const char *path, int flags, mode_t mode)
{
	static int (*next)(const char *path, int flags, ...);

	if (!next)
		*(void **)&next = dlsym(RTLD_NEXT, "open");
	return next(path, flags, mode);
}

static int unified_open_membership(void)
{
	const int fd = memfd_create("cgroup", MFD_CLOEXEC), all = unified_open_file(PATH_MEMBERSHIP, O_RDONLY, 0);
	FILE *file = all < 0 ? NULL : fdopen(all, "r");
	char line[4096];

	while (file && fd >= 0 && fgets(line, sizeof(line), file))
		if (strncmp(line, VERSION_2, strlen(VERSION_2)) == 0 && write(fd, line, strlen(line)) < 0)
			break;
	if (file)
		(void)fclose(file);
	(void)lseek(fd, 0, SEEK_SET);
	return fd;
}

__attribute__((visibility("default"))) int open(const char *path, int flags, ...)
{
	va_list arguments;
	mode_t mode;

	if (strcmp(path, PATH_MEMBERSHIP) == 0)
		return unified_open_membership();
	va_start(arguments, flags);
	mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(arguments, mode_t) : 0;
	va_end(arguments);
	return unified_open_file(path, flags, mode);
}

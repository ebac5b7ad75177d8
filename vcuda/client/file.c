/* SPDX-License-Identifier: Apache-2.0 */

/* Files that the program has mapped, so that others can map them, too. */

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "vcuda/client/host.h"

enum { FILE_LINE = 4400, FILE_PATH = 4096 };

/* A line of /proc/self/maps. */
struct file_mapping {
	uint64_t begin, end, offset, inode;
	dev_t device;
	const char *path;
	bool shared;
};

/* strtoull(3) has another name in each glibc. Return: what stands behind the number, and behind what ends it. */
static const char *file_read_number(const char *at, unsigned base, uint64_t *ret)
{
	*ret = 0;
	for (;; at++) {
		const unsigned digit = *at >= '0' && *at <= '9'   ? (unsigned)(*at - '0')
				       : *at >= 'a' && *at <= 'f' ? (unsigned)(*at - 'a' + 10)
								  : base;

		if (digit >= base)
			return *at ? at + 1 : at;
		*ret = *ret * base + digit;
	}
}

static bool file_read_line(char *line, struct file_mapping *ret)
{
	uint64_t major_number, minor_number;
	const char *at = file_read_number(line, 16, &ret->begin);

	at = file_read_number(at, 16, &ret->end);
	if (strlen(at) < strlen("rw-s "))
		return false;
	ret->shared = memcmp(at, "rw", 2) == 0 && at[3] == 's';
	at = file_read_number(at + strlen("rw-s "), 16, &ret->offset);
	at = file_read_number(at, 16, &major_number);
	at = file_read_number(at, 16, &minor_number);
	ret->path = file_read_number(at, 10, &ret->inode);
	ret->device = makedev((unsigned)major_number, (unsigned)minor_number);
	ret->path += strspn(ret->path, " ");
	line[strcspn(line, "\n")] = '\0';
	return true;
}

/* fstat(2) is no function of a glibc before 2.33. */
static bool file_is(int fd, const struct file_mapping *mapping)
{
	struct stat st;

	return fd >= 0 && syscall(SYS_fstat, fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_dev == mapping->device &&
	       st.st_ino == mapping->inode;
}

/* One that has no name any more, the program may have open. */
static int file_find_open(const struct file_mapping *mapping)
{
	DIR *directory = opendir("/proc/self/fd");
	const struct dirent *entry;
	int found = -1;

	while (directory && found < 0 && (entry = readdir(directory))) {
		uint64_t number;

		(void)file_read_number(entry->d_name, 10, &number);
		if (entry->d_name[0] != '.' && file_is((int)number, mapping))
			found = fcntl((int)number, F_DUPFD_CLOEXEC, 3);
	}
	if (directory)
		(void)closedir(directory);
	return found;
}

/* What is no file in memory is not opened: that could wait, or do something. */
static int file_open(const struct file_mapping *mapping)
{
	struct stat st;
	int fd;

	if (!mapping->inode)
		return -1;
	if (mapping->path[0] != '/' || syscall(SYS_newfstatat, AT_FDCWD, mapping->path, &st, 0) < 0 ||
	    !S_ISREG(st.st_mode) || st.st_dev != mapping->device || st.st_ino != mapping->inode)
		return file_find_open(mapping);
	fd = open(mapping->path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (file_is(fd, mapping))
		return fd;
	if (fd >= 0)
		(void)close(fd);
	return file_find_open(mapping);
}

int file_find(uint64_t at, uint64_t bytes, uint64_t *ret_offset)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char *line = maps ? malloc(FILE_LINE) : NULL;
	struct file_mapping mapping;
	int fd = -1;

	while (line && fgets(line, FILE_LINE, maps)) {
		if (!file_read_line(line, &mapping) || at < mapping.begin || at >= mapping.end)
			continue;
		if (mapping.shared && bytes <= mapping.end - at) {
			*ret_offset = mapping.offset + (at - mapping.begin);
			fd = file_open(&mapping);
		}
		break;
	}
	free(line);
	if (maps)
		(void)fclose(maps);
	return fd;
}

/* SPDX-License-Identifier: Apache-2.0 */

#include "guard/pins.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/magic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/fd.h"
#include "guard/choice.h"
#include "system/trusted_file.h"

const char *const pins_file_systems[PINS_FILE_SYSTEMS] = {PINS_USUAL_FILE_SYSTEM, PINS_OWN_FILE_SYSTEM};

/* Return: a descriptor; -ENOENT if it is of another file system than BPF's; negative errno. */
static int pins_open_trusted(const char *path)
{
	_cleanup_close_ int fd = trusted_file_open(path, S_IFDIR, TRUSTED_FILE_ROOT_ONLY, O_RDONLY);
	struct statfs fs;

	if (fd < 0)
		return fd;
	if (fstatfs(fd, &fs) < 0)
		return -errno;
	return fs.f_type == BPF_FS_MAGIC ? steal_fd(&fd) : -ENOENT;
}

int pins_open_file_system(size_t file_system)
{
	return pins_open_trusted(pins_file_systems[file_system]);
}

int pins_open_at(size_t file_system, const char *name)
{
	char path[64];
	int fd;

	(void)snprintf(path, sizeof(path), "%s/%s", pins_file_systems[file_system], name);
	fd = pins_open_trusted(path);
	/* Where root put nothing, somebody else's file, or the way to it, is as good as none. */
	return fd == -EPERM || fd == -EINVAL || fd == -ENOTDIR || fd == -ELOOP ? -ENOENT : fd;
}

int pins_open(size_t *ret_file_system)
{
	int r = -ENOENT;

	for (size_t i = 0; i < PINS_FILE_SYSTEMS && r == -ENOENT; i++) {
		r = pins_open_at(i, PINS_NAME);
		if (r >= 0 && ret_file_system)
			*ret_file_system = i;
	}
	return r;
}

/* Only Linux 6.5 takes a descriptor for a path to begin at. */
int pins_open_pin(int pins, const char *name)
{
	union bpf_attr attr;
	char path[128];
	long fd;

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d/%s", pins, name);
	memset(&attr, 0, sizeof(attr));
	attr.pathname = (uint64_t)(uintptr_t)path;
	fd = syscall(SYS_bpf, BPF_OBJ_GET, &attr, sizeof(attr));
	return fd < 0 ? -errno : (int)fd;
}

bool pins_are_others(int file_system)
{
	static const char *const names[] = {PINS_NAME, PINS_NEXT_NAME};
	struct stat st;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (fstatat(file_system, names[i], &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		    (!S_ISDIR(st.st_mode) || st.st_uid != 0 || st.st_mode & (S_IWGRP | S_IWOTH)))
			return true;
	return false;
}

int pins_remove(size_t file_system, const char *name)
{
	_cleanup_close_ int fd = pins_open_at(file_system, name);
	_cleanup_dir_ DIR *dir = fd < 0 ? NULL : fd_open_directory(fd, ".", 0);
	const struct dirent *entry;
	char path[64];

	if (!dir)
		return fd == -ENOENT ? 0 : fd < 0 ? fd : -errno;
	if (unlinkat(fd, GUARD_CHOICES_NAME, 0) < 0 && errno != ENOENT)
		return -errno;
	while ((entry = readdir(dir)))
		if (entry->d_name[0] != '.' && unlinkat(fd, entry->d_name, 0) < 0 && errno != ENOENT)
			return -errno;
	(void)snprintf(path, sizeof(path), "%s/%s", pins_file_systems[file_system], name);
	return rmdir(path) < 0 ? -errno : 0;
}

/* SPDX-License-Identifier: Apache-2.0 */

#include "guard/pins.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "guard/choice.h"

static bool pins_is_roots(const struct stat *st)
{
	return S_ISDIR(st->st_mode) && st->st_uid == 0 && !(st->st_mode & (S_IWGRP | S_IWOTH));
}

int pins_open(void)
{
	_cleanup_close_ int fd = open(GUARD_PINS, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd < 0)
		return errno == ENOTDIR || errno == ELOOP ? -ENOENT : -errno;
	if (fstat(fd, &st) < 0)
		return -errno;
	return pins_is_roots(&st) ? steal_fd(&fd) : -ENOENT;
}

bool pins_are_roots(void)
{
	struct stat st;

	return lstat(GUARD_PINS, &st) == 0 && pins_is_roots(&st);
}

int pins_remove(const char *directory)
{
	_cleanup_dir_ DIR *dir = fd_open_directory(AT_FDCWD, directory, O_NOFOLLOW);
	const struct dirent *entry;
	struct stat st;

	if (!dir)
		return errno == ENOENT ? 0 : -errno;
	if (fstat(directory_fd(dir), &st) < 0)
		return -errno;
	if (!pins_is_roots(&st))
		return -EPERM;
	if (unlinkat(directory_fd(dir), GUARD_CHOICES_NAME, 0) < 0 && errno != ENOENT)
		return -errno;
	while ((entry = readdir(dir)))
		if (entry->d_name[0] != '.' && unlinkat(directory_fd(dir), entry->d_name, 0) < 0 && errno != ENOENT)
			return -errno;
	return rmdir(directory) < 0 ? -errno : 0;
}

/* SPDX-License-Identifier: Apache-2.0 */

#include "root/temporary.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"

/*
 * Temporary files have names that come back, so that one whose writer was killed is found by the next. As long as it is written,
 * a file is locked. @name must be a regular file: an image may have anything else there. Return: whether it is gone.
 */
static bool temporary_sweep(int parent, const char *name)
{
	_cleanup_close_ int fd = -1;
	struct stat st;

	if (fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
		return false;
	fd = openat(parent, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	return fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0 && unlinkat(parent, name, 0) == 0;
}

/* Whether nobody took a file that was just made for an old one; filesystems without locks have nobody who could. */
static bool temporary_lock(int fd)
{
	struct stat st;

	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return errno != EWOULDBLOCK;
	return fstat(fd, &st) < 0 || st.st_nlink > 0;
}

void temporary_undo(const struct deeds *deeds, const struct deed *deed)
{
	int parent = deed[-1].fds[0];

	(void)deeds;
	if (deed->number)
		(void)unlinkat(parent, deed->name, 0);
	else
		(void)temporary_sweep(parent, deed->name);
}

/* @name: a buffer that has the name without its number. Return: a descriptor of a new file; -EEXIST; negative errno. */
static int temporary_try(int parent, mode_t mode, char name[TEMPORARY_SIZE], char number, struct deeds *deeds)
{
	static const struct deed temporary = {.undo = temporary_undo, .fds = {-1, -1, -1}};
	_cleanup_close_ int fd = -1;
	int r = 0;

	name[TEMPORARY_SIZE - 2] = number;
	if (deeds)
		r = deeds_add(deeds, &temporary, name);
	if (r < 0)
		return r;
	do
		fd = openat(parent, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
	while (fd < 0 && errno == EEXIST && temporary_sweep(parent, name));
	r = fd < 0 ? -errno : 0;
	if (deeds && r == 0)
		deeds_mark(deeds, true);
	if (r == 0 && temporary_lock(fd))
		return steal_fd(&fd);
	if (deeds)
		deeds_drop(deeds);
	return r < 0 ? r : -EEXIST;
}

int temporary_open(int parent, mode_t mode, char ret_name[TEMPORARY_SIZE], struct deeds *deeds)
{
	int r = -EEXIST;

	memcpy(ret_name, TEMPORARY, TEMPORARY_SIZE);
	for (char number = '0'; r == -EEXIST && number <= '9'; number++)
		r = temporary_try(parent, mode, ret_name, number, deeds);
	return r;
}

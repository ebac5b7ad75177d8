/* SPDX-License-Identifier: Apache-2.0 */

#include "root/atomic_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"

/* A number takes the place of the question mark. */
#define TEMPORARY ".ctr-gpu-?"
#define LINK TEMPORARY "l"
enum { NUMBER_AT = sizeof(TEMPORARY) - 2 };
_Static_assert(sizeof(TEMPORARY) == ATOMIC_FILE_SIZE, "a name has the size that is told");

static bool atomic_file_is_type(int parent, const char *name, mode_t type)
{
	struct stat st;

	return fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && (st.st_mode & S_IFMT) == type;
}

/* A symlink cannot be locked. It is removed together with the file of the same number, whose lock protects both. */
static void atomic_file_remove_link(int parent, char number)
{
	char name[] = LINK;

	name[NUMBER_AT] = number;
	if (atomic_file_is_type(parent, name, S_IFLNK))
		(void)unlinkat(parent, name, 0);
}

static int atomic_file_remove_both(int parent, const char *name)
{
	atomic_file_remove_link(parent, name[NUMBER_AT]);
	return unlinkat(parent, name, 0);
}

/*
 * Names of temporary files are used again, so that the next writer finds a file whose writer was killed. A file is
 * locked while it is written. @name must be a regular file: an image may have anything else there. Return: whether it
 * is gone.
 */
static bool atomic_file_sweep(int proc_self_fd, int parent, const char *name)
{
	_cleanup_close_ int handle = openat(parent, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	_cleanup_close_ int fd = handle < 0 ? -1 : fd_reopen(proc_self_fd, handle, NULL);

	return fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0 && atomic_file_remove_both(parent, name) == 0;
}

/*
 * Sets the mode to @mode, whatever the umask is. Return: 0; -EEXIST if another process has removed the new file as an
 * old one, which none does on filesystems without locks; negative errno.
 */
static int atomic_file_lock(int fd, mode_t mode)
{
	const bool locked = flock(fd, LOCK_EX | LOCK_NB) == 0;
	struct stat st;

	if (!locked && errno == EWOULDBLOCK)
		return -EEXIST;
	if (fstat(fd, &st) == 0) {
		if (locked && st.st_nlink == 0)
			return -EEXIST;
		if ((st.st_mode & 07777) == mode)
			return 0;
	}
	return fchmod(fd, mode) < 0 ? -errno : 0;
}

/* The step below it in the log has the parent in fds[0]. Its number says whether the file was made. */
static void atomic_file_undo(const struct undo_log *undo_log, const struct undo_step *undo_step)
{
	int parent = undo_step[-1].fds[0];

	if (undo_step->number)
		(void)atomic_file_remove_both(parent, undo_step->name);
	else
		(void)atomic_file_sweep(undo_log->proc_self_fd, parent, undo_step->name);
}

/* Mode 0600: only the owner can open the file, and so lock it, until we have the lock. */
static int atomic_file_make(int proc_self_fd, int parent, const char *name)
{
	int fd;

	do {
		fd = openat(parent, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
		if (fd >= 0 || errno != EEXIST)
			return fd < 0 ? -errno : fd;
	} while (atomic_file_sweep(proc_self_fd, parent, name));
	return -EEXIST;
}

/* @name: a buffer that has the name without its number. Return: a descriptor of a new file; -EEXIST; negative errno. */
static int atomic_file_try(int proc_self_fd, int parent, mode_t mode, char name[ATOMIC_FILE_SIZE], char number,
			   struct undo_log *undo_log)
{
	static const struct undo_step temporary = {.undo = atomic_file_undo, .fds = {-1, -1, -1}};
	_cleanup_close_ int fd = -1;
	int r = 0;

	name[NUMBER_AT] = number;
	if (undo_log)
		r = undo_log_add(undo_log, &temporary, name);
	if (r < 0)
		return r;
	fd = atomic_file_make(proc_self_fd, parent, name);
	if (undo_log && fd >= 0)
		undo_log_set_number(undo_log, true);
	r = fd < 0 ? fd : atomic_file_lock(fd, mode);
	if (r == 0)
		return steal_fd(&fd);
	if (fd >= 0 && r != -EEXIST)
		(void)unlinkat(parent, name, 0);
	if (undo_log)
		undo_log_pop(undo_log);
	return r;
}

int atomic_file_open(int proc_self_fd, int parent, mode_t mode, char ret_name[ATOMIC_FILE_SIZE],
		     struct undo_log *undo_log)
{
	int r = -EEXIST;

	memcpy(ret_name, TEMPORARY, ATOMIC_FILE_SIZE);
	for (char number = '0'; r == -EEXIST && number <= '9'; number++)
		r = atomic_file_try(proc_self_fd, parent, mode, ret_name, number, undo_log);
	return r;
}

int atomic_file_link(int parent, const char *file, const char *points_to, const char *name)
{
	char link[] = LINK;
	int r;

	link[NUMBER_AT] = file[NUMBER_AT];
	atomic_file_remove_link(parent, file[NUMBER_AT]);
	if (symlinkat(points_to, parent, link) < 0)
		return -errno;
	r = renameat(parent, link, parent, name) < 0 ? -errno : 0;
	if (r < 0)
		(void)unlinkat(parent, link, 0);
	return r;
}

/* SPDX-License-Identifier: Apache-2.0 */

#include "engines/daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"

enum { PROCESS_FILE_MAX = 1024 * 1024 };

void process_view_close(struct process_view *view)
{
	cleanup_closep(&view->directory);
	cleanup_closep(&view->pidfd);
	*view = PROCESS_VIEW_NONE;
}

char *process_view_read(const struct process_view *view, const char *name, size_t *ret_size)
{
	_cleanup_free_ char *data = NULL;

	if (fd_read_file_at(view->directory, name, PROCESS_FILE_MAX, &data, ret_size) < 0)
		return NULL;
	return steal_ptr(data);
}

/* proc_pid_stat(5): fields are counted behind the name, which may have blanks; the name is the second. */
static bool process_view_read_stat(const struct process_view *view, struct process_state *ret)
{
	static const int layout[ARRAY_SIZE(ret->layout)] = {26, 27, 28, 45, 46, 47, 48, 49, 50, 51};
	_cleanup_free_ char *stat = process_view_read(view, "stat", NULL);
	const char *field = stat ? strrchr(stat, ')') : NULL;
	size_t found = 0;

	for (int i = 2; field && found < ARRAY_SIZE(layout); i++, field = strchr(field + 1, ' ')) {
		if (i == 4)
			ret->parent = (pid_t)strtol(field, NULL, 10);
		if (i == 22)
			ret->started = strtoull(field, NULL, 10);
		if (i == layout[found])
			ret->layout[found++] = strtoull(field, NULL, 10);
	}
	return found == ARRAY_SIZE(layout);
}

/*
 * Reads "Uid:\t0\t0\t0\t0" and "NSpid:\t4711\t1", the process's number in each pid namespace. The caller may not be
 * allowed to look at these namespaces themselves.
 */
static bool process_view_read_status(const struct process_view *view, struct process_state *ret)
{
	_cleanup_free_ char *status = process_view_read(view, "status", NULL);
	const char *ids = status ? strstr(status, "\nUid:\t") : NULL, *numbers = ids ? strstr(ids, "\nNSpid:\t") : NULL;
	char *end = (char *)(uintptr_t)(ids ? ids + strlen("\nUid:\t") : NULL);

	for (size_t i = 0; end && i < PROCESS_VIEW_IDS; i++)
		ret->uids[i] = (uid_t)strtoul(end, &end, 10);
	if (numbers)
		numbers += strlen("\nNSpid:\t");
	ret->in_container = numbers && numbers[strcspn(numbers, "\t\n")] == '\t';
	return end && *end == '\n';
}

static int process_view_look(const struct process_view *view, struct process_state *ret)
{
	struct stat program;

	*ret = (struct process_state){0};
	if (!process_view_read_stat(view, ret) || !process_view_read_status(view, ret))
		return -ESRCH;
	if (fstatat(view->directory, "exe", &program, 0) == 0) {
		ret->device = program.st_dev;
		ret->inode = program.st_ino;
	}
	return 0;
}

int process_view_open(int proc, pid_t pid, struct process_view *ret)
{
	_cleanup_process_view_ struct process_view view = PROCESS_VIEW_NONE;
	char name[16];
	int r;

	(void)snprintf(name, sizeof(name), "%d", (int)pid);
	view.pid = pid;
	view.directory = openat(proc, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (view.directory < 0)
		return -errno;
	view.pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (view.pidfd < 0 && errno != ENOSYS && errno != EPERM)
		return -errno;
	/* That the directory answers now means that both are the same process. */
	r = process_view_look(&view, &view.state);
	if (r < 0)
		return r;
	*ret = view;
	view = PROCESS_VIEW_NONE;
	return 0;
}

bool process_view_is_of(const struct process_view *view, uid_t uid)
{
	for (size_t i = 0; i < PROCESS_VIEW_IDS; i++)
		if (view->state.uids[i] != uid)
			return false;
	return true;
}

static bool process_view_is_same(const struct process_state *a, const struct process_state *b)
{
	return a->started == b->started && memcmp(a->layout, b->layout, sizeof(a->layout)) == 0 &&
	       memcmp(a->uids, b->uids, sizeof(a->uids)) == 0 && a->in_container == b->in_container &&
	       a->device == b->device && a->inode == b->inode;
}

bool process_view_is_unchanged(const struct process_view *view)
{
	struct pollfd end = {.fd = view->pidfd, .events = POLLIN};
	struct process_state now;

	return process_view_look(view, &now) == 0 && process_view_is_same(&view->state, &now) &&
	       (view->pidfd < 0 || poll(&end, 1, 0) == 0);
}

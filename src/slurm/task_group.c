/* SPDX-License-Identifier: Apache-2.0 */

#include "slurm/task_group.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"

/* Slurm's names, of cgroup version 2: where slurmstepd is, and where tasks will be. */
#define TASK_GROUP_STEPD "slurm"
#define TASK_GROUP_TASKS "user"

/* Return: 0 or -errno. */
static int task_group_move(int group)
{
	_cleanup_close_ int fd = openat(group, "cgroup.procs", O_WRONLY | O_CLOEXEC);

	return fd < 0 ? -errno : fd_write_all(fd, "0", 1);
}

static int task_group_open(int directory, const char *name)
{
	const int fd = openat(directory, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

int task_group_enter(int step, struct task_group *ret)
{
	_cleanup_close_ int home = task_group_open(step, TASK_GROUP_STEPD), tasks = -1, own = -1;
	struct task_group group = {-1, -1, ""};
	int r;

	if (home == -ENOENT)
		return 0;
	tasks = home < 0 ? home : task_group_open(step, TASK_GROUP_TASKS);
	if (tasks < 0)
		return tasks;
	/* Tasks start at once, each with a call of ours. */
	(void)snprintf(group.name, sizeof(group.name), "ctr-gpu-%d", (int)getpid());
	if (mkdirat(tasks, group.name, 0755) < 0 && errno != EEXIST)
		return -errno;
	own = task_group_open(tasks, group.name);
	r = own < 0 ? own : task_group_move(own);
	if (r < 0) {
		(void)unlinkat(tasks, group.name, AT_REMOVEDIR);
		return r;
	}
	group.home = steal_fd(&home);
	group.tasks = steal_fd(&tasks);
	*ret = group;
	return 0;
}

void task_group_leave(struct task_group *group)
{
	if (group->tasks < 0)
		return;
	if (task_group_move(group->home) == 0)
		(void)unlinkat(group->tasks, group->name, AT_REMOVEDIR);
	cleanup_closep(&group->home);
	cleanup_closep(&group->tasks);
}

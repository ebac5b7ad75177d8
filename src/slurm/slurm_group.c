/* SPDX-License-Identifier: Apache-2.0 */

#include "slurm/slurm_group.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <glob.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/str.h"

/* Slurm's names, of cgroup version 2: where slurmstepd is, and where tasks will be. */
#define SLURM_GROUP_STEPD "slurm"
#define SLURM_GROUP_TASKS "user"

/* Return: 0 or -errno. */
static int slurm_group_move(int group)
{
	_cleanup_close_ int fd = openat(group, "cgroup.procs", O_WRONLY | O_CLOEXEC);

	return fd < 0 ? -errno : fd_write_all(fd, "0", 1);
}

static int slurm_group_open(int directory, const char *name)
{
	const int fd = openat(directory, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

int slurm_group_enter_tasks(int step, struct slurm_group *ret)
{
	_cleanup_close_ int home = slurm_group_open(step, SLURM_GROUP_STEPD), tasks = -1, own = -1;
	struct slurm_group group = {-1, -1, ""};
	int r;

	if (home == -ENOENT)
		return 0;
	tasks = home < 0 ? home : slurm_group_open(step, SLURM_GROUP_TASKS);
	if (tasks < 0)
		return tasks;
	/* Tasks start at once, each with a call of ours. */
	(void)snprintf(group.name, sizeof(group.name), "ctr-gpu-%d", (int)getpid());
	if (mkdirat(tasks, group.name, 0755) < 0 && errno != EEXIST)
		return -errno;
	own = slurm_group_open(tasks, group.name);
	r = own < 0 ? own : slurm_group_move(own);
	if (r < 0) {
		(void)unlinkat(tasks, group.name, AT_REMOVEDIR);
		return r;
	}
	group.home = steal_fd(&home);
	group.tasks = steal_fd(&tasks);
	*ret = group;
	return 0;
}

void slurm_group_leave(struct slurm_group *group)
{
	if (group->tasks < 0)
		return;
	if (slurm_group_move(group->home) == 0)
		(void)unlinkat(group->tasks, group->name, AT_REMOVEDIR);
	cleanup_closep(&group->home);
	cleanup_closep(&group->tasks);
}

enum { SLURM_GROUP_DESCRIPTORS = 16 };

/* Where Slurm makes them, with cgroup version 2 and with each controller of version 1. */
static const char *const slurm_group_places[] = {
	"/sys/fs/cgroup/system.slice/*slurmstepd.scope/job_",
	"/sys/fs/cgroup/*/slurm*/uid_*/job_",
};

static int slurm_group_visit(const char *path, const struct stat *st, int kind, struct FTW *place)
{
	(void)st, (void)place;
	if (kind == FTW_DP)
		(void)rmdir(path);
	return 0;
}

static void slurm_group_remove_jobs(const char *pattern)
{
	glob_t found;

	if (glob(pattern, GLOB_NOSORT, NULL, &found) != 0)
		return;
	for (size_t i = 0; i < found.gl_pathc; i++)
		(void)nftw(found.gl_pathv[i], slurm_group_visit, SLURM_GROUP_DESCRIPTORS,
			   FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
	globfree(&found);
}

void slurm_group_remove_job(const struct slurm_step *job)
{
	for (size_t i = 0; i < ARRAY_SIZE(slurm_group_places); i++) {
		_cleanup_free_ char *pattern = NULL;

		/* The name has letters and digits alone. */
		if (str_format(&pattern, "%s%s", slurm_group_places[i], job->job) == 0)
			slurm_group_remove_jobs(pattern);
	}
}

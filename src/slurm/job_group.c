/* SPDX-License-Identifier: Apache-2.0 */

#include "slurm/job_group.h"

#include <ftw.h>
#include <glob.h>
#include <unistd.h>

#include "base/str.h"

enum { JOB_GROUP_DESCRIPTORS = 16 };

/* Where Slurm makes them, with cgroup version 2 and with each controller of version 1. */
static const char *const job_group_places[] = {
	"/sys/fs/cgroup/system.slice/*slurmstepd.scope/job_",
	"/sys/fs/cgroup/*/slurm*/uid_*/job_",
};

static int job_group_visit(const char *path, const struct stat *st, int kind, struct FTW *place)
{
	(void)st, (void)place;
	if (kind == FTW_DP)
		(void)rmdir(path);
	return 0;
}

static void job_group_remove_at(const char *pattern)
{
	glob_t found;

	if (glob(pattern, GLOB_NOSORT, NULL, &found) != 0)
		return;
	for (size_t i = 0; i < found.gl_pathc; i++)
		(void)nftw(found.gl_pathv[i], job_group_visit, JOB_GROUP_DESCRIPTORS, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
	globfree(&found);
}

void job_group_remove(const struct slurm_step *job)
{
	for (size_t i = 0; i < ARRAY_SIZE(job_group_places); i++) {
		_cleanup_free_ char *pattern = NULL;

		/* The name has letters and digits alone. */
		if (str_format(&pattern, "%s%s", job_group_places[i], job->job) == 0)
			job_group_remove_at(pattern);
	}
}

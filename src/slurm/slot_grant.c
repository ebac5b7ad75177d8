/* SPDX-License-Identifier: Apache-2.0 */

#include "slurm/slot_grant.h"

#include <errno.h>
#include <sys/stat.h>

#include "base/str.h"
#include "lib/context.h"
#include "plan/plan.h"
#include "vcuda/grant/grant.h"

#define GRANT_DIRECTORIES PATH_RUN "/vcuda/"
#define GRANT_NAME "slurm-%s"

enum { WHOLE_PERCENT = 100 };

/* A step's of its own; of what has the whole job, the job's. */
static int slot_grant_name(const struct slurm_step *step, char **ret)
{
	if (streq(step->step, "batch") || streq(step->step, "interactive"))
		return str_format(ret, GRANT_NAME, step->job);
	return str_format(ret, GRANT_NAME ".%s", step->job, step->step);
}

/* Return: 1 if the job has one, which the manager takes away with the job's script; 0; -ENOMEM. */
static int slot_grant_find(const struct slurm_step *step, char **ret)
{
	_cleanup_free_ char *directory = NULL;
	struct stat st;

	if (str_format(&directory, GRANT_DIRECTORIES GRANT_NAME, step->job) < 0)
		return -ENOMEM;
	if (stat(directory, &st) < 0 || !S_ISDIR(st.st_mode))
		return 0;
	*ret = steal_ptr(directory);
	return 1;
}

/* What the administrator says of containers counts, but for these. */
static void slot_grant_set(const struct slot_grant *grant)
{
	struct settings *settings = &grant->context->settings;
	const size_t all = settings->vcuda_slots * grant->gpus;
	const size_t share = USUAL_SHARE * grant->slots;

	settings->vcuda_mode = VCUDA_ALLOW;
	settings->vcuda_limits.memory = STR_SHARE(WHOLE_PERCENT * grant->slots / all);
	settings->vcuda_limits.share = share < MOST_SHARE ? (unsigned)share : MOST_SHARE;
}

/* As of a container that asks for them. */
static int slot_grant_plan(const struct slot_grant *grant, struct ctr_gpu_plan **ret)
{
	struct ctr_gpu_request *request = NULL;
	int r = ctr_gpu_request_new(grant->context, &request);

	if (r == 0)
		r = ctr_gpu_request_set_devices(request, grant->devices);
	if (r == 0) {
		request->data.mode = REQUEST_VCUDA;
		request->data.nodes_only = true;
		r = ctr_gpu_plan_new(grant->context, request, grant->host, ret);
	}
	ctr_gpu_request_unref(request);
	return r;
}

int slot_grant_ask(const struct slot_grant *grant, char **ret_directory)
{
	struct ctr_gpu_plan *plan = NULL;
	_cleanup_free_ char *name = NULL;
	_cleanup_close_ int fd = -1;
	int r = slot_grant_find(grant->step, ret_directory);

	if (r != 0)
		return r < 0 ? r : 0;
	slot_grant_set(grant);
	r = slot_grant_name(grant->step, &name);
	if (r == 0)
		r = slot_grant_plan(grant, &plan);
	if (r == 0)
		r = grant_ask(&plan->data, name, grant->stepd, &fd, ret_directory, &grant->context->err);
	if (r == 0)
		r = grant_keep(fd, name, grant->stepd, &grant->context->err);
	ctr_gpu_plan_unref(plan);
	return r;
}

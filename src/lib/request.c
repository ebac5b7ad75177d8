/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/context.h"

#include <errno.h>
#include <string.h>

#include "base/paths.h"
#include "lib/container.h"
#include "oci/env_request.h"
#include "system/slurm_record.h"

int ctr_gpu_request_new(struct ctr_gpu_context *context, struct ctr_gpu_request **ret_request)
{
	struct ctr_gpu_request *request = calloc(1, sizeof(*request));

	if (!request)
		return -ENOMEM;
	request->context = context;
	request->data.capabilities = CAPABILITY_DEFAULT;
	*ret_request = request;
	return 0;
}

struct ctr_gpu_request *ctr_gpu_request_unref(struct ctr_gpu_request *request)
{
	if (!request)
		return NULL;
	request_clear(&request->data);
	free(request);
	return NULL;
}

int ctr_gpu_request_set_devices(struct ctr_gpu_request *request, const char *devices)
{
	return request_set_devices(&request->data, devices);
}

int ctr_gpu_request_set_capabilities(struct ctr_gpu_request *request, const char *capabilities)
{
	return request_set_capabilities(&request->data, capabilities, &request->context->err);
}

int ctr_gpu_request_add_requirement(struct ctr_gpu_request *request, const char *requirement)
{
	return request_add_requirement(&request->data, requirement, &request->context->err);
}

/* @r: of reading what an environment asks for */
static int request_explain(struct ctr_gpu_context *context, int r)
{
	return r != -E2BIG
		       ? r
		       : err_set_advised(
				 &context->err, CTR_GPU_E_BAD_ARGUMENT,
				 ("a list in the container's environment has more than %d items", STRV_SPLIT_MAX),
				 ("Look at the variables by which GPUs are asked for; no program can be started with "
				  "so long a one."));
}

int ctr_gpu_request_read_environment(struct ctr_gpu_request *request, const char *const *environment)
{
	const struct env_request env = {.environment = environment};

	return request_explain(request->context, env_request_read(&env, &request->context->settings, &request->data,
								  &request->context->err));
}

int request_read_mode(struct ctr_gpu_request *request, const char *const *environment)
{
	const struct env_request ask = {.environment = environment};

	return env_request_read_mode(&ask, &request->data, &request->context->err);
}

/*
 * In a step of a Slurm job the step's GPUs are meant, whatever image and user have in the environment. Where the guard
 * holds them for the whole step, the container's programs count no others, and there is nothing left to be held.
 */
static int request_take_step(struct ctr_gpu_request *request, const char *const *environment)
{
	_cleanup_record_ struct slurm_record record = {0};
	int r = slurm_record_find(environment, &record);

	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return err_set_advised(
			&request->context->err, r,
			("what this job's step was granted cannot be read in " PATH_SLURM_STEPS ": %s", strerror(-r)),
			("Root alone may be able to write there; `ctr-gpu slurm step --end` of the job removes it."));
	if (record.held)
		request->context->settings.choice = CHOICE_STORE;
	if (record.vcuda) {
		request->context->settings.granted = true;
		request->data.vcuda_directory = PATH_SLURM_STEPS "/vcuda";
	}
	request->data.unnamed = false;
	request->data.domain = NULL;
	return request_set_devices(&request->data, record.devices);
}

int ctr_gpu_request_read_container(struct ctr_gpu_request *request, const struct ctr_gpu_container *container,
				   const char *devices)
{
	const struct env_request env = env_request_of_config(&container->config);
	struct ctr_gpu_context *context = request->context;
	int r;

	r = devices ? request_set_devices(&request->data, devices)
		    : env_request_read(&env, &context->settings, &request->data, &context->err);
	if (r == 0 && devices)
		r = env_request_read_properties(&env, &context->settings, &request->data, &context->err);
	if (r == 0 && !devices && request->data.kind != REQUEST_VOID)
		return request_take_step(request, env.environment);
	return request_explain(context, r);
}

int ctr_gpu_request_read_bundle(struct ctr_gpu_request *request, const struct ctr_gpu_bundle *bundle)
{
	const struct env_request env = env_request_of_config(&bundle->config);
	int r = env_request_read(&env, &request->context->settings, &request->data, &request->context->err);

	return r == 0 ? request_take_step(request, env.environment) : request_explain(request->context, r);
}

int ctr_gpu_request_set_imex_channels(struct ctr_gpu_request *request, const char *channels)
{
	return request_set_imex_channels(&request->data, channels);
}

enum ctr_gpu_on_missing ctr_gpu_request_on_missing(const struct ctr_gpu_request *request, enum ctr_gpu_method method,
						   int r)
{
	const struct settings *settings = &request->context->settings;

	if ((r != CTR_GPU_E_NO_DEVICE && r != CTR_GPU_E_NO_ADAPTER) || (unsigned)method >= ENTRIES)
		return CTR_GPU_ON_MISSING_FAIL;
	switch (settings->on_missing[method]) {
	case ON_MISSING_BY_REQUEST:
		return request->data.unnamed ? CTR_GPU_ON_MISSING_WARN : CTR_GPU_ON_MISSING_FAIL;
	case ON_MISSING_WARN:
		return CTR_GPU_ON_MISSING_WARN;
	case ON_MISSING_SKIP:
		return CTR_GPU_ON_MISSING_SKIP;
	case ON_MISSING_FAIL:
		break;
	}
	return CTR_GPU_ON_MISSING_FAIL;
}

_Static_assert((int)CTR_GPU_METHOD_HOOK == ENTRY_HOOK && (int)CTR_GPU_METHOD_RUNTIME == ENTRY_RUNTIME &&
		       (int)CTR_GPU_METHOD_CDI == ENTRY_CDI,
	       "they are one");

bool ctr_gpu_request_is_void(const struct ctr_gpu_request *request)
{
	return request->data.kind == REQUEST_VOID;
}

void ctr_gpu_request_set_mig(struct ctr_gpu_request *request, unsigned rights)
{
	request->data.mig_config = rights & CTR_GPU_MIG_CONFIG;
	request->data.mig_monitor = rights & CTR_GPU_MIG_MONITOR;
}

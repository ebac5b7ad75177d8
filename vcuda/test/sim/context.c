/* SPDX-License-Identifier: Apache-2.0 */

/* Contexts: each thread's stack of them, the primary ones with their counts, and what is asked of the current one. */

#include <string.h>

#include "sim.h"

enum { STACK_MAX = 64, FLAGS_KNOWN = 0xff };

static _Thread_local CUcontext stack[STACK_MAX];
static _Thread_local int depth;
static unsigned long long next_id = 1;

/* Limits as a driver 580 has them on an H100. */
static const struct {
	size_t value, least, most;
	CUresult get, set;
} limits[SIM_LIMITS] = {
	{1024, 0, 512 << 10, 0, 0},
	{8650752, 524288, SIZE_MAX, 0, 0},
	{8388608, 4194304, SIZE_MAX, 0, 0},
	{0, 0, 0, CUDA_ERROR_UNSUPPORTED_LIMIT, CUDA_ERROR_UNSUPPORTED_LIMIT},
	{2048, 32, SIZE_MAX, 0, 0},
	{64, 0, 128, 0, 0},
	{9830400, 0, SIZE_MAX, 0, 0},
	{232448, 0, 0, 0, CUDA_ERROR_NOT_PERMITTED},
	{0, 0, 0, 0, CUDA_ERROR_NOT_PERMITTED},
	{0, 0, 0, CUDA_ERROR_UNSUPPORTED_LIMIT, CUDA_ERROR_UNSUPPORTED_LIMIT},
};
enum { CONTEXT_LIMITS_LAUNCHES = 4 };

CUcontext context_current(void)
{
	return depth ? stack[depth - 1] : NULL;
}

enum { STACK_OF_CONTEXT = 1024, PROCESSORS = 16, PROCESSOR_THREADS = 39 };

/* Stacks of the size that is set at first are among what it takes. Return: NULL without memory. */
static CUcontext context_new(struct device *device, unsigned flags, CUcontext former)
{
	const size_t takes = config_number("CONTEXT_BYTES", 0);
	CUcontext context = former ? object_again(former) : object_new(OBJECT_CONTEXT, sizeof(*context), NULL);

	if (!object_take(context, device, takes)) {
		(former ? object_unlink : object_free)(context);
		return NULL;
	}
	context->local = takes ? STACK_OF_CONTEXT : 0;
	context->device = device;
	context->flags = flags;
	context->api_version = 3020;
	context->id = next_id++;
	context->shared_config = 1;
	context->attached = 1;
	for (int i = 0; i < SIM_LIMITS; i++)
		context->limits[i] = limits[i].value;
	context->limits[CONTEXT_LIMITS_LAUNCHES] = config_number("LAUNCHES", limits[CONTEXT_LIMITS_LAUNCHES].value);
	context->legacy = stream_new(context, 0, 0);
	context->legacy->legacy = true;
	checkpoint_tell_places();
	return context;
}

static CUstream context_busy(CUcontext context)
{
	for (CUstream stream = object_after(NULL, OBJECT_STREAM); stream; stream = object_after(stream, OBJECT_STREAM))
		if (stream->object.context == context && !stream_is_done(stream, stream->queued))
			return stream;
	return NULL;
}

/* The lock is held; it is given up while streams do their work. */
void context_drain(CUcontext context)
{
	/* Another thread may end it meanwhile, and its streams. */
	while (context_busy(context))
		(void)pthread_cond_wait(&sim_changed, &sim_lock);
	for (CUstream stream = object_after(NULL, OBJECT_STREAM); stream; stream = object_after(stream, OBJECT_STREAM))
		if (stream->object.context == context)
			stream->late = false;
	print_flush();
}

static void context_free(CUcontext context)
{
	static const enum object_kind kinds[] = {OBJECT_EVENT, OBJECT_LINK};
	void *object;

	object_ends(context);
	context_drain(context);
	array_free_all(context);
	while ((object = object_of(OBJECT_MODULE, context)))
		module_free(object);
	while ((object = object_of(OBJECT_STREAM, context)))
		stream_destroy(object);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		while ((object = object_of(kinds[i], context)))
			object_free(object);
	memory_free_all(context);
	object_unlink(context);
	checkpoint_tell_places();
	table_end_context(context);
}

CUresult context_take_local(CUcontext context, unsigned bytes)
{
	const int processors = device_attribute(context->device, PROCESSORS);
	const int threads = device_attribute(context->device, PROCESSOR_THREADS);
	const size_t more =
		bytes > context->local ? (size_t)(bytes - context->local) * (size_t)(processors * threads) : 0;

	if (more && !object_take(context, context->device, more))
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (more)
		context->local = bytes;
	return CUDA_SUCCESS;
}

/* For NVML: whether the process has contexts, and what it has of the GPU of this machine. */
int cuSimulationUses(int place, unsigned long long *ret);

int cuSimulationUses(int place, unsigned long long *ret)
{
	struct device *device = NULL;
	bool found = false;

	(void)pthread_mutex_lock(&sim_lock);
	for (int i = 0; i < device_count(); i++)
		if (device_get(i)->place == place)
			device = device_get(i);
	for (CUcontext context = object_after(NULL, OBJECT_CONTEXT); context && device;
	     context = object_after(context, OBJECT_CONTEXT))
		found |= context->device == device;
	*ret = device ? device->used : 0;
	(void)pthread_mutex_unlock(&sim_lock);
	return found;
}

CUcontext context_primary(struct device *device)
{
	if (!device->primary) {
		device->primary = context_new(device, device->primary_flags, device->former);
		if (device->primary)
			device->primary->primary = true;
	}
	return device->primary;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *ret, CUdevice device)
{
	struct device *of;

	CALL(__func__);
	of = device_get(device);
	LEAVE_IF(!of, CUDA_ERROR_INVALID_DEVICE);
	LEAVE_IF(!ret, CUDA_ERROR_INVALID_VALUE);
	*ret = context_primary(of);
	LEAVE_IF(!*ret, CUDA_ERROR_OUT_OF_MEMORY);
	of->primary_count++;
	object_tell_late();
	LEAVE(CUDA_SUCCESS);
}

static void context_end_primary(struct device *device)
{
	CUcontext context = device->primary;

	if (!context)
		return;
	device->primary = NULL;
	device->former = context;
	context_free(context);
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
	struct device *of;

	CALL(__func__);
	of = device_get(device);
	LEAVE_IF(!of, CUDA_ERROR_INVALID_DEVICE);
	LEAVE_IF(of->primary_count == 0, CUDA_ERROR_INVALID_CONTEXT);
	if (--of->primary_count == 0)
		context_end_primary(of);
	object_tell_late();
	LEAVE(CUDA_SUCCESS);
}

/* Those who retained it keep what they have; it is made anew when it is used next. */
CUresult cuDevicePrimaryCtxReset_v2(CUdevice device)
{
	struct device *of;

	CALL(__func__);
	of = device_get(device);
	LEAVE_IF(!of, CUDA_ERROR_INVALID_DEVICE);
	context_end_primary(of);
	of->primary_flags = 0;
	LEAVE(CUDA_SUCCESS);
}

static bool context_flags_valid(unsigned flags)
{
	unsigned schedule = flags & 7;

	return flags <= FLAGS_KNOWN && (schedule == 0 || schedule == 1 || schedule == 2 || schedule == 4);
}

CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned flags)
{
	struct device *of;

	CALL(__func__);
	of = device_get(device);
	LEAVE_IF(!of, CUDA_ERROR_INVALID_DEVICE);
	LEAVE_IF(!context_flags_valid(flags), CUDA_ERROR_INVALID_VALUE);
	of->primary_flags = flags;
	if (of->primary)
		of->primary->flags = flags;
	LEAVE(CUDA_SUCCESS);
}

CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned *ret_flags, int *ret_active)
{
	struct device *of;

	CALL(__func__);
	of = device_get(device);
	LEAVE_IF(!of, CUDA_ERROR_INVALID_DEVICE);
	LEAVE_IF(!ret_flags || !ret_active, CUDA_ERROR_INVALID_VALUE);
	*ret_flags = of->primary_flags;
	*ret_active = of->primary != NULL;
	LEAVE(CUDA_SUCCESS);
}

static CUresult context_create(CUcontext *ret, unsigned flags, CUdevice device)
{
	struct device *of = device_get(device);

	if (!ret || !context_flags_valid(flags))
		return CUDA_ERROR_INVALID_VALUE;
	if (!of)
		return CUDA_ERROR_INVALID_DEVICE;
	if (depth == STACK_MAX)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*ret = context_new(of, flags, NULL);
	if (!*ret)
		return CUDA_ERROR_OUT_OF_MEMORY;
	stack[depth++] = *ret;
	return CUDA_SUCCESS;
}

CUresult cuCtxCreate_v2(CUcontext *ret, unsigned flags, CUdevice device)
{
	CALL(__func__);
	LEAVE(context_create(ret, flags, device));
}

CUresult cuCtxCreate_v3(CUcontext *ret, void *affinity, int affinity_count, unsigned flags, CUdevice device)
{
	CALL(__func__);
	LEAVE_IF(affinity || affinity_count, CUDA_ERROR_NOT_SUPPORTED);
	LEAVE(context_create(ret, flags, device));
}

CUresult cuCtxCreate_v4(CUcontext *ret, void *parameters, unsigned flags, CUdevice device)
{
	CALL(__func__);
	LEAVE_IF(parameters, CUDA_ERROR_NOT_SUPPORTED);
	LEAVE(context_create(ret, flags, device));
}

CUresult cuCtxDestroy_v2(CUcontext context)
{
	CALL(__func__);
	LEAVE_IF(!context, CUDA_ERROR_INVALID_VALUE);
	LEAVE_IF(!object_is(context, OBJECT_CONTEXT) || context->primary, CUDA_ERROR_INVALID_CONTEXT);
	context_free(context);
	if (context_current() == context)
		depth--;
	object_tell_late();
	LEAVE(CUDA_SUCCESS);
}

CUresult cuCtxPushCurrent_v2(CUcontext context)
{
	CALL(__func__);
	LEAVE_IF(!context, CUDA_ERROR_INVALID_VALUE);
	LEAVE_IF(!object_is(context, OBJECT_CONTEXT), CUDA_ERROR_INVALID_CONTEXT);
	LEAVE_IF(depth == STACK_MAX, CUDA_ERROR_OUT_OF_MEMORY);
	stack[depth++] = context;
	LEAVE(CUDA_SUCCESS);
}

CUresult cuCtxPopCurrent_v2(CUcontext *ret)
{
	CALL(__func__);
	LEAVE_IF(!depth, CUDA_ERROR_INVALID_CONTEXT);
	depth--;
	if (ret)
		*ret = stack[depth];
	LEAVE(CUDA_SUCCESS);
}

CUresult cuCtxSetCurrent(CUcontext context)
{
	CALL(__func__);
	if (!context) {
		depth -= depth > 0;
		LEAVE(CUDA_SUCCESS);
	}
	LEAVE_IF(!object_is(context, OBJECT_CONTEXT), CUDA_ERROR_INVALID_CONTEXT);
	depth += depth == 0;
	stack[depth - 1] = context;
	LEAVE(CUDA_SUCCESS);
}

CUresult cuCtxGetCurrent(CUcontext *ret)
{
	CALL(__func__);
	LEAVE_IF(!ret, CUDA_ERROR_INVALID_VALUE);
	*ret = context_current();
	LEAVE(CUDA_SUCCESS);
}

/* The context that a call names, or the current one: one with an error can still be asked. */
static CUresult context_asked(CUcontext context, CUcontext *ret)
{
	*ret = context ? context : context_current();
	if (!*ret)
		return CUDA_ERROR_INVALID_CONTEXT;
	return object_is(*ret, OBJECT_CONTEXT) ? CUDA_SUCCESS : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

/* The current context, in calls that only ask it for what it is. */
#define ASKED(context, named)                              \
	do {                                               \
		CUresult asked_;                           \
		CALL(__func__);                            \
		asked_ = context_asked(named, &(context)); \
		LEAVE_IF(asked_, asked_);                  \
	} while (0)

CUresult cuCtxGetDevice(CUdevice *ret)
{
	CUcontext context;

	ASKED(context, NULL);
	LEAVE_IF(!ret, CUDA_ERROR_INVALID_VALUE);
	*ret = context->device->ordinal;
	LEAVE(CUDA_SUCCESS);
}

CUresult cuCtxGetDevice_v2(CUdevice *ret, CUcontext named)
{
	CUcontext context;

	ASKED(context, named);
	LEAVE_IF(!ret, CUDA_ERROR_INVALID_VALUE);
	*ret = context->device->ordinal;
	LEAVE(CUDA_SUCCESS);
}

CUresult cuCtxGetFlags(unsigned *ret)
{
	CUcontext context;

	ASKED(context, NULL);
	LEAVE_IF(!ret, CUDA_ERROR_INVALID_VALUE);
	*ret = context->flags;
	LEAVE(CUDA_SUCCESS);
}

CUresult cuCtxSetFlags(unsigned flags)
{
	CUcontext context;

	ASKED(context, NULL);
	LEAVE_IF(!context_flags_valid(flags), CUDA_ERROR_INVALID_VALUE);
	context->flags = flags;
	LEAVE(CUDA_SUCCESS);
}

CUresult cuCtxGetId(CUcontext named, unsigned long long *ret)
{
	CUcontext context;

	ASKED(context, named);
	LEAVE_IF(!ret, CUDA_ERROR_INVALID_VALUE);
	*ret = context->id;
	LEAVE(CUDA_SUCCESS);
}

CUresult cuCtxGetApiVersion(CUcontext named, unsigned *ret)
{
	CUcontext context;

	ASKED(context, named);
	LEAVE_IF(!ret, CUDA_ERROR_INVALID_VALUE);
	*ret = context->api_version;
	LEAVE(CUDA_SUCCESS);
}

static CUresult context_synchronize(CUcontext context)
{
	CUresult r = capture_forbids_any();

	if (r)
		return r;
	object_enter(context);
	context_drain(context);
	object_leave(context);
	return context->sticky;
}

CUresult cuCtxSynchronize(void)
{
	CUcontext context;

	CALL_CONTEXT(context);
	LEAVE(context_synchronize(context));
}

CUresult cuCtxSynchronize_v2(CUcontext named)
{
	CUcontext context;

	ASKED(context, named);
	LEAVE(context_synchronize(context));
}

CUresult cuCtxSetLimit(int limit, size_t value)
{
	CUcontext context;

	CALL_CONTEXT(context);
	LEAVE_IF(limit < 0 || limit >= SIM_LIMITS, CUDA_ERROR_INVALID_VALUE);
	LEAVE_IF(limits[limit].set, limits[limit].set);
	LEAVE_IF(value > limits[limit].most, CUDA_ERROR_INVALID_VALUE);
	/* Kernels that run have the stacks. */
	if (limit == 0 && value > context->limits[limit]) {
		object_enter(context);
		context_drain(context);
		object_leave(context);
	}
	context->limits[limit] = value > limits[limit].least ? value : limits[limit].least;
	LEAVE(CUDA_SUCCESS);
}

CUresult cuCtxGetLimit(size_t *ret, int limit)
{
	CUcontext context;

	CALL_CONTEXT(context);
	LEAVE_IF(!ret || limit < 0 || limit >= SIM_LIMITS, CUDA_ERROR_INVALID_VALUE);
	LEAVE_IF(limits[limit].get, limits[limit].get);
	*ret = context->limits[limit];
	LEAVE(CUDA_SUCCESS);
}

CUresult cuCtxGetCacheConfig(int *ret)
{
	CUcontext context;

	CALL_CONTEXT(context);
	LEAVE_IF(!ret, CUDA_ERROR_INVALID_VALUE);
	*ret = context->cache_config;
	LEAVE(CUDA_SUCCESS);
}

CUresult cuCtxSetCacheConfig(int config)
{
	CUcontext context;

	CALL_CONTEXT(context);
	LEAVE_IF(config < 0 || config > 3, CUDA_ERROR_INVALID_VALUE);
	context->cache_config = config;
	LEAVE(CUDA_SUCCESS);
}

CUresult cuCtxGetSharedMemConfig(int *ret)
{
	CUcontext context;

	CALL_CONTEXT(context);
	LEAVE_IF(!ret, CUDA_ERROR_INVALID_VALUE);
	*ret = context->shared_config;
	LEAVE(CUDA_SUCCESS);
}

CUresult cuCtxSetSharedMemConfig(int config)
{
	CUcontext context;

	CALL_CONTEXT(context);
	LEAVE_IF(config < 0 || config > 2, CUDA_ERROR_INVALID_VALUE);
	LEAVE(CUDA_SUCCESS);
}

CUresult cuCtxGetStreamPriorityRange(int *ret_least, int *ret_greatest)
{
	CUcontext context;

	CALL_CONTEXT(context);
	if (ret_least)
		*ret_least = 0;
	if (ret_greatest)
		*ret_greatest = -5;
	LEAVE(CUDA_SUCCESS);
}

CUresult cuCtxResetPersistingL2Cache(void)
{
	CUcontext context;

	CALL_CONTEXT(context);
	LEAVE(CUDA_SUCCESS);
}

CUresult cuCtxGetExecAffinity(void *ret, int type)
{
	CUcontext context;

	CALL_CONTEXT(context);
	LEAVE_IF(!ret, CUDA_ERROR_INVALID_VALUE);
	LEAVE(type == 0 ? CUDA_SUCCESS : 224);
}

CUresult cuCtxAttach(CUcontext *ret, unsigned flags)
{
	CUcontext context;

	CALL_CONTEXT(context);
	LEAVE_IF(!ret || flags, CUDA_ERROR_INVALID_VALUE);
	context->attached++;
	*ret = context;
	LEAVE(CUDA_SUCCESS);
}

CUresult cuCtxDetach(CUcontext context)
{
	CALL(__func__);
	LEAVE_IF(!context || !object_is(context, OBJECT_CONTEXT) || context != context_current(),
		 CUDA_ERROR_INVALID_CONTEXT);
	if (--context->attached == 0) {
		context_free(context);
		depth--;
	}
	LEAVE(CUDA_SUCCESS);
}

CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned flags)
{
	CUcontext context;

	CALL_CONTEXT(context);
	LEAVE_IF(flags, CUDA_ERROR_INVALID_VALUE);
	LEAVE_IF(!peer || !object_is(peer, OBJECT_CONTEXT), CUDA_ERROR_INVALID_CONTEXT);
	LEAVE_IF(peer->device == context->device, 217);
	LEAVE_IF(context->peers[peer->device->ordinal] == peer, 704);
	context->peers[peer->device->ordinal] = peer;
	LEAVE(CUDA_SUCCESS);
}

CUresult cuCtxDisablePeerAccess(CUcontext peer)
{
	CUcontext context;

	CALL_CONTEXT(context);
	LEAVE_IF(!peer || !object_is(peer, OBJECT_CONTEXT), CUDA_ERROR_INVALID_CONTEXT);
	LEAVE_IF(context->peers[peer->device->ordinal] != peer, CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
	context->peers[peer->device->ordinal] = NULL;
	LEAVE(CUDA_SUCCESS);
}

/* SPDX-License-Identifier: Apache-2.0 */

#include "vcuda/client/context.h"

#include <stdlib.h>

#include "vcuda/client/call.h"
#include "vcuda/client/host.h"
#include "vcuda/client/variable.h"
#include "vcuda/client_api.h"
#include "vcuda/ops.h"

static struct lock context_lock;
static struct context *contexts;

/* Its lock is held while the driver makes or ends the context. */
static struct {
	struct lock lock;
	struct context *context; /* NULL: not active */
	struct context *kept;    /* the one that was, which comes back when it is retained: programs still hold it */
	unsigned held, flags;
} primary[START_GPUS];

struct context *context_find(uint64_t name)
{
	LOCK_HOLD(&context_lock);
	for (struct context *context = contexts; context; context = context->next)
		if (context->name == name && !context->gone)
			return context;
	return NULL;
}

bool context_is_former(uint64_t name)
{
	LOCK_HOLD(&context_lock);
	for (const struct context *context = contexts; context; context = context->next)
		if (context->name == name && context->primary)
			return context->gone;
	return false;
}

uint64_t context_handle(uint64_t name)
{
	const struct context *context = context_find(name);

	return context ? context->handle : name;
}

/* ---- what programs keep for a context ---- */

struct context_value {
	struct context_value *next;
	const void *key;
	void *value;
	context_storage_end *end;
};

static struct lock storage_lock;

/* Where the value is linked, or where one would be. */
static struct context_value **context_storage_find(struct context *context, const void *key)
{
	struct context_value **at = &context->values;

	while (*at && (*at)->key != key)
		at = &(*at)->next;
	return at;
}

CUresult context_storage_put(struct context *context, const void *key, void *value, context_storage_end *end)
{
	struct context_value **at;

	LOCK_HOLD(&storage_lock);
	at = context_storage_find(context, key);
	if (*at)
		return CUDA_ERROR_INVALID_HANDLE;
	*at = malloc(sizeof(**at));
	if (!*at)
		return CUDA_ERROR_OUT_OF_MEMORY;
	**at = (struct context_value){NULL, key, value, end};
	return CUDA_SUCCESS;
}

CUresult context_storage_get(struct context *context, const void *key, void **ret)
{
	const struct context_value *found;

	LOCK_HOLD(&storage_lock);
	found = *context_storage_find(context, key);
	*ret = found ? found->value : NULL;
	return found ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult context_storage_delete(struct context *context, const void *key)
{
	struct context_value **at, *found;

	LOCK_HOLD(&storage_lock);
	at = context_storage_find(context, key);
	found = *at;
	if (!found)
		return CUDA_ERROR_INVALID_HANDLE;
	*at = found->next;
	free(found);
	return CUDA_SUCCESS;
}

/* One at a time: a destructor may add and delete others. */
static struct context_value *context_storage_take(struct context *context)
{
	struct context_value *first;

	LOCK_HOLD(&storage_lock);
	first = context->values;
	if (first)
		context->values = first->next;
	return first;
}

/* The context is gone: tells those that want to know, and forgets all. Nothing is locked. */
static void context_storage_forget(struct context *context)
{
	struct context_value *value;

	while ((value = context_storage_take(context))) {
		if (value->end)
			value->end(context->name, value->key, value->value);
		free(value);
	}
}

/* ---- contexts come and go ---- */

static struct context *context_add(uint64_t handle, CUdevice device, unsigned flags, bool is_primary)
{
	struct context *context = calloc(1, sizeof(*context));

	if (!context)
		return NULL;
	context->name = handle;
	context->handle = handle;
	context->device = device;
	context->flags = flags;
	context->primary = is_primary;
	LOCK_HOLD(&context_lock);
	context->next = contexts;
	contexts = context;
	return context;
}

/* ---- captures of streams ---- */

/* Those that have begun and not ended. What there is no memory to note is only counted. */
struct context_capture {
	struct context_capture *next;
	CUstream stream;
	const struct context *context;
};

static struct lock context_capture_lock;
static struct context_capture *context_captures;

/* The stream says which, whatever context is current. */
static const struct context *context_of_stream(CUstream stream)
{
	const struct context *current = thread_context(thread_self());
	const uint64_t word = stream;
	uint64_t handle;

	if (stream < WIRE_STREAM_NAMES || (current && wire_handle_tag(stream) == wire_handle_tag_of(current->handle)) ||
	    call_sync(OP_cuStreamGetCtx, &word, 1, NULL, 0, &handle, sizeof(handle)))
		return current;
	return context_find(context_name(handle));
}

void context_begin_capture(CUstream stream)
{
	const struct context *context = context_of_stream(stream);
	struct context_capture *capture = malloc(sizeof(*capture));

	/* What is not allowed meanwhile is told at once, so nothing is deferred. */
	client.captures++;
	if (!capture)
		return;
	LOCK_HOLD(&context_capture_lock);
	*capture = (struct context_capture){context_captures, stream, context};
	context_captures = capture;
}

/* Return: whether there was one of the stream, or, where that is 0, of the context. */
static bool context_forget_capture(CUstream stream, const struct context *context)
{
	struct context_capture **at = &context_captures, *found;

	LOCK_HOLD(&context_capture_lock);
	while (*at && (stream ? (*at)->stream != stream : (*at)->context != context))
		at = &(*at)->next;
	found = *at;
	if (found)
		*at = found->next;
	free(found);
	return found;
}

void context_end_capture(CUstream stream)
{
	(void)context_forget_capture(stream, NULL);
	client.captures--;
}

/* A capture that has begun in it can never end. */
CUresult cuStreamDestroy_v2(CUstream stream)
{
	const CUresult r = call_sync(OP_cuStreamDestroy_v2, &stream, 1, NULL, 0, NULL, 0);

	if (!r && context_captures && context_forget_capture(stream, NULL))
		client.captures--;
	return r;
}

/* ---- primary ones, and which one is current ---- */

/* What belongs to a context goes with it. */
static void context_end(struct context *context)
{
	context->gone = true;
	address_map_forget_context(context);
	managed_forget_context(context);
	variable_forget_context(context);
	image_forget(context->handle);
	while (context_captures && context_forget_capture(0, context))
		client.captures--;
}

static CUresult context_push(struct thread *thread, struct context *context)
{
	if (thread->depth == THREAD_CONTEXTS)
		return CUDA_ERROR_OUT_OF_MEMORY;
	thread->stack[thread->depth++] = context;
	return CUDA_SUCCESS;
}

/* With the lock of the primary one. */
static CUresult context_begin_primary(CUdevice device)
{
	const uint64_t word = (uint64_t)device;
	struct context *context = primary[device].kept;
	uint64_t handle;
	CUresult r = call_sync(OP_cuDevicePrimaryCtxRetain, &word, 1, NULL, 0, &handle, sizeof(handle));

	if (r)
		return r;
	if (context) {
		context->handle = handle;
		context->flags = primary[device].flags;
		context->id = 0;
		context->gone = false;
	} else {
		context = context_add(handle, device, primary[device].flags, true);
	}
	primary[device].context = primary[device].kept = context;
	return context ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static struct context *context_any(void)
{
	struct context *context;

	LOCK_HOLD(&context_lock);
	context = contexts;
	while (context && context->gone)
		context = context->next;
	return context;
}

CUresult context_borrow(bool *ret_borrowed)
{
	struct context *context;
	struct thread *thread;
	CUcontext name = 0;
	CUresult r = call_enter(&thread);

	*ret_borrowed = false;
	if (r || thread_context(thread))
		return r;
	context = context_any();
	if (!context) {
		r = cuDevicePrimaryCtxRetain(&name, 0);
		context = r ? NULL : context_find(name);
	}
	if (!context)
		return r ? r : CUDA_ERROR_INVALID_CONTEXT;
	*ret_borrowed = true;
	return context_push(thread, context);
}

void context_give_back(void)
{
	thread_self()->depth--;
}

CUresult on_cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
	LOCK_HOLD(&primary[device].lock);
	if (!primary[device].context) {
		CUresult r = context_begin_primary(device);

		if (r)
			return r;
	}
	primary[device].held++;
	*context = primary[device].context->name;
	return CUDA_SUCCESS;
}

static CUresult context_end_primary(CUdevice device, unsigned op, struct context **ret_ended)
{
	const uint64_t word = (uint64_t)device;
	CUresult r = call_sync(op, &word, 1, NULL, 0, NULL, 0);

	*ret_ended = primary[device].context;
	if (primary[device].context)
		context_end(primary[device].context);
	primary[device].context = NULL;
	return r;
}

static CUresult context_release_primary(CUdevice device, struct context **ret_ended)
{
	LOCK_HOLD(&primary[device].lock);
	if (primary[device].held == 0)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (--primary[device].held > 0)
		return CUDA_SUCCESS;
	return context_end_primary(device, OP_cuDevicePrimaryCtxRelease_v2, ret_ended);
}

CUresult on_cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
	struct context *ended = NULL;
	CUresult r = context_release_primary(device, &ended);

	if (ended)
		context_storage_forget(ended);
	return r;
}

static CUresult context_reset_primary(CUdevice device, struct context **ret_ended)
{
	LOCK_HOLD(&primary[device].lock);
	return context_end_primary(device, OP_cuDevicePrimaryCtxReset_v2, ret_ended);
}

CUresult on_cuDevicePrimaryCtxReset_v2(CUdevice device)
{
	struct context *ended = NULL;
	CUresult r = context_reset_primary(device, &ended);

	if (ended)
		context_storage_forget(ended);
	return r;
}

CUresult on_cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned flags)
{
	const uint64_t words[] = {(uint64_t)device, flags};
	CUresult r;

	LOCK_HOLD(&primary[device].lock);
	r = call_sync(OP_cuDevicePrimaryCtxSetFlags_v2, words, 2, NULL, 0, NULL, 0);
	if (r)
		return r;
	primary[device].flags = flags;
	if (primary[device].context)
		primary[device].context->flags = flags;
	return CUDA_SUCCESS;
}

CUresult on_cuDevicePrimaryCtxGetState(CUdevice device, unsigned *flags, int *active)
{
	*flags = primary[device].flags;
	*active = primary[device].context != NULL;
	return CUDA_SUCCESS;
}

CUresult on_cuCtxCreate_v2(struct thread *thread, CUcontext *context, unsigned flags, CUdevice device)
{
	const uint64_t words[] = {flags, (uint64_t)device};
	struct context *new;
	uint64_t handle;
	CUresult r = call_sync(OP_cuCtxCreate_v2, words, 2, NULL, 0, &handle, sizeof(handle));
	if (r)
		return r;
	new = context_add(handle, device, flags, false);
	if (!new)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*context = handle;
	return context_push(thread, new);
}

CUresult cuCtxCreate_v3(CUcontext *context, CUexecAffinityParam *affinity, int count, unsigned flags, CUdevice device)
{
	if (affinity || count)
		return call_refuse("cuCtxCreate_v3");
	return cuCtxCreate_v2(context, flags, device);
}

CUresult cuCtxCreate_v4(CUcontext *context, CUctxCreateParams *parameters, unsigned flags, CUdevice device)
{
	if (parameters &&
	    (parameters->execAffinityParams || parameters->numExecAffinityParams || parameters->cigParams))
		return call_refuse("cuCtxCreate_v4");
	return cuCtxCreate_v2(context, flags, device);
}

CUresult on_cuCtxDestroy_v2(struct thread *thread, CUcontext handle)
{
	struct context *context = context_find(handle);
	CUresult r;

	if (handle == 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (!context || context->primary)
		return CUDA_ERROR_INVALID_CONTEXT;
	r = call_sync(OP_cuCtxDestroy_v2, &handle, 1, NULL, 0, NULL, 0);
	if (thread_context(thread) == context)
		thread->depth--;
	context_end(context);
	context_storage_forget(context);
	return r;
}

/* Reference counts of a context, as programs used them before CUDA 4. */
CUresult on_cuCtxAttach(struct context *current, CUcontext *context, unsigned flags)
{
	if (flags)
		return CUDA_ERROR_INVALID_VALUE;
	LOCK_HOLD(&context_lock);
	current->attached++;
	*context = current->name;
	return CUDA_SUCCESS;
}

CUresult on_cuCtxDetach(struct context *current, CUcontext context)
{
	if (current->name != context)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (current->attached == 0)
		return cuCtxDestroy_v2(context);
	LOCK_HOLD(&context_lock);
	current->attached--;
	return CUDA_SUCCESS;
}

CUresult on_cuCtxPushCurrent_v2(struct thread *thread, CUcontext handle)
{
	struct context *context = context_find(handle);

	if (handle == 0)
		return CUDA_ERROR_INVALID_VALUE;
	return context ? context_push(thread, context) : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult on_cuCtxPopCurrent_v2(struct thread *thread, CUcontext *context)
{
	if (thread->depth == 0)
		return CUDA_ERROR_INVALID_CONTEXT;
	thread->depth--;
	if (context)
		*context = thread->stack[thread->depth]->name;
	return CUDA_SUCCESS;
}

CUresult on_cuCtxSetCurrent(struct thread *thread, CUcontext handle)
{
	struct context *context;

	if (thread_context(thread) && thread_context(thread)->name == handle)
		return CUDA_SUCCESS;
	context = handle ? context_find(handle) : NULL;
	if (handle && !context)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (thread->depth > 0)
		thread->depth--;
	return context ? context_push(thread, context) : CUDA_SUCCESS;
}

CUresult on_cuCtxGetCurrent(struct thread *thread, CUcontext *context)
{
	*context = thread_context(thread) ? thread_context(thread)->name : 0;
	return CUDA_SUCCESS;
}

CUresult on_cuCtxGetDevice(struct context *current, CUdevice *device)
{
	*device = current->device;
	return CUDA_SUCCESS;
}

CUresult on_cuCtxGetDevice_v2(CUdevice *device, CUcontext handle)
{
	const struct context *context;

	if (handle == 0)
		return cuCtxGetDevice(device);
	context = context_find(handle);
	if (!context)
		return CUDA_ERROR_INVALID_CONTEXT;
	*device = context->device;
	return CUDA_SUCCESS;
}

/* It is asked for by every call of some libraries, and stays what it is. */
CUresult cuCtxGetId(CUcontext handle, unsigned long long *id)
{
	struct context *context = handle ? context_find(handle) : NULL;
	CUresult r;

	if (!id)
		return call_fail(CUDA_ERROR_INVALID_VALUE);
	if (handle == 0)
		(void)context_current(&context);
	if (context && !context->gone && context->id) {
		*id = context->id;
		return CUDA_SUCCESS;
	}
	handle = handle ? context_handle(handle) : 0;
	r = call_sync(OP_cuCtxGetId, &handle, 1, NULL, 0, id, sizeof(*id));
	if (!r && context)
		context->id = *id;
	return r;
}

CUresult on_cuCtxGetFlags(struct context *current, unsigned *flags)
{
	*flags = current->flags;
	return CUDA_SUCCESS;
}

CUresult on_cuCtxSetFlags(struct context *current, unsigned flags)
{
	const uint64_t word = flags;
	CUresult r = call_sync(OP_cuCtxSetFlags, &word, 1, NULL, 0, NULL, 0);

	if (!r)
		current->flags = flags;
	return r;
}

CUresult cuCtxSynchronize_v2(CUcontext handle)
{
	CUresult r, r_pop;

	if (handle == 0)
		return cuCtxSynchronize();
	r = cuCtxPushCurrent_v2(handle);
	if (r)
		return r;
	r = cuCtxSynchronize();
	r_pop = cuCtxPopCurrent_v2(NULL);
	return r ? r : r_pop;
}

uint64_t context_name(uint64_t handle)
{
	LOCK_HOLD(&context_lock);
	for (const struct context *context = contexts; context; context = context->next)
		if (context->handle == handle)
			return context->name;
	return handle;
}

CUresult on_cuStreamGetCtx(struct context *current, CUstream stream, CUcontext *context)
{
	const uint64_t word = stream;
	uint64_t handle;
	CUresult r;

	*context = current->name;
	if (stream < WIRE_STREAM_NAMES)
		return CUDA_SUCCESS;
	r = call_sync(OP_cuStreamGetCtx, &word, 1, NULL, 0, &handle, sizeof(handle));
	if (!r)
		*context = context_name(handle);
	return r;
}

/* Where a copy to ordinary memory was waited for, as programs do that want a number, there is nothing to ask. */
CUresult on_cuStreamSynchronize(CUstream stream)
{
	const uint64_t word = stream;
	struct thread *thread;
	CUresult r = call_enter(&thread);

	if (r)
		return r;
	if (call_is_idle(thread, stream))
		return call_failure(thread);
	return call_sync(OP_cuStreamSynchronize, &word, 1, NULL, 0, NULL, 0);
}

CUresult on_cuStreamGetCtx_v2(CUstream stream, CUcontext *context, CUgreenCtx *green)
{
	if (green)
		*green = 0;
	return cuStreamGetCtx(stream, context);
}

CUresult on_cuStreamGetDevice(CUstream stream, CUdevice *device)
{
	CUcontext context;
	CUresult r = cuStreamGetCtx(stream, &context);

	return r ? r : cuCtxGetDevice_v2(device, context);
}

/* Managed memory alone is attached, and there is none. */
CUresult on_cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
	uint64_t word = (uint64_t)*mode;
	CUresult r = call_sync(OP_cuThreadExchangeStreamCaptureMode, &word, 1, NULL, 0, &word, sizeof(word));

	if (!r)
		*mode = (CUstreamCaptureMode)word;
	return r;
}

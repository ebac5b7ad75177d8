/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Contexts as the client keeps them: which there are, of which device, how often a primary one is held. */

#include "vcuda/client/client.h"

/** Return: the context that the program calls by this name; NULL if there is none. */
struct context *context_find(uint64_t name);

/** Whether it is the name of a primary context that is not active now. */
bool context_is_former(uint64_t name);

/** Return: what the server calls the context of a name; the name if there is none, which the server refuses. */
uint64_t context_handle(uint64_t name);

/** Return: what the program calls the context of a handle of the server's; the handle if there is none. */
uint64_t context_name(uint64_t handle);

/** Return: the current context, or what a call without one fails with. */
CUresult context_current(struct context **ret);

/**
 * context_borrow() - where none is current, one is until context_give_back(): any, or the first device's primary one,
 * which stays then
 *
 * Return: what a call without a context fails with; @ret_borrowed is written in any case.
 */
CUresult context_borrow(bool *ret_borrowed);
void context_give_back(void);

/* What a program keeps for a context under keys of its own, and what it wants to be told when the context ends. */

typedef void context_storage_end(CUcontext context, const void *key, void *value);

/** Keeps a value. @end may be NULL. Return: CUDA_ERROR_INVALID_HANDLE if there is one under that key. */
CUresult context_storage_put(struct context *context, const void *key, void *value, context_storage_end *end);

/** Return: CUDA_ERROR_INVALID_HANDLE if there is none. */
CUresult context_storage_get(struct context *context, const void *key, void **ret);

/** Drops a value without calling its destructor. Return: CUDA_ERROR_INVALID_HANDLE if there is none. */
CUresult context_storage_delete(struct context *context, const void *key);

/* Code: images on their way to the server, and what the client knows of the functions in them. */

struct function {
	_Atomic(struct function *) next; /* in the same place, for another device */
	CUdevice device;                 /* a kernel's attributes are of one */
	_Atomic uint64_t handle;
	_Atomic uint32_t epoch; /* of all code; another than now: ask again */
	struct wire_function info;
};

/** Gets a function's parameters and limits on the current context's device, from the server the first time. */
CUresult image_function(uint64_t handle, const struct function **ret);

/** What was known of functions is to be asked for again: a module or a context is gone. */
void image_forget(uint64_t owner);

/* Captures of streams into graphs, which end with their streams and contexts, too. */

/** One has begun in a stream. */
void context_begin_capture(CUstream stream);

/** One has ended. */
void context_end_capture(CUstream stream);

/* Launches of kernels. */

/** Return: the same configuration with the thread's own stream in place of the null stream. */
static inline const CUlaunchConfig *launch_config_of_thread(const CUlaunchConfig *config, CUlaunchConfig *copy)
{
	if (!config || config->hStream)
		return config;
	*copy = *config;
	copy->hStream = WIRE_STREAM_THREAD;
	return copy;
}

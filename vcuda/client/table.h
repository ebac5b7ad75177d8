/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The slots of the tables of tables.def that are no functions of the API: what they do, as far as it is known. */

#include "vcuda/client/context.h"
#include "vcuda/protocol/types.h"

/** A table's words, by the UUID of tables.def's name for it. */
struct table_addresses {
	const void *runtime, *integrity, *integrity_function;
};

/** Where the tables are that the check value is made of. */
void table_tell_addresses(struct table_addresses *ret);

/** Loads what the compiler has put into a program. */
CUresult table_load_module(CUmodule *module, const void *image);
CUresult table_load_module_for(CUmodule *module, const void *image, void *first, void *second, unsigned number);
CUresult table_load_module_from(const void *image, CUmodule *module, void *first, void *second, unsigned number);

typedef void table_function(void *argument, CUfunction function, const char *name);

/** Calls a function for each of a module. Return: how many there are. */
uint64_t table_each_function(CUcontext context, CUmodule module, table_function *call, void *argument);

/** Gives a place for marks of the runtime's functions that a tool watches, and how many there are. No tool does. */
void table_calls_watched(void **marks, size_t *count);
void table_tools_watched(void **marks, size_t *count);

/** Values that the runtime keeps for a context. Of none is the current one. */
CUresult table_storage_put(CUcontext context, const void *key, void *value, context_storage_end *end);
CUresult table_storage_delete(CUcontext context, const void *key);
CUresult table_storage_get(void **value, CUcontext context, const void *key);

/** Whether a context is one of a kind that the runtime does not use: none is. */
CUresult table_check_context(CUcontext context, uint32_t *special, const void **more);

/** A context's device. */
CUresult table_context_device(CUcontext context, CUdevice *device);

/** A stream as the driver's libraries call it, and its number. */
CUresult table_stream_of(CUcontext context, CUstream stream, void **ret, int of_thread);
CUresult table_stream_number(CUcontext context, void *stream, uint64_t *number);

/** The check value: @result gets two words of which the runtime knows what they have to be. */
CUresult table_integrity(uint32_t version, uint64_t seconds, uint64_t *result);

/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The tables of functions that cuGetExportTable() gives by a UUID: those of which NVIDIA's CUDA runtime and libraries call a
 * slot, which is there, and the others return CUDA_ERROR_NOT_SUPPORTED, that with the check value, too.
 */

#include <stdlib.h>
#include <string.h>

#include "sim.h"

typedef void end_fn(CUcontext context, const void *key, void *value);

/* What is kept for contexts. */
static struct kept {
	struct kept *next;
	CUcontext context;
	const void *key;
	void *value;
	end_fn *end;
} * kept;

static struct kept **table_find(CUcontext context, const void *key)
{
	struct kept **at = &kept;

	while (*at && ((*at)->context != context || (key && (*at)->key != key)))
		at = &(*at)->next;
	return at;
}

/* The lock is given up while those are told who wanted to know. */
void table_end_context(CUcontext context)
{
	struct kept **at, *one;

	while (*(at = table_find(context, NULL))) {
		one = *at;
		*at = one->next;
		(void)pthread_mutex_unlock(&sim_lock);
		if (one->end)
			one->end(context, one->key, one->value);
		free(one);
		(void)pthread_mutex_lock(&sim_lock);
	}
}

/* A primary one that was reset keeps nothing. */
static CUresult table_context(CUcontext *context)
{
	const bool named = *context != NULL;

	if (!named)
		*context = context_current();
	if (*context && object_lives(*context, OBJECT_CONTEXT))
		return CUDA_SUCCESS;
	for (int i = 0; named && i < device_count(); i++)
		if (device_get(i)->former == *context)
			return CUDA_ERROR_INVALID_HANDLE;
	return CUDA_ERROR_INVALID_CONTEXT;
}

static CUresult storage_put(CUcontext context, const void *key, void *value, end_fn *end)
{
	struct kept **at;
	CUresult r;

	CALL(__func__);
	r = table_context(&context);
	LEAVE_IF(r, r);
	at = table_find(context, key);
	LEAVE_IF(*at, CUDA_ERROR_INVALID_HANDLE);
	*at = malloc(sizeof(**at));
	LEAVE_IF(!*at, CUDA_ERROR_OUT_OF_MEMORY);
	**at = (struct kept){NULL, context, key, value, end};
	LEAVE(CUDA_SUCCESS);
}

static CUresult storage_delete(CUcontext context, const void *key)
{
	struct kept **at, *one;
	CUresult r;

	CALL(__func__);
	r = table_context(&context);
	LEAVE_IF(r, r);
	at = table_find(context, key);
	one = *at;
	LEAVE_IF(!one, CUDA_ERROR_INVALID_HANDLE);
	*at = one->next;
	free(one);
	LEAVE(CUDA_SUCCESS);
}

static CUresult storage_get(void **ret, CUcontext context, const void *key)
{
	const struct kept *one;
	CUresult r;

	CALL(__func__);
	*ret = NULL;
	r = table_context(&context);
	LEAVE_IF(r, r);
	one = *table_find(context, key);
	LEAVE_IF(!one, CUDA_ERROR_INVALID_HANDLE);
	*ret = one->value;
	LEAVE(CUDA_SUCCESS);
}

static void give_marks(void **ret, size_t *ret_count)
{
	static uint64_t marks[1024];

	*ret = marks;
	*ret_count = sizeof(marks) / sizeof(marks[0]);
}

static CUresult check_context(CUcontext context, uint32_t *ret, const void **ret_more)
{
	(void)context, (void)ret_more;
	*ret = 0;
	return CUDA_SUCCESS;
}

static CUresult load_module(CUmodule *ret, const void *image)
{
	return cuModuleLoadFatBinary(ret, image);
}

static CUresult nothing(void)
{
	return CUDA_SUCCESS;
}

static CUresult refused(void)
{
	return CUDA_ERROR_NOT_SUPPORTED;
}

#define WORDS(name) [0] = (const void *)sizeof(name)

static const void *runtime[13] = {WORDS(runtime), [1] = (void *)load_module, [2] = (void *)cuDevicePrimaryCtxRetain,
				  [7] = (void *)nothing, [12] = (void *)nothing};
static const void *callbacks[7] = {WORDS(callbacks), [2] = (void *)give_marks, [6] = (void *)give_marks};
static const void *threads[3] = {WORDS(threads), [2] = (void *)cuCtxGetCurrent};
static const void *storage[4] = {(void *)storage_put, (void *)storage_delete, (void *)storage_get};
static const void *checks[15] = {WORDS(checks), [2] = (void *)check_context, [3] = (void *)nothing};
static const void *integrity[3] = {WORDS(integrity)};
static const void *contexts[93] = {WORDS(contexts), [4] = (void *)cuCtxGetId};

static const struct {
	const char *uuid;
	const void **words;
	size_t count;
} tables[] = {
#define TABLE(name) name, sizeof(name) / sizeof((name)[0])
	{"\x6b\xd5\xfb\x6c\x5b\xf4\xe7\x4a\x89\x87\xd9\x39\x12\xfd\x9d\xf9", TABLE(runtime)},
	{"\xa0\x94\x79\x8c\x2e\x74\x2e\x74\x93\xf2\x08\x00\x20\x0c\x0a\x66", TABLE(callbacks)},
	{"\x42\xd8\x5a\x81\x23\xf6\xcb\x47\x82\x98\xf6\xe7\x8a\x3a\xec\xdc", TABLE(threads)},
	{"\xc6\x93\x33\x6e\x11\x21\xdf\x11\xa8\xc3\x68\xf3\x55\xd8\x95\x93", TABLE(storage)},
	{"\x26\x3e\x88\x60\x7c\xd2\x61\x43\x92\xf6\xbb\xd5\x00\x6d\xfa\x7e", TABLE(checks)},
	{"\xd4\x08\x20\x55\xbd\xe6\x70\x4b\x8d\x34\xba\x12\x3c\x66\xe1\xf2", TABLE(integrity)},
	{"\x21\x31\x8c\x60\x97\x14\x32\x48\x8c\xa6\x41\xff\x73\x24\xc8\xf2", TABLE(contexts)},
};

CUresult cuGetExportTable(const void **ret, const CUuuid *id)
{
	if (!ret || !id)
		return CUDA_ERROR_INVALID_VALUE;
	*ret = NULL;
	(void)pthread_mutex_lock(&sim_lock);
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
		if (memcmp(tables[i].uuid, id, sizeof(*id)) != 0)
			continue;
		for (size_t word = 1; word < tables[i].count && tables[i].words != storage; word++)
			if (!tables[i].words[word])
				tables[i].words[word] = (void *)refused;
		*ret = tables[i].words;
	}
	(void)pthread_mutex_unlock(&sim_lock);
	return *ret ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

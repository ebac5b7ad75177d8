/* SPDX-License-Identifier: Apache-2.0 */

/* Words of memory that a stream waits for or writes, and tensor maps. */

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim.h"

enum { WAIT_32 = 1, WRITE_32 = 2, WAIT_64 = 4, WRITE_64 = 5, WAIT_GEQ = 0, WAIT_EQ, WAIT_AND, WAIT_NOR };

struct word_work {
	struct work work;
	int operation;
	uintptr_t address;
	uint64_t value;
	unsigned flags;
	bool locked; /* the word is memory of the host that is registered */
};

static bool word_holds(uint64_t found, const struct word_work *word)
{
	switch (word->flags & 3) {
	case WAIT_GEQ:
		return word->operation == WAIT_32 ? (int32_t)(found - word->value) >= 0
						  : (int64_t)(found - word->value) >= 0;
	case WAIT_EQ:
		return found == word->value;
	case WAIT_AND:
		return (found & word->value) != 0;
	default:
		return (~(found | word->value) & (word->operation == WAIT_32 ? UINT32_MAX : UINT64_MAX)) != 0;
	}
}

static void word_run(struct work *work, CUcontext context)
{
	const struct word_work *word = (const struct word_work *)work;
	_Atomic uint32_t *narrow = (void *)word->address;
	_Atomic uint64_t *wide = (void *)word->address;

	(void)context;
	if (word->locked)
		range_must_stay(word->address);
	if (word->operation == WRITE_32)
		atomic_store(narrow, (uint32_t)word->value);
	else if (word->operation == WRITE_64)
		atomic_store(wide, word->value);
	else
		while (!word_holds(word->operation == WAIT_32 ? atomic_load(narrow) : atomic_load(wide), word))
			(void)usleep(20);
}

static bool word_is_managed(CUdeviceptr address)
{
	const struct range *range = address_map_find(address);

	return range && range->kind == RANGE_MANAGED;
}

static CUresult word_push(CUstream stream, int operation, CUdeviceptr address, uint64_t value, unsigned flags)
{
	size_t size = operation == WAIT_32 || operation == WRITE_32 ? 4 : 8;
	bool write = operation == WRITE_32 || operation == WRITE_64;
	struct word_work *word;

	if (size == 4)
		value = (uint32_t)value;
	if (address % size || !range_holds(address, size) || word_is_managed(address) ||
	    (write ? flags > 1 : (flags & ~(1u << 30)) > 3))
		return CUDA_ERROR_INVALID_VALUE;
	word = malloc(sizeof(*word));
	if (!word)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*word = (struct word_work){.work = {.run = word_run, .is_noted_late = write},
				   .operation = operation,
				   .address = address,
				   .value = value,
				   .flags = flags};
	word->locked = range_is_registered(address);
	(void)stream_push(stream, &word->work);
	return CUDA_SUCCESS;
}

#define WORD(name, operation, type)                                                         \
	CUresult name(CUstream handle, CUdeviceptr address, type value, unsigned flags)     \
	{                                                                                   \
		CUcontext context;                                                          \
		CUstream stream;                                                            \
                                                                                            \
		CALL_CONTEXT(context);                                                      \
		LEAVE_IF(stream_find(context, handle, &stream), CUDA_ERROR_INVALID_HANDLE); \
		LEAVE(word_push(stream, operation, address, value, flags));                 \
	}

WORD(cuStreamWaitValue32_v2, WAIT_32, cuuint32_t)
WORD(cuStreamWaitValue64_v2, WAIT_64, cuuint64_t)
WORD(cuStreamWriteValue32_v2, WRITE_32, cuuint32_t)
WORD(cuStreamWriteValue64_v2, WRITE_64, cuuint64_t)

/* A driver from CUDA 12 on has the first forms only if its kernel module was told so, as attribute 92 says. */
#define WORD_V1(name, type)                                                             \
	CUresult name(CUstream stream, CUdeviceptr address, type value, unsigned flags) \
	{                                                                               \
		CUresult r = call_fault(#name);                                         \
                                                                                        \
		if (r || !config_number("STREAM_MEM_OPS_V1", 0))                        \
			return r ? r : CUDA_ERROR_NOT_SUPPORTED;                        \
		return name##_v2(stream, address, value, flags);                        \
	}

WORD_V1(cuStreamWaitValue32, cuuint32_t)
WORD_V1(cuStreamWaitValue64, cuuint64_t)
WORD_V1(cuStreamWriteValue32, cuuint32_t)
WORD_V1(cuStreamWriteValue64, cuuint64_t)

CUresult cuStreamBatchMemOp_v2(CUstream handle, unsigned count, CUstreamBatchMemOpParams *operations, unsigned flags)
{
	CUcontext context;
	CUstream stream;

	CALL_CONTEXT(context);
	LEAVE_IF(stream_find(context, handle, &stream), CUDA_ERROR_INVALID_HANDLE);
	LEAVE_IF(flags || !operations || count > 256, CUDA_ERROR_INVALID_VALUE);
	for (unsigned i = 0; i < count; i++) {
		int operation = operations[i].operation;
		CUresult r = CUDA_ERROR_INVALID_VALUE;

		if (operation == WAIT_32 || operation == WRITE_32 || operation == WAIT_64 || operation == WRITE_64)
			r = word_push(stream, operation, operations[i].address, operations[i].value,
				      operations[i].flags);
		LEAVE_IF(r, r);
	}
	LEAVE(CUDA_SUCCESS);
}

CUresult cuStreamBatchMemOp(CUstream stream, unsigned count, CUstreamBatchMemOpParams *operations, unsigned flags)
{
	CUresult r = call_fault(__func__);

	if (r || !config_number("STREAM_MEM_OPS_V1", 0))
		return r ? r : CUDA_ERROR_NOT_SUPPORTED;
	return cuStreamBatchMemOp_v2(stream, count, operations, flags);
}

CUresult cuTensorMapEncodeTiled(CUtensorMap *ret, int type, cuuint32_t rank, void *address,
				const cuuint64_t *dimensions, const cuuint64_t *strides, const cuuint32_t *box,
				const cuuint32_t *element_strides, int interleave, int swizzle, int promotion, int fill)
{
	CALL(__func__);
	LEAVE_IF(!ret || type < 0 || type > 15 || !rank || rank > 5 || !address || (uintptr_t)address % 16 ||
			 !dimensions || !box || !element_strides || (rank > 1 && !strides) || interleave < 0 ||
			 interleave > 2 || swizzle < 0 || promotion < 0 || promotion > 3 || fill < 0 || fill > 1,
		 CUDA_ERROR_INVALID_VALUE);
	for (unsigned i = 0; i < rank; i++)
		LEAVE_IF(!dimensions[i] || dimensions[i] > (cuuint64_t)1 << 32 || !box[i] || box[i] > 256 ||
				 !element_strides[i] || element_strides[i] > 8,
			 CUDA_ERROR_INVALID_VALUE);
	memset(ret, 0, sizeof(*ret));
	ret->opaque[0] = (uintptr_t)address;
	ret->opaque[1] = rank;
	LEAVE(CUDA_SUCCESS);
}

static CUresult word_encode_columns(CUtensorMap *ret, int type, cuuint32_t rank, void *address,
				    const cuuint64_t *dimensions, const cuuint64_t *strides, cuuint32_t channels,
				    cuuint32_t pixels, const cuuint32_t *steps)
{
	if (!ret || type < 0 || type > 15 || rank < 3 || rank > 5 || !address || (uintptr_t)address % 16 ||
	    !dimensions || !strides || !steps || !channels || channels > 256 || !pixels || pixels > 1024)
		return CUDA_ERROR_INVALID_VALUE;
	memset(ret, 0, sizeof(*ret));
	ret->opaque[0] = (uintptr_t)address;
	ret->opaque[1] = rank;
	ret->opaque[2] = (uint64_t)channels << 32 | pixels;
	return CUDA_SUCCESS;
}

CUresult cuTensorMapEncodeIm2col(CUtensorMap *ret, int type, cuuint32_t rank, void *address,
				 const cuuint64_t *dimensions, const cuuint64_t *strides, const int *lower,
				 const int *upper, cuuint32_t channels, cuuint32_t pixels, const cuuint32_t *steps,
				 int interleave, int swizzle, int promotion, int fill)
{
	CALL(__func__);
	LEAVE_IF(!lower || !upper || interleave < 0 || swizzle < 0 || promotion < 0 || fill < 0,
		 CUDA_ERROR_INVALID_VALUE);
	LEAVE(word_encode_columns(ret, type, rank, address, dimensions, strides, channels, pixels, steps));
}

CUresult cuTensorMapEncodeIm2colWide(CUtensorMap *ret, int type, cuuint32_t rank, void *address,
				     const cuuint64_t *dimensions, const cuuint64_t *strides, int lower, int upper,
				     cuuint32_t channels, cuuint32_t pixels, const cuuint32_t *steps, int interleave,
				     int mode, int swizzle, int promotion, int fill)
{
	CALL(__func__);
	(void)lower, (void)upper;
	LEAVE_IF(interleave < 0 || mode < 0 || swizzle < 0 || promotion < 0 || fill < 0, CUDA_ERROR_INVALID_VALUE);
	/* Of a newer GPU. */
	(void)ret, (void)type, (void)rank, (void)address, (void)dimensions, (void)strides, (void)channels, (void)pixels;
	(void)steps;
	LEAVE(CUDA_ERROR_INVALID_VALUE);
}

CUresult cuTensorMapReplaceAddress(CUtensorMap *map, void *address)
{
	CALL(__func__);
	LEAVE_IF(!map || !address || (uintptr_t)address % 16, CUDA_ERROR_INVALID_VALUE);
	map->opaque[0] = (uintptr_t)address;
	LEAVE(CUDA_SUCCESS);
}

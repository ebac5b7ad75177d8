/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Asking the driver whether a stream is done takes half a microsecond, and thrice that when it is. So where it is not,
 * the GPU is told to write a number into memory of ours behind all that the stream has to do, and that memory is looked
 * at. The driver is still asked now and then: after a failure, no number is written.
 */

#include "vcuda/server/mark.h"

#include <sys/mman.h>

#include "vcuda/driver_api.h"
#include "vcuda/server/arena.h"
#include "vcuda/server/driver.h"

enum {
	MARK_LOOKS = 256, /* at the memory, for one question to the driver */
	MARK_BYTES = WIRE_SLOTS * sizeof(uint32_t),
};

static struct mark marks[WIRE_SLOTS];

/* The client's kernels can write wherever this is, so nothing else is in its pages, however large they are. */
static _Atomic uint32_t *numbers;
static uint64_t mark_context; /* that the page is registered in, for all contexts; 0: none */
static CUdeviceptr mark_address;
static bool mark_cannot;

void mark_forget_context(uint64_t context)
{
	if (mark_context == context)
		mark_context = 0;
}

/* When it is needed. */
static bool mark_make(void)
{
	void *memory = mmap(NULL, MARK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory != MAP_FAILED)
		numbers = memory;
	return numbers;
}

static bool mark_register(uint64_t context)
{
	if (mark_context || mark_cannot)
		return !mark_cannot;
	mark_cannot = !driver.cuStreamWriteValue32_v2 || !driver.cuMemHostGetDevicePointer_v2 ||
		      (!numbers && !mark_make()) || !arena_register(numbers, MARK_BYTES) ||
		      driver.cuMemHostGetDevicePointer_v2(&mark_address, numbers, 0) != CUDA_SUCCESS;
	if (!mark_cannot)
		mark_context = context;
	return !mark_cannot;
}

static bool mark_write(uint64_t slot)
{
	CUresult r;

	if (server.wait_spin == 0 || !mark_register(marks[slot].context))
		return false;
	marks[slot].number++;
	r = driver.cuStreamWriteValue32_v2(marks[slot].stream, mark_address + slot * sizeof(numbers[0]),
					   marks[slot].number, 0);
	return r == CUDA_SUCCESS;
}

CUresult mark_query(uint64_t slot)
{
	struct mark *mark = &marks[slot];
	const bool first = mark->looks++ == 0;
	CUresult r;

	if (mark->written && numbers[slot] == mark->number)
		return CUDA_SUCCESS;
	if (mark->written && mark->looks % MARK_LOOKS != 0)
		return CUDA_ERROR_NOT_READY;
	r = driver.cuStreamQuery(mark->stream);
	if (r == CUDA_ERROR_NOT_READY && first)
		mark->written = mark_write(slot);
	return r;
}

const struct mark *mark_of(uint64_t slot)
{
	return &marks[slot];
}

uint64_t mark_begin(const struct request *q, CUstream stream)
{
	struct mark *mark = &marks[q->header.thread];

	mark->stream = stream;
	mark->context = q->header.context;
	mark->looks = 0;
	mark->written = false;
	return q->header.thread;
}

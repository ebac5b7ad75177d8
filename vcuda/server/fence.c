/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Asking the driver whether a stream is done takes half a microsecond, and thrice that when it is. So where it is not,
 * the GPU is told to write a number into memory of ours behind all that the stream has to do, and that memory is looked
 * at. The driver is still asked now and then: after a failure, no number is written.
 */

#include "vcuda/server/request.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "vcuda/driver_api.h"
#include "vcuda/server/arena.h"
#include "vcuda/server/driver.h"

enum {
	FENCE_LOOKS = 256, /* at the memory, for one question to the driver */
	FENCE_BYTES = WIRE_SLOTS * sizeof(uint32_t),
};

static struct fence marks[WIRE_SLOTS];

/* A context's, registered in it. The client's kernels can write wherever this is, so nothing else is in its pages. */
struct fence_page {
	struct fence_page *next;
	uint64_t context;
	_Atomic uint32_t *numbers;
	CUdeviceptr address;
};

static struct fence_page *fence_pages;
static bool fence_cannot;

struct fence_page *fence_take_context(uint64_t context)
{
	struct fence_page **at = &fence_pages, *page;

	while (*at && (*at)->context != context)
		at = &(*at)->next;
	page = *at;
	if (page)
		*at = page->next;
	return page;
}

void fence_free(struct fence_page *page)
{
	if (!page)
		return;
	(void)munmap(page->numbers, FENCE_BYTES);
	free(page);
}

static bool fence_register(struct fence_page *page)
{
	return arena_register_in(page->context, page->numbers, FENCE_BYTES) &&
	       driver.cuMemHostGetDevicePointer_v2(&page->address, page->numbers, 0) == CUDA_SUCCESS;
}

/* When it is needed. Return: NULL if there is none. */
static struct fence_page *fence_make_page(uint64_t context)
{
	struct fence_page *page = calloc(1, sizeof(*page));
	void *memory = mmap(NULL, FENCE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (!page || memory == MAP_FAILED) {
		free(page);
		return NULL;
	}
	page->context = context;
	page->numbers = memory;
	page->next = fence_pages;
	fence_pages = page;
	fence_cannot = !fence_register(page);
	return page;
}

static struct fence_page *fence_page_of(uint64_t context)
{
	struct fence_page *page = fence_pages;

	fence_cannot = fence_cannot || !driver.cuStreamWriteValue32_v2 || !driver.cuMemHostGetDevicePointer_v2;
	while (page && page->context != context)
		page = page->next;
	if (!page && !fence_cannot)
		page = fence_make_page(context);
	return fence_cannot ? NULL : page;
}

static bool fence_write(uint64_t slot)
{
	struct fence *mark = &marks[slot];
	struct fence_page *page = server.wait_spin == 0 ? NULL : fence_page_of(mark->context);

	if (!page)
		return false;
	mark->number++;
	mark->numbers = page->numbers;
	return driver.cuStreamWriteValue32_v2(mark->stream, page->address + slot * sizeof(page->numbers[0]),
					      mark->number, 0) == CUDA_SUCCESS;
}

CUresult fence_query(uint64_t slot)
{
	struct fence *mark = &marks[slot];
	const bool first = mark->looks++ == 0;
	CUresult r;

	if (mark->written && mark->numbers[slot] == mark->number)
		return CUDA_SUCCESS;
	if (mark->written && mark->looks % FENCE_LOOKS != 0)
		return CUDA_ERROR_NOT_READY;
	r = driver.cuStreamQuery(mark->stream);
	if (r == CUDA_ERROR_NOT_READY && first)
		mark->written = fence_write(slot);
	return r;
}

const struct fence *fence_of(uint64_t slot)
{
	return &marks[slot];
}

uint64_t fence_begin(const struct request *q, CUstream stream, uint64_t handle, uint64_t context)
{
	struct fence *mark = &marks[q->header.thread];

	mark->stream = stream;
	mark->handle = handle;
	mark->context = context;
	mark->request = q->number;
	mark->looks = 0;
	mark->written = false;
	return q->header.thread;
}

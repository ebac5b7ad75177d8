/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Asking the driver whether a stream is done takes half a microsecond, and thrice that when it is. So where it is not,
 * the GPU is told to write a number into memory of ours behind all that the stream has to do, and that memory is looked
 * at. The driver is still asked now and then: after a failure, no number is written.
 */

#include "vcuda/server/mark.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "vcuda/driver_api.h"
#include "vcuda/server/arena.h"
#include "vcuda/server/driver.h"

enum {
	MARK_LOOKS = 256, /* at the memory, for one question to the driver */
	MARK_BYTES = WIRE_SLOTS * sizeof(uint32_t),
};

static struct mark marks[WIRE_SLOTS];

/* A context's, registered in it. The client's kernels can write wherever this is, so nothing else is in its pages. */
struct mark_page {
	struct mark_page *next;
	uint64_t context;
	_Atomic uint32_t *numbers;
	CUdeviceptr address;
};

static struct mark_page *mark_pages;
static bool mark_cannot;

/* Nobody waits in it any more. */
void mark_forget_context(uint64_t context)
{
	struct mark_page **at = &mark_pages, *page;

	while (*at && (*at)->context != context)
		at = &(*at)->next;
	page = *at;
	if (!page)
		return;
	*at = page->next;
	(void)munmap(page->numbers, MARK_BYTES);
	free(page);
}

static bool mark_register(struct mark_page *page)
{
	return arena_register_in(page->context, page->numbers, MARK_BYTES) &&
	       driver.cuMemHostGetDevicePointer_v2(&page->address, page->numbers, 0) == CUDA_SUCCESS;
}

/* When it is needed. Return: NULL if there is none. */
static struct mark_page *mark_make_page(uint64_t context)
{
	struct mark_page *page = calloc(1, sizeof(*page));
	void *memory = mmap(NULL, MARK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (!page || memory == MAP_FAILED) {
		free(page);
		return NULL;
	}
	page->context = context;
	page->numbers = memory;
	page->next = mark_pages;
	mark_pages = page;
	mark_cannot = !mark_register(page);
	return page;
}

static struct mark_page *mark_page_of(uint64_t context)
{
	struct mark_page *page = mark_pages;

	mark_cannot = mark_cannot || !driver.cuStreamWriteValue32_v2 || !driver.cuMemHostGetDevicePointer_v2;
	while (page && page->context != context)
		page = page->next;
	if (!page && !mark_cannot)
		page = mark_make_page(context);
	return mark_cannot ? NULL : page;
}

static bool mark_write(uint64_t slot)
{
	struct mark *mark = &marks[slot];
	struct mark_page *page = server.wait_spin == 0 ? NULL : mark_page_of(mark->context);

	if (!page)
		return false;
	mark->number++;
	mark->numbers = page->numbers;
	return driver.cuStreamWriteValue32_v2(mark->stream, page->address + slot * sizeof(page->numbers[0]),
					      mark->number, 0) == CUDA_SUCCESS;
}

CUresult mark_query(uint64_t slot)
{
	struct mark *mark = &marks[slot];
	const bool first = mark->looks++ == 0;
	CUresult r;

	if (mark->written && mark->numbers[slot] == mark->number)
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

uint64_t mark_begin(const struct request *q, CUstream stream, uint64_t context)
{
	struct mark *mark = &marks[q->header.thread];

	mark->stream = stream;
	mark->context = context;
	mark->request = q->number;
	mark->looks = 0;
	mark->written = false;
	return q->header.thread;
}

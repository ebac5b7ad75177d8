/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A copy through chunks of the staging memory, where one chunk is filled or emptied while others are on the bus. From a
 * mebibyte on, other threads copy their share of each chunk.
 */

#include "vcuda/client/client.h"

enum { STAGED_DEPTH = WIRE_LARGE / 2 }; /* chunks of one copy that are under way */

struct staged {
	uint32_t chunk[STAGED_DEPTH];
	unsigned depth;
	size_t piece; /* bytes that go through a chunk at once */
	bool shared;  /* with the threads that help */
};

/**
 * staged_begin() - take chunks for a copy of so many bytes, more than 0, until staged_end()
 *
 * It may wait for what the stream does before. Return: what that failed with; there is nothing to end then.
 */
CUresult staged_begin(size_t bytes, CUstream stream, struct staged *ret);
void staged_end(const struct staged *staged);

/** memcpy(3), with the others' help if the copy has it. */
void staged_copy(void *to, const void *from, size_t bytes, bool shared);

/** Waits until the last copy through a chunk is done. */
CUresult staged_wait(uint32_t chunk);

/** Return: where a chunk is. */
static inline uint8_t *staged_chunk(uint32_t chunk)
{
	return client.staging + wire_chunk_offset(chunk);
}

/**
 * staged_await() - wait until what is about to be read through chunks is what the stream wants copied
 *
 * Memory that the program has registered is to be read when the stream is there: it may have a function of the host
 * fill it first. Other ordinary memory is read when the call is made.
 */
CUresult staged_await(const void *from, CUstream stream);

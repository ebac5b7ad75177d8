/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What a program has said of managed memory, page by page. Nothing follows from it: the memory stays where it is. */

#include "vcuda/client/client.h"

/* Numbers of CUmemLocationType, and of devices that are none. */
enum { LOCATION_NONE, LOCATION_DEVICE, LOCATION_HOST, LOCATION_NUMA, LOCATION_NUMA_CURRENT };
enum { ADVICE_CPU = -1, ADVICE_NO_DEVICE = -2 };

struct advice {
	CUmemLocation preferred, last; /* last: where it was prefetched to */
	uint32_t accessed;             /* a bit for the host, and above it one for each device */
	bool read_mostly;
};

/** Has @change write what is said of the bytes from @at to @end from now on. Return: CUDA_ERROR_OUT_OF_MEMORY. */
CUresult advice_set(uint64_t at, uint64_t end, void (*change)(struct advice *advice, int what, CUmemLocation location),
		    int what, CUmemLocation location);

/** Has @look see all that is said of the bytes from @at to @end. */
void advice_look(uint64_t at, uint64_t end, void (*look)(const struct advice *advice, void *data), void *data);

/** Forgets what was said of memory that is freed. */
void advice_forget(uint64_t at, uint64_t end);

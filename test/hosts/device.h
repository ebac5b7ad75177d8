/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What /dev/dxg answers: the ioctls of the WSL kernel's dxgkrnl that an inventory uses, over the adapters of a profile.
 * Nothing here knows how a call arrived.
 */

#include "memory.h"
#include "profile.h"

/*
 * The handles of one process, as the kernel numbers them: {instance:6, index:24, unique:2} from the lowest bit. They live
 * until the process closes the last of its files.
 */
struct handles {
	struct handle_entry {
		uint32_t next;   /* of a free entry: the one that became free after it */
		uint8_t adapter; /* its number in the profile and 1; 0 is a free entry */
		uint8_t unique;
	} * entries;
	uint32_t size, first, last, free_count;
	uint32_t devices; /* that were made */
};

void handles_clear(struct handles *handles);

/**
 * device_ioctl() - answer one call
 * @handles: of the calling process
 * @memory:  of the calling process
 *
 * Return: 0 or negative errno, as ioctl(2) will.
 */
int device_ioctl(const struct profile *profile, struct handles *handles, struct memory *memory, uint32_t code,
		 uint64_t argument);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What /dev/dxg answers: the ioctls of the WSL kernel's dxgkrnl that an inventory uses, over the adapters of a profile.
 * Nothing here knows how a call arrived.
 */

#include "memory.h"
#include "profile.h"

enum { HANDLES_MAX = 1024 };

/* The handles of one process, as the kernel numbers them: {instance:6, index:24, unique:2} from the lowest bit. */
struct handles {
	struct {
		uint8_t adapter; /* its number in the profile and 1; 0 is a free entry */
		uint8_t unique;  /* 1 to 3, another one each time that the entry is used again */
	} entries[HANDLES_MAX];
	uint32_t next;
};

/**
 * device_ioctl() - answer one call
 * @handles: of the calling process
 * @memory:  of the calling process
 *
 * Return: 0 or negative errno, as ioctl(2) will.
 */
int device_ioctl(const struct profile *profile, struct handles *handles, struct memory *memory, uint32_t code,
		 uint64_t argument);

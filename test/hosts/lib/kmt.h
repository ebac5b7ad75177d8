/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the simulated driver libraries know of adapters: all of it asked of libdxcore.so, found by its name. */

#include "../abi.h"

enum { KMT_ADAPTERS_MAX = 16, KMT_TEXT_MAX = 256, KMT_NVIDIA = 0x10de };

struct kmt_adapter {
	LUID luid;
	uint32_t vendor;
	ADAPTERADDRESS address;
	char name[KMT_TEXT_MAX];
	char store[KMT_TEXT_MAX];
};

/**
 * kmt_adapters() - the adapters of a vendor, in the order in which they are enumerated
 *
 * Return: how many were written; -1 if libdxcore.so cannot be loaded or does not answer.
 */
int kmt_adapters(uint32_t vendor, struct kmt_adapter *ret, int capacity);

/** Writes the UUID that the simulated driver gives an adapter, "GPU-…", 40 characters and a NUL. */
void kmt_uuid(const struct kmt_adapter *adapter, char *ret);

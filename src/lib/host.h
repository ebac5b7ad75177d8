/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Behind ctr_gpu_host: what every backend found, under one numbering. */

#include <stdbool.h>

#include "base/backend.h"
#include "lib/context.h"

enum { HOST_BACKENDS_MAX = 4 };

struct ctr_gpu_host {
	struct inventory inventory; /* usable adapters first, each at the position that is its index */
	const struct backend *present[HOST_BACKENDS_MAX]; /* those whose device the host has */
	size_t present_count;
};

/** "LUID-" and 16 hexadecimal digits, high part first. */
enum { LUID_TEXT_SIZE = 5 + 16 + 1 };
void luid_format(struct luid luid, char text[LUID_TEXT_SIZE]);

/** What a user recognises an adapter by: `0 NVIDIA GeForce RTX 4090`. Return: new string in @ret or -ENOMEM. */
int adapter_describe(const struct adapter *adapter, char **ret);

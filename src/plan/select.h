/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Which adapters of a host a request means. */

#include "lib/host.h"
#include "model/request.h"

struct selection {
	const struct adapter **adapters; /* borrowed from the host, in the order of their indexes, each once */
	size_t count;
};

void selection_clear(struct selection *selection);
#define _cleanup_selection_ _cleanup_(selection_clear)

/** Return: an adapter's number in a kind's names, "amd.com/gpu=", which count that vendor's; -1 if it has none. */
int selection_number_of(const struct ctr_gpu_host *host, const char *name_of_kind, const struct adapter *wanted);

/**
 * selection_new() - the adapters that a request means
 *
 * Return: 0; CTR_GPU_E_UNKNOWN_DEVICE; the code of the adapters' own fault if none can be used or one that was named
 * cannot; -ENOMEM. @err is set.
 */
int selection_new(const struct ctr_gpu_host *host, const struct request *request, struct selection *ret,
		  struct err *err);

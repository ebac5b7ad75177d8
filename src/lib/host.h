/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Behind ctr_gpu_host: what every backend found, under one numbering. */

#include <stdbool.h>

#include "lib/backends.h"
#include "lib/context.h"

enum { HOST_BACKENDS_MAX = 4 };

struct ctr_gpu_host {
	const struct settings *settings; /* of the context, borrowed */
	struct inventory inventory;      /* usable adapters first, each at the position that is its index */
	const struct backend *present[HOST_BACKENDS_MAX]; /* those whose device the host has */
	void *seen[HOST_BACKENDS_MAX];                    /* by each of them, for itself */
	size_t present_count;
};

/** What a backend's probe() has seen, for its other members. */
void *host_backend_data(const struct ctr_gpu_host *host, const struct backend *backend);

/** Has backends ask for what they keep until the next boot. */
void host_drop_cache(void);

/** Every kind of host that there is. Return: NULL behind the last. */
const struct backend *host_backend(size_t number);

/**
 * host_identify() - the names that only vendors' libraries know (struct backend's identify())
 *
 * Return: 0; -ENOMEM; of the first backend that could not ask, what it returned, with @err set; the others have.
 */
int host_identify(const struct ctr_gpu_host *host, struct err *err);

/**
 * host_load_guard() - load what holds a choice, where the settings want it and there is something to choose from
 *
 * Choices of containers that are gone are removed. Return: 0, also where it cannot be and need not; CTR_GPU_E_GUARD or
 * negative errno with @err set.
 */
int host_load_guard(const struct ctr_gpu_host *host, struct err *err);

/** Facts about the driver behind a backend's usable adapters; what cannot be had is empty (driver_facts_clear()). */
void host_read_facts(const struct ctr_gpu_host *host, const struct backend *backend, struct driver_facts *ret);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What an adapter's facts, from whichever source, come to: whether it can be used and where it stands in the list. */

#include "dxg/d3dkmt.h"
#include "wsl/store.h"

typedef enum store_content (*adapter_look_fn)(const char *path, struct adapter_store *ret);

/**
 * adapter_classify() - describe one adapter and say whether a container can use it
 * @facts: borrowed, hostile
 * @look:  what is in a directory; store_look() but in tests
 * @ret:   released with adapter_clear(); its backend is not set
 *
 * Return: 0 or -ENOMEM.
 */
int adapter_classify(const struct dxg_facts *facts, adapter_look_fn look, struct adapter *ret);

/**
 * adapter_sort() - the order of adapters for their numbers
 *
 * NVIDIA's first, by PCI address, so that an index means what it means to nvidia-smi; then those of others that render,
 * by PCI address; then those that only compute. Adapters without an address keep the driver's order, behind those with
 * one. Unusable ones come last.
 */
void adapter_sort(struct adapter *adapters, size_t count);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The GPUs that the kernel module drives, from /proc/driver/nvidia/gpus. */

#include "base/err.h"
#include "model/adapter.h"
#include "nvidia/probe.h"

/**
 * gpus_read() - append every GPU, in the order of PCI addresses, as nvidia-smi does
 *
 * Parts of GPUs (MIG) follow the GPU they belong to.
 * @seen: with the module; the rest is filled in
 *
 * Return: 0; negative errno with @err set.
 */
int gpus_read(struct nvidia_probe *seen, struct inventory *inventory, struct err *err);

/** Fills what the text of gpus/<address>/information says. Return: 0; -EINVAL if it has no usable minor; -ENOMEM. */
int gpu_parse_information(const char *text, struct adapter *adapter, bool *ret_excluded);

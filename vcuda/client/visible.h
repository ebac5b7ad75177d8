/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* CUDA_VISIBLE_DEVICES: which of its GPUs a program wants to see, and in which order. */

#include "vcuda/client/client.h"

/**
 * visible_choose() - read the variable as the driver does
 * @text: its value
 * @ret:  gets the numbers of those @devices that it names, in its order: numbers, or how their UUIDs begin
 *
 * The first says whether they are numbers or UUIDs. What is neither, or no GPU's, ends the list.
 * Return: CUDA_SUCCESS; CUDA_ERROR_NO_DEVICE if it names none; CUDA_ERROR_INVALID_DEVICE if it names one twice.
 */
CUresult visible_choose(const char *text, const struct wire_device *devices, unsigned count, uint8_t ret[START_GPUS],
			unsigned *ret_count);

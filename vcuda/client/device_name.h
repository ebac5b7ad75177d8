/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* How programs name GPUs: by their places on the bus, and in CUDA_VISIBLE_DEVICES, by numbers or UUIDs. */

#include "vcuda/client/client.h"

/* "0000:01:00.0", whose domain NVML has with 8 digits. */

struct pci_bus_id {
	unsigned domain, bus, device, function;
};

/** Reads "DOMAIN:BUS:DEVICE.FUNCTION", of which the first and the last may be missing. Return: whether it is so. */
bool device_name_read_bus(const char *text, struct pci_bus_id *ret);

/**
 * device_name_choose() - read CUDA_VISIBLE_DEVICES as the driver does
 * @text: its value
 * @ret:  gets the numbers of those @devices that it names, in its order: numbers, or how their UUIDs begin
 *
 * The first says whether they are numbers or UUIDs. What is neither, or no GPU's, ends the list.
 * Return: CUDA_SUCCESS; CUDA_ERROR_NO_DEVICE if it names none; CUDA_ERROR_INVALID_DEVICE if it names one twice.
 */
CUresult device_name_choose(const char *text, const struct wire_device *devices, unsigned count,
			    uint8_t ret[START_GPUS], unsigned *ret_count);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Addresses of GPUs on the bus, as programs write them: "0000:01:00.0", whose domain NVML has with 8 digits. */

#include <stdbool.h>

struct pci_bus_id {
	unsigned domain, bus, device, function;
};

/** Reads "DOMAIN:BUS:DEVICE.FUNCTION", of which the first and the last may be missing. Return: whether it is so. */
bool pci_bus_id_read(const char *text, struct pci_bus_id *ret);

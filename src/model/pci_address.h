/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Where a function is on the PCI bus. */

#include <stdbool.h>
#include <stdint.h>

struct pci_address {
	uint32_t domain;
	uint8_t bus, device, function;
};

/** Whether a directory has the name of an address: "0000:01:00.0". */
bool pci_address_is_name(const char *name);

/** Reads an address as people write it: with a domain or without, with zeros in front or without. */
bool pci_address_read(const char *text, struct pci_address *ret);

bool pci_address_equal(const struct pci_address *a, const struct pci_address *b);

/** Return: domain, bus, device and function in 16, 8, 5 and 3 bits; 0: it has no such number. */
uint32_t pci_address_number(const char *text);

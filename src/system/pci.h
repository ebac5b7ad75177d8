/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What is on this machine's PCI bus, whatever drives it. */

#include <stdbool.h>

struct pci_function {
	char address[17]; /* "0000:01:00.0" */
	char driver[33];  /* "" if none drives it */
	unsigned vendor, device;
	bool display; /* a GPU, also one without a display */
};

/** Looks for the first that @is_wanted. @sys: "/sys", or another in tests. Return: whether there is one. */
bool pci_find(const char *sys, bool (*is_wanted)(const struct pci_function *function), struct pci_function *ret);

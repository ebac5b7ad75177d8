/* SPDX-License-Identifier: Apache-2.0 */

#include "model/pci_address.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { DOMAIN_DIGITS = 8, DEVICES = 32, FUNCTIONS = 8 };

/* Up to @digits hexadecimal ones and what stands behind them. Return: what follows; NULL: it is something else. */
static const char *pci_address_read_part(const char *text, size_t digits, char behind, uint32_t *ret)
{
	size_t length = strspn(text, "0123456789abcdefABCDEF");

	if (length == 0 || length > digits || text[length] != behind)
		return NULL;
	*ret = (uint32_t)strtoul(text, NULL, 16);
	return text + length + (behind != '\0');
}

bool pci_address_read(const char *text, struct pci_address *ret)
{
	bool has_domain = strchr(text, ':') != strrchr(text, ':');
	uint32_t domain = 0, bus, device, function;

	if (has_domain)
		text = pci_address_read_part(text, DOMAIN_DIGITS, ':', &domain);
	text = text ? pci_address_read_part(text, 2, ':', &bus) : NULL;
	text = text ? pci_address_read_part(text, 2, '.', &device) : NULL;
	text = text ? pci_address_read_part(text, 1, '\0', &function) : NULL;
	if (!text || device >= DEVICES || function >= FUNCTIONS)
		return false;
	*ret = (struct pci_address){domain, (uint8_t)bus, (uint8_t)device, (uint8_t)function};
	return true;
}

bool pci_address_is_name(const char *name)
{
	size_t domain = strcspn(name, ":");
	struct pci_address address;

	return domain >= 4 && strlen(name + domain) == strlen(":01:00.0") && pci_address_read(name, &address);
}

bool pci_address_equal(const struct pci_address *a, const struct pci_address *b)
{
	return a->domain == b->domain && a->bus == b->bus && a->device == b->device && a->function == b->function;
}

uint32_t pci_address_number(const char *text)
{
	struct pci_address address;

	if (!pci_address_read(text, &address) || address.domain > UINT16_MAX)
		return 0;
	return address.domain << 16 | (uint32_t)address.bus << 8 | (uint32_t)address.device << 3 | address.function;
}

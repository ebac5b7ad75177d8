/* SPDX-License-Identifier: Apache-2.0 */

#include "model/adapter.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"

enum { DOMAIN_DIGITS = 8, DEVICES = 32, FUNCTIONS = 8, DRI_MINOR_DIGITS = 7 };

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

static int adapter_read_digit(char character)
{
	if (character >= '0' && character <= '9')
		return character - '0';
	character |= 0x20;
	return character >= 'a' && character <= 'f' ? character - 'a' + 10 : -1;
}

bool adapter_read_uuid(const char *text, uint8_t ret[static 16])
{
	static const char shape[] = "GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
	uint8_t bytes[16] = {0};
	size_t digits = 0;

	if (strlen(text) != strlen(shape))
		return false;
	for (size_t i = 0; shape[i]; i++) {
		int digit = adapter_read_digit(text[i]);

		if (shape[i] != 'x' ? text[i] != shape[i] : digit < 0)
			return false;
		if (shape[i] != 'x')
			continue;
		bytes[digits / 2] = (uint8_t)(bytes[digits / 2] << 4 | digit);
		digits++;
	}
	memcpy(ret, bytes, sizeof(bytes));
	return true;
}

/* clang-format off */
static const struct {
	uint32_t id;
	const char *name, *domain;
} vendors[] = {
	{PCI_VENDOR_AMD, "AMD", DOMAIN_AMD},
	{PCI_VENDOR_AMD_PROCESSOR, "AMD", DOMAIN_AMD},
	{PCI_VENDOR_INTEL, "Intel", "intel.com"},
	{PCI_VENDOR_MICROSOFT, "Microsoft", "microsoft.com"},
	{PCI_VENDOR_NVIDIA, "NVIDIA", DOMAIN_NVIDIA},
	{PCI_VENDOR_QUALCOMM, "Qualcomm", "qualcomm.com"},
	{ACPI_VENDOR_QUALCOMM, "Qualcomm", "qualcomm.com"},
};
/* clang-format on */

void adapter_clear(struct adapter *adapter)
{
	free(adapter->name);
	free(adapter->pci_address);
	free(adapter->uuid);
	free(adapter->alias);
	free(adapter->profile);
	free(adapter->driver_store);
	strv_clear(&adapter->store.libraries);
	free(adapter->reason);
	*adapter = (struct adapter){.index = -1, .minor = -1, .whole = -1};
}

const char *adapter_vendor(const struct adapter *adapter)
{
	for (size_t i = 0; i < ARRAY_SIZE(vendors); i++)
		if (vendors[i].id == adapter->vendor_id)
			return vendors[i].name;
	return "unknown vendor";
}

const char *adapter_domain(const struct adapter *adapter)
{
	for (size_t i = 0; i < ARRAY_SIZE(vendors); i++)
		if (vendors[i].id == adapter->vendor_id)
			return vendors[i].domain;
	return NULL;
}

const char *adapter_find_domain(const char *text, size_t length)
{
	for (size_t i = 0; i < ARRAY_SIZE(vendors); i++)
		if (strlen(vendors[i].domain) == length && strncmp(vendors[i].domain, text, length) == 0)
			return vendors[i].domain;
	return NULL;
}

void luid_format(struct luid luid, char text[LUID_TEXT_SIZE])
{
	(void)snprintf(text, LUID_TEXT_SIZE, "LUID-%08x%08x", (uint32_t)luid.high, luid.low);
}

void adapter_format_number(const struct adapter *adapter, char text[ADAPTER_NUMBER_SIZE])
{
	text[0] = '\0';
	if (adapter->is_part && adapter->whole >= 0)
		(void)snprintf(text, ADAPTER_NUMBER_SIZE, "%d:%d", adapter->whole, adapter->part);
	else if (adapter->index >= 0)
		(void)snprintf(text, ADAPTER_NUMBER_SIZE, "%s%d", adapter->is_npu ? "npu:" : "", adapter->index);
}

int adapter_describe(const struct adapter *adapter, char **ret)
{
	const char *name = adapter->name ? adapter->name : adapter_vendor(adapter);
	char number[ADAPTER_NUMBER_SIZE];

	adapter_format_number(adapter, number);
	return str_format(ret, "%s%s%s", number, number[0] ? " " : "", name);
}

bool adapter_is_choosable(const struct adapter *adapter)
{
	return adapter->unusable == 0 && adapter->same_device_count > (adapter->is_npu ? 0 : 1);
}

void inventory_clear(struct inventory *inventory)
{
	for (size_t i = 0; i < inventory->count; i++)
		adapter_clear(&inventory->adapters[i]);
	free(inventory->adapters);
	strv_clear(&inventory->notes);
	*inventory = (struct inventory){0};
}

bool inventory_divides(const struct inventory *inventory, const struct adapter *adapter)
{
	for (size_t i = 0; i < inventory->count && !adapter->is_part; i++) {
		const struct adapter *part = &inventory->adapters[i];

		if (part->is_part && part->backend == adapter->backend && part->minor == adapter->minor)
			return true;
	}
	return false;
}

void inventory_truncate(struct inventory *inventory, size_t count)
{
	while (inventory->count > count)
		adapter_clear(&inventory->adapters[--inventory->count]);
}

int inventory_take(struct inventory *inventory, struct adapter *adapter)
{
	struct adapter *adapters = array_grow(inventory->adapters, inventory->count, sizeof(*adapters));

	if (!adapters) {
		adapter_clear(adapter);
		return -ENOMEM;
	}
	inventory->adapters = adapters;
	inventory->adapters[inventory->count++] = *adapter;
	*adapter = (struct adapter){.index = -1, .minor = -1, .whole = -1};
	return 0;
}

int adapter_dri_minor(const char *name)
{
	const char *digits = str_has_prefix(name, "card")      ? name + strlen("card")
			     : str_has_prefix(name, "renderD") ? name + strlen("renderD")
							       : "";
	const size_t length = strspn(digits, "0123456789");

	return length > 0 && length <= DRI_MINOR_DIGITS && !digits[length] ? atoi(digits) : -1;
}

bool adapter_is_dri_name(const char *name)
{
	return adapter_dri_minor(name) >= 0;
}

/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/select.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "lib/request.h"

void selection_clear(struct selection *selection)
{
	free(selection->adapters);
	*selection = (struct selection){0};
}

/* The names of adapters, as many as a line of a message has room for. */
struct name_list {
	char text[104];
	size_t length, left_out;
};

static void selection_listing_add(struct name_list *listing, const char *item)
{
	size_t length = strlen(item);
	const char *separator = listing->length > 0 ? "; " : "";

	if (listing->length + length + 3 > sizeof(listing->text)) {
		listing->left_out++;
		return;
	}
	listing->length += (size_t)snprintf(listing->text + listing->length, sizeof(listing->text) - listing->length,
					    "%s%s", separator, item);
}

/* A fault that all adapters share is the answer; if their faults differ, the answer is that no adapter can be used. */
static int selection_common_fault(const struct inventory *inventory)
{
	int fault = inventory->count > 0 ? inventory->adapters[0].unusable : CTR_GPU_E_NO_ADAPTER;

	for (size_t i = 1; i < inventory->count; i++)
		if (inventory->adapters[i].unusable != fault)
			return CTR_GPU_E_NO_ADAPTER;
	return fault;
}

static int selection_no_adapter(const struct ctr_gpu_host *host, struct err *err)
{
	const struct adapter *first = host->inventory.adapters;
	int fault = selection_common_fault(&host->inventory);
	_cleanup_free_ char *name = NULL;

	if (host->inventory.count == 0)
		return err_set(err, fault,
			       "the host offers no adapter: there is a GPU device with none behind it\n"
			       "WSL2: install the GPU vendor's driver in Windows, then run wsl --shutdown.\n"
			       "Hyper-V: give this machine a partition of the GPU (Add-VMGpuPartitionAdapter).");
	if (adapter_describe(first, &name) < 0)
		return -ENOMEM;
	if (host->inventory.count == 1)
		return err_set(err, fault, "%.64s: %s\n%s", name, first->reason, first->remedy);
	return err_set(err, fault,
		       "none of this host's %zu adapters can be used; ctr-gpu info shows them all\n%.64s: %s\n%s",
		       host->inventory.count, name, first->reason, first->remedy);
}

static int selection_unknown_device(const struct ctr_gpu_host *host, const char *device, struct err *err)
{
	struct name_list listing = {0};

	for (size_t i = 0; i < host->inventory.count && host->inventory.adapters[i].index >= 0; i++) {
		_cleanup_free_ char *name = NULL;

		if (adapter_describe(&host->inventory.adapters[i], &name) < 0)
			return -ENOMEM;
		selection_listing_add(&listing, name);
	}
	return err_set(
		err, CTR_GPU_E_UNKNOWN_DEVICE,
		"this host has no device \"%.64s\"\nIt has: %s%s\nRun ctr-gpu info to see all names of a device.",
		device, listing.text, listing.left_out > 0 ? "; …" : "");
}

static bool selection_is_index(const char *device, long *ret)
{
	char *end;

	if (*device < '0' || *device > '9')
		return false;
	errno = 0;
	*ret = strtol(device, &end, 10);
	return *end == '\0' && errno == 0;
}

struct pci_address {
	unsigned domain, bus, device, function;
};

/* Written with a domain of any length or with none, and with zeros in front or without. */
static bool selection_read_pci_address(const char *text, struct pci_address *ret)
{
	struct pci_address address = {0};
	int length = 0;

	if (text[strspn(text, "0123456789abcdefABCDEF:.")])
		return false;
	*ret = address;
	if (sscanf(text, "%8x:%2x:%2x.%1x%n", &ret->domain, &ret->bus, &ret->device, &ret->function, &length) == 4 &&
	    !text[length])
		return true;
	*ret = address;
	return sscanf(text, "%2x:%2x.%1x%n", &ret->bus, &ret->device, &ret->function, &length) == 3 && !text[length];
}

static bool selection_same_pci_address(const char *known, const char *asked)
{
	struct pci_address a, b;

	return selection_read_pci_address(known, &a) && selection_read_pci_address(asked, &b) && a.domain == b.domain &&
	       a.bus == b.bus && a.device == b.device && a.function == b.function;
}

static bool selection_is_called(const struct adapter *adapter, const char *device)
{
	char luid[LUID_TEXT_SIZE];

	if (adapter->pci_address && selection_same_pci_address(adapter->pci_address, device))
		return true;
	if (adapter->uuid && strcasecmp(adapter->uuid, device) == 0)
		return true;
	if (!adapter->has_luid)
		return false;
	luid_format(adapter->luid, luid);
	return strcasecmp(luid, device) == 0;
}

/* The beginning of a UUID is enough where it means one adapter only. */
enum { SHORTEST_UUID_PREFIX = 8 };

static const struct adapter *selection_find_by_uuid_prefix(const struct inventory *inventory, const char *device)
{
	const struct adapter *found = NULL;

	if (strlen(device) < SHORTEST_UUID_PREFIX)
		return NULL;
	for (size_t i = 0; i < inventory->count; i++) {
		const struct adapter *adapter = &inventory->adapters[i];

		if (!adapter->uuid || strncasecmp(adapter->uuid, device, strlen(device)) != 0)
			continue;
		if (found)
			return NULL;
		found = adapter;
	}
	return found;
}

/* "1:0": a part of a GPU, by the GPU's index and its own. */
static const struct adapter *selection_find_part(const struct inventory *inventory, const char *device)
{
	int whole, part, length = 0;

	if (*device < '0' || *device > '9' || sscanf(device, "%4d:%4d%n", &whole, &part, &length) != 2 ||
	    device[length] || part < 0)
		return NULL;
	for (size_t i = 0; i < inventory->count; i++)
		if (inventory->adapters[i].is_part && inventory->adapters[i].whole == whole &&
		    inventory->adapters[i].part == part)
			return &inventory->adapters[i];
	return NULL;
}

static const struct adapter *selection_find(const struct inventory *inventory, const char *device)
{
	const struct adapter *part = selection_find_part(inventory, device);
	long index;

	if (part)
		return part;

	if (selection_is_index(device, &index))
		return index < (long)inventory->count && inventory->adapters[index].index == index
			       ? &inventory->adapters[index]
			       : NULL;
	for (size_t i = 0; i < inventory->count; i++)
		if (selection_is_called(&inventory->adapters[i], device))
			return &inventory->adapters[i];
	return selection_find_by_uuid_prefix(inventory, device);
}

/*
 * By a name of the vendor's own.
 * Return: 0 and an adapter in @ret, or NULL if nobody knows the name; otherwise @err is set.
 */
static int selection_find_translated(const struct ctr_gpu_host *host, const char *device, const struct adapter **ret,
				     struct err *err)
{
	*ret = NULL;
	for (size_t i = 0; i < host->present_count; i++) {
		_cleanup_free_ char *name = NULL;
		int r;

		if (!host->present[i]->translate)
			continue;
		r = host->present[i]->translate(host->settings, device, &name, err);
		if (r == CTR_GPU_E_UNKNOWN_DEVICE)
			continue;
		if (r == 0)
			*ret = selection_find(&host->inventory, name);
		return r;
	}
	return 0;
}

/*
 * "intel.com/gpu=all": the adapters of one vendor; of a vendor that nobody knows, every one.
 * Return: whether there are any.
 */
static bool selection_mark_vendor(const struct inventory *inventory, const char *device, bool *wanted)
{
	size_t length = strcspn(device, "/");
	bool known = adapter_is_domain(device, length), found = false;

	for (size_t i = 0; i < inventory->count && inventory->adapters[i].index >= 0; i++) {
		const char *domain = adapter_domain(&inventory->adapters[i]);

		if (known && (!domain || strlen(domain) != length || strncmp(domain, device, length) != 0))
			continue;
		wanted[i] = found = true;
	}
	return found;
}

static int selection_mark_named(const struct ctr_gpu_host *host, const struct request *request, bool *wanted,
				struct err *err)
{
	for (size_t i = 0; i < request->devices.count; i++) {
		const char *device = request->devices.items[i], *name = request_name_without_kind(device);
		const struct adapter *adapter;
		int r = 0;

		if (name != device && strcasecmp(name, "all") == 0 &&
		    selection_mark_vendor(&host->inventory, device, wanted))
			continue;
		adapter = selection_find(&host->inventory, device);
		if (!adapter)
			r = selection_find_translated(host, device, &adapter, err);
		if (r != 0)
			return r;
		if (!adapter)
			return selection_unknown_device(host, device, err);
		if (adapter->unusable)
			return err_set(err, adapter->unusable, "device %.64s (%.64s) cannot be used:\n%s\n%s", device,
				       adapter->name ? adapter->name : adapter_vendor(adapter), adapter->reason,
				       adapter->remedy);
		wanted[adapter - host->inventory.adapters] = true;
	}
	return 0;
}

int selection_new(const struct ctr_gpu_host *host, const struct request *request, struct selection *ret,
		  struct err *err)
{
	const struct inventory *inventory = &host->inventory;
	_cleanup_selection_ struct selection selection = {0};
	_cleanup_free_ bool *wanted = NULL;
	int r;

	if (request->kind == REQUEST_VOID || request->kind == REQUEST_NONE)
		return 0;
	if (inventory->count == 0 || inventory->adapters[0].unusable)
		return selection_no_adapter(host, err);
	wanted = calloc(inventory->count, sizeof(*wanted));
	selection.adapters = calloc(inventory->count, sizeof(*selection.adapters));
	if (!wanted || !selection.adapters)
		return -ENOMEM;
	r = selection_mark_named(host, request, wanted, err);
	if (r != 0)
		return r;
	for (size_t i = 0; i < inventory->count; i++)
		if (wanted[i] || (request->kind == REQUEST_ALL && inventory->adapters[i].index >= 0))
			selection.adapters[selection.count++] = &inventory->adapters[i];
	*ret = steal_struct(&selection);
	return 0;
}

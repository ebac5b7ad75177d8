/* SPDX-License-Identifier: Apache-2.0 */

/*
 * GPUs that one container at a time may have: which of a host they are, and which of them a container gets. A part of a
 * GPU (MIG) belongs to the whole: a container that has a part of an exclusive GPU has that GPU, and one that has the
 * whole has each of its exclusive parts.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan/plan.h"

int host_exclusive_mark(const struct ctr_gpu_host *host, const char *names, bool *marked, struct err *err)
{
	_cleanup_selection_ struct selection selection = {0};
	struct request request = {0};
	int r = request_set_devices(&request, names);

	if (r == 0)
		r = selection_new(host, &request, &selection, err);
	request_clear(&request);
	for (size_t i = 0; i < selection.count && r == 0; i++)
		marked[selection.adapters[i] - host->inventory.adapters] = true;
	return r;
}

int host_exclusive_find(const struct ctr_gpu_host *host, bool *marked, struct strv *ret_unknown)
{
	const struct strv *names = &host->settings->exclusive;

	for (size_t i = 0; i < names->count; i++) {
		struct err err = {0};
		int r = host_exclusive_mark(host, names->items[i], marked, &err);

		if (r != 0 && r != -ENOMEM && ret_unknown)
			r = strv_add(ret_unknown, names->items[i]);
		if (r == -ENOMEM)
			return r;
	}
	return 0;
}

void host_exclusive_key(const struct adapter *adapter, char ret[HOST_EXCLUSIVE_KEY_SIZE])
{
	struct pci_address address;
	char luid[LUID_TEXT_SIZE];
	size_t length;

	luid_format(adapter->luid, luid);
	if (adapter->has_luid)
		(void)snprintf(ret, HOST_EXCLUSIVE_KEY_SIZE, "%s", luid);
	else if (adapter->pci_address && pci_address_read(adapter->pci_address, &address))
		(void)snprintf(ret, HOST_EXCLUSIVE_KEY_SIZE, "%04x:%02x:%02x.%x", address.domain, address.bus,
			       address.device, address.function);
	else
		(void)snprintf(ret, HOST_EXCLUSIVE_KEY_SIZE, "%s-%d", adapter->backend->name, adapter->minor);
	length = strlen(ret);
	if (adapter->is_part)
		(void)snprintf(ret + length, HOST_EXCLUSIVE_KEY_SIZE - length, "-%d-%d", adapter->gpu_instance,
			       adapter->compute_instance);
	else if (adapter->partitions)
		(void)snprintf(ret + length, HOST_EXCLUSIVE_KEY_SIZE - length, "-%d", adapter->minor);
}

/* ---- what a container gets ---- */

/* A part has the minor number of its whole. */
static bool host_exclusive_has(const struct adapter *adapter, const struct adapter *given)
{
	if (adapter == given)
		return true;
	return adapter->backend == given->backend && adapter->is_part != given->is_part && adapter->minor >= 0 &&
	       adapter->minor == given->minor;
}

static int host_exclusive_add(const struct adapter *adapter, struct plan *plan)
{
	struct plan_claim claim = {0};
	char key[HOST_EXCLUSIVE_KEY_SIZE];

	host_exclusive_key(adapter, key);
	claim.gpu = strdup(key);
	claim.reason = strdup("it is exclusive: one container at a time has it (ctr-gpu assign)");
	if (adapter_describe(adapter, &claim.name) < 0)
		claim.name = NULL;
	return plan_add_claim(plan, &claim);
}

int host_exclusive_plan(const struct ctr_gpu_host *host, const struct selection *selection, struct plan *plan)
{
	const struct inventory *inventory = &host->inventory;
	_cleanup_strv_ struct strv unknown = {0};
	_cleanup_free_ bool *marked = NULL;
	int r;

	if (host->settings->exclusive.count == 0)
		return 0;
	marked = calloc(inventory->count, sizeof(*marked));
	r = marked ? host_exclusive_find(host, marked, &unknown) : -ENOMEM;
	for (size_t i = 0; i < inventory->count && r == 0; i++)
		for (size_t j = 0; j < selection->count && r == 0 && marked[i]; j++)
			if (host_exclusive_has(&inventory->adapters[i], selection->adapters[j]))
				r = host_exclusive_add(&inventory->adapters[i], plan);
	for (size_t i = 0; i < unknown.count && r == 0; i++)
		r = strv_format(&plan->warnings,
				"no GPU of this host is \"%.64s\", which the settings say is exclusive: ctr-gpu assign",
				unknown.items[i]);
	return r;
}

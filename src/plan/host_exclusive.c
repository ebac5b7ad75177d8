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

void host_exclusive_clear(struct host_exclusive *exclusive)
{
	free(exclusive->marked);
	free(exclusive->possible);
	free(exclusive->failure);
	strv_clear(&exclusive->unknown);
	*exclusive = (struct host_exclusive){0};
}

/* ---- what the settings mean ---- */

struct exclusive_search {
	const struct ctr_gpu_host *host;
	struct host_exclusive *found;
	bool *matches;
	bool asked; /* vendors' libraries, once at most: one that hangs is waited for */
};

/* Also where a library fails, several containers are not to get the GPU. */
static int host_exclusive_ask(struct exclusive_search *search)
{
	struct err err = {0};
	int r = host_identify(search->host, &err);

	search->asked = true;
	if (r == 0 || r == -ENOMEM)
		return r;
	search->found->failure = strdup(err.text);
	return search->found->failure ? 0 : -ENOMEM;
}

/* @possible: whether it may mean an adapter whose names are not all known */
static int host_exclusive_add_unknown(struct exclusive_search *search, const struct device_name *name, bool possible)
{
	struct host_exclusive *found = search->found;
	const size_t count = search->host->inventory.count;
	int r = strv_add(&found->unknown, name->text);

	if (r < 0 || !possible)
		return r;
	memset(search->matches, 0, count * sizeof(*search->matches));
	selection_find_possible(search->host, name, search->matches);
	for (size_t i = 0; i < count; i++)
		if (search->matches[i] && !found->possible[i])
			found->possible[i] = found->unknown.items[found->unknown.count - 1];
	return 0;
}

/* A name that means none, or several as it is too short, is looked for again with all names that can be had. */
static int host_exclusive_find_name(struct exclusive_search *search, const struct device_name *name)
{
	size_t matches = selection_find(search->host, name, search->matches), usable = 0;
	int r = 0;

	if (name->type == DEVICE_NAME_VOID || name->type == DEVICE_NAME_NONE)
		return 0;
	if (matches != 1 && name->is_uuid && !search->asked) {
		r = host_exclusive_ask(search);
		matches = selection_find(search->host, name, search->matches);
	}
	for (size_t i = 0; i < search->host->inventory.count && matches > 0; i++) {
		search->found->marked[i] |= search->matches[i];
		usable += search->matches[i] && !search->host->inventory.adapters[i].unusable;
	}
	return r == 0 && usable == 0 ? host_exclusive_add_unknown(search, name, matches == 0) : r;
}

/* An entry of the list may be a list. */
static int host_exclusive_find_names(struct exclusive_search *search, const char *text)
{
	_cleanup_device_names_ struct device_names names = {0};
	const size_t size = (search->host->inventory.count + 1) * sizeof(*search->matches);
	int r = device_names_split(&names, text);

	for (size_t i = 0; i < names.count && r == 0; i++) {
		memset(search->matches, 0, size);
		r = host_exclusive_find_name(search, &names.items[i]);
	}
	return r;
}

int host_exclusive_find(const struct ctr_gpu_host *host, const struct strv *names, struct host_exclusive *ret)
{
	const size_t count = host->inventory.count + 1;
	_cleanup_free_ bool *matches = calloc(count, sizeof(*matches));
	struct exclusive_search search = {.host = host, .found = ret, .matches = matches};
	int r = 0;

	ret->marked = calloc(count, sizeof(*ret->marked));
	ret->possible = calloc(count, sizeof(*ret->possible));
	if (!matches || !ret->marked || !ret->possible)
		return -ENOMEM;
	for (size_t i = 0; i < names->count && r == 0; i++)
		r = host_exclusive_find_names(&search, names->items[i]);
	return r;
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
bool host_exclusive_has(const struct adapter *adapter, const struct adapter *given)
{
	if (adapter == given)
		return true;
	return adapter->backend == given->backend && adapter->is_part != given->is_part && adapter->minor >= 0 &&
	       adapter->minor == given->minor;
}

/* @may_be: the name that it may have; NULL: it is exclusive */
static int host_exclusive_add(const struct adapter *adapter, const char *may_be, struct plan *plan)
{
	static const char reason[] = "it is exclusive: one container at a time has it (ctr-gpu assign)";
	struct plan_claim claim = {0};
	char key[HOST_EXCLUSIVE_KEY_SIZE];
	int r = 0;

	host_exclusive_key(adapter, key);
	claim.gpu = strdup(key);
	claim.may_be = may_be ? strdup(may_be) : NULL;
	if (may_be)
		r = str_format(&claim.reason, "it may be \"%.64s\", which is exclusive: no container has it", may_be);
	else
		claim.reason = strdup(reason);
	if (r < 0 || (may_be && !claim.may_be)) {
		free(claim.reason);
		claim.reason = NULL;
	}
	if (adapter_describe(adapter, &claim.name) < 0)
		claim.name = NULL;
	return plan_add_claim(plan, &claim);
}

/* @sure: what is exclusive; or else what may be */
static int host_exclusive_add_selected(const struct ctr_gpu_host *host, const struct selection *selection,
				       const struct host_exclusive *found, bool sure, struct plan *plan)
{
	const struct inventory *inventory = &host->inventory;
	int r = 0;

	for (size_t i = 0; i < inventory->count && r == 0; i++) {
		const bool added = sure ? found->marked[i] : found->possible[i] != NULL;

		for (size_t j = 0; j < selection->count && r == 0 && added; j++)
			if (host_exclusive_has(&inventory->adapters[i], selection->adapters[j]))
				r = host_exclusive_add(&inventory->adapters[i], sure ? NULL : found->possible[i], plan);
	}
	return r;
}

static int host_exclusive_warn(const struct host_exclusive *found, struct plan *plan)
{
	int r = 0;

	for (size_t i = 0; i < found->unknown.count && r == 0; i++)
		r = strv_format(&plan->warnings,
				"no GPU of this host is \"%.64s\", which the settings say is exclusive: ctr-gpu assign",
				found->unknown.items[i]);
	if (r == 0 && found->unknown.count > 0 && found->failure)
		r = strv_format(&plan->warnings, "not all names of this host's GPUs are known: %s", found->failure);
	return r;
}

/* What is exclusive for sure comes first, and each once. */
int host_exclusive_plan(const struct ctr_gpu_host *host, const struct selection *selection, struct plan *plan)
{
	_cleanup_exclusive_ struct host_exclusive found = {0};
	int r;

	if (host->settings->exclusive.count == 0)
		return 0;
	r = host_exclusive_find(host, &host->settings->exclusive, &found);
	if (r == 0)
		r = host_exclusive_add_selected(host, selection, &found, true, plan);
	if (r == 0)
		r = host_exclusive_add_selected(host, selection, &found, false, plan);
	return r == 0 ? host_exclusive_warn(&found, plan) : r;
}

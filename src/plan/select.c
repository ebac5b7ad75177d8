/* SPDX-License-Identifier: Apache-2.0 */

/* Which adapters a request means: names, sets and properties, compared with the inventory and the settings. */

#include "plan/plan.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "model/adapter.h"

enum { VENDOR_SIZE = 32 }; /* of "vendor:qualcomm" */

void selection_clear(struct selection *selection)
{
	free(selection->adapters);
	*selection = (struct selection){0};
}

/* The names of adapters, as many as a line of a message has room for. */
struct name_list {
	bool of_parts; /* a part of a GPU was asked for: list the parts */
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

/* ---- whose words ---- */

/* The adapters that a request is about: those of the vendor whose variable or kind it uses; all if it uses none. */
struct scope {
	const struct ctr_gpu_host *host;
	const char *domain; /* "amd.com" */
	bool vcuda;         /* NVIDIA's own, and no other vendor's that answer to its words */
};

static bool selection_in_scope(const struct scope *scope, const struct adapter *adapter)
{
	const char *domains[] = {adapter_domain(adapter), scope->vcuda ? NULL : adapter->backend->also_serves};

	for (size_t i = 0; scope->domain && i < ARRAY_SIZE(domains); i++)
		if (domains[i] && streq(domains[i], scope->domain))
			return true;
	return !scope->domain;
}

/*
 * Numbers count the adapters in the scope. @next: the next number of GPUs and of NPUs. @ret: the adapter, with its
 * number. Return: whether it is in the scope.
 */
static bool selection_number(const struct scope *scope, size_t position, int next[2], struct adapter *ret)
{
	*ret = scope->host->inventory.adapters[position];
	if (!selection_in_scope(scope, ret))
		return false;
	ret->index = ret->index >= 0 ? next[ret->is_npu]++ : -1;
	return true;
}

static struct scope selection_scope(const struct ctr_gpu_host *host, const struct request *request)
{
	struct scope scope = {.host = host, .domain = request->domain};

	/* `docker run --gpus` sets NVIDIA's variable for GPUs of any vendor. */
	for (size_t i = 0; request->by_engine && i < host->inventory.count; i++)
		if (selection_in_scope(&scope, &host->inventory.adapters[i]))
			return scope;
	return request->by_engine ? (struct scope){.host = host} : scope;
}

/* The same for one name, which may have a vendor: "amd.com/gpu=0". */
static struct scope selection_scope_of_name(const struct scope *scope, const struct device_name *name)
{
	if (name->is_vcuda)
		return (struct scope){scope->host, DOMAIN_NVIDIA, .vcuda = true};
	return name->domain ? (struct scope){scope->host, name->domain, false} : *scope;
}

static bool selection_is_of_vendor(const struct adapter *adapter, const struct device_name *name)
{
	const char *vendor = adapter_vendor(adapter);

	return strlen(vendor) == name->vendor_length && strncasecmp(vendor, name->vendor, name->vendor_length) == 0;
}

/* The same for one vendor's, by its name. Without an adapter of that vendor all adapters answer. */
static struct scope selection_scope_of_vendor(const struct scope *scope, const struct device_name *name)
{
	for (size_t i = 0; i < scope->host->inventory.count; i++) {
		const struct adapter *adapter = &scope->host->inventory.adapters[i];
		const char *domain = adapter_domain(adapter);

		if (domain && selection_is_of_vendor(adapter, name))
			return (struct scope){scope->host, domain, false};
	}
	return (struct scope){.host = scope->host};
}

/* ---- what cannot be ---- */

static bool selection_is_listed(const struct name_list *listing, const struct adapter *adapter)
{
	return listing->of_parts ? adapter->is_part : adapter->index >= 0;
}

/* If the vendor has no adapter here, lists all adapters. */
static int selection_list(const struct scope *scope, const bool *wanted, struct name_list *ret)
{
	const struct scope all = {.host = scope->host};
	int next[2] = {0};

	for (size_t i = 0; i < scope->host->inventory.count; i++) {
		_cleanup_free_ char *name = NULL;
		struct adapter adapter;

		if (!selection_number(scope, i, next, &adapter) ||
		    (wanted ? !wanted[i] : !selection_is_listed(ret, &adapter)))
			continue;
		if (adapter_describe(&adapter, &name) < 0)
			return -ENOMEM;
		selection_listing_add(ret, name);
	}
	return scope->domain && !wanted && !ret->text[0] ? selection_list(&all, NULL, ret) : 0;
}

static int selection_error_vendor(const struct scope *scope, struct err *err)
{
	const char *domain = adapter_domain(scope->host->inventory.adapters);
	struct name_list listing = {0};

	if (selection_list(scope, NULL, &listing) < 0)
		return -ENOMEM;
	return err_advise(err,
			  err_set_advised(err, CTR_GPU_E_NO_ADAPTER,
					  ("this host has no GPU of %s, for which the container asks", scope->domain),
					  ("It has: %s%s", listing.text, listing.left_out > 0 ? "; …" : "")),
			  "Ask for these by their vendor's kind: docker run --device %s/gpu=all",
			  domain ? domain : "VENDOR");
}

/* A fault that all adapters share is the answer; if their faults differ, the answer is that no adapter can be used. */
static int selection_error_faults(const struct scope *scope, struct err *err)
{
	const struct inventory *inventory = &scope->host->inventory;
	const struct adapter *first = NULL;
	_cleanup_free_ char *name = NULL;
	size_t count = 0;
	int fault = 0;

	for (size_t i = 0; i < inventory->count; i++) {
		const struct adapter *adapter = &inventory->adapters[i];

		if (!selection_in_scope(scope, adapter))
			continue;
		first = first ? first : adapter;
		fault = count++ == 0 || adapter->unusable == fault ? adapter->unusable : CTR_GPU_E_NO_ADAPTER;
	}
	if (!first)
		return selection_error_vendor(scope, err);
	if (adapter_describe(first, &name) < 0)
		return -ENOMEM;
	if (count == 1)
		return err_set_advised(err, fault, ("%.64s: %s", name, first->reason), ("%s", first->remedy));
	return err_advise(
		err,
		err_set_advised(err, fault,
				("none of this host's %zu adapters can be used; ctr-gpu info shows them all", count),
				("%.64s: %s", name, first->reason)),
		"%s", first->remedy);
}

/* Return: 0 if an adapter that answers can be used. */
static int selection_check(const struct scope *scope, struct err *err)
{
	const struct inventory *inventory = &scope->host->inventory;

	for (size_t i = 0; i < inventory->count; i++)
		if (inventory->adapters[i].index >= 0 && selection_in_scope(scope, &inventory->adapters[i]))
			return 0;
	if (inventory->count > 0)
		return selection_error_faults(scope, err);
	return err_advise(
		err,
		err_set_advised(
			err, CTR_GPU_E_NO_ADAPTER,
			("the host offers no adapter: there is a GPU device with none behind it"),
			("WSL2: install the GPU vendor's driver in Windows, keep gpuSupport on in .wslconfig, then run "
			 "wsl --shutdown.")),
		"Hyper-V: give this machine a partition of the GPU (Add-VMGpuPartitionAdapter).");
}

/* For a variable whose words mean one vendor's GPUs. @err is set. */
static int selection_error_variable(const struct scope *scope, int code, const struct device_name *name,
				    struct err *err)
{
	const struct scope its_own = selection_scope_of_vendor(scope, name);
	bool all = name->type == DEVICE_NAME_VENDOR;
	struct name_list listing = {0};

	if (selection_list(&its_own, NULL, &listing) < 0)
		return -ENOMEM;
	return err_advise(
		err,
		err_set_advised(err, its_own.domain ? code : CTR_GPU_E_NO_ADAPTER,
				("%s asks for %s%.16s of %.*s, which this host does not have", name->variable,
				 all ? "GPUs" : "GPU ", all ? "" : name->name, (int)name->vendor_length, name->vendor),
				("It has: %s%s", listing.text, listing.left_out > 0 ? "; …" : "")),
		"Run ctr-gpu info to see all names of a device.");
}

/* A word for several devices that was meant: "al", "amd" for "vendor:amd". */
static const char *selection_suggest(const struct scope *scope, const char *text, char ret[static SUGGESTION_SIZE])
{
	const struct inventory *inventory = &scope->host->inventory;
	const char *names[] = {"all", "none", "void"};
	char vendor[VENDOR_SIZE];

	if (*str_suggest(names, ARRAY_SIZE(names), text, ret))
		return ret;
	for (size_t i = 0; i < inventory->count && !*ret; i++) {
		const char *name = adapter_vendor(&inventory->adapters[i]);

		(void)snprintf(vendor, sizeof(vendor), "vendor:%s", name);
		for (char *c = vendor; *c; c++)
			*c = (char)tolower((unsigned char)*c);
		names[0] = vendor;
		(void)str_suggest(names, 1, strcasecmp(text, name) == 0 ? vendor : text, ret);
	}
	return ret;
}

/* Says which devices there are, or which of them @name means where @matches is not NULL. */
static int selection_error(const struct scope *scope, int code, const struct device_name *name, const bool *matches,
			   struct err *err)
{
	struct name_list listing = {.of_parts = !matches && name->is_of_part};
	const char *device = name->text;
	char suggestion[SUGGESTION_SIZE];

	if (name->variable)
		return selection_error_variable(scope, code, name, err);
	if (listing.of_parts && selection_list(scope, NULL, &listing) < 0)
		return -ENOMEM;
	listing.of_parts = false;
	if (!listing.text[0] && selection_list(scope, matches, &listing) < 0)
		return -ENOMEM;
	if ((*device == '"' || *device == '\'') && !matches)
		return err_advise(
			err,
			err_set_advised(err, code, ("this host has no device %.64s", device),
					("The quotation marks are part of the value: write it without them.")),
			"It has: %s%s", listing.text, listing.left_out > 0 ? "; …" : "");
	if (matches)
		return err_set_advised(
			err, code,
			("\"%.64s\" may be any of: %s%s", device, listing.text, listing.left_out > 0 ? "; …" : ""),
			("Name it by its index, LUID or UUID (ctr-gpu info shows all names of a device)%s",
			 selection_suggest(scope, device, suggestion)));
	return err_advise(
		err,
		err_set_advised(
			err, code,
			("this host has no device \"%.64s\"%s", device, selection_suggest(scope, device, suggestion)),
			("It has: %s%s", listing.text, listing.left_out > 0 ? "; …" : "")),
		"%sRun ctr-gpu info to see all names of a device.",
		name->type == DEVICE_NAME_NUMBER ? "Indexes begin at 0: docker run --gpus 2 asks for 0 and 1. " : "");
}

/* ---- what a name may be ---- */

static bool selection_has_number(const struct adapter *adapter, const struct device_name *name)
{
	if (name->type == DEVICE_NAME_PART)
		return adapter->is_part && adapter->whole == name->number && adapter->part == name->part;
	return name->type == DEVICE_NAME_NUMBER && adapter->index == name->number && adapter->is_npu == name->is_npu;
}

/* "vendor:amd:0": one of a vendor's GPUs, which are counted apart. */
static bool selection_has_vendor_number(const struct adapter *adapter, const struct device_name *name)
{
	return name->type == DEVICE_NAME_VENDOR_NUMBER && selection_is_of_vendor(adapter, name) &&
	       adapter->index >= 0 && !adapter->is_npu && adapter->vendor_index == name->number;
}

static bool selection_has_address(const struct adapter *adapter, const struct device_name *name)
{
	struct pci_address address;

	return name->has_address && adapter->pci_address && pci_address_read(adapter->pci_address, &address) &&
	       pci_address_equal(&address, &name->address);
}

/* A part has the PCI address of its whole. */
static bool selection_has_name(const struct adapter *adapter, const struct device_name *name)
{
	if (!adapter->is_part && selection_has_address(adapter, name))
		return true;
	if ((adapter->uuid && strcasecmp(adapter->uuid, name->name) == 0) ||
	    (adapter->alias && strcasecmp(adapter->alias, name->name) == 0))
		return true;
	return adapter->has_luid && name->has_luid && adapter->luid.low == name->luid.low &&
	       adapter->luid.high == name->luid.high;
}

/* The beginning of a UUID. */
static bool selection_has_uuid_prefix(const struct adapter *adapter, const struct device_name *name)
{
	enum { SHORTEST = 8 };
	size_t length = strlen(name->name);

	return length >= SHORTEST && ((adapter->uuid && strncasecmp(adapter->uuid, name->name, length) == 0) ||
				      (adapter->alias && strncasecmp(adapter->alias, name->name, length) == 0));
}

/* "4090", and not the beginning of another number. */
static bool selection_has_whole_number(const char *name, const char *number)
{
	static const char digits[] = "0123456789";
	size_t length = strlen(number);

	for (const char *c = name + strcspn(name, digits); *c; c += strcspn(c, digits)) {
		if (strspn(c, digits) == length && strncmp(c, number, length) == 0)
			return true;
		c += strspn(c, digits);
	}
	return false;
}

/* Some of the words of its name: "rtx 4090". A number of one or two digits is an index alone. */
static bool selection_has_words(const struct adapter *adapter, const struct device_name *name)
{
	enum { SHORTEST = 3 };
	const char *device = name->name;

	if (strlen(device) < SHORTEST || adapter->is_part || !adapter->name || name->vendor)
		return false;
	return device[strspn(device, "0123456789")] ? strcasestr(adapter->name, device) != NULL
						    : selection_has_whole_number(adapter->name, device);
}

/* In this order: what is found in one way is not looked for in the next. */
static bool (*const selection_ways[])(const struct adapter *adapter, const struct device_name *name) = {
	selection_has_number,      selection_has_vendor_number, selection_has_name,
	selection_has_uuid_prefix, selection_has_words,
};

/* Return: how many adapters were marked. */
static size_t selection_match(const struct scope *scope, const struct device_name *name, bool *matches)
{
	const struct inventory *inventory = &scope->host->inventory;
	size_t count = 0;

	for (size_t way = 0; way < ARRAY_SIZE(selection_ways) && count == 0; way++) {
		int next[2] = {0};

		for (size_t i = 0; i < inventory->count; i++) {
			struct adapter adapter;

			matches[i] = selection_number(scope, i, next, &adapter) && (!name->is_npu || adapter.is_npu) &&
				     selection_ways[way](&adapter, name);
			count += matches[i];
		}
	}
	return count;
}

/* All partitions of a GPU have its names, and these mean all of them. */
static bool selection_is_one_gpu(const struct inventory *inventory, const bool *matches)
{
	const struct adapter *first = NULL;

	for (size_t i = 0; i < inventory->count; i++) {
		const struct adapter *adapter = &inventory->adapters[i];

		if (!matches[i])
			continue;
		first = first ? first : adapter;
		if (!adapter->partitions || !streq(first->pci_address, adapter->pci_address))
			return false;
	}
	return first;
}

/*
 * A name that matches no adapter yet may be one that only a vendor's library knows. Return: 0, with how many adapters
 * were marked in @ret; CTR_GPU_E_* or negative errno with @err set.
 */
static int selection_identify(const struct scope *scope, const struct device_name *name, bool *matches, size_t *ret,
			      struct err *err)
{
	int r;

	*ret = selection_match(scope, name, matches);
	if (*ret == 1 || !name->is_uuid)
		return 0;
	r = host_identify(scope->host, err);
	*ret = selection_match(scope, name, matches);
	return *ret > 0 && r != -ENOMEM ? 0 : r;
}

/* ---- what sets mean ---- */

/* "vendor:intel", "npu:all", "intel.com/npu=all", or of an unknown vendor "example.com/gpu=all". */
static bool selection_is_set(const struct device_name *name)
{
	return name->type == DEVICE_NAME_VENDOR || name->type == DEVICE_NAME_ALL;
}

static bool selection_is_in_set(const struct adapter *adapter, const struct device_name *name)
{
	const char *domain = adapter_domain(adapter);

	if (adapter->is_npu != name->is_npu)
		return false;
	return name->vendor ? selection_is_of_vendor(adapter, name)
			    : !name->domain || (domain && streq(domain, name->domain));
}

static void selection_mark_set(const struct scope *scope, const struct device_name *name, bool *wanted)
{
	const struct inventory *inventory = &scope->host->inventory;

	for (size_t i = 0; i < inventory->count; i++) {
		const struct adapter *adapter = &inventory->adapters[i];

		if (adapter->index >= 0 && selection_is_in_set(adapter, name) && selection_in_scope(scope, adapter))
			wanted[i] = true;
	}
}

/* ---- what a request means ---- */

static int selection_mark_one(const struct scope *words, const struct device_name *name, bool *wanted, struct err *err)
{
	const struct scope scope = selection_scope_of_name(words, name);
	const struct inventory *inventory = &scope.host->inventory;
	_cleanup_free_ bool *matches = calloc(inventory->count, sizeof(*matches));
	size_t count;
	int r;

	if (!matches)
		return -ENOMEM;
	r = selection_identify(&scope, name, matches, &count, err);
	if (r != 0)
		return r;
	if (count != 1 && !selection_is_one_gpu(inventory, matches))
		return selection_error(&scope, CTR_GPU_E_UNKNOWN_DEVICE, name, count > 0 ? matches : NULL, err);
	for (size_t i = 0; i < inventory->count; i++) {
		const struct adapter *adapter = &inventory->adapters[i];

		if (matches[i] && adapter->unusable)
			return err_advise(err,
					  err_set_advised(err, adapter->unusable,
							  ("device %.64s (%.64s) cannot be used:", name->text,
							   adapter->name ? adapter->name : adapter_vendor(adapter)),
							  ("%s", adapter->reason)),
					  "%s", adapter->remedy);
		wanted[i] |= matches[i];
	}
	return 0;
}

static int selection_mark_named(const struct scope *scope, const struct request *request, bool *wanted, struct err *err)
{
	int r = 0;

	for (size_t i = 0; i < request->devices.count && r == 0; i++)
		if (selection_is_set(&request->devices.items[i]))
			selection_mark_set(scope, &request->devices.items[i], wanted);
		else
			r = selection_mark_one(scope, &request->devices.items[i], wanted, err);
	return r;
}

/* All of a vendor's may be none, if there is something else. What a variable asks for stands last. */
static int selection_error_all(const struct ctr_gpu_host *host, const struct request *request, struct err *err)
{
	const struct scope all = {.host = host};

	if (request->devices.count > 0)
		return selection_error(&all, CTR_GPU_E_NO_ADAPTER, &request->devices.items[request->devices.count - 1],
				       NULL, err);
	return err_set_advised(err, CTR_GPU_E_NO_ADAPTER,
			       ("this host has no GPU that can be used, only NPUs; ctr-gpu info shows all adapters"),
			       ("\"all\" does not mean NPUs: ask for npu:all or npu:0."));
}

int selection_new(const struct ctr_gpu_host *host, const struct request *request, struct selection *ret,
		  struct err *err)
{
	const struct scope scope = selection_scope(host, request);
	const struct inventory *inventory = &host->inventory;
	_cleanup_selection_ struct selection selection = {0};
	_cleanup_free_ bool *wanted = NULL;
	int r;

	if (request->kind == REQUEST_VOID || request->kind == REQUEST_NONE)
		return 0;
	r = selection_check(&scope, err);
	if (r != 0)
		return r;
	wanted = calloc(inventory->count, sizeof(*wanted));
	selection.adapters = calloc(inventory->count, sizeof(*selection.adapters));
	if (!wanted || !selection.adapters)
		return -ENOMEM;
	r = selection_mark_named(&scope, request, wanted, err);
	if (r != 0)
		return r;
	for (size_t i = 0; i < inventory->count; i++)
		if (wanted[i] ||
		    (request->kind == REQUEST_ALL && inventory->adapters[i].index >= 0 &&
		     !inventory->adapters[i].is_npu && selection_in_scope(&scope, &inventory->adapters[i])))
			selection.adapters[selection.count++] = &inventory->adapters[i];
	if (selection.count == 0)
		return selection_error_all(host, request, err);
	*ret = steal_struct(&selection);
	return 0;
}

/* ---- what the settings mean by a name ---- */

/* Whether the adapter lacks the UUID that only the vendor's library knows. */
static bool selection_lacks_uuid(const struct adapter *adapter)
{
	return adapter->vendor_id == PCI_VENDOR_NVIDIA && !(adapter->is_part ? adapter->alias : adapter->uuid);
}

/* Whether a name that is none of the adapter's may be one of those that are not known of it. */
static bool selection_may_have(const struct adapter *adapter, const struct device_name *name)
{
	if (name->type != DEVICE_NAME_OTHER || (name->is_npu && !adapter->is_npu))
		return false;
	/* It was one's until the last boot. */
	if (name->has_luid)
		return adapter->has_luid;
	if (name->is_uuid)
		return adapter->is_part == name->is_of_part && selection_lacks_uuid(adapter);
	return !adapter->is_part && !(name->has_address ? adapter->pci_address : adapter->name);
}

size_t selection_find(const struct ctr_gpu_host *host, const struct device_name *name, bool *ret)
{
	const struct scope all = {.host = host}, scope = selection_scope_of_name(&all, name);
	size_t count = 0;

	if (!selection_is_set(name))
		return selection_match(&scope, name, ret);
	selection_mark_set(&scope, name, ret);
	for (size_t i = 0; i < host->inventory.count; i++)
		count += ret[i];
	return count;
}

void selection_find_possible(const struct ctr_gpu_host *host, const struct device_name *name, bool *marked)
{
	const struct scope all = {.host = host}, scope = selection_scope_of_name(&all, name);

	for (size_t i = 0; i < host->inventory.count; i++) {
		const struct adapter *adapter = &host->inventory.adapters[i];

		marked[i] |= selection_in_scope(&scope, adapter) && selection_may_have(adapter, name);
	}
}

int selection_number_of(const struct ctr_gpu_host *host, const char *kind, const struct adapter *wanted)
{
	const char *domain = adapter_find_domain(kind, strcspn(kind, "/"));
	bool vcuda = streq(kind, DEVICE_NAME_VCUDA_KIND);
	const struct scope scope = {host, vcuda ? DOMAIN_NVIDIA : domain, vcuda};
	int next[2] = {0};

	for (size_t i = 0; i < host->inventory.count; i++) {
		struct adapter adapter;

		if (selection_number(&scope, i, next, &adapter) && &host->inventory.adapters[i] == wanted)
			return adapter.index;
	}
	return -1;
}

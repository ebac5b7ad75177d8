/* SPDX-License-Identifier: Apache-2.0 */

#include "lib/context.h"

#include <errno.h>
#include <stdlib.h>

#include "base/log.h"
#include "ctr-gpu.h"
#include "guard/helper.h"
#include "system/machine.h"

#define BACKEND_DECLARE(name) extern const struct backend backend_##name;
#define BACKEND_ADDRESS(name) &backend_##name,
BACKENDS(BACKEND_DECLARE)
static const struct backend *const backends[] = {BACKENDS(BACKEND_ADDRESS)};
_Static_assert(ARRAY_SIZE(backends) <= HOST_BACKENDS_MAX, "a host can hold every backend");

const struct backend *host_backend(size_t number)
{
	return number < ARRAY_SIZE(backends) ? backends[number] : NULL;
}

/* In this order: GPUs, whose index is their position; NPUs; what is not usable; parts of GPUs. */
enum group { GROUP_GPUS, GROUP_NPUS, GROUP_UNUSABLE, GROUP_PARTS, GROUPS };

static enum group host_group(const struct adapter *adapter)
{
	if (adapter->is_part)
		return GROUP_PARTS;
	if (adapter->unusable)
		return GROUP_UNUSABLE;
	return adapter->is_npu ? GROUP_NPUS : GROUP_GPUS;
}

static int host_index_of_whole(const struct inventory *sorted, const struct adapter *part)
{
	for (size_t i = 0; i < sorted->count; i++)
		if (sorted->adapters[i].backend == part->backend && sorted->adapters[i].minor == part->minor &&
		    !sorted->adapters[i].is_part)
			return sorted->adapters[i].index;
	return -1;
}

static int host_count_vendor(const struct inventory *sorted, const struct adapter *adapter)
{
	int count = 0;

	for (size_t i = 0; i < sorted->count; i++)
		count += streq(adapter_vendor(&sorted->adapters[i]), adapter_vendor(adapter));
	return count;
}

static int host_number_adapters(struct inventory *inventory)
{
	struct inventory sorted = {0};
	int numbers[GROUPS] = {0}, r = 0;

	for (enum group group = GROUP_GPUS; group < GROUPS; group++)
		for (size_t i = 0; i < inventory->count && r == 0; i++) {
			struct adapter *adapter = &inventory->adapters[i];

			/* Taken already: inventory_take() leaves an adapter without a backend. */
			if (!adapter->backend || host_group(adapter) != group)
				continue;
			adapter->index = group <= GROUP_NPUS ? numbers[group]++ : -1;
			adapter->vendor_index = group == GROUP_GPUS ? host_count_vendor(&sorted, adapter) : -1;
			adapter->whole = group == GROUP_PARTS ? host_index_of_whole(&sorted, adapter) : -1;
			r = inventory_take(&sorted, adapter);
		}
	sorted.notes = steal_struct(&inventory->notes);
	inventory_clear(inventory);
	*inventory = sorted;
	return r;
}

/*
 * If one backend cannot ask its device, the adapters of the others still count: its error becomes a note, unless
 * nothing else was found.
 */
static int host_probe_all(struct ctr_gpu_context *context, struct ctr_gpu_host *host)
{
	int failure = CTR_GPU_E_NO_DEVICE;
	char message[ERR_MESSAGE_MAX];
	struct err err = {0};
	int r;

	for (size_t i = 0; i < ARRAY_SIZE(backends); i++) {
		void *seen = NULL;

		r = backends[i]->probe(&context->settings, &host->inventory, &seen, &err);
		if (r == CTR_GPU_E_NO_DEVICE)
			continue;
		if (r == -ENOMEM)
			return r;
		if (r == 0) {
			host->seen[host->present_count] = seen;
			host->present[host->present_count++] = backends[i];
			continue;
		}
		failure = r;
		context->err = err;
		r = strv_add(&host->inventory.notes, err_message(&err, message));
		if (r < 0)
			return r;
	}
	return host->present_count > 0 ? 0 : failure;
}

/* One line of advice for GPU-PV, and one for all drivers for Linux. */
static int host_explain_none(struct err *err)
{
	_cleanup_strv_ struct strv devices = {0}, advice = {0};
	_cleanup_free_ char *names = NULL, *text = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(backends); i++)
		if (strv_add(&devices, backends[i]->device) < 0 ||
		    (i > 0 && strv_add(&advice, backends[i]->advice) < 0))
			return -ENOMEM;
	if (strv_join(&devices, " nor ", &names) < 0 || strv_join(&advice, " ", &text) < 0)
		return -ENOMEM;
	return err_advise(err,
			  err_set_advised(err, CTR_GPU_E_NO_DEVICE, ("no GPU here: neither %s leads to one", names),
					  ("%s", backends[0]->advice)),
			  "%s ctr-gpu doctor says which.", text);
}

int ctr_gpu_host_new(struct ctr_gpu_context *context, struct ctr_gpu_host **ret_host)
{
	struct ctr_gpu_host *host = calloc(1, sizeof(*host));
	int r;

	if (!host)
		return -ENOMEM;
	host->settings = &context->settings;
	undo_log_progress(context->undo_log, "looking for GPUs and drivers on this host", NULL);
	r = context->settings.granted ? 0 : host_probe_all(context, host);
	if (r == 0)
		r = host_number_adapters(&host->inventory);
	if (r == CTR_GPU_E_NO_DEVICE)
		r = host_explain_none(&context->err);
	if (r != 0) {
		ctr_gpu_host_unref(host);
		return r;
	}
	for (size_t i = 0; i < host->inventory.notes.count; i++)
		log_warning(&context->settings.log, "%s", host->inventory.notes.items[i]);
	*ret_host = host;
	return 0;
}

struct ctr_gpu_host *ctr_gpu_host_unref(struct ctr_gpu_host *host)
{
	if (!host)
		return NULL;
	for (size_t i = 0; i < host->present_count; i++)
		if (host->present[i]->free_data)
			host->present[i]->free_data(host->seen[i]);
	inventory_clear(&host->inventory);
	free(host);
	return NULL;
}

void host_drop_cache(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(backends); i++)
		if (backends[i]->cache_name)
			boot_cache_remove(backends[i]->cache_name);
}

void *host_backend_data(const struct ctr_gpu_host *host, const struct backend *backend)
{
	for (size_t i = 0; i < host->present_count; i++)
		if (host->present[i] == backend)
			return host->seen[i];
	return NULL;
}

int host_identify(const struct ctr_gpu_host *host, struct err *err)
{
	struct err ignored;
	int failure = 0;

	for (size_t i = 0; i < host->present_count; i++) {
		int r = host->present[i]->identify
				? host->present[i]->identify(host->settings, host->inventory.adapters,
							     host->inventory.count, failure ? &ignored : err)
				: 0;
		if (r == -ENOMEM)
			return r;
		failure = failure ? failure : r;
	}
	return failure;
}

int host_find_use(const struct ctr_gpu_host *host, struct use *ret, struct err *err)
{
	_cleanup_use_ struct use use = {.known = calloc(host->inventory.count + 1, sizeof(*use.known))};
	int r = use.known ? 0 : -ENOMEM;

	for (size_t i = 0; i < host->present_count && r == 0; i++)
		if (host->present[i]->find_use)
			r = host->present[i]->find_use(host->settings, host->inventory.adapters, host->inventory.count,
						       &use, err);
	if (r == 0)
		*ret = steal_struct(&use);
	return r;
}

int ctr_gpu_host_identify(struct ctr_gpu_context *context, struct ctr_gpu_host *host)
{
	return host_identify(host, &context->err);
}

size_t ctr_gpu_host_adapter_count(const struct ctr_gpu_host *host)
{
	return host->inventory.count;
}

int ctr_gpu_host_adapter(const struct ctr_gpu_host *host, size_t number, struct ctr_gpu_adapter *ret_adapter)
{
	const struct adapter *adapter;

	if (number >= host->inventory.count)
		return -ERANGE;
	adapter = &host->inventory.adapters[number];
	*ret_adapter = (struct ctr_gpu_adapter){
		.index = adapter->is_npu ? -1 : adapter->index,
		.npu = adapter->is_npu ? adapter->index : -1,
		.backend = adapter->backend->name,
		.name = adapter->name,
		.vendor = adapter_vendor(adapter),
		.vendor_id = adapter->vendor_id,
		.device_id = adapter->device_id,
		.pci_address = adapter->pci_address,
		.uuid = adapter->uuid,
		.luid = (uint64_t)(uint32_t)adapter->luid.high << 32 | adapter->luid.low,
		.wddm_version = adapter->wddm_version,
		.driver_store = adapter->driver_store,
		.unusable = adapter->unusable,
		.reason = adapter->reason,
	};
	return 0;
}

int ctr_gpu_host_driver(const struct ctr_gpu_host *host, size_t number, struct ctr_gpu_driver *ret_driver)
{
	struct driver_facts facts = {0};
	const struct adapter *adapter;

	if (number >= host->inventory.count)
		return -ERANGE;
	adapter = &host->inventory.adapters[number];
	/* If the driver's files cannot be read, its facts stay unknown. */
	if (adapter->backend->facts &&
	    adapter->backend->facts(host->settings, host_backend_data(host, adapter->backend), &adapter, 1, &facts) ==
		    -ENOMEM)
		return -ENOMEM;
	*ret_driver = (struct ctr_gpu_driver){
		.minor = adapter->minor,
		.version = facts.driver_version,
		.cuda_major = facts.cuda_major,
		.cuda_minor = facts.cuda_minor,
		.architecture = facts.architecture,
		.brand = facts.brand,
	};
	return 0;
}

void ctr_gpu_driver_clear(struct ctr_gpu_driver *driver)
{
	free(driver->version);
	free(driver->architecture);
	free(driver->brand);
	*driver = (struct ctr_gpu_driver){0};
}

int host_load_guard(const struct ctr_gpu_host *host, struct err *err)
{
	const enum choice_grade grade = host->settings->choice;
	bool choosable = false;
	int r;

	for (size_t i = 0; i < host->inventory.count; i++)
		choosable = choosable || (host->inventory.adapters[i].has_luid &&
					  adapter_is_choosable(&host->inventory.adapters[i]));
	if (!choosable || grade == CHOICE_STORE || grade == CHOICE_ENVIRONMENT || geteuid() != 0)
		return 0;
	r = helper_refresh(err);
	if (r == 0 || grade != CHOICE_AUTO)
		return r;
	log_debug(&host->settings->log, "%s", err->text);
	return 0;
}

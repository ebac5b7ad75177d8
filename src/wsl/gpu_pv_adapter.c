/* SPDX-License-Identifier: Apache-2.0 */

/*
 * An adapter behind /dev/dxg as the inventory shows it: its names, its state, and what helps where it cannot be used.
 */

#include "wsl/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/paths.h"
#include "base/str.h"
#include "ctr-gpu-error.h"
#include "driverd/driverd.h"
#include "system/machine.h"

/* Every host has some device that is not a usable adapter, so the kind of host is found out only for other errors. */
static const char *adapter_remedy(int code, enum store_content content)
{
	bool wsl = code != CTR_GPU_E_NO_ADAPTER && wsl_version() != WSL_NONE;

	if (code == CTR_GPU_E_NO_ADAPTER)
		return "Install the driver of the GPU's maker in Windows, then restart Linux: wsl --shutdown there, "
		       "or the virtual machine.";
	if (code == CTR_GPU_E_DRIVER_TOO_OLD)
		return wsl ? "Update the GPU's driver in Windows, then run wsl --shutdown there."
			   : "Update the GPU's driver on the Hyper-V host, copy its store from "
			     "there to " PATH_WSL_DRIVERS " again, and restart.";
	if (content == STORE_WITHOUT_LIBRARY)
		return wsl ? "Install a driver that supports WSL in Windows, then run wsl --shutdown there."
			   : "Install a driver that supports WSL on the Hyper-V host, and copy the whole directory "
			     "from there again.";
	return wsl ? "Run wsl --shutdown in Windows; if that does not help, install the GPU's driver there again."
		   : "Copy that directory from the Hyper-V host to " PATH_WSL_DRIVERS " again.";
}

/* Makes the adapter unusable. Takes @reason; NULL is -ENOMEM. */
static int adapter_refuse(struct adapter *adapter, int code, char *reason)
{
	adapter->unusable = code;
	adapter->reason = reason;
	adapter->remedy = adapter_remedy(code, STORE_MISSING);
	return reason ? 0 : -ENOMEM;
}

static int adapter_refuse_kind(struct adapter *adapter)
{
	if (adapter->type_bits & D3DKMT_TYPE_SOFTWARE)
		return adapter_refuse(adapter, CTR_GPU_E_NO_ADAPTER,
				      strdup("it is a software device, without a GPU behind it"));
	if (adapter->type_bits == 0)
		return adapter_refuse(adapter, CTR_GPU_E_NO_ADAPTER,
				      strdup("its driver does not say what kind of device it is"));
	return adapter_refuse(adapter, CTR_GPU_E_NO_ADAPTER,
			      strdup("it can neither render nor compute: a display device"));
}

static int adapter_refuse_version(struct adapter *adapter)
{
	char *reason = NULL;

	if (adapter->wddm_version == 0)
		return adapter_refuse(adapter, CTR_GPU_E_DRIVER_TOO_OLD,
				      strdup("its driver does not tell its WDDM version; 2.7 is needed"));
	if (str_format(&reason, "its driver is WDDM %u.%u; 2.7 is needed", adapter->wddm_version / 1000,
		       adapter->wddm_version % 1000 / 100) < 0)
		return -ENOMEM;
	return adapter_refuse(adapter, CTR_GPU_E_DRIVER_TOO_OLD, reason);
}

static int adapter_refuse_store(struct adapter *adapter, enum store_content content)
{
	char *reason = NULL;
	int r;

	if (!adapter->driver_store)
		return adapter_refuse(adapter, CTR_GPU_E_NO_DRIVER_STORE,
				      strdup("its driver does not tell a driver store that could be on this machine"));
	if (str_format(&reason,
		       content == STORE_MISSING ? "its driver store %s is missing"
						: "its driver store %s has no library for Linux",
		       adapter->driver_store) < 0)
		return -ENOMEM;
	r = adapter_refuse(adapter, CTR_GPU_E_NO_DRIVER_STORE, reason);
	adapter->remedy = adapter_remedy(CTR_GPU_E_NO_DRIVER_STORE, content);
	return r;
}

static int adapter_classify_kind(struct adapter *adapter, adapter_look_fn look)
{
	const uint32_t works = D3DKMT_TYPE_RENDER | D3DKMT_TYPE_COMPUTE_ONLY;
	enum store_content content;

	if (!(adapter->type_bits & works) || (adapter->type_bits & D3DKMT_TYPE_SOFTWARE))
		return adapter_refuse_kind(adapter);
	if (adapter->wddm_version < D3DKMT_WDDM_2_7)
		return adapter_refuse_version(adapter);
	content = adapter->driver_store ? look(adapter->driver_store, &adapter->store) : STORE_MISSING;
	return content == STORE_HAS_LIBRARY ? 0 : adapter_refuse_store(adapter, content);
}

static int adapter_take_facts(const struct dxg_facts *facts, struct adapter *adapter)
{
	int r = 0;

	if (facts->name) {
		adapter->name = strdup(facts->name);
		r = adapter->name ? 0 : -ENOMEM;
		/* It gets into sentences, which JSON takes only if they are UTF-8. */
		if (r == 0)
			printable_only(adapter->name);
	}
	/* Windows does not tell the PCI domain; GPU-PV hosts have had only one so far. */
	if (r == 0 && facts->has_address)
		r = str_format(&adapter->pci_address, "0000:%02x:%02x.%x", facts->address.bus & 0xff,
			       facts->address.device & 0x1f, facts->address.function & 7);
	if (r == 0 && facts->store)
		r = store_directory(facts->store, &adapter->driver_store);
	return r == -EINVAL ? 0 : r;
}

int adapter_classify(const struct dxg_facts *facts, adapter_look_fn look, struct adapter *ret)
{
	struct adapter adapter = {
		.index = -1,
		.minor = -1,
		.vendor_id = facts->vendor_id,
		.device_id = facts->device_id,
		.luid = facts->luid,
		.has_luid = true,
		.wddm_version = facts->wddm_version,
		.type_bits = facts->type_bits,
		/* Drivers of NPUs set the bit for rendering, too (AMD's XDNA 2). */
		.compute_only = facts->type_bits & D3DKMT_TYPE_COMPUTE_ONLY,
		/* NVIDIA's compute-only adapters are GPUs in MCDM mode. */
		.is_npu = (facts->type_bits & D3DKMT_TYPE_COMPUTE_ONLY) && facts->vendor_id != PCI_VENDOR_NVIDIA,
	};
	int r;

	r = adapter_take_facts(facts, &adapter);
	if (r == 0)
		r = adapter_classify_kind(&adapter, look);
	if (r < 0) {
		adapter_clear(&adapter);
		return r;
	}
	*ret = adapter;
	return 0;
}

enum adapter_rank { RANK_NVIDIA, RANK_RENDERS, RANK_COMPUTES, RANK_UNUSABLE };

static enum adapter_rank adapter_rank(const struct adapter *adapter)
{
	if (adapter->unusable)
		return RANK_UNUSABLE;
	if (adapter->vendor_id == PCI_VENDOR_NVIDIA)
		return RANK_NVIDIA;
	return adapter->is_npu ? RANK_COMPUTES : RANK_RENDERS;
}

static bool adapter_goes_before(const struct adapter *a, const struct adapter *b)
{
	if (adapter_rank(a) != adapter_rank(b))
		return adapter_rank(a) < adapter_rank(b);
	if (!a->pci_address || !b->pci_address)
		return a->pci_address && !b->pci_address;
	return strcmp(a->pci_address, b->pci_address) < 0;
}

/* By insertion: stable, which qsort(3) is not, and there are 64 at most. */
void adapter_sort(struct adapter *adapters, size_t count)
{
	for (size_t i = 1; i < count; i++) {
		struct adapter adapter = adapters[i];
		size_t place = i;

		while (place > 0 && adapter_goes_before(&adapter, &adapters[place - 1])) {
			adapters[place] = adapters[place - 1];
			place--;
		}
		adapters[place] = adapter;
	}
}

/* ---- UUIDs ---- */

/*
 * D3DKMT knows no UUID. NVML does, and the PCI address of the adapter on the Windows host, which joins both. The answer
 * is kept until the next boot, for which time an adapter keeps its LUID.
 */

#define KNOWN "uuids.json"
#define BOOT "boot" /* no LUID is called so */

enum { KNOWN_MAX = 64 * 1024 };

/* Only NVML, and so only NVIDIA's driver, gives adapters UUIDs. */
static bool uuid_is_nvidia(const struct adapter *adapter)
{
	return adapter->vendor_id == PCI_VENDOR_NVIDIA && !adapter->unusable;
}

static bool uuid_has_none(const struct adapter *adapter)
{
	return uuid_is_nvidia(adapter) && !adapter->uuid;
}

static size_t uuid_count(const struct adapter *adapters, size_t count)
{
	size_t nameless = 0;

	for (size_t i = 0; i < count; i++)
		nameless += uuid_has_none(&adapters[i]);
	return nameless;
}

/* What a library says becomes a name in specs and variables. */
static bool uuid_is_uuid(const char *text)
{
	return text && str_has_prefix(text, "GPU-") && text[4] &&
	       text[4 + strspn(text + 4, "0123456789abcdefABCDEF-")] == '\0';
}

/* ---- what is known since an earlier time ---- */

static int uuid_cache_get(struct adapter *adapters, size_t count)
{
	_cleanup_free_ char *text = NULL, *boot = NULL;
	_cleanup_json_ json_t *known = NULL;
	const char *known_boot;
	size_t size;
	int r = 0;

	if (boot_cache_read(KNOWN, KNOWN_MAX, &text, &size) < 0 || json_parse(text, size, &known, NULL) < 0)
		return 0;
	boot = boot_cache_boot();
	known_boot = json_string_value(json_object_get(known, BOOT));
	if (!boot || !known_boot || !streq(boot, known_boot))
		return 0;
	for (size_t i = 0; i < count && r == 0; i++) {
		char luid[LUID_TEXT_SIZE];
		const char *uuid;

		luid_format(adapters[i].luid, luid);
		uuid = json_string_value(json_object_get(known, luid));
		if (uuid_has_none(&adapters[i]) && uuid_is_uuid(uuid))
			r = str_replace(&adapters[i].uuid, uuid);
	}
	return r;
}

/* A plan does not fail if the UUIDs cannot be kept. Only root can keep them; other users get them anew each time. */
static void uuid_cache_put(const struct adapter *adapters, size_t count)
{
	_cleanup_free_ char *text = NULL, *boot = boot_cache_boot();
	_cleanup_json_ json_t *known = boot ? json_pack("{s:s}", BOOT, boot) : NULL;

	for (size_t i = 0; known && i < count; i++) {
		char luid[LUID_TEXT_SIZE];

		luid_format(adapters[i].luid, luid);
		if (adapters[i].has_luid && adapters[i].uuid)
			(void)json_object_set_new(known, luid, json_string(adapters[i].uuid));
	}
	if (known && json_print(known, JSON_COMPACT, &text) == 0)
		boot_cache_write(KNOWN, text);
}

/* ---- what NVML says ---- */

/* The adapter at an address, or else the only one beside the only GPU; NULL: several, or it has its UUID. */
static struct adapter *uuid_find(struct adapter *adapters, size_t count, const char *address, bool is_only)
{
	struct adapter *found = NULL, *last = NULL;
	size_t matches = 0, all = 0;

	for (size_t i = 0; i < count; i++) {
		const char *own = adapters[i].pci_address;

		if (!uuid_is_nvidia(&adapters[i]))
			continue;
		last = &adapters[i];
		all++;
		if (!own || !address || !streq(own, address))
			continue;
		found = last;
		matches++;
	}
	if (matches == 0 && all == 1 && is_only)
		found = last;
	return found && matches <= 1 && !found->uuid ? found : NULL;
}

static int uuid_join(struct adapter *adapters, size_t count, const struct driverd_name *names, size_t name_count)
{
	int r = 0;

	for (size_t i = 0; i < name_count && r == 0; i++) {
		struct adapter *adapter = uuid_find(adapters, count, names[i].of, name_count == 1);

		if (adapter && !names[i].is_part && uuid_is_uuid(names[i].uuid))
			r = str_replace(&adapter->uuid, names[i].uuid);
	}
	return r;
}

static int uuid_query(const struct settings *settings, struct adapter *adapters, size_t count, struct err *err)
{
	_cleanup_free_ char *library = NULL;
	struct driverd_name *names = NULL;
	size_t name_count = 0, first = 0;
	int r;

	while (!uuid_has_none(&adapters[first]))
		first++;
	if (str_format(&library, "%s/libnvidia-ml.so.1", adapters[first].driver_store) < 0)
		return -ENOMEM;
	r = driverd_nvml_names(settings, library, false, "Name the GPU by its index, LUID or PCI address.", &names,
			       &name_count, err);
	if (r == 0)
		r = uuid_join(adapters, count, names, name_count);
	driverd_names_free(names, name_count);
	return r;
}

int uuid_identify(const struct settings *settings, struct adapter *adapters, size_t count, struct err *err)
{
	size_t nameless;
	int r;

	if (uuid_count(adapters, count) == 0)
		return 0;
	r = uuid_cache_get(adapters, count);
	nameless = uuid_count(adapters, count);
	if (r < 0 || nameless == 0)
		return r;
	r = uuid_query(settings, adapters, count, err);
	if (r == 0 && uuid_count(adapters, count) < nameless)
		uuid_cache_put(adapters, count);
	return r;
}

/* SPDX-License-Identifier: Apache-2.0 */

#include "wsl/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/paths.h"
#include "base/str.h"
#include "ctr-gpu-error.h"

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

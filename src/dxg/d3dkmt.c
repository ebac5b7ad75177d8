/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The questions of an inventory, in their order. The answers are hostile: counts and sizes are checked against what was
 * offered, strings end where their buffer ends.
 */

#include "dxg/dxg.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	ENUMERATION_TRIES = 3, /* adapters come and go: a partition may be added between two calls */
	BUS_END = 256,
	DEVICE_END = 32,
	FUNCTION_END = 8,
};

struct dxg_facts *dxg_facts_free(struct dxg_facts *facts, size_t count)
{
	for (size_t i = 0; facts && i < count; i++) {
		free(facts[i].name);
		free(facts[i].store);
	}
	free(facts);
	return NULL;
}

struct adapter_list {
	struct d3dkmt_adapterinfo adapters[D3DKMT_MAX_ADAPTERS];
	uint32_t count;
};

/* Compute-only adapters (NPUs, NVIDIA's MCDM mode) show in the third version of the call alone. */
static int d3dkmt_enumerate3(const struct d3dkmt *d3dkmt, struct adapter_list *list)
{
	struct d3dkmt_enumadapters3 arguments = {
		.filter = D3DKMT_ENUM_COMPUTE_ONLY,
		.count = D3DKMT_MAX_ADAPTERS,
		.adapters = (uintptr_t)list->adapters,
	};
	int r = d3dkmt->enumerate3(d3dkmt, &arguments);

	list->count = arguments.count;
	return r;
}

static int d3dkmt_enumerate2(const struct d3dkmt *d3dkmt, struct adapter_list *list)
{
	struct d3dkmt_enumadapters2 arguments = {
		.count = D3DKMT_MAX_ADAPTERS,
		.adapters = (uintptr_t)list->adapters,
	};
	int r = d3dkmt->enumerate2(d3dkmt, &arguments);

	list->count = arguments.count;
	return r;
}

static int d3dkmt_enumerate(const struct d3dkmt *d3dkmt, struct adapter_list *list)
{
	int r = -EOVERFLOW;

	for (int i = 0; i < ENUMERATION_TRIES && r == -EOVERFLOW; i++)
		r = d3dkmt_enumerate3(d3dkmt, list);
	if (r < 0)
		r = -EOVERFLOW;
	for (int i = 0; i < ENUMERATION_TRIES && r == -EOVERFLOW; i++)
		r = d3dkmt_enumerate2(d3dkmt, list);
	if (r < 0)
		return r;
	return list->count <= D3DKMT_MAX_ADAPTERS ? 0 : -EPROTO;
}

static int d3dkmt_ask(const struct d3dkmt *d3dkmt, uint32_t handle, enum d3dkmt_query type, void *data, size_t size)
{
	struct d3dkmt_queryadapterinfo arguments = {
		.handle = handle,
		.type = type,
		.data = (uintptr_t)data,
		.size = (uint32_t)size,
	};

	return d3dkmt->query(d3dkmt, &arguments);
}

/* A string of @characters at @offset of a reply. An empty one counts as missing. */
static int d3dkmt_take_string(const struct span *reply, size_t offset, size_t characters, size_t char_size, char **ret)
{
	_cleanup_free_ char *text = NULL;
	struct span wide;
	int r;

	if (!span_slice(reply, offset, characters * char_size, &wide))
		return -EPROTO;
	r = utf16_from_wide(&wide, char_size, &text);
	if (r == 0 && text[0])
		*ret = steal_ptr(text);
	return r;
}

/*
 * D3DKMT_ADAPTERREGISTRYINFO, four strings of MAX_PATH, the adapter's name first. As old as WDDM, which the newer
 * DRIVER_DESCRIPTION is not.
 */
static int d3dkmt_ask_name(const struct d3dkmt *d3dkmt, uint32_t handle, char **ret)
{
	size_t size = 4 * D3DKMT_MAX_PATH * sizeof(uint16_t);
	_cleanup_free_ unsigned char *reply = calloc(1, size);

	if (!reply)
		return -ENOMEM;
	if (d3dkmt_ask(d3dkmt, handle, D3DKMT_QUERY_ADAPTERREGISTRYINFO, reply, size) < 0)
		return 0;
	return d3dkmt_take_string(&(struct span){reply, size}, 0, D3DKMT_MAX_PATH, sizeof(uint16_t), ret);
}

/* D3DDDI_QUERYREGISTRY_INFO; the size of ValueName is the only thing that the width of a character changes. */
struct d3dkmt_registry_layout {
	size_t output_size, status, output, size;
};

static struct d3dkmt_registry_layout d3dkmt_registry_layout(size_t char_size)
{
	size_t value_type = 2 * sizeof(uint32_t) + D3DKMT_MAX_PATH * char_size;

	return (struct d3dkmt_registry_layout){
		.output_size = value_type + 2 * sizeof(uint32_t),
		.status = value_type + 3 * sizeof(uint32_t),
		.output = value_type + 4 * sizeof(uint32_t),
		.size = value_type + 4 * sizeof(uint32_t) + sizeof(uint64_t),
	};
}

/*
 * The size that the driver store's path needs. A bare structure is too small for any path: the call succeeds, and the
 * status in the answer is D3DDDI_QUERYREGISTRY_STATUS_BUFFER_OVERFLOW. 0 if the size is unknown.
 */
static size_t d3dkmt_ask_store_size(const struct d3dkmt *d3dkmt, uint32_t handle,
				    const struct d3dkmt_registry_layout *layout, unsigned char *request)
{
	const uint32_t type = D3DKMT_REGISTRY_DRIVERSTOREPATH;
	uint32_t needed, status;

	memcpy(request, &type, sizeof(type));
	if (d3dkmt_ask(d3dkmt, handle, D3DKMT_QUERY_QUERYREGISTRY, request, layout->size) < 0)
		return 0;
	memcpy(&status, request + layout->status, sizeof(status));
	memcpy(&needed, request + layout->output_size, sizeof(needed));
	if (status != D3DKMT_REGISTRY_OVERFLOW || needed > D3DKMT_MAX_PATH * d3dkmt->char_size)
		return 0;
	return needed;
}

static int d3dkmt_ask_store(const struct d3dkmt *d3dkmt, uint32_t handle, char **ret)
{
	struct d3dkmt_registry_layout layout = d3dkmt_registry_layout(d3dkmt->char_size);
	const uint32_t type = D3DKMT_REGISTRY_DRIVERSTOREPATH;
	_cleanup_free_ unsigned char *request = calloc(1, layout.size + D3DKMT_MAX_PATH * d3dkmt->char_size);
	uint32_t status;
	size_t needed;

	if (!request)
		return -ENOMEM;
	needed = d3dkmt_ask_store_size(d3dkmt, handle, &layout, request);
	if (needed == 0)
		return 0;
	memset(request, 0, layout.size);
	memcpy(request, &type, sizeof(type));
	if (d3dkmt_ask(d3dkmt, handle, D3DKMT_QUERY_QUERYREGISTRY, request, layout.size + needed) < 0)
		return 0;
	memcpy(&status, request + layout.status, sizeof(status));
	if (status != 0)
		return 0;
	/* libdxcore gives the length of the Windows path, and the shorter Linux path: the NUL decides. */
	return d3dkmt_take_string(&(struct span){request, layout.size + needed}, layout.output,
				  needed / d3dkmt->char_size, d3dkmt->char_size, ret);
}

static void d3dkmt_ask_address(const struct d3dkmt *d3dkmt, uint32_t handle, struct dxg_facts *facts)
{
	struct d3dkmt_adapteraddress address = {0};

	if (d3dkmt_ask(d3dkmt, handle, D3DKMT_QUERY_ADAPTERADDRESS, &address, sizeof(address)) < 0)
		return;
	/* An adapter that is not a PCI device has numbers like 0xffffffff. */
	if (address.bus >= BUS_END || address.device >= DEVICE_END || address.function >= FUNCTION_END)
		return;
	/*
	 * Hosts of Windows 10 answer without a status (dxgkrnl's DXGK_VMBUS_INTERFACE_VERSION_OLD), so that a refusal
	 * leaves our zeros. No adapter is there: it is the place of the host bridge.
	 */
	if (address.bus == 0 && address.device == 0 && address.function == 0)
		return;
	facts->has_address = true;
	facts->address = address;
}

static bool d3dkmt_may_be_usable(const struct dxg_facts *facts)
{
	return facts->wddm_version >= D3DKMT_WDDM_2_7 && !(facts->type_bits & D3DKMT_TYPE_SOFTWARE) &&
	       (facts->type_bits & (D3DKMT_TYPE_RENDER | D3DKMT_TYPE_COMPUTE_ONLY));
}

/*
 * Every query that a driver refuses leaves a line in the guest's kernel log. So of an adapter that cannot be used, only
 * what identifies it to the user is queried.
 */
static int d3dkmt_describe(const struct d3dkmt *d3dkmt, const struct d3dkmt_adapterinfo *adapter, struct dxg_facts *ret)
{
	struct d3dkmt_device_ids ids = {0};
	uint32_t version = 0, type = 0;
	int r;

	ret->luid = adapter->luid;
	if (d3dkmt_ask(d3dkmt, adapter->handle, D3DKMT_QUERY_DRIVERVERSION, &version, sizeof(version)) == 0)
		ret->wddm_version = version;
	if (d3dkmt_ask(d3dkmt, adapter->handle, D3DKMT_QUERY_ADAPTERTYPE, &type, sizeof(type)) == 0)
		ret->type_bits = type;
	if (d3dkmt_ask(d3dkmt, adapter->handle, D3DKMT_QUERY_DEVICE_IDS, &ids, sizeof(ids)) == 0) {
		ret->vendor_id = ids.vendor;
		ret->device_id = ids.device;
	}
	r = d3dkmt_ask_name(d3dkmt, adapter->handle, &ret->name);
	if (r < 0 || !d3dkmt_may_be_usable(ret))
		return r;
	d3dkmt_ask_address(d3dkmt, adapter->handle, ret);
	return d3dkmt_ask_store(d3dkmt, adapter->handle, &ret->store);
}

int d3dkmt_describe_adapters(const struct d3dkmt *d3dkmt, struct dxg_facts **ret, size_t *ret_count)
{
	struct adapter_list list = {0};
	struct dxg_facts *facts;
	int r;

	r = d3dkmt_enumerate(d3dkmt, &list);
	if (r < 0)
		return r;
	facts = calloc(list.count + 1, sizeof(*facts));
	if (!facts)
		r = -ENOMEM;
	for (uint32_t i = 0; i < list.count; i++) {
		struct d3dkmt_closeadapter handle = {list.adapters[i].handle};

		if (r == 0)
			r = d3dkmt_describe(d3dkmt, &list.adapters[i], &facts[i]);
		if (d3dkmt->close)
			d3dkmt->close(d3dkmt, &handle);
	}
	if (r < 0) {
		dxg_facts_free(facts, list.count);
		return r;
	}
	*ret = facts;
	*ret_count = list.count;
	return 0;
}

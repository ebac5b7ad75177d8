/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The COM face of libdxcore.so: DXCoreCreateAdapterFactory(), lists of adapters by attribute, and an adapter's
 * properties, by the layout of interfaces that Microsoft's DirectX-Headers describe (dxcore_interface.h). Everything that
 * an adapter says comes from the device, by the library's own D3DKMT functions. Intel's and Mesa's drivers come this way.
 */

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "../abi.h"

#define EXPORT __attribute__((visibility("default")))

typedef int32_t HRESULT;
#define S_OK 0
#define E_NOINTERFACE ((HRESULT)0x80004002)
#define E_POINTER ((HRESULT)0x80004003)
#define E_FAIL ((HRESULT)0x80004005)
#define E_OUTOFMEMORY ((HRESULT)0x8007000E)
#define E_INVALIDARG ((HRESULT)0x80070057)
#define DXGI_ERROR_UNSUPPORTED ((HRESULT)0x887A0004)

typedef struct {
	uint32_t first;
	uint16_t second, third;
	uint8_t rest[8];
} GUID;
SIZE_IS(GUID, 16);

static const GUID iid_unknown = {0, 0, 0, {0xc0, 0, 0, 0, 0, 0, 0, 0x46}};
static const GUID iid_factory = {0x78ee5945, 0xc36e, 0x4b13, {0xa6, 0x69, 0x00, 0x5d, 0xd1, 0x1c, 0x0f, 0x06}};
static const GUID iid_list = {0x526c7776, 0x40e9, 0x459b, {0xb7, 0x11, 0xf3, 0x2a, 0xd7, 0x6d, 0xfc, 0x28}};
static const GUID iid_adapter = {0xf0db4c7f, 0xfe5a, 0x42a2, {0xbd, 0x62, 0xf2, 0xa6, 0xcf, 0x6f, 0xc8, 0x3e}};
static const GUID d3d12_graphics = {0x0c9ece4d, 0x2f6e, 0x4f01, {0x8c, 0x96, 0xe8, 0x9e, 0x33, 0x1b, 0x47, 0xb1}};
static const GUID d3d12_core_compute = {0x248e2800, 0xa793, 0x4724, {0xab, 0xaa, 0x23, 0xa6, 0xde, 0x1b, 0xe0, 0x90}};

static bool same(const GUID *a, const GUID *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

int32_t D3DKMTEnumAdapters3(D3DKMT_ENUMADAPTERS3 *args);
int32_t D3DKMTOpenAdapterFromLuid(D3DKMT_OPENADAPTERFROMLUID *args);
int32_t D3DKMTCloseAdapter(const D3DKMT_CLOSEADAPTER *args);
int32_t D3DKMTQueryAdapterInfo(const D3DKMT_QUERYADAPTERINFO *args);

/* ---- objects: the first member is what a C++ program takes for the table of virtual functions ---- */

struct object {
	const void *functions;
	const GUID *iid;
	uint32_t references;
};

static HRESULT object_query(void *self, const GUID *iid, void **ret)
{
	struct object *object = self;

	if (!ret)
		return E_POINTER;
	*ret = NULL;
	if (!iid || (!same(iid, &iid_unknown) && !same(iid, object->iid)))
		return E_NOINTERFACE;
	(void)__atomic_add_fetch(&object->references, 1, __ATOMIC_SEQ_CST);
	*ret = self;
	return S_OK;
}

static uint32_t object_add_ref(void *self)
{
	return __atomic_add_fetch(&((struct object *)self)->references, 1, __ATOMIC_SEQ_CST);
}

static uint32_t object_release(void *self)
{
	uint32_t left = __atomic_sub_fetch(&((struct object *)self)->references, 1, __ATOMIC_SEQ_CST);

	if (left == 0)
		free(self);
	return left;
}

/* A new object of @size bytes for @iid; on failure NULL, with the reason in @ret. */
static void *object_new(size_t size, const void *functions, const GUID *own, const GUID *iid, void **ret,
			HRESULT *result)
{
	struct object *object = calloc(1, size);

	*result = E_OUTOFMEMORY;
	if (!object)
		return NULL;
	object->functions = functions;
	object->iid = own;
	*result = object_query(object, iid, ret);
	if (*result != S_OK)
		free(object);
	return *result == S_OK ? object : NULL;
}

EXPORT HRESULT DXCoreCreateAdapterFactory(const GUID *iid, void **ret);

/* ---- an adapter ---- */

struct dx_adapter {
	struct object object;
	LUID luid;
};

/* One query on a handle of its own. */
static bool ask(const LUID *luid, uint32_t type, void *data, uint32_t size)
{
	D3DKMT_OPENADAPTERFROMLUID opened = {.AdapterLuid = *luid};
	D3DKMT_QUERYADAPTERINFO query = {
		.Type = type, .pPrivateDriverData = (uintptr_t)data, .PrivateDriverDataSize = size};
	D3DKMT_CLOSEADAPTER closed;
	int32_t status;

	if (D3DKMTOpenAdapterFromLuid(&opened) < 0)
		return false;
	query.hAdapter = closed.hAdapter = opened.hAdapter;
	status = D3DKMTQueryAdapterInfo(&query);
	(void)D3DKMTCloseAdapter(&closed);
	return status >= 0;
}

static uint32_t type_bits(const LUID *luid)
{
	uint32_t bits = 0;

	return ask(luid, QUERY_ADAPTERTYPE, &bits, sizeof(bits)) ? bits : 0;
}

static bool has_attribute(const LUID *luid, const GUID *attribute)
{
	uint32_t bits = type_bits(luid);

	if (same(attribute, &d3d12_graphics))
		return (bits & TYPE_RENDER) && !(bits & TYPE_COMPUTE_ONLY);
	return same(attribute, &d3d12_core_compute) && (bits & (TYPE_RENDER | TYPE_COMPUTE_ONLY));
}

enum property {
	INSTANCE_LUID,
	DRIVER_VERSION,
	DRIVER_DESCRIPTION,
	HARDWARE_ID,
	KMD_MODEL_VERSION,
	COMPUTE_PREEMPTION,
	GRAPHICS_PREEMPTION,
	DEDICATED_ADAPTER_MEMORY,
	DEDICATED_SYSTEM_MEMORY,
	SHARED_SYSTEM_MEMORY,
	ACG_COMPATIBLE,
	IS_HARDWARE,
	IS_INTEGRATED,
	IS_DETACHABLE,
	HARDWARE_ID_PARTS,
	PROPERTIES
};

enum { NAME_MAX_BYTES = 4096 };

/* The driver's name in UTF-8. Return: its bytes with the NUL; 0 if there is none. */
static size_t read_name(const LUID *luid, char *ret)
{
	uint32_t *wide = calloc(4096, sizeof(*wide));
	size_t length = 0;

	if (wide && ask(luid, QUERY_DRIVER_DESCRIPTION, wide, 4096 * sizeof(*wide))) {
		for (const uint32_t *at = wide; *at && length + 5 < NAME_MAX_BYTES; at++) {
			uint32_t code = *at;

			if (code < 0x80) {
				ret[length++] = (char)code;
				continue;
			}
			if (code >= 0x800)
				ret[length++] = (char)(0xE0 | code >> 12);
			ret[length++] = (char)(code >= 0x800 ? 0x80 | (code >> 6 & 0x3F) : 0xC0 | code >> 6);
			ret[length++] = (char)(0x80 | (code & 0x3F));
		}
		ret[length++] = '\0';
	}
	free(wide);
	return length;
}

static const size_t property_sizes[PROPERTIES] = {
	[INSTANCE_LUID] = sizeof(LUID),
	[DRIVER_VERSION] = 8,
	[HARDWARE_ID] = 16,
	[KMD_MODEL_VERSION] = 4,
	[COMPUTE_PREEMPTION] = 4,
	[GRAPHICS_PREEMPTION] = 4,
	[DEDICATED_ADAPTER_MEMORY] = 8,
	[DEDICATED_SYSTEM_MEMORY] = 8,
	[SHARED_SYSTEM_MEMORY] = 8,
	[ACG_COMPATIBLE] = 1,
	[IS_HARDWARE] = 1,
	[IS_INTEGRATED] = 1,
	[IS_DETACHABLE] = 1,
	[HARDWARE_ID_PARTS] = 20,
};

static HRESULT adapter_property_size(void *self, uint32_t property, size_t *ret)
{
	const struct dx_adapter *adapter = self;
	char name[NAME_MAX_BYTES];

	if (property >= PROPERTIES)
		return DXGI_ERROR_UNSUPPORTED;
	if (!ret)
		return E_POINTER;
	*ret = property == DRIVER_DESCRIPTION ? read_name(&adapter->luid, name) : property_sizes[property];
	return *ret > 0 ? S_OK : E_FAIL;
}

static HRESULT read_hardware_id(const LUID *luid, uint32_t property, void *data)
{
	QUERY_DEVICE_IDS ids = {0};
	uint32_t *words = data;

	if (!ask(luid, QUERY_PHYSICALADAPTERDEVICEIDS, &ids, sizeof(ids)))
		return E_FAIL;
	*words++ = ids.VendorID;
	*words++ = ids.DeviceID;
	if (property == HARDWARE_ID) {
		*words++ = ids.SubSystemID << 16 | (ids.SubVendorID & 0xFFFF);
	} else {
		*words++ = ids.SubSystemID;
		*words++ = ids.SubVendorID;
	}
	*words = ids.RevisionID;
	return S_OK;
}

static HRESULT read_property(const struct dx_adapter *adapter, uint32_t property, void *data, size_t size)
{
	uint32_t bits = type_bits(&adapter->luid);
	uint64_t segments[3];
	bool flag = false;

	switch (property) {
	case INSTANCE_LUID:
		memcpy(data, &adapter->luid, sizeof(adapter->luid));
		return S_OK;
	case DRIVER_VERSION:
		return ask(&adapter->luid, QUERY_UMD_DRIVER_VERSION, data, 8) ? S_OK : E_FAIL;
	case HARDWARE_ID:
	case HARDWARE_ID_PARTS:
		return read_hardware_id(&adapter->luid, property, data);
	case KMD_MODEL_VERSION:
		return ask(&adapter->luid, QUERY_DRIVERVERSION, data, 4) ? S_OK : E_FAIL;
	case DEDICATED_ADAPTER_MEMORY:
	case DEDICATED_SYSTEM_MEMORY:
	case SHARED_SYSTEM_MEMORY:
		if (!ask(&adapter->luid, QUERY_GETSEGMENTSIZE, segments, sizeof(segments)))
			return E_FAIL;
		memcpy(data, &segments[property - DEDICATED_ADAPTER_MEMORY], 8);
		return S_OK;
	case IS_HARDWARE:
		flag = !(bits & TYPE_SOFTWARE);
		break;
	case IS_INTEGRATED:
		flag = bits & TYPE_HYBRID_INTEGRATED;
		break;
	case IS_DETACHABLE:
		flag = bits & TYPE_DETACHABLE;
		break;
	default:
		break;
	}
	memset(data, 0, size);
	memcpy(data, &flag, sizeof(flag));
	return S_OK;
}

static HRESULT adapter_property(void *self, uint32_t property, size_t size, void *data)
{
	char name[NAME_MAX_BYTES];
	size_t needed;

	if (property >= PROPERTIES)
		return DXGI_ERROR_UNSUPPORTED;
	if (!data)
		return E_POINTER;
	if (property != DRIVER_DESCRIPTION)
		return size < property_sizes[property] ? E_INVALIDARG
						       : read_property(self, property, data, property_sizes[property]);
	needed = read_name(&((const struct dx_adapter *)self)->luid, name);
	if (needed == 0)
		return E_FAIL;
	if (size < needed)
		return E_INVALIDARG;
	memcpy(data, name, needed);
	return S_OK;
}

static bool adapter_is_valid(void *self)
{
	return type_bits(&((const struct dx_adapter *)self)->luid) != 0;
}

static bool adapter_has_attribute(void *self, const GUID *attribute)
{
	return has_attribute(&((const struct dx_adapter *)self)->luid, attribute);
}

static bool adapter_has_property(void *self, uint32_t property)
{
	(void)self;
	return property < PROPERTIES;
}

static bool adapter_has_state(void *self, uint32_t state)
{
	(void)self;
	(void)state;
	return false;
}

static HRESULT adapter_query_state(void *self, uint32_t state, size_t in_size, const void *in, size_t out_size,
				   void *out)
{
	(void)self;
	(void)state;
	(void)in_size;
	(void)in;
	(void)out_size;
	(void)out;
	return DXGI_ERROR_UNSUPPORTED;
}

static HRESULT adapter_set_state(void *self, uint32_t state, size_t in_size, const void *in, size_t data_size,
				 const void *data)
{
	(void)self;
	(void)state;
	(void)in_size;
	(void)in;
	(void)data_size;
	(void)data;
	return DXGI_ERROR_UNSUPPORTED;
}

static HRESULT get_factory(void *self, const GUID *iid, void **ret)
{
	(void)self;
	return DXCoreCreateAdapterFactory(iid, ret);
}

static const struct {
	HRESULT (*query)(void *self, const GUID *iid, void **ret);
	uint32_t (*add_ref)(void *self);
	uint32_t (*release)(void *self);
	bool (*is_valid)(void *self);
	bool (*is_attribute_supported)(void *self, const GUID *attribute);
	bool (*is_property_supported)(void *self, uint32_t property);
	HRESULT (*get_property)(void *self, uint32_t property, size_t size, void *data);
	HRESULT (*get_property_size)(void *self, uint32_t property, size_t *ret);
	bool (*is_query_state_supported)(void *self, uint32_t state);
	HRESULT (*query_state)(void *self, uint32_t state, size_t in_size, const void *in, size_t out_size, void *out);
	bool (*is_set_state_supported)(void *self, uint32_t state);
	HRESULT(*set_state)
	(void *self, uint32_t state, size_t in_size, const void *in, size_t data_size, const void *data);
	HRESULT (*get_factory)(void *self, const GUID *iid, void **ret);
} adapter_functions = {
	object_query,         object_add_ref,    object_release,        adapter_is_valid,  adapter_has_attribute,
	adapter_has_property, adapter_property,  adapter_property_size, adapter_has_state, adapter_query_state,
	adapter_has_state,    adapter_set_state, get_factory,
};

static HRESULT adapter_new(const LUID *luid, const GUID *iid, void **ret)
{
	HRESULT result;
	struct dx_adapter *adapter = object_new(sizeof(*adapter), &adapter_functions, &iid_adapter, iid, ret, &result);

	if (adapter)
		adapter->luid = *luid;
	return result;
}

/* ---- a list ---- */

struct dx_list {
	struct object object;
	uint32_t count;
	LUID luids[ADAPTERS_MAX];
};

static HRESULT list_get(void *self, uint32_t index, const GUID *iid, void **ret)
{
	const struct dx_list *list = self;

	return index < list->count ? adapter_new(&list->luids[index], iid, ret) : E_INVALIDARG;
}

static uint32_t list_count(void *self)
{
	return ((const struct dx_list *)self)->count;
}

static bool list_is_stale(void *self)
{
	(void)self;
	return false;
}

static bool list_has_preference(void *self, uint32_t preference)
{
	(void)self;
	return preference == 0; /* hardware before software */
}

/* Hardware comes first; the rest keeps its order. */
static HRESULT list_sort(void *self, uint32_t count, const uint32_t *preferences)
{
	struct dx_list *list = self;
	uint32_t kept = 0;

	if (count == 0 || !preferences)
		return E_INVALIDARG;
	for (uint32_t i = 0; i < list->count; i++) {
		LUID luid = list->luids[i];

		if (type_bits(&luid) & TYPE_SOFTWARE)
			continue;
		memmove(&list->luids[kept + 1], &list->luids[kept], (i - kept) * sizeof(luid));
		list->luids[kept++] = luid;
	}
	return S_OK;
}

static const struct {
	HRESULT (*query)(void *self, const GUID *iid, void **ret);
	uint32_t (*add_ref)(void *self);
	uint32_t (*release)(void *self);
	HRESULT (*get_adapter)(void *self, uint32_t index, const GUID *iid, void **ret);
	uint32_t (*get_adapter_count)(void *self);
	bool (*is_stale)(void *self);
	HRESULT (*get_factory)(void *self, const GUID *iid, void **ret);
	HRESULT (*sort)(void *self, uint32_t count, const uint32_t *preferences);
	bool (*is_adapter_preference_supported)(void *self, uint32_t preference);
} list_functions = {
	object_query, object_add_ref, object_release,      list_get, list_count, list_is_stale,
	get_factory,  list_sort,      list_has_preference,
};

static bool has_attributes(const LUID *luid, uint32_t count, const GUID *attributes)
{
	for (uint32_t i = 0; i < count; i++)
		if (!has_attribute(luid, &attributes[i]))
			return false;
	return true;
}

static HRESULT list_fill(struct dx_list *list, uint32_t count, const GUID *attributes)
{
	D3DKMT_ADAPTERINFO infos[ADAPTERS_MAX];
	D3DKMT_ENUMADAPTERS3 all = {
		.Filter = FILTER_INCLUDE_COMPUTE_ONLY, .NumAdapters = ADAPTERS_MAX, .pAdapters = (uintptr_t)infos};

	if (D3DKMTEnumAdapters3(&all) < 0)
		return E_FAIL;
	for (uint32_t i = 0; i < all.NumAdapters; i++) {
		D3DKMT_CLOSEADAPTER handle = {infos[i].hAdapter};

		(void)D3DKMTCloseAdapter(&handle);
		if (has_attributes(&infos[i].AdapterLuid, count, attributes))
			list->luids[list->count++] = infos[i].AdapterLuid;
	}
	return S_OK;
}

/* ---- the factory ---- */

static HRESULT factory_create_list(void *self, uint32_t count, const GUID *attributes, const GUID *iid, void **ret)
{
	struct dx_list *list;
	HRESULT result;

	(void)self;
	if (count == 0 || !attributes)
		return E_INVALIDARG;
	list = object_new(sizeof(*list), &list_functions, &iid_list, iid, ret, &result);
	if (!list)
		return result;
	result = list_fill(list, count, attributes);
	if (result != S_OK) {
		free(list);
		*ret = NULL;
	}
	return result;
}

static HRESULT factory_get_by_luid(void *self, const LUID *luid, const GUID *iid, void **ret)
{
	(void)self;
	return luid && type_bits(luid) ? adapter_new(luid, iid, ret) : E_INVALIDARG;
}

static bool factory_notifies(void *self, uint32_t type)
{
	(void)self;
	(void)type;
	return false;
}

static HRESULT factory_register(void *self, void *object, uint32_t type, void *callback, void *context, uint32_t *ret)
{
	(void)self;
	(void)object;
	(void)type;
	(void)callback;
	(void)context;
	(void)ret;
	return DXGI_ERROR_UNSUPPORTED;
}

static HRESULT factory_unregister(void *self, uint32_t cookie)
{
	(void)self;
	(void)cookie;
	return DXGI_ERROR_UNSUPPORTED;
}

static const struct {
	HRESULT (*query)(void *self, const GUID *iid, void **ret);
	uint32_t (*add_ref)(void *self);
	uint32_t (*release)(void *self);
	HRESULT (*create_adapter_list)(void *self, uint32_t count, const GUID *attributes, const GUID *iid, void **ret);
	HRESULT (*get_adapter_by_luid)(void *self, const LUID *luid, const GUID *iid, void **ret);
	bool (*is_notification_type_supported)(void *self, uint32_t type);
	HRESULT(*register_event_notification)
	(void *self, void *object, uint32_t type, void *callback, void *context, uint32_t *ret);
	HRESULT (*unregister_event_notification)(void *self, uint32_t cookie);
} factory_functions = {
	object_query,        object_add_ref,   object_release,   factory_create_list,
	factory_get_by_luid, factory_notifies, factory_register, factory_unregister,
};

HRESULT DXCoreCreateAdapterFactory(const GUID *iid, void **ret)
{
	HRESULT result;

	(void)object_new(sizeof(struct object), &factory_functions, &iid_factory, iid, ret, &result);
	return result;
}

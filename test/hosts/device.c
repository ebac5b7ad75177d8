/* SPDX-License-Identifier: Apache-2.0 */

/* Order of checks and results as in drivers/hv/dxgkrnl/ioctl.c and dxgvmbus.c of the WSL kernel. */

#include "device.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct call {
	const struct profile *profile;
	struct handles *handles;
	struct memory *memory;
	uint64_t argument;
};

/* The kernel's table grows when few entries are free, and hands them out in the order in which they became free. */
enum { HANDLES_STEP = 1024, HANDLES_SPARE = 128, HANDLES_LIMIT = 1 << 20 };

static uint32_t handle_value(const struct handles *handles, uint32_t index)
{
	return (uint32_t)handles->entries[index].unique << 30 | index << 6;
}

static void handle_enqueue(struct handles *handles, uint32_t index)
{
	if (handles->free_count++ > 0)
		handles->entries[handles->last].next = index;
	else
		handles->first = index;
	handles->last = index;
}

static bool handles_grow(struct handles *handles)
{
	struct handle_entry *entries = NULL;

	if (handles->size < HANDLES_LIMIT)
		entries = realloc(handles->entries, (handles->size + HANDLES_STEP) * sizeof(*entries));
	if (!entries)
		return false;
	handles->entries = entries;
	for (uint32_t i = 0; i < HANDLES_STEP; i++) {
		handles->entries[handles->size] = (struct handle_entry){.unique = 1};
		handle_enqueue(handles, handles->size++);
	}
	return true;
}

void handles_clear(struct handles *handles)
{
	free(handles->entries);
	*handles = (struct handles){0};
}

static int handle_open(struct handles *handles, size_t adapter, uint32_t *ret)
{
	uint32_t index;

	if (handles->free_count <= HANDLES_SPARE && !handles_grow(handles))
		return -ENOMEM;
	index = handles->first;
	handles->first = handles->entries[index].next;
	handles->free_count--;
	handles->entries[index].adapter = (uint8_t)(adapter + 1);
	*ret = handle_value(handles, index);
	return 0;
}

/* The instance, bits 0 to 5, is not looked at. */
static bool handle_find(const struct handles *handles, uint32_t handle, uint32_t *ret_index)
{
	uint32_t index = handle >> 6 & 0xFFFFFF;

	if (index >= handles->size || !handles->entries[index].adapter ||
	    handles->entries[index].unique != handle >> 30)
		return false;
	*ret_index = index;
	return true;
}

static bool handle_close(struct handles *handles, uint32_t handle)
{
	uint32_t index;

	if (!handle_find(handles, handle, &index))
		return false;
	handles->entries[index].adapter = 0;
	handles->entries[index].unique = 2; /* from the second time on, for good */
	handle_enqueue(handles, index);
	return true;
}

static void handles_close(struct handles *handles, const D3DKMT_ADAPTERINFO *infos, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		(void)handle_close(handles, infos[i].hAdapter);
}

/* Opens a handle for every adapter, or for every one but the compute-only ones. */
static int list_adapters(const struct call *call, bool compute_only, D3DKMT_ADAPTERINFO *ret, uint32_t *ret_count)
{
	uint32_t count = 0;

	for (size_t i = 0; i < call->profile->adapter_count; i++) {
		const struct profile_adapter *adapter = &call->profile->adapters[i];

		if ((adapter->type & TYPE_COMPUTE_ONLY) && !compute_only)
			continue;
		ret[count] = (D3DKMT_ADAPTERINFO){.AdapterLuid = adapter->luid};
		if (handle_open(call->handles, i, &ret[count].hAdapter) < 0) {
			handles_close(call->handles, ret, count);
			return -ENOMEM;
		}
		count++;
	}
	*ret_count = count;
	return 0;
}

static int enum_adapters2(const struct call *call)
{
	D3DKMT_ADAPTERINFO infos[PROFILE_ADAPTERS_MAX];
	uint32_t total = (uint32_t)call->profile->adapter_count;
	D3DKMT_ENUMADAPTERS2 args;
	int result;

	if (!memory_read(call->memory, call->argument, &args, sizeof(args)))
		return -EFAULT;
	if (args.pAdapters == 0) {
		args.NumAdapters = total; /* compute-only ones, too, which the list will not have */
		return memory_write(call->memory, call->argument, &args, sizeof(args)) ? 0 : -EFAULT;
	}
	if (args.NumAdapters < total)
		return -EOVERFLOW;
	if (args.NumAdapters > ADAPTERS_MAX)
		return -EINVAL;

	result = list_adapters(call, false, infos, &args.NumAdapters);
	if (result < 0)
		return result;
	if (memory_write(call->memory, call->argument, &args, sizeof(args)) &&
	    memory_write(call->memory, args.pAdapters, infos, args.NumAdapters * sizeof(infos[0])))
		return 0;
	handles_close(call->handles, infos, args.NumAdapters);
	return -EFAULT;
}

static int enum_adapters3(const struct call *call)
{
	uint64_t count_at = call->argument + offsetof(D3DKMT_ENUMADAPTERS3, NumAdapters);
	D3DKMT_ADAPTERINFO infos[PROFILE_ADAPTERS_MAX];
	uint32_t total = (uint32_t)call->profile->adapter_count, count;
	D3DKMT_ENUMADAPTERS3 args;
	int result;

	if (!memory_read(call->memory, call->argument, &args, sizeof(args)))
		return -EFAULT;
	if (args.pAdapters == 0 || args.NumAdapters == 0)
		return memory_write(call->memory, count_at, &total, sizeof(total)) ? 0 : -EFAULT;
	if (args.NumAdapters > 0xFFFF)
		return -EINVAL;

	result = list_adapters(call, args.Filter & FILTER_INCLUDE_COMPUTE_ONLY, infos, &count);
	if (result < 0)
		return result;
	if (count > args.NumAdapters) {
		/*
		 * Success, with the number that there are and nothing in the array: dxgkp_enum_adapters() of the
		 * kernel.
		 */
		handles_close(call->handles, infos, count);
		return memory_write(call->memory, count_at, &total, sizeof(total)) ? 0 : -EFAULT;
	}
	if (memory_write(call->memory, count_at, &count, sizeof(count)) &&
	    memory_write(call->memory, args.pAdapters, infos, count * sizeof(infos[0])))
		return 0;
	handles_close(call->handles, infos, count);
	return -EFAULT;
}

static const struct profile_adapter *find_adapter(const struct call *call, const LUID *luid)
{
	for (size_t i = 0; i < call->profile->adapter_count; i++)
		if (memcmp(&call->profile->adapters[i].luid, luid, sizeof(*luid)) == 0)
			return &call->profile->adapters[i];
	return NULL;
}

static int open_from_luid(const struct call *call)
{
	const struct profile_adapter *adapter;
	D3DKMT_OPENADAPTERFROMLUID args;
	int result;

	if (!memory_read(call->memory, call->argument, &args, sizeof(args)))
		return -EFAULT;
	adapter = find_adapter(call, &args.AdapterLuid);
	/* The kernel looks at the handle alone, which is still the caller's if no adapter was found. */
	if (!adapter)
		return args.hAdapter ? 0 : -EINVAL;
	result = handle_open(call->handles, (size_t)(adapter - call->profile->adapters), &args.hAdapter);
	if (result < 0)
		return result;
	return memory_write(call->memory, call->argument, &args, sizeof(args)) ? 0 : -EFAULT;
}

static int close_adapter(const struct call *call)
{
	D3DKMT_CLOSEADAPTER args;

	if (!memory_read(call->memory, call->argument, &args, sizeof(args)))
		return -EFAULT;
	return args.hAdapter == 0 || handle_close(call->handles, args.hAdapter) ? 0 : -EINVAL;
}

/*
 * What programs call once they have chosen an adapter: to make a device, to ask the driver in its own words, to count
 * memory and processes. What a driver answers is not known: its bytes come back as they were.
 */
static int create_device(const struct call *call)
{
	D3DKMT_CREATEDEVICE args;
	uint32_t index;

	if (!memory_read(call->memory, call->argument, &args, sizeof(args)))
		return -EFAULT;
	if (!handle_find(call->handles, args.hAdapter, &index))
		return -EINVAL;
	/* The host numbers devices, in a table of their own. */
	args.hDevice = 0x40000000u | ++call->handles->devices << 6;
	return memory_write(call->memory, call->argument, &args, sizeof(args)) ? 0 : -EFAULT;
}

static int destroy_device(const struct call *call)
{
	uint32_t handle, index;

	if (!memory_read(call->memory, call->argument, &handle, sizeof(handle)))
		return -EFAULT;
	index = handle >> 6 & 0xFFFFFF;
	return handle >> 30 == 1 && index > 0 && index <= call->handles->devices ? 0 : -EINVAL;
}

static int escape(const struct call *call)
{
	D3DKMT_ESCAPE args;
	uint32_t index;

	if (!memory_read(call->memory, call->argument, &args, sizeof(args)))
		return -EFAULT;
	return handle_find(call->handles, args.hAdapter, &index) && args.PrivateDriverDataSize <= MESSAGE_DATA_MAX
		       ? 0
		       : -EINVAL;
}

static int query_statistics(const struct call *call)
{
	D3DKMT_QUERYSTATISTICS args;

	if (!memory_read(call->memory, call->argument, &args, sizeof(args)))
		return -EFAULT;
	if (!find_adapter(call, &args.AdapterLuid))
		return -EINVAL;
	memset(args.Result, 0, sizeof(args.Result));
	return memory_write(call->memory, call->argument, &args, sizeof(args)) ? 0 : -EFAULT;
}

/* Of all processes that use an adapter, the caller is one. */
static int enum_processes(const struct call *call)
{
	uint32_t pid = (uint32_t)call->memory->pid;
	D3DKMT_ENUMPROCESSES args;

	if (!memory_read(call->memory, call->argument, &args, sizeof(args)))
		return -EFAULT;
	if (!find_adapter(call, &args.AdapterLuid))
		return -EINVAL;
	if (args.Buffer && args.BufferCount > 0 && !memory_write(call->memory, args.Buffer, &pid, sizeof(pid)))
		return -EFAULT;
	args.BufferCount = 1;
	return memory_write(call->memory, call->argument, &args, sizeof(args)) ? 0 : -EFAULT;
}

static int is_feature_enabled(const struct call *call)
{
	D3DKMT_ISFEATUREENABLED args;
	uint32_t index;

	if (!memory_read(call->memory, call->argument, &args, sizeof(args)))
		return -EFAULT;
	if (!handle_find(call->handles, args.hAdapter, &index))
		return -EINVAL;
	args.Version = args.Value = 0; /* a feature that is not known */
	return memory_write(call->memory, call->argument, &args, sizeof(args)) ? 0 : -EFAULT;
}

/* UTF-8 into UTF-16 with a NUL; what does not fit is cut off. Return: code units, with the NUL. */
static uint32_t utf16(uint16_t *ret, size_t capacity, const char *text)
{
	const unsigned char *at = (const unsigned char *)text;
	uint32_t length = 0;

	while (*at && length + 2 < capacity) {
		unsigned more = *at >= 0xF0 ? 3 : *at >= 0xE0 ? 2 : *at >= 0xC0 ? 1 : 0;
		uint32_t code = more ? *at & (0x3Fu >> more) : *at;

		for (at++; more && (*at & 0xC0) == 0x80; at++, more--)
			code = code << 6 | (*at & 0x3F);
		if (code >= 0x10000) {
			ret[length++] = (uint16_t)(0xD800 + ((code - 0x10000) >> 10));
			code = 0xDC00 + ((code - 0x10000) & 0x3FF);
		}
		ret[length++] = (uint16_t)code;
	}
	ret[length++] = 0;
	return length;
}

/* What Windows calls the drivers of the sets of files, and the library that D3D12 loads; first that of any other set. */
static const struct driver {
	const char *files, *service, *library;
} drivers[] = {
	{"microsoft", "BasicRender", NULL},
	{"nvidia", "nvlddmkm", "libnvwgf2umx.so"},
	{"intel", "igfxn", "libigd12umd64.so"},
	{"amd", "amdkmdag", "B025777\\amdxc64.so"},
	{"npu", "kipudrv", NULL},
};

/* Each answers one query into @data, which holds what the caller passed. Return: 0 or negative errno. */
typedef int answer(const struct profile_adapter *adapter, void *data, uint32_t size);

static int answer_version(const struct profile_adapter *adapter, void *data, uint32_t size)
{
	(void)size;
	memcpy(data, &adapter->wddm, sizeof(adapter->wddm));
	return 0;
}

static int answer_type(const struct profile_adapter *adapter, void *data, uint32_t size)
{
	/* What the guest's kernel does to the host's answer, in dxgvmb_send_query_adapter_info(). */
	uint32_t hidden = TYPE_DISPLAY | TYPE_POST | TYPE_INDIRECT_DISPLAY | TYPE_ACG | TYPE_SET_TIMINGS;
	uint32_t type = (adapter->type & ~hidden) | TYPE_PARAVIRTUALIZED;

	(void)size;
	memcpy(data, &type, sizeof(type));
	return 0;
}

static int answer_address(const struct profile_adapter *adapter, void *data, uint32_t size)
{
	if (!adapter->has_address)
		return -EINVAL;
	memcpy(data, &adapter->address, size);
	return 0;
}

static int answer_ids(const struct profile_adapter *adapter, void *data, uint32_t size)
{
	QUERY_DEVICE_IDS ids;

	memcpy(&ids, data, size);
	if (ids.PhysicalAdapterIndex != 0)
		return -EINVAL;
	ids = (QUERY_DEVICE_IDS){.VendorID = adapter->vendor, .DeviceID = adapter->device, .BusType = 3};
	memcpy(data, &ids, size);
	return 0;
}

static int answer_one(const struct profile_adapter *adapter, void *data, uint32_t size)
{
	uint32_t one = 1;

	(void)adapter;
	memcpy(data, &one, size);
	return 0;
}

static int answer_zero(const struct profile_adapter *adapter, void *data, uint32_t size)
{
	(void)adapter;
	memset(data, 0, size);
	return 0;
}

static int answer_name(const struct profile_adapter *adapter, void *data, uint32_t size)
{
	memset(data, 0, size);
	(void)utf16(data, size / 2, adapter->name);
	return 0;
}

static int answer_registry_info(const struct profile_adapter *adapter, void *data, uint32_t size)
{
	memset(data, 0, size);
	(void)utf16(data, 260, adapter->name);
	(void)utf16((uint16_t *)data + 3 * 260, 260, adapter->name);
	return 0;
}

static int answer_guid(const struct profile_adapter *adapter, void *data, uint32_t size)
{
	char guid[64];

	memset(data, 0, size);
	(void)snprintf(guid, sizeof(guid), "{%08X-%04X-%04X-0000-%012X}", adapter->luid.LowPart,
		       adapter->vendor & 0xffffu, adapter->device & 0xffffu, (uint32_t)adapter->luid.HighPart);
	(void)utf16(data, size / 2, guid);
	return 0;
}

static const struct driver *find_driver(const struct profile_adapter *adapter)
{
	for (size_t i = 0; i < sizeof(drivers) / sizeof(drivers[0]); i++)
		if (adapter->files && strcmp(adapter->files, drivers[i].files) == 0)
			return &drivers[i];
	return &drivers[0];
}

/* What a driver tells its own libraries, in a layout that only they know: as with an escape, the bytes come back. */
static int answer_private(const struct profile_adapter *adapter, void *data, uint32_t size)
{
	(void)adapter;
	(void)data;
	(void)size;
	return 0;
}

static int answer_umd_name(const struct profile_adapter *adapter, void *data, uint32_t size)
{
	const char *library = find_driver(adapter)->library;
	char windows[512];
	uint32_t version;

	memcpy(&version, data, sizeof(version));
	if (version > 3 || !library || !adapter->store)
		return -EINVAL;
	memset((char *)data + sizeof(version), 0, size - sizeof(version));
	(void)snprintf(windows, sizeof(windows), "%s%s\\%s", adapter->store_prefix, adapter->store, library);
	(void)utf16((uint16_t *)data + 2, 260, windows);
	return 0;
}

static int answer_service(const struct profile_adapter *adapter, void *data, uint32_t size)
{
	memset(data, 0, size);
	(void)utf16(data, size / 2, find_driver(adapter)->service);
	return 0;
}

/* 32.0.30.1234: four numbers of 16 bits, as Windows shows versions of drivers. */
static int answer_driver_version(const struct profile_adapter *adapter, void *data, uint32_t size)
{
	uint64_t version = (uint64_t)32 << 48 | (uint64_t)(adapter->wddm / 100) << 16 | 1234;

	memcpy(data, &version, size);
	return 0;
}

/* A driver does not know the caps of a later WDDM. Hardware scheduling: supported and enabled. */
static int answer_caps(const struct profile_adapter *adapter, void *data, uint32_t size, uint32_t wddm)
{
	uint32_t caps = 3;

	if (adapter->wddm < wddm)
		return -EINVAL;
	memcpy(data, &caps, size);
	return 0;
}

static int answer_caps_2_7(const struct profile_adapter *adapter, void *data, uint32_t size)
{
	return answer_caps(adapter, data, size, 2700);
}

static int answer_caps_2_9(const struct profile_adapter *adapter, void *data, uint32_t size)
{
	return answer_caps(adapter, data, size, 2900);
}

/* The values of two registry keys go by name; two paths of the driver have none. NULL if there is no such value. */
static const char *registry_value(const struct profile_adapter *adapter, const QUERYREGISTRY_KERNEL *info, char *ret,
				  size_t size)
{
	uint16_t known[sizeof("DriverDesc")];

	(void)utf16(known, sizeof(known) / sizeof(known[0]) + 1, "DriverDesc");
	if (info->QueryType == REGISTRY_ADAPTERKEY && memcmp(info->ValueName, known, sizeof(known)) == 0)
		return adapter->name;
	if (info->QueryType < REGISTRY_DRIVERSTOREPATH || !adapter->store)
		return NULL;
	(void)snprintf(ret, size, info->QueryType == REGISTRY_DRIVERIMAGEPATH ? "%s%s\\%s.sys" : "%s%s",
		       adapter->store_prefix, adapter->store, find_driver(adapter)->service);
	return ret;
}

/* A buffer that is too small is no error: the call succeeds, Status says so, and OutputValueSize what is needed. */
static int answer_registry(const struct profile_adapter *adapter, void *data, uint32_t size)
{
	QUERYREGISTRY_KERNEL *info = data;
	uint32_t room = size - (uint32_t)offsetof(QUERYREGISTRY_KERNEL, OutputString), units;
	const char *value;
	uint16_t wide[512];
	char path[512];

	if (info->QueryType > REGISTRY_DRIVERIMAGEPATH ||
	    (info->QueryType >= REGISTRY_DRIVERSTOREPATH && info->QueryFlags != 0))
		return -EINVAL;
	value = registry_value(adapter, info, path, sizeof(path));
	if (!value) {
		info->Status = REGISTRY_FAIL;
		info->OutputValueSize = 0;
		return 0;
	}
	units = utf16(wide, sizeof(wide) / sizeof(wide[0]), value);
	info->ValueType = 1; /* REG_SZ */
	info->OutputValueSize = units * 2;
	info->Status = units * 2 > room ? REGISTRY_OVERFLOW : REGISTRY_SUCCESS;
	if (info->Status == REGISTRY_SUCCESS)
		memcpy(info->OutputString, wide, units * 2);
	return 0;
}

static const struct {
	uint32_t type, size; /* exact; the least of registry queries and of what is private */
	answer *answer;
} answers[] = {
	{QUERY_UMDRIVERPRIVATE, 1, answer_private},
	{QUERY_UMDRIVERNAME, 524, answer_umd_name},
	{QUERY_GETSEGMENTSIZE, 24, answer_zero},
	{QUERY_ADAPTERADDRESS, 12, answer_address},
	{QUERY_ADAPTERADDRESS_RENDER, 12, answer_address},
	{QUERY_ADAPTERREGISTRYINFO, 2080, answer_registry_info},
	{QUERY_ADAPTERREGISTRYINFO_RENDER, 2080, answer_registry_info},
	{QUERY_DRIVERVERSION, 4, answer_version},
	{QUERY_DRIVERVERSION_RENDER, 4, answer_version},
	{QUERY_ADAPTERTYPE, 4, answer_type},
	{QUERY_ADAPTERTYPE_RENDER, 4, answer_type},
	{QUERY_PHYSICALADAPTERCOUNT, 4, answer_one},
	{QUERY_PHYSICALADAPTERDEVICEIDS, 28, answer_ids},
	{QUERY_QUERYREGISTRY, 552, answer_registry},
	{QUERY_ADAPTER_UNIQUE_GUID, 80, answer_guid},
	{QUERY_DRIVER_DESCRIPTION, 8192, answer_name},
	{QUERY_DRIVER_DESCRIPTION_RENDER, 8192, answer_name},
	{QUERY_PARAVIRTUALIZATION_RENDER, 1, answer_zero},
	{QUERY_UMD_DRIVER_VERSION, 8, answer_driver_version},
	{QUERY_KMD_DRIVER_VERSION, 8, answer_driver_version},
	{QUERY_SERVICENAME, 520, answer_service},
	{QUERY_WDDM_2_7_CAPS, 4, answer_caps_2_7},
	{QUERY_WDDM_2_9_CAPS, 4, answer_caps_2_9},
};

static answer *find_answer(uint32_t type, uint32_t size)
{
	bool any = type == QUERY_QUERYREGISTRY || type == QUERY_UMDRIVERPRIVATE;

	for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++)
		if (answers[i].type == type && (size == answers[i].size || (any && size > answers[i].size)))
			return answers[i].answer;
	return NULL;
}

static int query_adapter_info(const struct call *call)
{
	static _Alignas(16) char data[MESSAGE_DATA_MAX];
	D3DKMT_QUERYADAPTERINFO args;
	answer *give_answer;
	uint32_t index;
	int result;

	if (!memory_read(call->memory, call->argument, &args, sizeof(args)))
		return -EFAULT;
	if (args.PrivateDriverDataSize == 0 || args.PrivateDriverDataSize > MESSAGE_DATA_MAX)
		return -EINVAL;
	if (!handle_find(call->handles, args.hAdapter, &index))
		return -EINVAL;
	if (!memory_read(call->memory, args.pPrivateDriverData, data, args.PrivateDriverDataSize))
		return -EFAULT;
	give_answer = find_answer(args.Type, args.PrivateDriverDataSize);
	result = give_answer ? give_answer(&call->profile->adapters[call->handles->entries[index].adapter - 1], data,
					   args.PrivateDriverDataSize)
			     : -EINVAL;
	/* Interface 27: the kernel passes on what the host left in the buffer, and takes it for an answer. */
	if (result < 0)
		return call->profile->old_interface ? 0 : result;
	return memory_write(call->memory, args.pPrivateDriverData, data, args.PrivateDriverDataSize) ? 0 : -EFAULT;
}

int device_ioctl(const struct profile *profile, struct handles *handles, struct memory *memory, uint32_t code,
		 uint64_t argument)
{
	const struct call call = {profile, handles, memory, argument};

	switch (code) {
	case LX_DXENUMADAPTERS2:
		return enum_adapters2(&call);
	case LX_DXENUMADAPTERS3:
		return enum_adapters3(&call);
	case LX_DXOPENADAPTERFROMLUID:
		return open_from_luid(&call);
	case LX_DXCLOSEADAPTER:
		return close_adapter(&call);
	case LX_DXQUERYADAPTERINFO:
		return query_adapter_info(&call);
	case LX_DXCREATEDEVICE:
		return create_device(&call);
	case LX_DXDESTROYDEVICE:
		return destroy_device(&call);
	case LX_DXESCAPE:
		return escape(&call);
	case LX_DXQUERYSTATISTICS:
		return query_statistics(&call);
	case LX_DXENUMPROCESSES:
		return enum_processes(&call);
	case LX_ISFEATUREENABLED:
		return is_feature_enabled(&call);
	default:
		return -ENOTTY;
	}
}

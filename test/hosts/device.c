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

static uint32_t handle_value(const struct handles *handles, uint32_t index)
{
	return (uint32_t)handles->entries[index].unique << 30 | index << 6;
}

static int handle_open(struct handles *handles, size_t adapter, uint32_t *ret)
{
	for (uint32_t tried = 0; tried < HANDLES_MAX; tried++) {
		uint32_t index = handles->next++ % HANDLES_MAX;

		if (handles->entries[index].adapter)
			continue;
		handles->entries[index].adapter = (uint8_t)(adapter + 1);
		handles->entries[index].unique = (uint8_t)(handles->entries[index].unique % 3 + 1);
		*ret = handle_value(handles, index);
		return 0;
	}
	return -ENOMEM;
}

static bool handle_find(const struct handles *handles, uint32_t handle, uint32_t *ret_index)
{
	uint32_t index = handle >> 6 & 0xFFFFFF;

	if (index >= HANDLES_MAX || !handles->entries[index].adapter || handle_value(handles, index) != handle)
		return false;
	*ret_index = index;
	return true;
}

static void handles_close(struct handles *handles, const D3DKMT_ADAPTERINFO *infos, uint32_t count)
{
	uint32_t index;

	for (uint32_t i = 0; i < count; i++)
		if (handle_find(handles, infos[i].hAdapter, &index))
			handles->entries[index].adapter = 0;
}

/* Opens a handle for every adapter, or for every one but the compute-only ones. */
static int list_adapters(const struct call *call, bool compute_only, D3DKMT_ADAPTERINFO *ret, uint32_t *ret_count)
{
	uint32_t count = 0;

	for (size_t i = 0; i < call->profile->adapter_count; i++) {
		const struct profile_adapter *adapter = &call->profile->adapters[i];

		if ((adapter->type & TYPE_COMPUTE_ONLY) && !compute_only)
			continue;
		ret[count] = (D3DKMT_ADAPTERINFO){ .AdapterLuid = adapter->luid };
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
	D3DKMT_ADAPTERINFO infos[ADAPTERS_MAX];
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
	D3DKMT_ADAPTERINFO infos[ADAPTERS_MAX];
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
		/* Success, with the number that there are and nothing in the array: dxgkp_enum_adapters() of the kernel. */
		handles_close(call->handles, infos, count);
		return memory_write(call->memory, count_at, &total, sizeof(total)) ? 0 : -EFAULT;
	}
	if (memory_write(call->memory, count_at, &count, sizeof(count)) &&
	    memory_write(call->memory, args.pAdapters, infos, count * sizeof(infos[0])))
		return 0;
	handles_close(call->handles, infos, count);
	return -EFAULT;
}

static int open_from_luid(const struct call *call)
{
	D3DKMT_OPENADAPTERFROMLUID args;
	int result;

	if (!memory_read(call->memory, call->argument, &args, sizeof(args)))
		return -EFAULT;
	for (size_t i = 0; i < call->profile->adapter_count; i++) {
		const LUID *luid = &call->profile->adapters[i].luid;

		if (luid->LowPart != args.AdapterLuid.LowPart || luid->HighPart != args.AdapterLuid.HighPart)
			continue;
		result = handle_open(call->handles, i, &args.hAdapter);
		if (result < 0)
			return result;
		return memory_write(call->memory, call->argument, &args, sizeof(args)) ? 0 : -EFAULT;
	}
	return -EINVAL;
}

static int close_adapter(const struct call *call)
{
	D3DKMT_CLOSEADAPTER args;
	uint32_t index;

	if (!memory_read(call->memory, call->argument, &args, sizeof(args)))
		return -EFAULT;
	if (!handle_find(call->handles, args.hAdapter, &index))
		return -EINVAL;
	call->handles->entries[index].adapter = 0;
	return 0;
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
	ids = (QUERY_DEVICE_IDS){ .VendorID = adapter->vendor, .DeviceID = adapter->device, .BusType = 3 };
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
	(void)snprintf(guid, sizeof(guid), "{%08X-%04X-%04X-0000-%012X}", adapter->luid.LowPart, adapter->vendor & 0xffffu,
		       adapter->device & 0xffffu, (uint32_t)adapter->luid.HighPart);
	(void)utf16(data, size / 2, guid);
	return 0;
}

/* A buffer that is too small is no error: the call succeeds, Status says so, and OutputValueSize what is needed. */
static int answer_registry(const struct profile_adapter *adapter, void *data, uint32_t size)
{
	QUERYREGISTRY_KERNEL *info = data;
	uint32_t room = size - (uint32_t)offsetof(QUERYREGISTRY_KERNEL, OutputString), units;
	uint16_t path[512];
	char windows[512];

	if (info->QueryType != REGISTRY_DRIVERSTOREPATH || info->QueryFlags != 0)
		return -EINVAL;
	if (!adapter->store) {
		info->Status = REGISTRY_FAIL;
		info->OutputValueSize = 0;
		return 0;
	}
	(void)snprintf(windows, sizeof(windows), "%s%s", adapter->store_prefix, adapter->store);
	units = utf16(path, sizeof(path) / sizeof(path[0]), windows);
	info->ValueType = 1; /* REG_SZ */
	info->OutputValueSize = units * 2;
	info->Status = units * 2 > room ? REGISTRY_OVERFLOW : REGISTRY_SUCCESS;
	if (info->Status == REGISTRY_SUCCESS)
		memcpy(info->OutputString, path, units * 2);
	return 0;
}

static const struct {
	uint32_t type, size; /* exact; of registry queries the least */
	answer *answer;
} answers[] = {
	{ QUERY_GETSEGMENTSIZE, 24, answer_zero },
	{ QUERY_ADAPTERADDRESS, 12, answer_address },
	{ QUERY_ADAPTERADDRESS_RENDER, 12, answer_address },
	{ QUERY_ADAPTERREGISTRYINFO, 2080, answer_registry_info },
	{ QUERY_ADAPTERREGISTRYINFO_RENDER, 2080, answer_registry_info },
	{ QUERY_DRIVERVERSION, 4, answer_version },
	{ QUERY_DRIVERVERSION_RENDER, 4, answer_version },
	{ QUERY_ADAPTERTYPE, 4, answer_type },
	{ QUERY_ADAPTERTYPE_RENDER, 4, answer_type },
	{ QUERY_PHYSICALADAPTERCOUNT, 4, answer_one },
	{ QUERY_PHYSICALADAPTERDEVICEIDS, 28, answer_ids },
	{ QUERY_QUERYREGISTRY, 552, answer_registry },
	{ QUERY_ADAPTER_UNIQUE_GUID, 80, answer_guid },
	{ QUERY_DRIVER_DESCRIPTION, 8192, answer_name },
	{ QUERY_DRIVER_DESCRIPTION_RENDER, 8192, answer_name },
	{ QUERY_PARAVIRTUALIZATION_RENDER, 4, answer_zero },
};

static answer *find_answer(uint32_t type, uint32_t size)
{
	for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++)
		if (answers[i].type == type && (size == answers[i].size || (type == QUERY_QUERYREGISTRY && size > answers[i].size)))
			return answers[i].answer;
	return NULL;
}

static int query_adapter_info(const struct call *call)
{
	static _Alignas(16) char data[PRIVATE_DATA_MAX];
	D3DKMT_QUERYADAPTERINFO args;
	answer *give_answer;
	uint32_t index;
	int result;

	if (!memory_read(call->memory, call->argument, &args, sizeof(args)))
		return -EFAULT;
	if (args.PrivateDriverDataSize == 0 || args.PrivateDriverDataSize > PRIVATE_DATA_MAX)
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
	const struct call call = { profile, handles, memory, argument };

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
	default:
		return -ENOTTY;
	}
}

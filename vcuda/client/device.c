/* SPDX-License-Identifier: Apache-2.0 */

/* What is asked about devices was fetched when the process connected. */

#include <string.h>

#include "vcuda/client/call.h"
#include "vcuda/client/client.h"
#include "vcuda/client/device_name.h"
#include "vcuda/client_api.h"

static CUresult device_of(CUdevice device, const void *place, const struct wire_device **ret)
{
	struct thread *thread;
	CUresult r = call_enter(&thread);

	if (r)
		return r;
	*ret = client_device(device);
	if (!*ret)
		return CUDA_ERROR_INVALID_DEVICE;
	return place ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult on_cuDeviceGetCount(int *count)
{
	*count = client.host.device_count;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
	const struct wire_device *known;
	CUresult r = device_of(ordinal, device, &known);

	if (!r)
		*device = ordinal;
	return r;
}

/* As the driver does it: what does not fit is cut off, and there is a NUL in any case. */
static CUresult device_copy_text(char *to, int length, const char *from)
{
	const size_t bytes = strlen(from) + 1;

	if (length <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(to, from, (size_t)length < bytes ? (size_t)length : bytes);
	if ((size_t)length < bytes)
		to[length - 1] = '\0';
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char *name, int length, CUdevice device)
{
	const struct wire_device *known;
	CUresult r = device_of(device, name, &known);

	return r ? r : device_copy_text(name, length, known->name);
}

CUresult cuDeviceGetPCIBusId(char *bus, int length, CUdevice device)
{
	const struct wire_device *known;
	CUresult r = device_of(device, bus, &known);

	return r ? r : device_copy_text(bus, length, known->bus);
}

CUresult cuDeviceGetByPCIBusId(CUdevice *device, const char *bus)
{
	struct pci_bus_id wanted, own;
	struct thread *thread;
	CUresult r = call_enter(&thread);

	if (r)
		return r;
	if (!device || !bus || !device_name_read_bus(bus, &wanted))
		return CUDA_ERROR_INVALID_VALUE;
	for (int i = 0; i < client.host.device_count; i++)
		if (device_name_read_bus(client.device[i].bus, &own) && memcmp(&own, &wanted, sizeof(own)) == 0) {
			*device = i;
			return CUDA_SUCCESS;
		}
	return CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice device)
{
	const struct wire_device *known;
	CUresult r = device_of(device, uuid, &known);

	if (!r)
		memcpy(uuid->bytes, known->uuid, sizeof(uuid->bytes));
	return r;
}

CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device)
{
	return cuDeviceGetUuid(uuid, device);
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
	const struct wire_device *known;
	CUresult r = device_of(device, bytes, &known);

	if (!r)
		*bytes = known->total;
	return r;
}

int device_attribute(CUdevice device, CUdevice_attribute attribute)
{
	return client.device[device].attribute[attribute];
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
	const struct wire_device *known;
	CUresult r = device_of(device, value, &known);

	if (r)
		return r;
	if (attribute <= 0 || attribute >= WIRE_ATTRIBUTES || !known->known[attribute])
		return CUDA_ERROR_INVALID_VALUE;
	*value = known->attribute[attribute];
	return CUDA_SUCCESS;
}

CUresult cuDeviceComputeCapability(int *major, int *minor, CUdevice device)
{
	const struct wire_device *known;
	CUresult r = device_of(device, major && minor ? major : NULL, &known);

	if (r)
		return r;
	*major = known->attribute[DEVICE_CAPABILITY_MAJOR];
	*minor = known->attribute[DEVICE_CAPABILITY_MINOR];
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetProperties(CUdevprop *properties, CUdevice device)
{
	const struct wire_device *known;
	CUresult r = device_of(device, properties, &known);
	const int32_t *value;

	if (r)
		return r;
	/* Numbers as in CUdevice_attribute. */
	value = known->attribute;
	*properties = (CUdevprop){
		.maxThreadsPerBlock = value[1],
		.maxThreadsDim = {value[2], value[3], value[4]},
		.maxGridSize = {value[5], value[6], value[7]},
		.sharedMemPerBlock = value[8],
		.totalConstantMemory = value[9],
		.SIMDWidth = value[10],
		.memPitch = value[11],
		.regsPerBlock = value[12],
		.clockRate = value[13],
		.textureAlign = value[14],
	};
	return CUDA_SUCCESS;
}

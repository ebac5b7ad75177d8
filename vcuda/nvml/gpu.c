/* SPDX-License-Identifier: Apache-2.0 */

/* The container's GPUs, as the server described them when the session began. */

#include <string.h>

#include "vcuda/client/call.h"
#include "vcuda/client/client.h"
#include "vcuda/client/device_name.h"
#include "vcuda/nvml/nvml_session.h"
#include "vcuda/nvml_api.h"
#include "vcuda/ops.h"

/* nvmlGpuP2PStatus_t */
enum { GPU_PEER_OK = 0, GPU_PEER_NOT_SUPPORTED = 5 };

/* Numbers as in CUdevice_attribute. */
enum {
	GPU_CLOCK = 13, /* kHz */
	GPU_COMPUTE_MODE = 20,
	GPU_ECC = 32,
	GPU_BUS = 33,
	GPU_DEVICE = 34,
	GPU_MEMORY_CLOCK = 36,
	GPU_MEMORY_WIDTH = 37,
	GPU_DOMAIN = 50,
	GPU_MAJOR = 75,
	GPU_MINOR = 76,
};

static void gpu_write_hex(char *to, unsigned value, int digits)
{
	for (int i = digits; i > 0; i--, value >>= 4)
		to[i - 1] = "0123456789ABCDEF"[value & 15];
}

/* "0000:01:00.0", whose domain has 4 digits or 8. */
static void gpu_write_bus(char *to, const nvmlPciInfo_t *pci, int domain)
{
	gpu_write_hex(to, pci->domain, domain);
	to += domain;
	memcpy(to, ":00:00.0", sizeof(":00:00.0"));
	gpu_write_hex(to + 1, pci->bus, 2);
	gpu_write_hex(to + 4, pci->device, 2);
}

static void gpu_fill_pci(CUdevice device, nvmlPciInfo_t *ret)
{
	const int32_t *attribute = client.device[device].attribute;

	*ret = (nvmlPciInfo_t){
		.domain = (unsigned)attribute[GPU_DOMAIN],
		.bus = (unsigned)attribute[GPU_BUS] & 0xff,
		.device = (unsigned)attribute[GPU_DEVICE] & 0x1f,
	};
	gpu_write_bus(ret->busIdLegacy, ret, 4);
	gpu_write_bus(ret->busId, ret, 8);
}

/* "GPU-5a3f1c2b-0001-0000-0000-0000a5c0e3d4" */
static void gpu_write_uuid(CUdevice device, char uuid[NVML_UUID_TEXT])
{
	const uint8_t *bytes = client.device[device].uuid;
	char *at = uuid;

	memcpy(at, "GPU-", 4);
	at += 4;
	for (int i = 0; i < 16; i++) {
		if (i == 4 || i == 6 || i == 8 || i == 10)
			*at++ = '-';
		*at++ = "0123456789abcdef"[bytes[i] >> 4];
		*at++ = "0123456789abcdef"[bytes[i] & 15];
	}
	*at = '\0';
}

nvmlReturn_t nvmlDeviceGetCount_v2(unsigned *count)
{
	nvmlReturn_t r;

	LOCK_HOLD(nvml_session_lock());
	r = nvml_session_enter_for(count);
	if (!r)
		*count = (unsigned)client.host.device_count;
	return r;
}

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t *device)
{
	nvmlReturn_t r;

	LOCK_HOLD(nvml_session_lock());
	r = nvml_session_enter_for(device);
	if (!r && index >= (unsigned)client.host.device_count)
		r = NVML_ERROR_INVALID_ARGUMENT;
	if (!r)
		*device = nvml_session_handle((CUdevice)index);
	return r;
}

nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device)
{
	char own[NVML_UUID_TEXT];
	nvmlReturn_t r;

	LOCK_HOLD(nvml_session_lock());
	r = nvml_session_enter();
	if (!r && (!uuid || !device))
		r = NVML_ERROR_INVALID_ARGUMENT;
	for (CUdevice i = 0; i < client.host.device_count && !r; i++) {
		gpu_write_uuid(i, own);
		if (strcmp(uuid, own) != 0)
			continue;
		*device = nvml_session_handle(i);
		return NVML_SUCCESS;
	}
	return r ? r : NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *bus, nvmlDevice_t *device)
{
	struct pci_bus_id wanted;
	nvmlPciInfo_t own;
	nvmlReturn_t r;

	LOCK_HOLD(nvml_session_lock());
	r = nvml_session_enter();
	if (!r && (!bus || !device || !device_name_read_bus(bus, &wanted)))
		r = NVML_ERROR_INVALID_ARGUMENT;
	for (CUdevice i = 0; i < client.host.device_count && !r; i++) {
		gpu_fill_pci(i, &own);
		if (own.domain != wanted.domain || own.bus != wanted.bus || own.device != wanted.device)
			continue;
		*device = nvml_session_handle(i);
		return NVML_SUCCESS;
	}
	return r ? r : NVML_ERROR_NOT_FOUND;
}

/* What a function of a device begins with: the lock, the device, a place for the answer. */
static nvmlReturn_t gpu_enter(nvmlDevice_t device, const void *place, CUdevice *ret)
{
	nvmlReturn_t r = nvml_session_enter_device(device, ret);

	return r || place ? r : NVML_ERROR_INVALID_ARGUMENT;
}

nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned *index)
{
	CUdevice gpu;
	nvmlReturn_t r;

	LOCK_HOLD(nvml_session_lock());
	r = gpu_enter(device, index, &gpu);
	if (!r)
		*index = (unsigned)gpu;
	return r;
}

nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned length)
{
	CUdevice gpu;
	nvmlReturn_t r;

	LOCK_HOLD(nvml_session_lock());
	r = gpu_enter(device, name, &gpu);
	return r ? r : nvml_session_copy_text(name, length, client.device[gpu].name);
}

nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned length)
{
	char text[NVML_UUID_TEXT];
	CUdevice gpu;
	nvmlReturn_t r;

	LOCK_HOLD(nvml_session_lock());
	r = gpu_enter(device, uuid, &gpu);
	if (r)
		return r;
	gpu_write_uuid(gpu, text);
	return nvml_session_copy_text(uuid, length, text);
}

/* Which device and subsystem it is, is 0 where the driver does not tell. */
nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *pci)
{
	CUdevice gpu;
	nvmlReturn_t r;

	LOCK_HOLD(nvml_session_lock());
	r = gpu_enter(device, pci, &gpu);
	if (r)
		return r;
	gpu_fill_pci(gpu, pci);
	(void)nvml_session_read_sensor(gpu, WIRE_SENSOR_PCI_DEVICE, &pci->pciDeviceId);
	(void)nvml_session_read_sensor(gpu, WIRE_SENSOR_PCI_SUBSYSTEM, &pci->pciSubSystemId);
	return NVML_SUCCESS;
}

/* Before its third version the struct ended with four words that were reserved, where it now has the second text. */
nvmlReturn_t nvmlDeviceGetPciInfo_v2(nvmlDevice_t device, nvmlPciInfo_t *pci)
{
	nvmlPciInfo_t now;
	nvmlReturn_t r = nvmlDeviceGetPciInfo_v3(device, &now);

	if (!r && !pci)
		r = NVML_ERROR_INVALID_ARGUMENT;
	if (!r)
		memcpy(pci, &now, offsetof(nvmlPciInfo_t, busId));
	return r;
}

nvmlReturn_t nvmlDeviceGetPciInfoExt(nvmlDevice_t device, nvmlPciInfoExt_t *pci)
{
	nvmlPciInfo_t now;
	nvmlReturn_t r = nvmlDeviceGetPciInfo_v3(device, &now);

	if (!r && !pci)
		r = NVML_ERROR_INVALID_ARGUMENT;
	if (!r && pci->version != NVML_VERSION(nvmlPciInfoExt_t, 1))
		r = NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	if (r)
		return r;
	*pci = (nvmlPciInfoExt_t){
		.version = pci->version,
		.domain = now.domain,
		.bus = now.bus,
		.device = now.device,
		.pciDeviceId = now.pciDeviceId,
		.pciSubSystemId = now.pciSubSystemId,
		.baseClass = 3,
	};
	memcpy(pci->busId, now.busId, sizeof(pci->busId));
	return NVML_SUCCESS;
}

/* A number that the driver told of, in its own unit. */
static nvmlReturn_t gpu_read_attribute(nvmlDevice_t device, int attribute, const void *place, int32_t *ret)
{
	CUdevice gpu;
	nvmlReturn_t r;

	LOCK_HOLD(nvml_session_lock());
	r = gpu_enter(device, place, &gpu);
	if (!r && !client.device[gpu].known[attribute])
		r = NVML_ERROR_NOT_SUPPORTED;
	if (!r)
		*ret = client.device[gpu].attribute[attribute];
	return r;
}

nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int *major, int *minor)
{
	nvmlReturn_t r = gpu_read_attribute(device, GPU_MAJOR, minor ? major : NULL, major);

	return r ? r : gpu_read_attribute(device, GPU_MINOR, minor, minor);
}

/* By the number that NVML gives each: Maxwell is 3, Blackwell 10. */
nvmlReturn_t nvmlDeviceGetArchitecture(nvmlDevice_t device, nvmlDeviceArchitecture_t *architecture)
{
	static const struct {
		int major, minor, architecture;
	} from[] = {{10, 0, 10}, {9, 0, 9}, {8, 9, 8}, {8, 0, 7}, {7, 5, 6},
		    {7, 0, 5},   {6, 0, 4}, {5, 0, 3}, {3, 0, 2}};
	int major = 0, minor = 0;
	nvmlReturn_t r = nvmlDeviceGetCudaComputeCapability(device, &major, &minor);

	if (!r && !architecture)
		r = NVML_ERROR_INVALID_ARGUMENT;
	if (r)
		return r;
	*architecture = -1; /* another one */
	for (size_t i = 0; i < sizeof(from) / sizeof(from[0]) && *architecture == -1 && major <= 12; i++)
		if (major > from[i].major || (major == from[i].major && minor >= from[i].minor))
			*architecture = from[i].architecture;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetComputeMode(nvmlDevice_t device, nvmlComputeMode_t *mode)
{
	return gpu_read_attribute(device, GPU_COMPUTE_MODE, mode, mode);
}

nvmlReturn_t nvmlDeviceGetEccMode(nvmlDevice_t device, nvmlEnableState_t *current, nvmlEnableState_t *pending)
{
	nvmlReturn_t r = gpu_read_attribute(device, GPU_ECC, pending ? current : NULL, current);

	if (!r)
		*pending = *current;
	return r;
}

nvmlReturn_t nvmlDeviceGetMaxClockInfo(nvmlDevice_t device, nvmlClockType_t type, unsigned *clock)
{
	int32_t khz = 0;
	nvmlReturn_t r = type == NVML_CLOCK_MEM ? gpu_read_attribute(device, GPU_MEMORY_CLOCK, clock, &khz)
						: gpu_read_attribute(device, GPU_CLOCK, clock, &khz);

	if (!r && (type < NVML_CLOCK_GRAPHICS || type > NVML_CLOCK_MEM))
		r = NVML_ERROR_NOT_SUPPORTED;
	if (!r)
		*clock = (unsigned)khz / 1000;
	return r;
}

nvmlReturn_t nvmlDeviceGetMemoryBusWidth(nvmlDevice_t device, unsigned *width)
{
	int32_t bits = 0;
	nvmlReturn_t r = gpu_read_attribute(device, GPU_MEMORY_WIDTH, width, &bits);

	if (!r)
		*width = (unsigned)bits;
	return r;
}

/* Parts of GPUs are not given to containers. */
nvmlReturn_t nvmlDeviceIsMigDeviceHandle(nvmlDevice_t device, unsigned *is)
{
	CUdevice gpu;
	nvmlReturn_t r;

	LOCK_HOLD(nvml_session_lock());
	r = gpu_enter(device, is, &gpu);
	if (!r)
		*is = 0;
	return r;
}

nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t device, unsigned *count)
{
	return nvmlDeviceIsMigDeviceHandle(device, count);
}

/*
 * CUdevice_P2PAttribute, by nvmlGpuP2PCapsIndex_t: read, write, NVLink, atomics, PCIe. Of NVLink CUDA says nothing,
 * and the driver's NVML is asked.
 * NCCL asks of each two GPUs, and gives up where it gets no answer.
 */
static const int gpu_peer_by[] = {2, 2, 0, 3, 2};

static nvmlReturn_t gpu_read_peer(CUdevice device, CUdevice peer, int attribute, nvmlGpuP2PStatus_t *ret)
{
	const uint64_t words[] = {(uint64_t)attribute, (uint64_t)device, (uint64_t)peer};
	uint64_t value = 0;
	CUresult r;

	if (device == peer) {
		*ret = GPU_PEER_OK;
		return NVML_SUCCESS;
	}
	r = call_sync(OP_cuDeviceGetP2PAttribute, words, 3, NULL, 0, &value, sizeof(value));
	if (!r)
		*ret = (uint32_t)value ? GPU_PEER_OK : GPU_PEER_NOT_SUPPORTED;
	return nvml_session_translate(r);
}

nvmlReturn_t nvmlDeviceGetP2PStatus(nvmlDevice_t device, nvmlDevice_t peer, nvmlGpuP2PCapsIndex_t index,
				    nvmlGpuP2PStatus_t *status)
{
	CUdevice from, to;
	nvmlReturn_t r;

	LOCK_HOLD(nvml_session_lock());
	r = nvml_session_enter_device(device, &from);
	if (!r)
		r = nvml_session_enter_device(peer, &to);
	if (r)
		return r;
	if (!status || index < 0 || (size_t)index >= sizeof(gpu_peer_by) / sizeof(gpu_peer_by[0]))
		return NVML_ERROR_INVALID_ARGUMENT;
	if (!gpu_peer_by[index])
		return nvml_session_read_link(from, WIRE_SENSOR_NVLINK_PEER, (unsigned)to, (unsigned *)status);
	return gpu_read_peer(from, to, gpu_peer_by[index], status);
}

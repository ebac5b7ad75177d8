/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What is asked of a GPU of the container's: what it is, as the server described it when the session began; sensors,
 * which are the GPU's own, whoever else uses it, and which the server asks the driver's NVML for each time; and what
 * the container uses of it, by its quota.
 */

#include <stdio.h>
#include <string.h>

#include "vcuda/client/call.h"
#include "vcuda/client/client.h"
#include "vcuda/client/device_name.h"
#include "vcuda/nvml/nvml_session.h"
#include "vcuda/nvml_api.h"
#include "vcuda/ops.h"

/* ---- what it is ---- */

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

nvmlReturn_t nvmlDeviceGetSupportedEventTypes(nvmlDevice_t device, unsigned long long *types)
{
	unsigned none = 0;
	nvmlReturn_t r = nvmlDeviceIsMigDeviceHandle(device, types ? &none : NULL);

	if (!r && types)
		*types = none;
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

/* ---- sensors ---- */

static nvmlReturn_t sensor_read(nvmlDevice_t device, enum wire_sensor sensor, const void *place, unsigned *ret)
{
	CUdevice gpu;
	nvmlReturn_t r;

	LOCK_HOLD(nvml_session_lock());
	r = nvml_session_enter_device(device, &gpu);
	if (!r && !place)
		r = NVML_ERROR_INVALID_ARGUMENT;
	return r ? r : nvml_session_read_sensor(gpu, sensor, ret);
}

nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *utilization)
{
	nvmlUtilization_t read = {0};
	nvmlReturn_t r = sensor_read(device, WIRE_SENSOR_UTILIZATION, utilization, &read.gpu);

	if (!r)
		r = sensor_read(device, WIRE_SENSOR_MEMORY_UTILIZATION, utilization, &read.memory);
	if (!r)
		*utilization = read;
	return r;
}

nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device, nvmlTemperatureSensors_t sensor, unsigned *degrees)
{
	return sensor_read(device, WIRE_SENSOR_TEMPERATURE, sensor == 0 ? degrees : NULL, degrees);
}

nvmlReturn_t nvmlDeviceGetTemperatureV(nvmlDevice_t device, nvmlTemperature_t *temperature)
{
	unsigned degrees = 0;
	nvmlReturn_t r = sensor_read(device, WIRE_SENSOR_TEMPERATURE, temperature, &degrees);

	if (r)
		return r;
	if (temperature->version != NVML_VERSION(nvmlTemperature_t, 1))
		return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	if (temperature->sensorType != 0)
		return NVML_ERROR_INVALID_ARGUMENT;
	temperature->temperature = (int)degrees;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetTemperatureThreshold(nvmlDevice_t device, nvmlTemperatureThresholds_t type, unsigned *degrees)
{
	static const enum wire_sensor of[] = {WIRE_SENSOR_SHUTDOWN, WIRE_SENSOR_SLOWDOWN};
	const bool known = type >= 0 && (size_t)type < sizeof(of) / sizeof(of[0]);
	unsigned read = 0;
	nvmlReturn_t r = sensor_read(device, of[known ? type : 0], degrees, &read);

	if (!r && !known)
		r = NVML_ERROR_NOT_SUPPORTED;
	if (!r)
		*degrees = read;
	return r;
}

/* The kinds of clocks are numbered: graphics, SM, memory, video. */
nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t device, nvmlClockType_t type, unsigned *clock)
{
	static const enum wire_sensor of[] = {WIRE_SENSOR_CLOCK_GRAPHICS, WIRE_SENSOR_CLOCK_SM,
					      WIRE_SENSOR_CLOCK_MEMORY, WIRE_SENSOR_CLOCK_VIDEO};
	const bool known = type >= 0 && (size_t)type < sizeof(of) / sizeof(of[0]);

	return sensor_read(device, of[known ? type : 0], known ? clock : NULL, clock);
}

/* ---- its links ---- */

/* One that the GPU does not have is none that can be named. */
static nvmlReturn_t sensor_read_link(nvmlDevice_t device, enum wire_sensor sensor, unsigned link, const void *place,
				     unsigned *ret)
{
	CUdevice gpu;
	nvmlReturn_t r;

	LOCK_HOLD(nvml_session_lock());
	r = nvml_session_enter_device(device, &gpu);
	if (!r && (!place || link >= WIRE_NVLINKS))
		r = NVML_ERROR_INVALID_ARGUMENT;
	return r ? r : nvml_session_read_link(gpu, sensor, link, ret);
}

nvmlReturn_t nvmlDeviceGetNvLinkState(nvmlDevice_t device, unsigned link, nvmlEnableState_t *state)
{
	return sensor_read_link(device, WIRE_SENSOR_NVLINK_STATE, link, state, (unsigned *)state);
}

nvmlReturn_t nvmlDeviceGetNvLinkVersion(nvmlDevice_t device, unsigned link, unsigned *version)
{
	return sensor_read_link(device, WIRE_SENSOR_NVLINK_VERSION, link, version, version);
}

nvmlReturn_t nvmlDeviceGetNvLinkCapability(nvmlDevice_t device, unsigned link, nvmlNvLinkCapability_t capability,
					   unsigned *is)
{
	const int last = WIRE_SENSOR_NVLINK_VALID - WIRE_SENSOR_NVLINK_P2P;
	const bool known = capability >= 0 && capability <= last;

	return sensor_read_link(device, (enum wire_sensor)(WIRE_SENSOR_NVLINK_P2P + (known ? capability : 0)), link,
				known ? is : NULL, is);
}

nvmlReturn_t nvmlDeviceGetNvLinkRemoteDeviceType(nvmlDevice_t device, unsigned link, nvmlIntNvLinkDeviceType_t *type)
{
	return sensor_read_link(device, WIRE_SENSOR_NVLINK_REMOTE_TYPE, link, type, (unsigned *)type);
}

/* It may be a switch, which is no GPU of anybody's. */
nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo_v2(nvmlDevice_t device, unsigned link, nvmlPciInfo_t *pci)
{
	nvmlPciInfo_t remote = {0};
	nvmlReturn_t r = sensor_read_link(device, WIRE_SENSOR_NVLINK_REMOTE_DOMAIN, link, pci, &remote.domain);

	if (!r)
		r = sensor_read_link(device, WIRE_SENSOR_NVLINK_REMOTE_BUS, link, pci, &remote.bus);
	if (!r)
		r = sensor_read_link(device, WIRE_SENSOR_NVLINK_REMOTE_DEVICE, link, pci, &remote.device);
	if (!r)
		r = sensor_read_link(device, WIRE_SENSOR_NVLINK_REMOTE_ID, link, pci, &remote.pciDeviceId);
	if (r)
		return r;
	(void)snprintf(remote.busId, sizeof(remote.busId), "%08X:%02X:%02X.0", remote.domain, remote.bus & 0xff,
		       remote.device & 0xff);
	(void)snprintf(remote.busIdLegacy, sizeof(remote.busIdLegacy), "%04X:%02X:%02X.0", remote.domain & 0xfffffff,
		       remote.bus & 0xff, remote.device & 0xff);
	*pci = remote;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo(nvmlDevice_t device, unsigned link, nvmlPciInfo_t *pci)
{
	nvmlPciInfo_t now;
	nvmlReturn_t r = nvmlDeviceGetNvLinkRemotePciInfo_v2(device, link, &now);

	if (!r && !pci)
		r = NVML_ERROR_INVALID_ARGUMENT;
	if (!r)
		memcpy(pci, &now, offsetof(nvmlPciInfo_t, busId));
	return r;
}

/* Of the many fields those of links that NCCL asks for; the others have no answer, each for itself. */
nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t device, int count, nvmlFieldValue_t *values)
{
	enum { FIELD_NVLINK_STATE = 165, FIELD_NVLINK_VERSION = 166, VALUE_UNSIGNED = 1 };
	CUdevice gpu;
	nvmlReturn_t r;

	LOCK_HOLD(nvml_session_lock());
	r = nvml_session_enter_device(device, &gpu);
	if (r || !values || count <= 0)
		return r ? r : NVML_ERROR_INVALID_ARGUMENT;
	for (int i = 0; i < count; i++) {
		nvmlFieldValue_t *one = &values[i];
		const bool state = one->fieldId == FIELD_NVLINK_STATE;
		unsigned value = 0;

		one->nvmlReturn = NVML_ERROR_NOT_SUPPORTED;
		if ((state || one->fieldId == FIELD_NVLINK_VERSION) && one->scopeId < WIRE_NVLINKS)
			one->nvmlReturn = nvml_session_read_link(
				gpu, state ? WIRE_SENSOR_NVLINK_STATE : WIRE_SENSOR_NVLINK_VERSION, one->scopeId,
				&value);
		/* Not the answer of the function: a link that there is not. */
		if (one->nvmlReturn == NVML_ERROR_INVALID_ARGUMENT)
			one->nvmlReturn = NVML_ERROR_NOT_SUPPORTED;
		one->timestamp = one->latencyUsec = 0;
		one->valueType = VALUE_UNSIGNED;
		one->value.ullVal = value;
	}
	return NVML_SUCCESS;
}

/* Functions whose answer is the sensor's number, in their own unit. */
#define SENSOR(name, sensor, type)                                          \
	nvmlReturn_t name(nvmlDevice_t device, type *value)                 \
	{                                                                   \
		unsigned read = 0;                                          \
		nvmlReturn_t r = sensor_read(device, sensor, value, &read); \
                                                                            \
		if (!r)                                                     \
			*value = (type)read;                                \
		return r;                                                   \
	}

SENSOR(nvmlDeviceGetPowerUsage, WIRE_SENSOR_POWER, unsigned)
SENSOR(nvmlDeviceGetEnforcedPowerLimit, WIRE_SENSOR_POWER_LIMIT, unsigned)
SENSOR(nvmlDeviceGetPowerManagementLimit, WIRE_SENSOR_POWER_LIMIT, unsigned)
SENSOR(nvmlDeviceGetPowerManagementDefaultLimit, WIRE_SENSOR_POWER_DEFAULT, unsigned)
SENSOR(nvmlDeviceGetPerformanceState, WIRE_SENSOR_PERFORMANCE, nvmlPstates_t)
SENSOR(nvmlDeviceGetPersistenceMode, WIRE_SENSOR_PERSISTENCE, nvmlEnableState_t)
SENSOR(nvmlDeviceGetFanSpeed, WIRE_SENSOR_FAN, unsigned)
SENSOR(nvmlDeviceGetBrand, WIRE_SENSOR_BRAND, nvmlBrandType_t)
SENSOR(nvmlDeviceGetCurrPcieLinkGeneration, WIRE_SENSOR_LINK, unsigned)
SENSOR(nvmlDeviceGetCurrPcieLinkWidth, WIRE_SENSOR_LINK_WIDTH, unsigned)
SENSOR(nvmlDeviceGetMaxPcieLinkGeneration, WIRE_SENSOR_LINK_MOST, unsigned)
SENSOR(nvmlDeviceGetMaxPcieLinkWidth, WIRE_SENSOR_LINK_WIDTH_MOST, unsigned)

/* ---- what the container uses of it ---- */

static nvmlReturn_t usage_read(nvmlDevice_t device, const void *place, struct wire_usage *ret)
{
	CUdevice gpu;
	nvmlReturn_t r;

	LOCK_HOLD(nvml_session_lock());
	r = nvml_session_enter_device(device, &gpu);
	if (!r && !place)
		r = NVML_ERROR_INVALID_ARGUMENT;
	if (!r)
		r = nvml_session_read_usage(gpu, ret);
	if (!r && ret->used > ret->total)
		ret->used = ret->total;
	return r;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory)
{
	struct wire_usage usage;
	nvmlReturn_t r = usage_read(device, memory, &usage);

	if (!r)
		*memory = (nvmlMemory_t){.total = usage.total, .free = usage.total - usage.used, .used = usage.used};
	return r;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory)
{
	nvmlMemory_t plain;
	nvmlReturn_t r = nvmlDeviceGetMemoryInfo(device, &plain);

	if (!r && !memory)
		r = NVML_ERROR_INVALID_ARGUMENT;
	if (!r && memory->version != NVML_VERSION(nvmlMemory_v2_t, 2))
		r = NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	if (!r)
		*memory = (nvmlMemory_v2_t){
			.version = memory->version, .total = plain.total, .free = plain.free, .used = plain.used};
	return r;
}

/* What a process has is known of all its GPUs together, so it is told where that is one. */
static unsigned long long usage_of(const struct wire_process *process)
{
	return (process->gpus & (process->gpus - 1)) == 0 ? process->used : NVML_NOT_AVAILABLE;
}

/* Whether @count processes fit; it becomes how many there are. */
static nvmlReturn_t usage_fit(unsigned *count, const void *processes, unsigned there)
{
	const unsigned room = *count;

	*count = there;
	if (room < there)
		return NVML_ERROR_INSUFFICIENT_SIZE;
	return there > 0 && !processes ? NVML_ERROR_INVALID_ARGUMENT : NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned *count,
						     nvmlProcessInfo_v2_t *processes)
{
	struct wire_usage usage = {0};
	nvmlReturn_t r = usage_read(device, count, &usage);

	if (!r)
		r = usage_fit(count, processes, usage.count);
	for (unsigned i = 0; i < usage.count && !r; i++)
		processes[i] =
			(nvmlProcessInfo_t){usage.process[i].id, usage_of(&usage.process[i]), UINT32_MAX, UINT32_MAX};
	return r;
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v2(nvmlDevice_t device, unsigned *count,
						     nvmlProcessInfo_v2_t *processes)
{
	return nvmlDeviceGetComputeRunningProcesses_v3(device, count, processes);
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses(nvmlDevice_t device, unsigned *count, nvmlProcessInfo_v1_t *processes)
{
	struct wire_usage usage = {0};
	nvmlReturn_t r = usage_read(device, count, &usage);

	if (!r)
		r = usage_fit(count, processes, usage.count);
	for (unsigned i = 0; i < usage.count && !r; i++)
		processes[i] = (nvmlProcessInfo_v1_t){usage.process[i].id, usage_of(&usage.process[i])};
	return r;
}

/* No process draws. */
nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v3(nvmlDevice_t device, unsigned *count,
						      nvmlProcessInfo_t *processes)
{
	(void)processes;
	return nvmlDeviceGetMaxMigDeviceCount(device, count);
}

nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v2(nvmlDevice_t device, unsigned *count,
						      nvmlProcessInfo_v2_t *processes)
{
	return nvmlDeviceGetGraphicsRunningProcesses_v3(device, count, processes);
}

nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses(nvmlDevice_t device, unsigned *count,
						   nvmlProcessInfo_v1_t *processes)
{
	(void)processes;
	return nvmlDeviceGetMaxMigDeviceCount(device, count);
}

/* ---- for nvidia-smi ---- */

/*
 * Functions of nvidia-smi's table. Where they stand there, and what they fill in, was seen with nvidia-smi 580 on an
 * H100; another version's could be something else, so for drivers of others they are refused.
 */
struct usage_process {
	unsigned long long pid, used;
	unsigned gpu_instance, compute_instance;
	unsigned long long reserved;
	char name[8192];
	char rest[32];
};
_Static_assert(sizeof(struct usage_process) == 8256, "as far as one is behind the other");

static nvmlReturn_t usage_check_driver(void)
{
	static const char known[] = "580.";
	char version[80];
	nvmlReturn_t r = nvmlSystemGetDriverVersion(version, sizeof(version));

	if (r)
		return r;
	return strncmp(version, known, strlen(known)) == 0 ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
}

/* As nvmlDeviceGetComputeRunningProcesses_v3(), with names. */
static nvmlReturn_t usage_list_compute(nvmlDevice_t device, unsigned *count, struct usage_process *processes)
{
	struct wire_usage usage = {0};
	nvmlReturn_t r = usage_check_driver();

	if (!r)
		r = usage_read(device, count, &usage);
	if (!r)
		r = usage_fit(count, processes, usage.count);
	for (unsigned i = 0; i < usage.count && !r; i++) {
		struct usage_process *process = &processes[i];

		process->pid = usage.process[i].id;
		process->used = usage_of(&usage.process[i]);
		process->gpu_instance = process->compute_instance = UINT32_MAX;
		process->reserved = 0;
		/* One of another pid namespace, or that has just ended. */
		if (nvmlSystemGetProcessName(usage.process[i].id, process->name, sizeof(process->name)))
			memcpy(process->name, "[Not Found]", sizeof("[Not Found]"));
	}
	return r;
}

/* The same of what no process of a container does. */
static nvmlReturn_t usage_list_none(nvmlDevice_t device, unsigned *count, struct usage_process *processes)
{
	nvmlReturn_t r = usage_check_driver();

	(void)processes;
	return r ? r : nvmlDeviceGetMaxMigDeviceCount(device, count);
}

/*
 * The one table of functions without documentation that nvidia-smi asks for: a size in bytes, and functions behind it.
 * Without it nvidia-smi ends, and says that it is of another version than the library. What it calls of the functions
 * may be refused, so all of them are but those that list processes.
 */

enum { TABLE_SLOTS = 255, TABLE_COMPUTE = 212, TABLE_GRAPHICS, TABLE_MPS };

static nvmlReturn_t usage_refuse(void)
{
	return nvml_session_refuse("table");
}

static const struct {
	size_t bytes;
	void (*slot[TABLE_SLOTS])(void);
} table = {sizeof(table),
	   {[0 ... TABLE_COMPUTE - 1] = (void (*)(void))usage_refuse,
	    [TABLE_COMPUTE] = (void (*)(void))usage_list_compute,
	    [TABLE_GRAPHICS] = (void (*)(void))usage_list_none,
	    [TABLE_MPS] = (void (*)(void))usage_list_none,
	    [TABLE_MPS + 1 ... TABLE_SLOTS - 1] = (void (*)(void))usage_refuse}};

nvmlReturn_t nvmlInternalGetExportTable(const void **ret, const void *uuid)
{
	static const uint8_t known[16] = {0xc4, 0xfe, 0x3e, 0x6c, 0xc9, 0x8f, 0x6c, 0x4e,
					  0xa3, 0x27, 0xee, 0x69, 0x6e, 0x12, 0xf7, 0xc4};

	if (!ret || !uuid)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (memcmp(uuid, known, sizeof(known)) != 0)
		return NVML_ERROR_NOT_FOUND;
	*ret = &table;
	return NVML_SUCCESS;
}

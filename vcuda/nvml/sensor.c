/* SPDX-License-Identifier: Apache-2.0 */

/* Sensors of the granted GPUs: the GPU's own, whoever else uses it. The server asks the driver's NVML each time. */

#include <stdio.h>
#include <string.h>

#include "vcuda/client/call.h"
#include "vcuda/nvml/nvml_session.h"
#include "vcuda/nvml_api.h"

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

/* ---- links ---- */

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

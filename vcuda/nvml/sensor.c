/* SPDX-License-Identifier: Apache-2.0 */

/* Sensors of the granted GPUs: the GPU's own, whoever else uses it. The server asks the driver's NVML each time. */

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

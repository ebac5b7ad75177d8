/* SPDX-License-Identifier: Apache-2.0 */

/* Sensors of the granted GPUs, for the container's NVML: the driver's NVML is asked, and its numbers are passed on. */

#include <dlfcn.h>

#include "vcuda/driver_api.h"
#include "vcuda/server/driver.h"
#include "vcuda/server/quota.h"
#include "vcuda/server/request.h"

enum { SENSORS_ADDRESS = 32, SENSORS_SUCCESS = 0 };

/* NVML's, as nvml.h has them. */
struct sensors_utilization {
	unsigned gpu, memory;
};

struct sensors_pci {
	char legacy[16];
	unsigned domain, bus, device, id, subsystem;
	char address[32];
};

union sensors_answer {
	unsigned number;
	struct sensors_utilization utilization;
	struct sensors_pci pci;
};

/* How a function is called: with a place for its answer, or with a kind before that. */
enum sensors_form { SENSORS_PLAIN, SENSORS_OF_KIND };

static const struct {
	const char *function;
	enum sensors_form form;
	int kind;
	unsigned offset; /* of the number in the answer */
} sensors[WIRE_SENSORS] = {
#define PLAIN(name)                       \
	{                                 \
		name, SENSORS_PLAIN, 0, 0 \
	}
#define PART(name, member)                                                     \
	{                                                                      \
		name, SENSORS_PLAIN, 0, offsetof(union sensors_answer, member) \
	}
#define OF_KIND(name, kind)                    \
	{                                      \
		name, SENSORS_OF_KIND, kind, 0 \
	}
	[WIRE_SENSOR_UTILIZATION] = PART("nvmlDeviceGetUtilizationRates", utilization.gpu),
	[WIRE_SENSOR_MEMORY_UTILIZATION] = PART("nvmlDeviceGetUtilizationRates", utilization.memory),
	[WIRE_SENSOR_TEMPERATURE] = OF_KIND("nvmlDeviceGetTemperature", 0),
	[WIRE_SENSOR_SHUTDOWN] = OF_KIND("nvmlDeviceGetTemperatureThreshold", 0),
	[WIRE_SENSOR_SLOWDOWN] = OF_KIND("nvmlDeviceGetTemperatureThreshold", 1),
	[WIRE_SENSOR_POWER] = PLAIN("nvmlDeviceGetPowerUsage"),
	[WIRE_SENSOR_POWER_LIMIT] = PLAIN("nvmlDeviceGetEnforcedPowerLimit"),
	[WIRE_SENSOR_POWER_DEFAULT] = PLAIN("nvmlDeviceGetPowerManagementDefaultLimit"),
	[WIRE_SENSOR_CLOCK_GRAPHICS] = OF_KIND("nvmlDeviceGetClockInfo", 0),
	[WIRE_SENSOR_CLOCK_SM] = OF_KIND("nvmlDeviceGetClockInfo", 1),
	[WIRE_SENSOR_CLOCK_MEMORY] = OF_KIND("nvmlDeviceGetClockInfo", 2),
	[WIRE_SENSOR_CLOCK_VIDEO] = OF_KIND("nvmlDeviceGetClockInfo", 3),
	[WIRE_SENSOR_PERFORMANCE] = PLAIN("nvmlDeviceGetPerformanceState"),
	[WIRE_SENSOR_PERSISTENCE] = PLAIN("nvmlDeviceGetPersistenceMode"),
	[WIRE_SENSOR_FAN] = PLAIN("nvmlDeviceGetFanSpeed"),
	[WIRE_SENSOR_BRAND] = PLAIN("nvmlDeviceGetBrand"),
	[WIRE_SENSOR_LINK] = PLAIN("nvmlDeviceGetCurrPcieLinkGeneration"),
	[WIRE_SENSOR_LINK_WIDTH] = PLAIN("nvmlDeviceGetCurrPcieLinkWidth"),
	[WIRE_SENSOR_LINK_MOST] = PLAIN("nvmlDeviceGetMaxPcieLinkGeneration"),
	[WIRE_SENSOR_LINK_WIDTH_MOST] = PLAIN("nvmlDeviceGetMaxPcieLinkWidth"),
	[WIRE_SENSOR_PCI_DEVICE] = PART("nvmlDeviceGetPciInfo_v3", pci.id),
	[WIRE_SENSOR_PCI_SUBSYSTEM] = PART("nvmlDeviceGetPciInfo_v3", pci.subsystem),
#undef PLAIN
#undef PART
#undef OF_KIND
};

static bool sensors_find_gpu(void *nvml, CUdevice device, void **ret)
{
	int (*find)(const char *address, void **ret) = NULL;
	char address[SENSORS_ADDRESS];

	*(void **)&find = dlsym(nvml, "nvmlDeviceGetHandleByPciBusId_v2");
	return find && driver.cuDeviceGetPCIBusId(address, sizeof(address), device) == CUDA_SUCCESS &&
	       find(address, ret) == SENSORS_SUCCESS;
}

/* Return: false if this GPU has no such sensor, or nobody can be asked for it. */
static bool sensors_read(CUdevice device, enum wire_sensor sensor, uint32_t *ret)
{
	union sensors_answer answer = {0};
	void *const nvml = driver_memory_library();
	void *function, *gpu = NULL;
	int r;

	if (!nvml || !sensors_find_gpu(nvml, device, &gpu))
		return false;
	function = dlsym(nvml, sensors[sensor].function);
	if (!function)
		return false;
	if (sensors[sensor].form == SENSORS_PLAIN)
		r = (*(int (**)(void *, void *)) & function)(gpu, &answer);
	else
		r = (*(int (**)(void *, int, void *)) & function)(gpu, sensors[sensor].kind, &answer);
	*ret = *(const unsigned *)((const char *)&answer + sensors[sensor].offset);
	return r == SENSORS_SUCCESS;
}

CUresult serve_wire_sensor(struct request *q)
{
	CUresult r = request_words(q, 2);
	uint32_t value = 0;
	CUdevice device;

	if (!r)
		r = request_device(q, 0, &device);
	if (!r && q->argument[1] >= WIRE_SENSORS)
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r && !sensors_read(device, (enum wire_sensor)q->argument[1], &value))
		r = CUDA_ERROR_NOT_SUPPORTED;
	if (!r)
		request_reply(q, &value, sizeof(value));
	return r;
}

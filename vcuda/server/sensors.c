/* SPDX-License-Identifier: Apache-2.0 */

/* Sensors of the granted GPUs, where these are, for the container's NVML: those of the driver's NVML are passed on. */

#include <dlfcn.h>

#include "vcuda/server/driver.h"
#include "vcuda/server/quota.h"
#include "vcuda/server/request.h"

enum { SENSORS_SUCCESS = 0, SENSORS_INVALID = 2 };

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

/* How a function is called: with a place for its answer; before that, a kind, a link, both, or a GPU and a kind. */
enum sensors_form { SENSORS_PLAIN, SENSORS_OF_KIND, SENSORS_OF_LINK, SENSORS_OF_LINK_KIND, SENSORS_OF_PEER };

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
#define OF_LINK(name, offset)                    \
	{                                        \
		name, SENSORS_OF_LINK, 0, offset \
	}
#define CAPABILITY(kind)                                                       \
	{                                                                      \
		"nvmlDeviceGetNvLinkCapability", SENSORS_OF_LINK_KIND, kind, 0 \
	}
#define REMOTE(member) OF_LINK("nvmlDeviceGetNvLinkRemotePciInfo_v2", offsetof(union sensors_answer, pci.member))
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
	[WIRE_SENSOR_NVLINK_STATE] = OF_LINK("nvmlDeviceGetNvLinkState", 0),
	[WIRE_SENSOR_NVLINK_VERSION] = OF_LINK("nvmlDeviceGetNvLinkVersion", 0),
	[WIRE_SENSOR_NVLINK_P2P] = CAPABILITY(0),
	[WIRE_SENSOR_NVLINK_SYSTEM] = CAPABILITY(1),
	[WIRE_SENSOR_NVLINK_P2P_ATOMICS] = CAPABILITY(2),
	[WIRE_SENSOR_NVLINK_SYSTEM_ATOMICS] = CAPABILITY(3),
	[WIRE_SENSOR_NVLINK_SLI] = CAPABILITY(4),
	[WIRE_SENSOR_NVLINK_VALID] = CAPABILITY(5),
	[WIRE_SENSOR_NVLINK_REMOTE_TYPE] = OF_LINK("nvmlDeviceGetNvLinkRemoteDeviceType", 0),
	[WIRE_SENSOR_NVLINK_REMOTE_DOMAIN] = REMOTE(domain),
	[WIRE_SENSOR_NVLINK_REMOTE_BUS] = REMOTE(bus),
	[WIRE_SENSOR_NVLINK_REMOTE_DEVICE] = REMOTE(device),
	[WIRE_SENSOR_NVLINK_REMOTE_ID] = REMOTE(id),
	[WIRE_SENSOR_NVLINK_PEER] = {"nvmlDeviceGetP2PStatus", SENSORS_OF_PEER, 2, 0},
#undef PLAIN
#undef PART
#undef OF_KIND
#undef OF_LINK
#undef CAPABILITY
#undef REMOTE
};

static bool sensors_find_gpu(void *nvml, unsigned name, void **ret)
{
	int (*find)(const char *address, void **ret) = NULL;

	*(void **)&find = dlsym(nvml, "nvmlDeviceGetHandleByPciBusId_v2");
	return find && find(server.names[server_find_name(name)].bus, ret) == SENSORS_SUCCESS;
}

/* Return: CUDA_ERROR_NOT_SUPPORTED if this GPU has no such sensor, or nobody can be asked for it. */
/* @link: or the name of another GPU */
static CUresult sensors_read(unsigned name, enum wire_sensor sensor, unsigned link, uint32_t *ret)
{
	union sensors_answer answer = {0};
	void *const nvml = driver_memory_library();
	void *function, *gpu = NULL, *peer = NULL;
	int r;

	if (!nvml || !sensors_find_gpu(nvml, name, &gpu))
		return CUDA_ERROR_NOT_SUPPORTED;
	if (sensors[sensor].form == SENSORS_OF_PEER && !sensors_find_gpu(nvml, link, &peer))
		return CUDA_ERROR_NOT_SUPPORTED;
	function = dlsym(nvml, sensors[sensor].function);
	if (!function)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (sensors[sensor].form == SENSORS_PLAIN)
		r = (*(int (**)(void *, void *)) & function)(gpu, &answer);
	else if (sensors[sensor].form == SENSORS_OF_KIND)
		r = (*(int (**)(void *, int, void *)) & function)(gpu, sensors[sensor].kind, &answer);
	else if (sensors[sensor].form == SENSORS_OF_LINK)
		r = (*(int (**)(void *, unsigned, void *)) & function)(gpu, link, &answer);
	else if (sensors[sensor].form == SENSORS_OF_PEER)
		r = (*(int (**)(void *, void *, int, void *)) & function)(gpu, peer, sensors[sensor].kind, &answer);
	else
		r = (*(int (**)(void *, unsigned, int, void *)) & function)(gpu, link, sensors[sensor].kind, &answer);
	*ret = *(const unsigned *)((const char *)&answer + sensors[sensor].offset);
	if (r == SENSORS_INVALID && sensors[sensor].form >= SENSORS_OF_LINK)
		return CUDA_ERROR_INVALID_VALUE;
	return r == SENSORS_SUCCESS ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
}

CUresult serve_wire_sensor(struct request *q)
{
	CUresult r = request_words(q, 3);
	uint32_t value = 0;
	CUdevice device;
	unsigned link;

	if (!r)
		r = request_device(q, 0, &device);
	if (!r && (q->argument[1] >= WIRE_SENSORS || q->argument[2] >= WIRE_NVLINKS))
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r && sensors[q->argument[1]].form == SENSORS_OF_PEER)
		r = request_device(q, 2, &device);
	if (r)
		return r;
	link = sensors[q->argument[1]].form == SENSORS_OF_PEER ? server.granted[q->argument[2]]
							       : (unsigned)q->argument[2];
	r = sensors_read(server.granted[q->argument[0]], (enum wire_sensor)q->argument[1], link, &value);
	if (!r)
		request_reply(q, &value, sizeof(value));
	return r;
}

/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What the driver's NVML is asked of GPUs: by the container's NVML their sensors, by the manager what happens to them.
 */

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>

#include "model/nvml.h"
#include "vcuda/server/driver.h"
#include "vcuda/server/quota.h"
#include "vcuda/server/request.h"
#include "vcuda/server/server.h"

/* ---- sensors of the granted GPUs, where these are ---- */

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

/* ---- the watch ---- */

/*
 * One server has no client. It asks NVIDIA's NVML what happens to the GPUs of all containers, and tells the manager,
 * which itself loads nothing of the driver's. It has the rights of every other server. No container talks to it, so the
 * manager believes what it says.
 */

enum {
	WATCH_MS = 1000, /* for which the manager waits for an answer at most */
	WATCH_EACH = 60, /* of these the GPUs are looked at without a reason */
	WATCH_UUID = 48,
};

static struct {
	int (*find)(const char *uuid, void **ret);
	int (*make_set)(void **ret);
	int (*put)(void *gpu, unsigned long long kinds, void *set);
	int (*wait)(void *set, struct nvml_event *ret, unsigned milliseconds);
	struct nvml_questions questions;
} nvml;

static struct {
	void *gpu; /* NULL: NVML does not know it */
	bool lost; /* the manager was told */
} watched[START_GPUS];

static bool watch_load(void)
{
	const struct {
		const char *name;
		void *to;
	} functions[] = {
		{"nvmlDeviceGetHandleByUUID", &nvml.find},
		{"nvmlEventSetCreate", &nvml.make_set},
		{"nvmlDeviceRegisterEvents", &nvml.put},
		{"nvmlEventSetWait_v2", &nvml.wait},
		{"nvmlDeviceGetMemoryInfo", &nvml.questions.memory},
	};
	void *const library = driver_memory_library();

	for (size_t i = 0; library && i < sizeof(functions) / sizeof(functions[0]); i++) {
		void *function = dlsym(library, functions[i].name);

		if (!function)
			return false;
		memcpy(functions[i].to, &function, sizeof(function));
	}
	if (library)
		*(void **)&nvml.questions.fields = dlsym(library, "nvmlDeviceGetFieldValues");
	return library;
}

static void watch_tell(enum start_event_kind kind, unsigned gpu, uint32_t number, const char *text)
{
	server_tell(kind, (uint64_t)gpu << START_EVENT_GPU_BIT | number, text);
}

static void watch_tell_lost(unsigned gpu, const char *as_what)
{
	if (!watched[gpu].lost)
		watch_tell(START_EVENT_LOST, gpu, 0, as_what);
	watched[gpu].lost = true;
}

/* What the driver itself says is to be done for it. */
static void watch_look(unsigned gpu)
{
	enum nvml_state state;

	if (!watched[gpu].gpu)
		return;
	state = nvml_state_ask(&nvml.questions, watched[gpu].gpu);
	if (nvml_state_is_bad(state))
		watch_tell_lost(gpu, nvml_state_text(state));
}

static void watch_look_at_all(void)
{
	for (unsigned i = 0; i < server.start.gpu_count; i++)
		watch_look(i);
}

static void watch_find(unsigned gpu)
{
	const uint8_t *b = server.start.gpus[gpu].uuid;
	char uuid[WATCH_UUID];
	int r;

	(void)snprintf(uuid, sizeof(uuid), "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
		       b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14],
		       b[15]);
	r = nvml.find(uuid, &watched[gpu].gpu);
	if (r != NVML_SUCCESS)
		watched[gpu].gpu = NULL;
	if (r == NVML_GPU_IS_LOST || r == NVML_RESET_REQUIRED)
		watch_tell_lost(gpu, "fallen off the bus");
}

static void watch_tell_memory(unsigned gpu)
{
	enum { MIB_BITS = 20 };
	unsigned long long memory[3];

	if (watched[gpu].gpu && nvml.questions.memory(watched[gpu].gpu, memory) == NVML_SUCCESS)
		watch_tell(START_EVENT_MEMORY, gpu, (uint32_t)(memory[0] >> MIB_BITS), "");
}

/* Return: NULL; what could not be done. */
static const char *watch_begin(void **ret_set)
{
	unsigned count = 0;

	if (!watch_load())
		return "loading NVML";
	/* Which NVML says also where it has no events. */
	for (unsigned i = 0; i < server.start.gpu_count; i++) {
		watch_find(i);
		watch_tell_memory(i);
	}
	if (nvml.make_set(ret_set) != NVML_SUCCESS)
		return "asking NVML for events";
	for (unsigned i = 0; i < server.start.gpu_count; i++)
		if (watched[i].gpu && nvml.put(watched[i].gpu, NVML_EVENT_XID, *ret_set) == NVML_SUCCESS)
			count++;
	watch_look_at_all();
	if (count == 0)
		return "asking NVML for events of a GPU";
	return server_sandbox_close(&server.start) < 0 ? "loading the system call filter" : NULL;
}

static void watch_serve(const struct nvml_event *event)
{
	for (unsigned i = 0; i < server.start.gpu_count; i++)
		if (watched[i].gpu == event->gpu) {
			watch_tell(START_EVENT_XID, i, (uint32_t)event->number, "");
			watch_look(i);
		}
}

/* Return: whether the manager is there. */
static bool watch_receive(void)
{
	struct start_event event;
	ssize_t size;

	while ((size = recv(START_MANAGER, &event, sizeof(event), MSG_DONTWAIT)) > 0)
		if (event.kind == START_EVENT_LOOK)
			watch_look_at_all();
	return size < 0;
}

int watch_run(void)
{
	const struct timespec moment = {.tv_sec = WATCH_MS / 1000};
	struct nvml_event event;
	void *set = NULL;
	const char *step;

	(void)prctl(PR_SET_NAME, "ctr-gpu-vcuda-w");
	step = watch_begin(&set);
	if (step) {
		server_tell(START_EVENT_FAILED, 0, step);
		return 1;
	}
	server_tell(START_EVENT_WATCHES, 0, "");
	for (unsigned i = 1; watch_receive(); i++) {
		const int r = nvml.wait(set, &event, WATCH_MS);

		if (r == NVML_SUCCESS && event.kind == NVML_EVENT_XID)
			watch_serve(&event);
		/* Of a GPU that is lost it may say so at once, each time. */
		if (r != NVML_SUCCESS && r != NVML_TIMEOUT)
			(void)nanosleep(&moment, NULL);
		if ((r != NVML_SUCCESS && r != NVML_TIMEOUT) || i % WATCH_EACH == 0)
			watch_look_at_all();
	}
	return 0;
}

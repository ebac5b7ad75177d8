/* SPDX-License-Identifier: Apache-2.0 */

/* NVML of a native host: a device is what this process may open. */

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "nodes.h"
#include "nvml.h"

enum { GPU_INSTANCES = 15, COMPUTE_INSTANCES = 8, PARTS_MAX = 7 };

struct nvml_device {
	int minor;
	unsigned int gpu_instance, compute_instance; /* of a part */
	struct nvml_device *parts;
	unsigned int part_count;
};

static struct nvml_device devices[NODES_MAX], parts[NODES_MAX][PARTS_MAX];
static int device_count = -1;

static nvmlReturn_t answer(char *ret, unsigned int room, const char *text)
{
	return snprintf(ret, room, "%s", text) < (int)room ? NVML_SUCCESS : NVML_ERROR_INSUFFICIENT_SIZE;
}

static int capability_reachable(int number)
{
	char path[64];
	int fd;

	(void)snprintf(path, sizeof(path), "/dev/nvidia-caps/nvidia-cap%d", number);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0)
		(void)close(fd);
	return fd >= 0 || errno == ENXIO;
}

/* A part is there for whoever may use the capabilities of its two instances; ../native.c numbers them the same way. */
static void find_parts(struct nvml_device *gpu)
{
	for (int i = 0; i < GPU_INSTANCES * COMPUTE_INSTANCES && gpu->part_count < PARTS_MAX; i++) {
		int instance = i / COMPUTE_INSTANCES, compute = i % COMPUTE_INSTANCES;
		int number = 3 + (gpu->minor * GPU_INSTANCES + instance) * (COMPUTE_INSTANCES + 1);

		if (capability_reachable(number) && capability_reachable(number + 1 + compute))
			gpu->parts[gpu->part_count++] = (struct nvml_device){
				.minor = gpu->minor,
				.gpu_instance = (unsigned int)instance,
				.compute_instance = (unsigned int)compute,
			};
	}
}

nvmlReturn_t nvmlInit_v2(void)
{
	int minors[NODES_MAX];

	if (!node_reachable("/dev/nvidiactl"))
		return NVML_ERROR_DRIVER_NOT_LOADED;
	device_count = nodes_reachable(minors);
	for (int i = 0; i < device_count; i++) {
		devices[i] = (struct nvml_device){.minor = minors[i], .parts = parts[i]};
		find_parts(&devices[i]);
	}
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlShutdown(void)
{
	device_count = -1;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned int length)
{
	return answer(version, length, DRIVER);
}

nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *count)
{
	if (device_count < 0)
		return NVML_ERROR_UNINITIALIZED;
	*count = (unsigned int)device_count;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device)
{
	if ((int)index < 0 || (int)index >= device_count)
		return NVML_ERROR_INVALID_ARGUMENT;
	*device = &devices[index];
	return NVML_SUCCESS;
}

/* A part's has its profile: GPU instances of 3 seventh have the first numbers, of which one is divided here. */
nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned int length)
{
	static const char *const divided[] = {"NVIDIA H200 MIG 1c.3g.71gb", "NVIDIA H200 MIG 2c.3g.71gb"};

	if (device->parts)
		return answer(name, length, "NVIDIA H200");
	if (device->gpu_instance == 2)
		return answer(name, length, divided[device->compute_instance % 2]);
	return answer(name, length, device->gpu_instance < 3 ? "NVIDIA H200 MIG 3g.71gb" : "NVIDIA H200 MIG 2g.35gb");
}

/* The profiles of native hosts number UUIDs by the minor of the GPU; a part's has its two instances in front. */
nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned int length)
{
	unsigned int last = 0x95 + (unsigned)device->minor;
	char text[64];

	if (device->parts)
		(void)snprintf(text, sizeof(text), "GPU-b703df58-2273-35fb-29be-3f6c49b83a%02x", last);
	else
		(void)snprintf(text, sizeof(text), "MIG-%04x%04x-2273-35fb-29be-3f6c49b83a%02x", device->gpu_instance,
			       device->compute_instance, last);
	return answer(uuid, length, text);
}

nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t device, unsigned int *count)
{
	*count = device->part_count ? PARTS_MAX : 0;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t device, unsigned int index, nvmlDevice_t *part)
{
	if (index >= device->part_count)
		return NVML_ERROR_NOT_FOUND;
	*part = &device->parts[index];
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetGpuInstanceId(nvmlDevice_t part, unsigned int *id)
{
	*id = part->gpu_instance;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetComputeInstanceId(nvmlDevice_t part, unsigned int *id)
{
	*id = part->compute_instance;
	return NVML_SUCCESS;
}

/*
 * A simulated module does not know who works on what, so a test says it: in a line a process, the minor of the GPU, the
 * two instances of a part (-1 -1: of none), the PID, the memory in bytes (-1: not available), "compute" or "graphics",
 * and a percentage of the GPU's time (-1: there is no sample). "MINOR refused" is a GPU of which this user may not ask.
 */
#define PROCESSES "/run/nvidia-processes"

struct process {
	int minor, gpu_instance, compute_instance, percent;
	unsigned int pid;
	long long memory;
	char kind[16];
};

static int device_has(nvmlDevice_t device, const struct process *process)
{
	if (process->minor != device->minor)
		return 0;
	return device->parts ? process->gpu_instance < 0
			     : process->gpu_instance == (int)device->gpu_instance &&
				       process->compute_instance == (int)device->compute_instance;
}

/* Return: whether there is one more; @ret_refused: whether the GPU is one that may not be asked. */
static int next_process(FILE *file, nvmlDevice_t device, struct process *ret, int *ret_refused)
{
	char line[128], word[16];

	while (file && fgets(line, sizeof(line), file)) {
		*ret_refused |= sscanf(line, "%d %15s", &ret->minor, word) == 2 && !strcmp(word, "refused") &&
				ret->minor == device->minor;
		if (sscanf(line, "%d %d %d %u %lld %15s %d", &ret->minor, &ret->gpu_instance, &ret->compute_instance,
			   &ret->pid, &ret->memory, ret->kind, &ret->percent) == 7 &&
		    device_has(device, ret))
			return 1;
	}
	return 0;
}

static nvmlReturn_t list_processes(nvmlDevice_t device, const char *kind, unsigned int *count, nvmlProcessInfo_t *list)
{
	FILE *file = fopen(PROCESSES, "re");
	unsigned int room = *count;
	struct process process;
	int refused = 0;

	for (*count = 0; next_process(file, device, &process, &refused);) {
		if (strcmp(process.kind, kind) != 0)
			continue;
		if (*count < room)
			list[*count] = (nvmlProcessInfo_t){
				.pid = process.pid,
				.usedGpuMemory = (unsigned long long)process.memory,
				.gpuInstanceId = (unsigned int)process.gpu_instance,
				.computeInstanceId = (unsigned int)process.compute_instance,
			};
		++*count;
	}
	if (file)
		(void)fclose(file);
	return refused ? NVML_ERROR_NO_PERMISSION : *count > room ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned int *count,
						     nvmlProcessInfo_t *processes)
{
	return list_processes(device, "compute", count, processes);
}

nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v3(nvmlDevice_t device, unsigned int *count,
						      nvmlProcessInfo_t *processes)
{
	return list_processes(device, "graphics", count, processes);
}

/* Two samples of each, of which the later counts. */
nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t device, nvmlProcessUtilizationSample_t *samples,
					     unsigned int *count, unsigned long long since)
{
	FILE *file = fopen(PROCESSES, "re");
	unsigned int room = *count;
	struct process process;
	int refused = 0;

	*count = 0;
	while (*count + 2 <= room && next_process(file, device, &process, &refused)) {
		if (process.percent < 0)
			continue;
		samples[(*count)++] = (nvmlProcessUtilizationSample_t){
			.pid = process.pid, .timeStamp = since + 2, .smUtil = (unsigned int)process.percent};
		samples[(*count)++] =
			(nvmlProcessUtilizationSample_t){.pid = process.pid, .timeStamp = since + 1, .smUtil = 99};
	}
	if (file)
		(void)fclose(file);
	return *count ? NVML_SUCCESS : NVML_ERROR_NOT_FOUND;
}

/*
 * What happens: in a line an error, the minor of the GPU, the number (Xid), and the two instances of a part (-1 -1: of none). Only
 * what is added after the set was made is an event.
 */
#define ERRORS "/run/nvidia-xid"

/* And in a line what is to be done for the GPU of a minor: its recovery action; "lost"; or "old", of a driver that does not say it. */
#define ACTIONS "/run/nvidia-action"

enum { EVENT_XID = 8, FIELD_RECOVERY_ACTION = 230, LOOK_NS = 20000000 };

static struct nvml_event_set {
	long at;
	unsigned int registered; /* a bit for each place among the devices */
} event_set;

nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t *set)
{
	FILE *file = fopen(ERRORS, "re");

	event_set = (struct nvml_event_set){0};
	if (file) {
		(void)fseek(file, 0, SEEK_END);
		event_set.at = ftell(file);
		(void)fclose(file);
	}
	*set = &event_set;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t device, unsigned long long types, nvmlEventSet_t set)
{
	if (types != EVENT_XID)
		return NVML_ERROR_NOT_SUPPORTED;
	set->registered |= 1U << (device - devices);
	return NVML_SUCCESS;
}

static int next_event(nvmlEventSet_t set, nvmlEventData_t *ret)
{
	FILE *file = fopen(ERRORS, "re");
	int minor, gpu_instance, compute_instance, found = 0;
	unsigned int number;

	if (file)
		(void)fseek(file, set->at, SEEK_SET);
	while (file && !found &&
	       fscanf(file, "%d %u %d %d\n", &minor, &number, &gpu_instance, &compute_instance) == 4) {
		set->at = ftell(file);
		for (int i = 0; i < device_count && !found; i++)
			if (devices[i].minor == minor && set->registered & 1U << i) {
				*ret = (nvmlEventData_t){&devices[i], EVENT_XID, number, (unsigned int)gpu_instance,
							 (unsigned int)compute_instance};
				found = 1;
			}
	}
	if (file)
		(void)fclose(file);
	return found;
}

nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t set, nvmlEventData_t *data, unsigned int milliseconds)
{
	const struct timespec moment = {.tv_nsec = LOOK_NS};

	for (unsigned int i = 0; i * (LOOK_NS / 1000000) <= milliseconds; i++) {
		if (next_event(set, data))
			return NVML_SUCCESS;
		(void)nanosleep(&moment, NULL);
	}
	return NVML_ERROR_TIMEOUT;
}

/* Return: whether something is said of it. */
static int action_of(nvmlDevice_t device, char ret[16])
{
	FILE *file = fopen(ACTIONS, "re");
	int minor, found = 0;

	while (file && !found && fscanf(file, "%d %15s", &minor, ret) == 2)
		found = minor == device->minor;
	if (file)
		(void)fclose(file);
	return found;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory)
{
	char action[16];

	*memory = (nvmlMemory_t){.total = 1ULL << 37, .free = 1ULL << 37};
	return action_of(device, action) && !strcmp(action, "lost") ? NVML_ERROR_GPU_IS_LOST : NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t device, int count, nvmlFieldValue_t *values)
{
	char action[16];

	if (count != 1 || values->fieldId != FIELD_RECOVERY_ACTION)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (!action_of(device, action))
		(void)strcpy(action, "0");
	values->nvmlReturn = strcmp(action, "old") == 0 ? NVML_ERROR_NOT_SUPPORTED : NVML_SUCCESS;
	(void)sscanf(action, "%u", &values->value[0]);
	return NVML_SUCCESS;
}

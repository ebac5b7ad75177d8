/* SPDX-License-Identifier: Apache-2.0 */

/* What the container uses of its GPUs, by its quota: memory of all its processes together, and the processes. */

#include <string.h>

#include "vcuda/nvml/nvml_session.h"
#include "vcuda/nvml_api.h"

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

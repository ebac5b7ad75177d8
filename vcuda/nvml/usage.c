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

static nvmlReturn_t usage_check_driver(void)
{
	static const char known[] = "580.";
	char version[80];
	nvmlReturn_t r = nvmlSystemGetDriverVersion(version, sizeof(version));

	if (r)
		return r;
	return strncmp(version, known, strlen(known)) == 0 ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
}

nvmlReturn_t usage_list_compute(nvmlDevice_t device, unsigned *count, struct usage_process *processes)
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

nvmlReturn_t usage_list_none(nvmlDevice_t device, unsigned *count, struct usage_process *processes)
{
	nvmlReturn_t r = usage_check_driver();

	(void)processes;
	return r ? r : nvmlDeviceGetMaxMigDeviceCount(device, count);
}

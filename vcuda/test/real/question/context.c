/* SPDX-License-Identifier: Apache-2.0 */

/* What NVML tells another process of one that uses the GPU, step by step: of the device, and of that process. */

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "question.h"

enum { PROCESSES = 64 };
#define MIB ((double)(1 << 20))

struct nvml_memory {
	unsigned long long total, free, used;
};

struct nvml_process {
	unsigned pid;
	unsigned long long used;
	unsigned gpu_instance, compute_instance;
};

static struct {
	int (*nvmlInit_v2)(void);
	int (*nvmlDeviceGetHandleByIndex_v2)(unsigned, void **);
	int (*nvmlDeviceGetMemoryInfo)(void *, struct nvml_memory *);
	int (*nvmlDeviceGetComputeRunningProcesses_v3)(void *, unsigned *, struct nvml_process *);
} nvml;
static void *nvml_device;

static bool nvml_open(void)
{
	void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW);

#define NVML(name)                                                                           \
	if (!library || !(*(void **)&nvml.name = dlsym(library, #name))) {                   \
		remark("%s is not to be had: %s", #name, library ? "no symbol" : dlerror()); \
		return false;                                                                \
	}
	NVML(nvmlInit_v2)
	NVML(nvmlDeviceGetHandleByIndex_v2)
	NVML(nvmlDeviceGetMemoryInfo)
	NVML(nvmlDeviceGetComputeRunningProcesses_v3)
	return true;
}

static double now(void)
{
	struct timespec time;

	(void)clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec * 1e6 + (double)time.tv_nsec / 1e3;
}

static bool nvml_begin(void)
{
	const double began = now();
	int r;

	if (!nvml_open())
		return false;
	r = nvml.nvmlInit_v2();
	if (!r)
		r = nvml.nvmlDeviceGetHandleByIndex_v2(0, &nvml_device);
	remark("NVML begins with %d in %.1f ms", r, (now() - began) / 1e3);
	return r == 0;
}

static const char *const steps[] = {
	"before cuInit",   "cuInit",          "primary context",        "a second context",
	"a third context", "1 GiB allocated", "1 MiB + 1, 64 times",    "a module",
	"16 KiB of stack", "freed the 1 GiB", "destroyed two contexts", "released the primary one",
};
enum { STEPS = sizeof(steps) / sizeof(steps[0]) };

static CUcontext primary, created[2];
static CUdeviceptr large;

static CUresult step_pieces(void)
{
	CUdeviceptr piece;
	CUresult r = 0;

	for (int i = 0; i < 64 && !r; i++)
		r = cu.cuMemAlloc_v2(&piece, (1 << 20) + 1);
	return r;
}

static CUresult step_create(int which)
{
	CUcontext popped;
	CUresult r = cu.cuCtxCreate_v2(&created[which], 0, 0);

	return r ? r : cu.cuCtxPopCurrent_v2(&popped);
}

static CUresult step_take(int step)
{
	CUresult r;

	switch (step) {
	case 1:
		return cu.cuInit(0);
	case 2:
		r = cu.cuDevicePrimaryCtxRetain(&primary, 0);
		return r ? r : cu.cuCtxSetCurrent(primary);
	case 3:
	case 4:
		return step_create(step - 3);
	case 5:
		return cu.cuMemAlloc_v2(&large, (size_t)1 << 30);
	case 6:
		return step_pieces();
	case 7:
		return driver_function(kernels_ptx, "nop") ? 0 : 1;
	case 8:
		return cu.cuCtxSetLimit(0, 16384);
	case 9:
		return cu.cuMemFree_v2(large);
	case 10:
		r = cu.cuCtxDestroy_v2(created[0]);
		return r ? r : cu.cuCtxDestroy_v2(created[1]);
	case 11:
		return cu.cuDevicePrimaryCtxRelease_v2(0);
	default:
		return 0;
	}
}

/* Takes a step for each byte that it gets, and answers with what it returned. */
static void walk(int from, int to)
{
	char byte;

	driver_open();
	for (int step = 0; read(from, &byte, 1) == 1; step++) {
		const int r = step_take(step);

		if (write(to, &r, sizeof(r)) != sizeof(r))
			break;
	}
	_exit(0);
}

static double show_step(int step, int result, pid_t pid)
{
	struct nvml_process processes[PROCESSES] = {{0}};
	struct nvml_memory memory = {0};
	unsigned count = PROCESSES;
	double begin = now(), took, own = -1;
	int r = nvml.nvmlDeviceGetComputeRunningProcesses_v3(nvml_device, &count, processes), device;

	took = now() - begin;
	device = nvml.nvmlDeviceGetMemoryInfo(nvml_device, &memory);
	for (unsigned i = 0; i < count && i < PROCESSES && !r; i++)
		if (processes[i].pid == (unsigned)pid)
			own = (double)processes[i].used / MIB;
	remark("%s: %d; the device %d has %.1f MiB in use; asked for processes %d in %.0f us: %u, this one %.1f MiB",
	       steps[step], result, device, (double)memory.used / MIB, r, took, r ? 0 : count, own);
	return own;
}

void ask_contexts(int argc, char **argv)
{
	int there[2], back[2], result = 0;
	double own[STEPS] = {0};
	pid_t pid;

	(void)argc;
	(void)argv;
	if (pipe(there) < 0 || pipe(back) < 0 || (pid = fork()) < 0)
		exit(2);
	if (pid == 0) {
		(void)close(there[1]);
		(void)close(back[0]);
		walk(there[0], back[1]);
	}
	(void)close(there[0]);
	(void)close(back[1]);
	if (!nvml_begin())
		answer(false, "NVML is not to be had");
	for (int step = 0; nvml_device && step < STEPS; step++) {
		if (write(there[1], "", 1) != 1 || read(back[0], &result, sizeof(result)) != sizeof(result))
			break;
		own[step] = show_step(step, result, pid);
	}
	(void)close(there[1]);
	(void)waitpid(pid, NULL, 0);
	answer(own[2] > 0, "NVML knows what a process has: %.1f MiB with a context", own[2]);
	answer(own[5] - own[4] > 1000 && own[5] - own[4] < 1100, "and what it allocates: %.1f MiB more after 1 GiB",
	       own[5] - own[4]);
	answer(own[3] > own[2], "and a second context: %.1f MiB, a third: %.1f MiB", own[3] - own[2], own[4] - own[3]);
}

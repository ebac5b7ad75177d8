/* SPDX-License-Identifier: Apache-2.0 */

#include "vcuda/checkpoint/room.h"

#include <dlfcn.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "vcuda/protocol/start.h"

enum { PROCESSES_MAX = 1024, PATH_SIZE = 4096, PART_MORE = 32 };

/* Above what processes had: for what the driver takes to bring it back. */
#define ROOM_MORE ((uint64_t)256 << 20)
#define ROOM_NOT_KNOWN UINT64_MAX

struct memory {
	uint64_t total, free, used;
};

struct process {
	unsigned pid;
	uint64_t used;
	unsigned instances[2];
};

static struct {
	int (*init)(void);
	int (*count)(unsigned *ret);
	int (*handle)(unsigned index, void **ret);
	int (*memory)(void *gpu, struct memory *ret);
	int (*processes)(void *gpu, unsigned *count, struct process *list);
} nvml;

static void *gpus[START_GPUS]; /* NULL: one that cannot be asked */
static unsigned gpu_count;
static uint64_t free_before[START_GPUS];
static bool known;
static struct start_orders *orders;

/* What root loads is root's. */
static void *room_load_file(const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0 || st.st_uid != 0 || (st.st_mode & (S_IWGRP | S_IWOTH)))
		return NULL;
	return dlopen(path, RTLD_NOW);
}

static void *room_load(const char *library)
{
	_cleanup_free_ char *real = library[0] == '/' ? realpath(library, NULL) : NULL;
	char path[PATH_SIZE];
	void *found = NULL;

	if (real) {
		(void)snprintf(path, sizeof(path), "%s/libnvidia-ml.so.1", dirname(real));
		found = room_load_file(path);
	}
	return found ? found : dlopen("libnvidia-ml.so.1", RTLD_NOW);
}

static bool room_find(void *library, const char *name, void *ret)
{
	*(void **)ret = dlsym(library, name);
	return *(void **)ret;
}

bool room_open(const char *library, struct start_orders *page)
{
	void *found = room_load(library);

	orders = page;
	if (!found || !room_find(found, "nvmlInit_v2", &nvml.init) ||
	    !room_find(found, "nvmlDeviceGetCount_v2", &nvml.count) ||
	    !room_find(found, "nvmlDeviceGetHandleByIndex_v2", &nvml.handle) ||
	    !room_find(found, "nvmlDeviceGetMemoryInfo", &nvml.memory) ||
	    !room_find(found, "nvmlDeviceGetComputeRunningProcesses_v3", &nvml.processes) || nvml.init() ||
	    nvml.count(&gpu_count))
		return false;
	if (gpu_count > START_GPUS)
		gpu_count = START_GPUS;
	for (unsigned i = 0; i < gpu_count; i++)
		if (nvml.handle(i, &gpus[i]))
			gpus[i] = NULL;
	return gpu_count > 0;
}

/* Return: bytes; 0 where it cannot be asked, so that nothing is tried. */
static uint64_t room_measure_free(unsigned i)
{
	struct memory memory;

	return gpus[i] && nvml.memory(gpus[i], &memory) == 0 ? memory.free : 0;
}

static bool room_is_one_of(unsigned pid, const int *pids, int count)
{
	for (int i = 0; i < count; i++)
		if ((unsigned)pids[i] == pid)
			return true;
	return false;
}

/* Return: how much these have of a GPU; 0 if it does not know them. */
static uint64_t room_sum(unsigned i, const int *pids, int count)
{
	static struct process list[PROCESSES_MAX];
	unsigned listed = PROCESSES_MAX;
	uint64_t sum = 0;

	if (!gpus[i] || nvml.processes(gpus[i], &listed, list))
		return 0;
	for (unsigned k = 0; k < listed && k < PROCESSES_MAX; k++)
		if (list[k].used != ROOM_NOT_KNOWN && room_is_one_of(list[k].pid, pids, count))
			sum += list[k].used;
	return sum;
}

void room_note(const int *pids, int count)
{
	known = false;
	for (unsigned i = 0; i < gpu_count; i++) {
		const uint64_t bytes = room_sum(i, pids, count);

		free_before[i] = room_measure_free(i);
		known = known || bytes > 0;
		/* Processes that were saved already have nothing now: what was written down then holds. */
		if (bytes > orders->away[i])
			orders->away[i] = bytes;
	}
}

void room_note_freed(void)
{
	for (unsigned i = 0; i < gpu_count && !known; i++) {
		const uint64_t now = room_measure_free(i);

		if (now > free_before[i] && now - free_before[i] > orders->away[i])
			orders->away[i] = now - free_before[i];
	}
}

bool room_is_there(void)
{
	for (unsigned i = 0; i < START_GPUS; i++) {
		const uint64_t away = orders->away[i];

		if (away && (i >= gpu_count || room_measure_free(i) < away + away / PART_MORE + ROOM_MORE))
			return false;
	}
	return true;
}

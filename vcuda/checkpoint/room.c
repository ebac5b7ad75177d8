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
	int (*handle)(const char *uuid, void **ret);
	int (*memory)(void *gpu, struct memory *ret);
	int (*processes)(void *gpu, unsigned *count, struct process *list);
} nvml;

static void *gpus[START_GPUS]; /* by number; NULL: one that cannot be asked */
static unsigned gpu_count;
static uint64_t free_before[START_GPUS];
static bool known[START_GPUS]; /* NVML said what these processes have of it */
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

bool room_open(const char *library, struct start_orders *page, const char *const *names, unsigned count)
{
	void *found = room_load(library);

	orders = page;
	if (!found || !room_find(found, "nvmlInit_v2", &nvml.init) ||
	    !room_find(found, "nvmlDeviceGetHandleByUUID", &nvml.handle) ||
	    !room_find(found, "nvmlDeviceGetMemoryInfo", &nvml.memory) ||
	    !room_find(found, "nvmlDeviceGetComputeRunningProcesses_v3", &nvml.processes) || nvml.init())
		return false;
	for (; gpu_count < count && gpu_count < START_GPUS; gpu_count++)
		if (nvml.handle(names[gpu_count], &gpus[gpu_count]))
			gpus[gpu_count] = NULL;
	return gpu_count > 0;
}

/* Return: bytes; 0 where it cannot be asked, so that nothing is tried. */
static uint64_t room_measure_free(unsigned gpu)
{
	struct memory memory;

	return gpus[gpu] && nvml.memory(gpus[gpu], &memory) == 0 ? memory.free : 0;
}

/* Return: which of a server's GPUs is on this one. */
static unsigned room_number(const struct room_process *process, unsigned gpu)
{
	for (unsigned number = 0; number < gpu_count; number++)
		if (start_place(orders->places[process->slot], number) == gpu)
			return number;
	return gpu;
}

/*
 * Adds what these have of a GPU to the numbers under which they have it, and to *all. Return: whether NVML says it of
 * all that it lists.
 */
static bool room_sum(unsigned gpu, const struct room_process *processes, int count, uint64_t *sums, uint64_t *all)
{
	static struct process list[PROCESSES_MAX];
	unsigned listed = PROCESSES_MAX;
	bool said = true;

	if (!gpus[gpu] || nvml.processes(gpus[gpu], &listed, list))
		return false;
	for (unsigned k = 0; k < listed && k < PROCESSES_MAX; k++)
		for (int i = 0; i < count; i++) {
			if (list[k].pid != (unsigned)processes[i].pid)
				continue;
			said = said && list[k].used != ROOM_NOT_KNOWN;
			sums[room_number(&processes[i], gpu)] += list[k].used == ROOM_NOT_KNOWN ? 0 : list[k].used;
			*all += list[k].used == ROOM_NOT_KNOWN ? 0 : list[k].used;
		}
	return said;
}

/* Of processes that were saved already there is nothing now: what was written down then holds. */
static void room_write_down(unsigned number, uint64_t bytes)
{
	if (bytes > orders->away[number])
		orders->away[number] = bytes;
}

void room_note(const struct room_process *processes, int count)
{
	static bool again;
	uint64_t sums[START_GPUS] = {0}, all = 0;

	for (unsigned gpu = 0; gpu < gpu_count; gpu++) {
		/* At a second try some may be away already. */
		if (!again)
			free_before[gpu] = room_measure_free(gpu);
		known[gpu] = room_sum(gpu, processes, count, sums, &all);
	}
	/* One that lists none of them on any GPU knows them by other numbers. */
	for (unsigned gpu = 0; gpu < gpu_count; gpu++)
		known[gpu] = known[gpu] && all > 0;
	for (unsigned number = 0; number < gpu_count; number++)
		room_write_down(number, sums[number]);
	again = true;
}

void room_note_freed(const struct room_process *processes, int count)
{
	for (unsigned gpu = 0; gpu < gpu_count && count > 0; gpu++) {
		const uint64_t now = room_measure_free(gpu);

		if (!known[gpu] && now > free_before[gpu])
			room_write_down(room_number(&processes[0], gpu), now - free_before[gpu]);
	}
}

/* Return: how much there is for what comes back to it. */
static uint64_t room_measure(unsigned gpu, const struct room_process *processes, int count)
{
	uint64_t sums[START_GPUS] = {0}, there = 0;

	(void)room_sum(gpu, processes, count, sums, &there);
	return room_measure_free(gpu) + there;
}

bool room_is_there(uint64_t places, const struct room_process *processes, int count)
{
	for (unsigned number = 0; number < START_GPUS; number++) {
		const uint64_t away = orders->away[number];
		const unsigned gpu = start_place(places, number);

		if (away &&
		    (gpu >= gpu_count || room_measure(gpu, processes, count) < away + away / PART_MORE + ROOM_MORE))
			return false;
	}
	return true;
}

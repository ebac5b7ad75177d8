/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What of libnvidia-ml.so.1 says how much of a GPU a process has, of the simulated driver that it has loaded, and sensors. As with a
 * real one, a process is counted as soon as it has a context.
 */

#include <dlfcn.h>
#include <glob.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NOT_SUPPORTED = 3, NOT_FOUND = 6, INSUFFICIENT_SIZE = 7, UNKNOWN = 999 };

struct process {
	unsigned pid;
	unsigned long long used;
	unsigned instances[2];
};

static int (*uses)(int ordinal, unsigned long long *ret);
static char mode[16];

int nvmlInit_v2(void);
int nvmlDeviceGetHandleByPciBusId_v2(const char *address, void **ret);
int nvmlDeviceGetComputeRunningProcesses_v3(void *gpu, unsigned *count, struct process *list);

/* Return: whether there is a way to a file beside this library. */
static int nvml_find_file(const char *name, char ret[static PATH_MAX])
{
	const char *end;
	Dl_info info;

	if (!dladdr((void *)nvmlInit_v2, &info) || !(end = strrchr(info.dli_fname, '/')))
		return 0;
	(void)snprintf(ret, PATH_MAX, "%.*s/%s", (int)(end - info.dli_fname), info.dli_fname, name);
	return 1;
}

static void nvml_read_conf(void)
{
	char path[PATH_MAX], line[1024];
	FILE *file = nvml_find_file("sim.conf", path) ? fopen(path, "re") : NULL;

	while (file && fgets(line, sizeof(line), file)) {
		(void)sscanf(line, "NVML=%15s", mode);
	}
	if (file)
		(void)fclose(file);
}

static int nvml_use_nothing(int ordinal, unsigned long long *ret)
{
	(void)ordinal;
	*ret = 0;
	return 0;
}

int nvmlInit_v2(void)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);

	nvml_read_conf();
	if (driver)
		*(void **)&uses = dlsym(driver, "cuSimulationUses");
	/* One that asks of others has not loaded the driver yet. */
	if (!driver)
		uses = nvml_use_nothing;
	return uses && strcmp(mode, "none") != 0 ? 0 : UNKNOWN;
}

/* As the simulated driver has it. */
int nvmlDeviceGetHandleByPciBusId_v2(const char *address, void **ret)
{
	unsigned bus;

	if (sscanf(address, "0000:%x:00.0", &bus) != 1 || bus < 0x10)
		return NOT_FOUND;
	*ret = (void *)(uintptr_t)(bus - 0xf);
	return 0;
}

/* As the thread of the simulated driver says it that others ask. */
static int nvml_is_on(const char *name, int place)
{
	unsigned places;

	return sscanf(name, "simcp %*d %*d %x", &places) == 1 && places & 1U << place;
}

/* Who has something there, as far as this may look: others' processes that can be suspended. */
static unsigned nvml_list_others(int place, struct process *list, unsigned most)
{
	glob_t found = {0};
	unsigned count = 0;

	if (glob("/proc/[0-9]*/task/*/comm", GLOB_NOSORT, NULL, &found))
		return 0;
	for (size_t i = 0; i < found.gl_pathc && count < most; i++) {
		FILE *file = fopen(found.gl_pathv[i], "re");
		char name[32] = "";

		const int pid = atoi(found.gl_pathv[i] + strlen("/proc/"));

		if (file && fgets(name, sizeof(name), file) && nvml_is_on(name, place) && pid != getpid())
			list[count++] = (struct process){.pid = (unsigned)pid, .used = 1 << 20};
		if (file)
			(void)fclose(file);
	}
	globfree(&found);
	return count;
}

int nvmlDeviceGetComputeRunningProcesses_v3(void *gpu, unsigned *count, struct process *list)
{
	unsigned long long used = 0;
	const unsigned most = *count;
	const int found = uses((int)(uintptr_t)gpu - 1, &used) || strcmp(mode, "early") == 0;

	if (*count < 2)
		return INSUFFICIENT_SIZE;
	/* Somebody else has most of it. A context takes a little even if it takes nothing that is counted here. */
	list[0] = (struct process){.pid = 1, .used = 1ULL << 33};
	list[1] = (struct process){.pid = (unsigned)getpid(), .used = strcmp(mode, "zero") == 0 ? 0 : used ? used : 1};
	*count = found ? 2 : 1;
	/* Servers see no others, but for those whose files are not limited. */
	if (!found)
		*count += nvml_list_others((int)(uintptr_t)gpu - 1, list + 1, most - 2);
	return 0;
}

static int nvml_has_file(const char *name)
{
	char path[PATH_MAX];

	return nvml_find_file(name, path) && access(path, F_OK) == 0;
}

/* ---- what happens to GPUs, as files beside this one say ---- */

enum { TIMEOUT = 10, GPU_IS_LOST = 15, XID_EVENT = 8, FIELD_RECOVERY_ACTION = 230, LOOK_US = 20000 };

/* Return: a file beside this library; NULL. */
static FILE *nvml_open(const char *name)
{
	char path[PATH_MAX];
	const char *end;
	Dl_info info;

	if (!dladdr((void *)nvmlInit_v2, &info) || !(end = strrchr(info.dli_fname, '/')))
		return NULL;
	(void)snprintf(path, sizeof(path), "%.*s/%s", (int)(end - info.dli_fname), info.dli_fname, name);
	return fopen(path, "re");
}

/* "lost" has the numbers of GPUs that are. */
static int nvml_is_lost(void *gpu)
{
	FILE *file = nvml_open("lost");
	unsigned number;
	int lost = 0;

	while (file && fscanf(file, "%u", &number) == 1)
		lost |= number + 1 == (uintptr_t)gpu;
	if (file)
		(void)fclose(file);
	return lost;
}

int nvmlDeviceGetHandleByUUID(const char *uuid, void **ret);
int nvmlDeviceGetHandleByUUID(const char *uuid, void **ret)
{
	FILE *file = nvml_open("sim.conf");
	char line[1024], wanted[33];
	unsigned length = 0;
	const char *found = NULL;

	for (uuid += strlen("GPU-"); *uuid && length < sizeof(wanted) - 1; uuid++)
		if (*uuid != '-')
			wanted[length++] = *uuid;
	wanted[length] = '\0';
	while (file && !found && fgets(line, sizeof(line), file))
		found = strncmp(line, "UUIDS=", strlen("UUIDS=")) == 0 ? strstr(line, wanted) : NULL;
	if (file)
		(void)fclose(file);
	if (!found)
		return NOT_FOUND;
	*ret = (void *)(uintptr_t)(1 + (size_t)(found - line - (long)strlen("UUIDS=")) / sizeof(wanted));
	return nvml_is_lost(*ret) ? GPU_IS_LOST : 0;
}

int nvmlEventSetCreate(void **ret);
int nvmlEventSetCreate(void **ret)
{
	*ret = calloc(1, sizeof(long));
	return *ret ? 0 : UNKNOWN;
}

int nvmlDeviceRegisterEvents(void *gpu, unsigned long long kinds, void *set);
int nvmlDeviceRegisterEvents(void *gpu, unsigned long long kinds, void *set)
{
	(void)gpu;
	return set && kinds == XID_EVENT ? 0 : NOT_SUPPORTED;
}

struct event {
	void *gpu;
	unsigned long long kind, number;
	unsigned instances[2];
};

/* "xid" has a GPU's number and an error's in each line. The set is where it was read to. */
static int nvml_read_event(long *at, struct event *ret)
{
	FILE *file = nvml_open("xid");
	unsigned gpu, number;
	int count = 0;

	if (file && fseek(file, *at, SEEK_SET) == 0)
		count = fscanf(file, "%u %u\n", &gpu, &number);
	if (count == 2) {
		*at = ftell(file);
		*ret = (struct event){(void *)(uintptr_t)(gpu + 1), XID_EVENT, number, {~0U, ~0U}};
	}
	if (file)
		(void)fclose(file);
	return count == 2;
}

int nvmlEventSetWait_v2(void *set, struct event *ret, unsigned milliseconds);
int nvmlEventSetWait_v2(void *set, struct event *ret, unsigned milliseconds)
{
	for (unsigned us = 0; us <= milliseconds * 1000; us += LOOK_US) {
		if (nvml_read_event(set, ret))
			return 0;
		(void)usleep(LOOK_US);
	}
	return TIMEOUT;
}

struct field {
	unsigned field, scope;
	long long stamp, latency;
	int type, result;
	unsigned value[2];
};

/* "action" has, for each GPU, what is to be done. */
int nvmlDeviceGetFieldValues(void *gpu, int count, struct field *fields);
int nvmlDeviceGetFieldValues(void *gpu, int count, struct field *fields)
{
	FILE *file = nvml_open("action");

	if (count != 1 || fields->field != FIELD_RECOVERY_ACTION)
		return NOT_SUPPORTED;
	fields->value[0] = 0;
	for (uintptr_t i = 0; file && i < (uintptr_t)gpu; i++)
		(void)!fscanf(file, "%u", &fields->value[0]);
	if (file)
		(void)fclose(file);
	fields->result = 0;
	return 0;
}

/* Beside a file "full" nothing is free; beside one "full-1" nothing of that GPU. */
int nvmlDeviceGetMemoryInfo(void *gpu, unsigned long long ret[3]);
int nvmlDeviceGetMemoryInfo(void *gpu, unsigned long long ret[3])
{
	char name[32];

	if (nvml_is_lost(gpu))
		return GPU_IS_LOST;
	(void)snprintf(name, sizeof(name), "full-%d", (int)(uintptr_t)gpu - 1);
	ret[0] = 80ULL << 30;
	ret[1] = nvml_has_file("full") || nvml_has_file(name) ? 0 : ret[0];
	ret[2] = ret[0] - ret[1];
	return 0;
}

/* ---- sensors: numbers that are another for each GPU and each function ---- */

/* A card without fans, and without a clock of its video engine. */
#define SENSOR(name, number)                                \
	int name(void *gpu, unsigned *ret);                 \
	int name(void *gpu, unsigned *ret)                  \
	{                                                   \
		*ret = (number) + (unsigned)(uintptr_t)gpu; \
		return 0;                                   \
	}
#define SENSOR_OF_KIND(name, kinds, number)                                       \
	int name(void *gpu, int kind, unsigned *ret);                             \
	int name(void *gpu, int kind, unsigned *ret)                              \
	{                                                                         \
		*ret = (number) + 10 * (unsigned)kind + (unsigned)(uintptr_t)gpu; \
		return kind >= 0 && kind < (kinds) ? 0 : NOT_SUPPORTED;           \
	}

SENSOR_OF_KIND(nvmlDeviceGetTemperature, 1, 40)
SENSOR_OF_KIND(nvmlDeviceGetTemperatureThreshold, 2, 100)
SENSOR_OF_KIND(nvmlDeviceGetClockInfo, 3, 1000)
SENSOR(nvmlDeviceGetPowerUsage, 70000)
SENSOR(nvmlDeviceGetEnforcedPowerLimit, 700000)
SENSOR(nvmlDeviceGetPowerManagementDefaultLimit, 710000)
SENSOR(nvmlDeviceGetPerformanceState, 1)
SENSOR(nvmlDeviceGetPersistenceMode, 0)
SENSOR(nvmlDeviceGetBrand, 4)
SENSOR(nvmlDeviceGetCurrPcieLinkGeneration, 2)
SENSOR(nvmlDeviceGetCurrPcieLinkWidth, 8)
SENSOR(nvmlDeviceGetMaxPcieLinkGeneration, 3)
SENSOR(nvmlDeviceGetMaxPcieLinkWidth, 15)

int nvmlDeviceGetFanSpeed(void *gpu, unsigned *ret);
int nvmlDeviceGetFanSpeed(void *gpu, unsigned *ret)
{
	(void)gpu;
	*ret = 50;
	return NOT_SUPPORTED;
}

int nvmlDeviceGetUtilizationRates(void *gpu, unsigned ret[2]);
int nvmlDeviceGetUtilizationRates(void *gpu, unsigned ret[2])
{
	ret[0] = 20 + (unsigned)(uintptr_t)gpu;
	ret[1] = 10 + (unsigned)(uintptr_t)gpu;
	return 0;
}

struct pci {
	char legacy[16];
	unsigned place[3], device, subsystem;
	char address[32];
};

int nvmlDeviceGetPciInfo_v3(void *gpu, struct pci *ret);
int nvmlDeviceGetPciInfo_v3(void *gpu, struct pci *ret)
{
	*ret = (struct pci){.device = 0x233010de, .subsystem = 0x16c110de + (unsigned)(uintptr_t)gpu};
	return 0;
}

/* Links 0 and 1 of each GPU, to a switch at 00:05:03. */
enum { LINKS = 2, INVALID_ARGUMENT = 2 };

int nvmlDeviceGetNvLinkState(void *gpu, unsigned link, int *ret);
int nvmlDeviceGetNvLinkState(void *gpu, unsigned link, int *ret)
{
	(void)gpu;
	*ret = link == 0;
	return link < LINKS ? 0 : INVALID_ARGUMENT;
}

/* By NVLink alone: of the rest CUDA is asked. */
int nvmlDeviceGetP2PStatus(void *gpu, void *peer, int kind, int *ret);
int nvmlDeviceGetP2PStatus(void *gpu, void *peer, int kind, int *ret)
{
	enum { NVLINK = 2, SAME_GPU = 1 };

	*ret = gpu == peer ? SAME_GPU : 0;
	return kind == NVLINK ? 0 : INVALID_ARGUMENT;
}

int nvmlDeviceGetNvLinkVersion(void *gpu, unsigned link, unsigned *ret);
int nvmlDeviceGetNvLinkVersion(void *gpu, unsigned link, unsigned *ret)
{
	(void)gpu;
	*ret = 4;
	return link < LINKS ? 0 : INVALID_ARGUMENT;
}

int nvmlDeviceGetNvLinkCapability(void *gpu, unsigned link, int capability, unsigned *ret);
int nvmlDeviceGetNvLinkCapability(void *gpu, unsigned link, int capability, unsigned *ret)
{
	(void)gpu;
	*ret = capability % 2 == 0;
	return link < LINKS ? 0 : INVALID_ARGUMENT;
}

int nvmlDeviceGetNvLinkRemoteDeviceType(void *gpu, unsigned link, int *ret);
int nvmlDeviceGetNvLinkRemoteDeviceType(void *gpu, unsigned link, int *ret)
{
	(void)gpu;
	*ret = 2;
	return link < LINKS ? 0 : INVALID_ARGUMENT;
}

int nvmlDeviceGetNvLinkRemotePciInfo_v2(void *gpu, unsigned link, void *ret);
int nvmlDeviceGetNvLinkRemotePciInfo_v2(void *gpu, unsigned link, void *ret)
{
	const unsigned numbers[] = {0, 5, 3, 0x22a310de};

	(void)gpu;
	memcpy((char *)ret + 16, numbers, sizeof(numbers));
	return link < LINKS ? 0 : INVALID_ARGUMENT;
}

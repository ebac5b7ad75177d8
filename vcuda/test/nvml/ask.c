/* SPDX-License-Identifier: Apache-2.0 */

/*
 * ask init: what nvmlInit() answers. ask list: a line a GPU. ask sensors|no-sensors GPUS: what these have, as TAP. ask GPUS BYTES DRIVER: what a container's NVML answers, as TAP: GPUS devices, BYTES of memory at most, a driver of that version.
 * What it says is held against what CUDA says in the same process.
 */

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "vcuda/nvml/types.h"

/* clang-format off */
#define FUNCTIONS(X) \
	X(nvmlInit_v2, (void)) X(nvmlInit, (void)) X(nvmlShutdown, (void)) X(nvmlSystemGetDriverVersion, (char *, unsigned)) \
	X(nvmlSystemGetNVMLVersion, (char *, unsigned)) X(nvmlSystemGetCudaDriverVersion_v2, (int *)) \
	X(nvmlSystemGetProcessName, (unsigned, char *, unsigned)) X(nvmlInternalGetExportTable, (const void **, const void *)) \
	X(nvmlDeviceGetCount_v2, (unsigned *)) X(nvmlDeviceGetHandleByIndex_v2, (unsigned, nvmlDevice_t *)) \
	X(nvmlDeviceGetHandleByUUID, (const char *, nvmlDevice_t *)) \
	X(nvmlDeviceGetHandleByPciBusId_v2, (const char *, nvmlDevice_t *)) X(nvmlDeviceGetIndex, (nvmlDevice_t, unsigned *)) \
	X(nvmlDeviceGetName, (nvmlDevice_t, char *, unsigned)) X(nvmlDeviceGetUUID, (nvmlDevice_t, char *, unsigned)) \
	X(nvmlDeviceGetPciInfo_v3, (nvmlDevice_t, nvmlPciInfo_t *)) X(nvmlDeviceGetPciInfo_v2, (nvmlDevice_t, nvmlPciInfo_t *)) \
	X(nvmlDeviceGetMemoryInfo, (nvmlDevice_t, nvmlMemory_t *)) X(nvmlDeviceGetMemoryInfo_v2, (nvmlDevice_t, nvmlMemory_v2_t *)) \
	X(nvmlDeviceGetCudaComputeCapability, (nvmlDevice_t, int *, int *)) \
	X(nvmlDeviceGetComputeRunningProcesses_v3, (nvmlDevice_t, unsigned *, nvmlProcessInfo_v2_t *)) \
	X(nvmlDeviceGetComputeRunningProcesses, (nvmlDevice_t, unsigned *, nvmlProcessInfo_v1_t *)) \
	X(nvmlDeviceGetGraphicsRunningProcesses_v3, (nvmlDevice_t, unsigned *, nvmlProcessInfo_v2_t *)) \
	X(nvmlDeviceGetUtilizationRates, (nvmlDevice_t, nvmlUtilization_t *)) X(nvmlDeviceGetFanSpeed, (nvmlDevice_t, unsigned *)) \
	X(nvmlDeviceGetTemperature, (nvmlDevice_t, int, unsigned *)) X(nvmlDeviceGetTemperatureV, (nvmlDevice_t, nvmlTemperature_t *)) \
	X(nvmlDeviceGetTemperatureThreshold, (nvmlDevice_t, int, unsigned *)) X(nvmlDeviceGetClockInfo, (nvmlDevice_t, int, unsigned *)) \
	X(nvmlDeviceGetPowerUsage, (nvmlDevice_t, unsigned *)) X(nvmlDeviceGetEnforcedPowerLimit, (nvmlDevice_t, unsigned *)) \
	X(nvmlDeviceGetPowerManagementDefaultLimit, (nvmlDevice_t, unsigned *)) X(nvmlDeviceGetPerformanceState, (nvmlDevice_t, unsigned *)) \
	X(nvmlDeviceGetPersistenceMode, (nvmlDevice_t, unsigned *)) X(nvmlDeviceGetMaxPcieLinkWidth, (nvmlDevice_t, unsigned *)) \
	X(nvmlDeviceGetMinorNumber, (nvmlDevice_t, unsigned *)) X(nvmlDeviceSetPersistenceMode, (nvmlDevice_t, int)) \
	X(nvmlEventSetCreate, (nvmlEventSet_t *)) X(nvmlEventSetFree, (nvmlEventSet_t)) \
	X(nvmlEventSetWait_v2, (nvmlEventSet_t, nvmlEventData_t *, unsigned)) \
	X(nvmlDeviceGetP2PStatus, (nvmlDevice_t, nvmlDevice_t, int, int *)) X(nvmlDeviceGetNvLinkState, (nvmlDevice_t, unsigned, int *)) \
	X(nvmlDeviceGetNvLinkVersion, (nvmlDevice_t, unsigned, unsigned *)) \
	X(nvmlDeviceGetNvLinkCapability, (nvmlDevice_t, unsigned, int, unsigned *)) \
	X(nvmlDeviceGetNvLinkRemoteDeviceType, (nvmlDevice_t, unsigned, int *)) \
	X(nvmlDeviceGetNvLinkRemotePciInfo_v2, (nvmlDevice_t, unsigned, nvmlPciInfo_t *)) \
	X(nvmlDeviceGetFieldValues, (nvmlDevice_t, int, nvmlFieldValue_t *)) \
	X(cuInit, (unsigned)) X(cuDeviceGetCount, (int *)) X(cuDeviceGetUuid, (unsigned char *, int)) \
	X(cuDeviceGetName, (char *, int, int)) X(cuDeviceGetPCIBusId, (char *, int, int)) X(cuDevicePrimaryCtxRetain, (void **, int)) \
	X(cuCtxSetCurrent, (void *)) X(cuMemAlloc_v2, (unsigned long long *, size_t)) X(cuMemFree_v2, (unsigned long long))
/* clang-format on */

static struct {
#define X(name, arguments) int(*name) arguments;
	FUNCTIONS(X)
#undef X
	const char *(*error)(int);
} api;

enum { MOST = 8, ALLOCATED = 3 << 20 };

static int checks, failures;

static void check(bool holds, const char *what)
{
	printf("%sok %d - %s\n", holds ? "" : "not ", ++checks, what);
	failures += !holds;
}

static bool load(void)
{
	void *nvml = dlopen("libnvidia-ml.so.1", RTLD_NOW), *cuda = dlopen("libcuda.so.1", RTLD_NOW);

	if (!nvml || !cuda) {
		puts(dlerror());
		return false;
	}
#define X(name, arguments) *(void **)&api.name = dlsym(#name[0] == 'n' ? nvml : cuda, #name);
	FUNCTIONS(X)
#undef X
	*(void **)&api.error = dlsym(nvml, "nvmlErrorString");
#define X(name, arguments) \
	if (!api.name)     \
		return puts("no " #name) < 0;
	FUNCTIONS(X)
#undef X
	return api.error;
}

static void ask_before(void)
{
	unsigned count;

	check(api.nvmlDeviceGetCount_v2(&count) == NVML_ERROR_UNINITIALIZED &&
		      api.nvmlShutdown() == NVML_ERROR_UNINITIALIZED,
	      "nothing is answered before nvmlInit()");
	check(api.nvmlDeviceGetUtilizationRates(NULL, NULL) == NVML_ERROR_UNINITIALIZED, "nor by what is not offered");
	check(strcmp(api.error(0), "Success") == 0 && strcmp(api.error(3), "Not Supported") == 0 &&
		      strcmp(api.error(999), "Unknown Error") == 0 && strcmp(api.error(-1), "Unknown Error") == 0,
	      "errors have texts at any time");
}

static void ask_versions(const char *driver)
{
	char text[80] = "", nvml[80] = "";
	int cuda = 0;

	check(api.nvmlSystemGetDriverVersion(text, sizeof(text)) == 0 && strcmp(text, driver) == 0,
	      "the driver's version");
	check(api.nvmlSystemGetDriverVersion(text, (unsigned)strlen(driver)) == NVML_ERROR_INSUFFICIENT_SIZE,
	      "with too little room for it");
	check(api.nvmlSystemGetNVMLVersion(nvml, sizeof(nvml)) == 0 && strcmp(nvml + 3, driver) == 0, "NVML's version");
	check(api.nvmlSystemGetCudaDriverVersion_v2(&cuda) == 0 && cuda >= 12000 && cuda <= 13000, "CUDA's version");
	check(api.nvmlSystemGetProcessName((unsigned)getpid(), text, sizeof(text)) == 0 && strstr(text, "ask"),
	      "a process's name");
	check(api.nvmlSystemGetProcessName(0x7fffffff, text, sizeof(text)) == NVML_ERROR_NOT_FOUND,
	      "of one that there is not");
}

static void ask_devices(unsigned expected)
{
	unsigned count = 0;
	nvmlDevice_t device;
	int cuda = 0;

	check(api.nvmlDeviceGetCount_v2(&count) == 0 && count == expected, "as many GPUs as were granted");
	check(api.cuInit(0) == 0 && api.cuDeviceGetCount(&cuda) == 0 && (unsigned)cuda == count, "as CUDA has");
	check(api.nvmlDeviceGetHandleByIndex_v2(count, &device) == NVML_ERROR_INVALID_ARGUMENT, "and no more");
	check(api.nvmlDeviceGetHandleByUUID("GPU-00000000-0000-0000-0000-000000000000", &device) ==
		      NVML_ERROR_NOT_FOUND,
	      "none by a UUID of another");
	check(api.nvmlDeviceGetHandleByPciBusId_v2("0000:fe:00.0", &device) == NVML_ERROR_NOT_FOUND &&
		      api.nvmlDeviceGetHandleByPciBusId_v2("nonsense", &device) == NVML_ERROR_INVALID_ARGUMENT &&
		      api.nvmlDeviceGetHandleByPciBusId_v2("", &device) == NVML_ERROR_INVALID_ARGUMENT &&
		      api.nvmlDeviceGetHandleByPciBusId_v2("123456789abcdef:1:2.0", &device) ==
			      NVML_ERROR_INVALID_ARGUMENT,
	      "none by an address of another, or of nothing");
	check(api.nvmlDeviceGetName((nvmlDevice_t)(void *)&device, (char[64]){0}, 64) == NVML_ERROR_INVALID_ARGUMENT &&
		      api.nvmlDeviceGetName(NULL, (char[64]){0}, 64) == NVML_ERROR_INVALID_ARGUMENT,
	      "nothing of a handle that is none");
}

static bool same_uuid(const char *text, int ordinal)
{
	unsigned char bytes[16];
	char own[48] = "GPU-";

	if (api.cuDeviceGetUuid(bytes, ordinal) != 0)
		return false;
	for (int i = 0, at = 4; i < 16; i++)
		at += sprintf(own + at, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", bytes[i]);
	return strcmp(text, own) == 0;
}

static void ask_device(unsigned index)
{
	nvmlDevice_t device = NULL, other = NULL;
	char text[96] = "", cuda[96] = "";
	unsigned number = 99;
	nvmlPciInfo_t pci = {.busId = "untouched"};
	int major = 0, minor = -1;

	check(api.nvmlDeviceGetHandleByIndex_v2(index, &device) == 0 && api.nvmlDeviceGetIndex(device, &number) == 0 &&
		      number == index,
	      "a handle, and its index");
	check(api.nvmlDeviceGetName(device, text, sizeof(text)) == 0 &&
		      api.cuDeviceGetName(cuda, sizeof(cuda), (int)index) == 0 && strcmp(text, cuda) == 0,
	      "its name is CUDA's");
	check(api.nvmlDeviceGetName(device, text, 2) == NVML_ERROR_INSUFFICIENT_SIZE, "which is not cut off");
	check(api.nvmlDeviceGetUUID(device, text, sizeof(text)) == 0 && same_uuid(text, (int)index),
	      "its UUID is CUDA's");
	check(api.nvmlDeviceGetHandleByUUID(text, &other) == 0 && other == device, "by which it is found");
	check(api.nvmlDeviceGetPciInfo_v2(device, &pci) == 0 && strcmp(pci.busId, "untouched") == 0,
	      "an older struct is not written beyond its end");
	check(api.nvmlDeviceGetPciInfo_v3(device, &pci) == 0 && strlen(pci.busId) == 16 &&
		      api.cuDeviceGetPCIBusId(cuda, sizeof(cuda), (int)index) == 0 &&
		      strcasecmp(pci.busId + 4, cuda) == 0 && strcasecmp(pci.busIdLegacy, cuda) == 0,
	      "its address is CUDA's");
	for (int i = 0; i < 3; i++) {
		const char *forms[] = {pci.busId, pci.busIdLegacy, pci.busIdLegacy + 5};

		other = NULL;
		check(api.nvmlDeviceGetHandleByPciBusId_v2(forms[i], &other) == 0 && other == device,
		      "by which it is found, in each form");
	}
	check(api.nvmlDeviceGetCudaComputeCapability(device, &major, &minor) == 0 && major >= 5 && minor >= 0,
	      "its compute capability");
	check(api.nvmlDeviceGetMinorNumber(device, &number) == NVML_ERROR_NOT_SUPPORTED &&
		      api.nvmlDeviceSetPersistenceMode(device, 1) == NVML_ERROR_NOT_SUPPORTED,
	      "nodes and settings are not supported");
}

static void ask_memory(unsigned long long most)
{
	nvmlMemory_v2_t again = {.version = NVML_VERSION(nvmlMemory_v2_t, 2)};
	nvmlProcessInfo_v1_t older[MOST];
	nvmlProcessInfo_v2_t processes[MOST];
	nvmlMemory_t before = {0}, after = {0};
	unsigned long long pointer = 0;
	unsigned count = MOST;
	nvmlDevice_t device;
	void *context;

	(void)api.nvmlDeviceGetHandleByIndex_v2(0, &device);
	check(api.nvmlDeviceGetComputeRunningProcesses_v3(device, &count, processes) == 0 && count == 0,
	      "no process where none has a context");
	check(api.nvmlDeviceGetMemoryInfo(device, &before) == 0 && before.total == most && before.used == 0 &&
		      before.free == most,
	      "all of the quota is free");
	check(api.cuDevicePrimaryCtxRetain(&context, 0) == 0 && api.cuCtxSetCurrent(context) == 0 &&
		      api.cuMemAlloc_v2(&pointer, ALLOCATED) == 0,
	      "CUDA takes some");
	check(api.nvmlDeviceGetMemoryInfo(device, &after) == 0 && after.used >= ALLOCATED &&
		      after.used < 2 * ALLOCATED && after.free == most - after.used && after.total == most,
	      "which is seen");
	check(api.nvmlDeviceGetMemoryInfo_v2(device, &again) == 0 && again.used == after.used && again.reserved == 0,
	      "in the newer struct, too");
	again.version = 7;
	check(api.nvmlDeviceGetMemoryInfo_v2(device, &again) == NVML_ERROR_ARGUMENT_VERSION_MISMATCH,
	      "but not in one of no version that there is");
	count = MOST;
	check(api.nvmlDeviceGetComputeRunningProcesses_v3(device, &count, processes) == 0 && count == 1 &&
		      processes[0].pid == (unsigned)getpid() && processes[0].usedGpuMemory == after.used,
	      "this process has it");
	count = MOST;
	check(api.nvmlDeviceGetComputeRunningProcesses(device, &count, older) == 0 && count == 1 &&
		      older[0].pid == (unsigned)getpid(),
	      "in the older struct, too");
	count = 0;
	check(api.nvmlDeviceGetComputeRunningProcesses_v3(device, &count, NULL) == NVML_ERROR_INSUFFICIENT_SIZE &&
		      count == 1,
	      "how many there are is told where there is no room");
	count = MOST;
	check(api.nvmlDeviceGetGraphicsRunningProcesses_v3(device, &count, processes) == 0 && count == 0, "none draws");
	check(api.cuMemFree_v2(pointer) == 0 && api.nvmlDeviceGetMemoryInfo(device, &after) == 0 &&
		      after.used < ALLOCATED,
	      "what is freed is free");
}

/* The list of nvidia-smi 580, by its table: what a program of that version finds there. */
static void ask_table(const char *driver)
{
	static const unsigned char uuid[16] = {0xc4, 0xfe, 0x3e, 0x6c, 0xc9, 0x8f, 0x6c, 0x4e,
					       0xa3, 0x27, 0xee, 0x69, 0x6e, 0x12, 0xf7, 0xc4};
	static struct {
		unsigned long long pid, used;
		unsigned instances[2];
		unsigned long long reserved;
		char name[8224];
	} list[MOST];
	const bool known = strncmp(driver, "580.", 4) == 0;
	int (*const *table)(nvmlDevice_t, unsigned *, void *) = NULL;
	nvmlProcessInfo_v2_t processes[MOST];
	unsigned count = MOST, plain = MOST;
	nvmlDevice_t device = NULL;
	unsigned long long pointer;
	void *context;

	(void)api.nvmlDeviceGetHandleByIndex_v2(0, &device);
	if (api.cuDevicePrimaryCtxRetain(&context, 0) || api.cuCtxSetCurrent(context) ||
	    api.cuMemAlloc_v2(&pointer, ALLOCATED))
		return;
	(void)api.nvmlDeviceGetComputeRunningProcesses_v3(device, &plain, processes);
	check(api.nvmlInternalGetExportTable((const void **)&table, uuid) == 0, "there is nvidia-smi's table");
	if (known) {
		check(table[213](device, &count, list) == 0 && count == 1 && list[0].pid == (unsigned)getpid() &&
			      list[0].used == processes[0].usedGpuMemory && list[0].instances[0] == ~0U &&
			      strcmp(list[0].name + strlen(list[0].name) - strlen("ask"), "ask") == 0,
		      "which lists this process, with its memory and name");
		count = 0;
		check(table[213](device, &count, NULL) == NVML_ERROR_INSUFFICIENT_SIZE && count == 1,
		      "and says how many there are");
	}
	for (int i = known ? 214 : 213; i <= 215; i++) {
		count = MOST;
		check(table[i](device, &count, list) == (known ? 0 : NVML_ERROR_NOT_SUPPORTED) &&
			      count == (known ? 0 : MOST),
		      known ? "none draws or is MPS's" : "of another version it lists nothing");
	}
	(void)api.cuMemFree_v2(pointer);
}

/* As the simulated driver has them: each number, and the GPU's, from 1 on. */
static const struct {
	const char *what;
	unsigned number;
	int (**plain)(nvmlDevice_t, unsigned *);
	int (**of_kind)(nvmlDevice_t, int, unsigned *);
	int kind;
} sensors[] = {
	{"temperature", 40, .of_kind = &api.nvmlDeviceGetTemperature},
	{"temperature of shutdown", 100, .of_kind = &api.nvmlDeviceGetTemperatureThreshold},
	{"temperature of slowdown", 110, .of_kind = &api.nvmlDeviceGetTemperatureThreshold, .kind = 1},
	{"clock of graphics", 1000, .of_kind = &api.nvmlDeviceGetClockInfo},
	{"clock of SM", 1010, .of_kind = &api.nvmlDeviceGetClockInfo, .kind = 1},
	{"clock of memory", 1020, .of_kind = &api.nvmlDeviceGetClockInfo, .kind = 2},
	{"power", 70000, .plain = &api.nvmlDeviceGetPowerUsage},
	{"limit of power", 700000, .plain = &api.nvmlDeviceGetEnforcedPowerLimit},
	{"default limit of power", 710000, .plain = &api.nvmlDeviceGetPowerManagementDefaultLimit},
	{"performance state", 1, .plain = &api.nvmlDeviceGetPerformanceState},
	{"persistence", 0, .plain = &api.nvmlDeviceGetPersistenceMode},
	{"width of the link", 15, .plain = &api.nvmlDeviceGetMaxPcieLinkWidth},
};

/* Those that have a struct of their own. */
static void ask_structs(nvmlDevice_t device, unsigned gpu, bool there, int expected)
{
	nvmlTemperature_t versioned = {.version = NVML_VERSION(nvmlTemperature_t, 1)};
	nvmlUtilization_t used = {0};
	nvmlPciInfo_t pci = {0};

	check(api.nvmlDeviceGetPciInfo_v3(device, &pci) == 0 && pci.pciDeviceId == (there ? 0x233010de : 0) &&
		      pci.pciSubSystemId == (there ? 0x16c110de + gpu : 0),
	      "the number of its model");
	check(api.nvmlDeviceGetUtilizationRates(device, &used) == expected && used.gpu == (there ? 20 + gpu : 0) &&
		      used.memory == (there ? 10 + gpu : 0),
	      "utilization");
	check(api.nvmlDeviceGetTemperatureV(device, &versioned) == expected &&
		      versioned.temperature == (there ? 40 + (int)gpu : 0),
	      "temperature, in a struct");
}

/* Of each GPU two, to a switch. */
static void ask_links(nvmlDevice_t device, bool there, int expected)
{
	/* The last two are of a later nvml.h, and of none. */
	nvmlFieldValue_t fields[5] = {{.fieldId = 165, .nvmlReturn = -1},
				      {.fieldId = 166, .scopeId = 1},
				      {.fieldId = 170},
				      {.fieldId = 273},
				      {.fieldId = 1 << 20}};
	nvmlPciInfo_t pci = {0};
	unsigned version = 0, p2p = 0, system = 9;
	int state[2] = {-1, -1}, type = 0;

	check(api.nvmlDeviceGetNvLinkState(device, 0, &state[0]) == expected &&
		      api.nvmlDeviceGetNvLinkState(device, 1, &state[1]) == expected && state[0] == (there ? 1 : -1) &&
		      state[1] == (there ? 0 : -1),
	      "which links are up");
	check(api.nvmlDeviceGetNvLinkVersion(device, 1, &version) == expected && version == (there ? 4 : 0) &&
		      api.nvmlDeviceGetNvLinkCapability(device, 0, 0, &p2p) == expected && p2p == there &&
		      api.nvmlDeviceGetNvLinkCapability(device, 0, 1, &system) == expected && system == (there ? 0 : 9),
	      "what a link is and can do");
	check(api.nvmlDeviceGetNvLinkRemoteDeviceType(device, 0, &type) == expected && type == (there ? 2 : 0) &&
		      api.nvmlDeviceGetNvLinkRemotePciInfo_v2(device, 0, &pci) == expected &&
		      strcmp(pci.busId, there ? "00000000:05:03.0" : "") == 0 &&
		      strcmp(pci.busIdLegacy, there ? "0000:05:03.0" : "") == 0 &&
		      pci.pciDeviceId == (there ? 0x22a310de : 0),
	      "what is at its other end");
	check(api.nvmlDeviceGetFieldValues(device, 5, fields) == 0 && fields[0].nvmlReturn == expected &&
		      fields[0].value.uiVal == there && fields[0].valueType == 1 &&
		      fields[1].value.uiVal == (there ? 4 : 0) && fields[2].nvmlReturn == NVML_ERROR_NOT_SUPPORTED &&
		      fields[3].nvmlReturn == NVML_ERROR_NOT_SUPPORTED &&
		      fields[4].nvmlReturn == NVML_ERROR_NOT_SUPPORTED,
	      "the same as fields, of which others have no answer");
	check(api.nvmlDeviceGetNvLinkState(device, 2, &state[0]) ==
			      (there ? NVML_ERROR_INVALID_ARGUMENT : NVML_ERROR_NOT_SUPPORTED) &&
		      api.nvmlDeviceGetNvLinkState(device, 64, &state[0]) == NVML_ERROR_INVALID_ARGUMENT &&
		      api.nvmlDeviceGetNvLinkState(device, 0, NULL) == NVML_ERROR_INVALID_ARGUMENT &&
		      api.nvmlDeviceGetNvLinkCapability(device, 0, 6, &p2p) == NVML_ERROR_INVALID_ARGUMENT &&
		      api.nvmlDeviceGetFieldValues(device, 0, fields) == NVML_ERROR_INVALID_ARGUMENT,
	      "links, places and capabilities that there are not");
}

static void ask_sensors(unsigned index, bool there)
{
	const int expected = there ? 0 : NVML_ERROR_NOT_SUPPORTED;
	const unsigned gpu = index + 1;
	nvmlDevice_t device = NULL, first = NULL;
	unsigned value;
	int peer = -1;

	(void)api.nvmlDeviceGetHandleByIndex_v2(index, &device);
	ask_structs(device, gpu, there, expected);
	ask_links(device, there, expected);
	(void)api.nvmlDeviceGetHandleByIndex_v2(0, &first);
	check(api.nvmlDeviceGetP2PStatus(device, first, 2, &peer) == expected && peer == (there ? index == 0 : -1),
	      "whether NVLink leads to the first GPU");
	for (size_t i = 0; i < sizeof(sensors) / sizeof(sensors[0]); i++) {
		value = 0;
		check((sensors[i].plain ? (*sensors[i].plain)(device, &value)
					: (*sensors[i].of_kind)(device, sensors[i].kind, &value)) == expected &&
			      value == (there ? sensors[i].number + gpu : 0),
		      sensors[i].what);
	}
	check(api.nvmlDeviceGetFanSpeed(device, &value) == NVML_ERROR_NOT_SUPPORTED &&
		      api.nvmlDeviceGetClockInfo(device, 3, &value) == NVML_ERROR_NOT_SUPPORTED,
	      "what the card lacks is not supported");
	check(api.nvmlDeviceGetClockInfo(device, 4, &value) == NVML_ERROR_INVALID_ARGUMENT &&
		      api.nvmlDeviceGetClockInfo(device, -1, &value) == NVML_ERROR_INVALID_ARGUMENT &&
		      api.nvmlDeviceGetPowerUsage(device, NULL) == NVML_ERROR_INVALID_ARGUMENT &&
		      api.nvmlDeviceGetPowerUsage((nvmlDevice_t)&api, &value) == NVML_ERROR_INVALID_ARGUMENT,
	      "kinds, places and devices that there are not");
}

/* The simulated GPUs reach each other. */
static void ask_peers(void)
{
	nvmlDevice_t first = NULL, second = NULL;
	int status[3] = {-1, -1, -1};

	(void)api.nvmlDeviceGetHandleByIndex_v2(0, &first);
	check(api.nvmlDeviceGetP2PStatus(first, first, 0, &status[0]) == 0 && status[0] == 0, "a GPU reaches itself");
	check(api.nvmlDeviceGetP2PStatus(first, first, 5, &status[0]) == NVML_ERROR_INVALID_ARGUMENT &&
		      api.nvmlDeviceGetP2PStatus(first, first, -1, &status[0]) == NVML_ERROR_INVALID_ARGUMENT &&
		      api.nvmlDeviceGetP2PStatus(first, first, 0, NULL) == NVML_ERROR_INVALID_ARGUMENT &&
		      api.nvmlDeviceGetP2PStatus(first, (nvmlDevice_t)&api, 0, &status[0]) ==
			      NVML_ERROR_INVALID_ARGUMENT,
	      "ways, places and devices that there are not");
	if (api.nvmlDeviceGetHandleByIndex_v2(1, &second) != 0)
		return;
	check(api.nvmlDeviceGetP2PStatus(first, second, 0, &status[0]) == 0 && status[0] == 0 &&
		      api.nvmlDeviceGetP2PStatus(second, first, 1, &status[1]) == 0 && status[1] == 0 &&
		      api.nvmlDeviceGetP2PStatus(first, second, 3, &status[2]) == 0 && status[2] == 0,
	      "two GPUs read and write each other's memory");
}

static void ask_events(void)
{
	nvmlEventSet_t set = NULL;
	nvmlEventData_t data;

	check(api.nvmlEventSetCreate(&set) == 0 && set &&
		      api.nvmlEventSetWait_v2(set, &data, 1) == NVML_ERROR_TIMEOUT && api.nvmlEventSetFree(set) == 0,
	      "a set of events in which nothing happens");
}

/* A child of fork(2) has no CUDA, but NVML. */
static void ask_in_child(void)
{
	const pid_t child = fork();
	int status = 1;

	if (child == 0) {
		nvmlDevice_t device = NULL;
		nvmlMemory_t memory;
		unsigned count = 0;
		bool holds = api.nvmlDeviceGetCount_v2(&count) == 0 && count > 0;

		holds = holds && api.nvmlDeviceGetHandleByIndex_v2(0, &device) == 0;
		_exit(!(holds && api.nvmlDeviceGetMemoryInfo(device, &memory) == 0 && api.nvmlShutdown() == 0));
	}
	check(child > 0 && waitpid(child, &status, 0) == child && status == 0, "a child of fork(2) can ask");
}

static void *ask_often(void *wrong)
{
	nvmlDevice_t device;
	nvmlMemory_t memory;
	char name[96];

	for (int i = 0; i < 200; i++)
		if (api.nvmlDeviceGetHandleByIndex_v2(0, &device) != 0 ||
		    api.nvmlDeviceGetMemoryInfo(device, &memory) != 0 ||
		    api.nvmlDeviceGetName(device, name, sizeof(name)) != 0)
			*(bool *)wrong = true;
	return NULL;
}

static void ask_at_once(void)
{
	bool wrong[4] = {false};
	pthread_t threads[4];

	for (int i = 0; i < 4; i++)
		wrong[i] |= pthread_create(&threads[i], NULL, ask_often, &wrong[i]) != 0;
	for (int i = 0; i < 4; i++)
		(void)pthread_join(threads[i], NULL);
	check(!wrong[0] && !wrong[1] && !wrong[2] && !wrong[3], "four threads can ask at once");
}

static int ask_list(void)
{
	unsigned count = 0;

	if (api.nvmlInit_v2() != 0 || api.nvmlDeviceGetCount_v2(&count) != 0)
		return 1;
	for (unsigned i = 0; i < count; i++) {
		char name[96] = "", uuid[96] = "";
		nvmlMemory_t memory = {0};
		nvmlDevice_t device;

		if (api.nvmlDeviceGetHandleByIndex_v2(i, &device) != 0 ||
		    api.nvmlDeviceGetName(device, name, sizeof(name)) != 0 ||
		    api.nvmlDeviceGetUUID(device, uuid, sizeof(uuid)) != 0 ||
		    api.nvmlDeviceGetMemoryInfo(device, &memory) != 0)
			return 1;
		printf("GPU %u: %s (UUID: %s): %llu of %llu\n", i, name, uuid, memory.used, memory.total);
	}
	return api.nvmlShutdown();
}

static void *ask_once(void *failed)
{
	nvmlMemory_t memory;
	nvmlDevice_t device;

	*(int *)failed |= api.nvmlDeviceGetHandleByIndex_v2(0, &device) || api.nvmlDeviceGetMemoryInfo(device, &memory);
	return NULL;
}

/* One after the other, more than there is room for at once; a later session begins with all places used. */
static void ask_of_many_threads(void)
{
	enum { THREADS = 1100, LATER = 3 };
	int failed = api.nvmlInit_v2();
	pthread_t thread;

	for (int i = 0; i < THREADS + LATER && !failed; i++) {
		if (i == THREADS)
			failed = api.nvmlShutdown() || api.nvmlInit_v2();
		if (failed || pthread_create(&thread, NULL, ask_once, &failed) || pthread_join(thread, NULL))
			break;
	}
	check(!failed && api.nvmlShutdown() == 0,
	      "threads that have ended leave room for others, in a later session, too");
}

static int ask_all_sensors(unsigned gpus, bool there)
{
	check(api.nvmlInit_v2() == 0, "nvmlInit()");
	for (unsigned i = 0; i < gpus; i++)
		ask_sensors(i, there);
	check(api.nvmlShutdown() == 0, "nvmlShutdown()");
	printf("1..%d\n", checks);
	return failures != 0;
}

int main(int argc, char **argv)
{
	unsigned count = 0;

	if (argc < 2 || !load())
		return 1;
	if (argc == 2 && strcmp(argv[1], "list") == 0)
		return ask_list();
	if (argc == 3)
		return ask_all_sensors((unsigned)atoi(argv[2]), strcmp(argv[1], "sensors") == 0);
	if (argc == 2) {
		const int r = api.nvmlInit_v2();

		return printf("nvmlInit: %d %s\n", r, api.error(r)) < 0;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	ask_before();
	check(api.nvmlInit_v2() == 0, "nvmlInit()");
	ask_versions(argv[3]);
	ask_devices((unsigned)atoi(argv[1]));
	for (unsigned i = 0; i < (unsigned)atoi(argv[1]); i++)
		ask_device(i);
	ask_memory(strtoull(argv[2], NULL, 10));
	ask_table(argv[3]);
	ask_events();
	ask_peers();
	ask_in_child();
	ask_at_once();
	check(api.nvmlInit() == 0 && api.nvmlShutdown() == 0 && api.nvmlDeviceGetCount_v2(&count) == 0,
	      "the session ends with the last nvmlShutdown()");
	check(api.nvmlShutdown() == 0 && api.nvmlDeviceGetCount_v2(&count) == NVML_ERROR_UNINITIALIZED,
	      "and then it ends");
	check(api.nvmlInit_v2() == 0 && api.nvmlDeviceGetCount_v2(&count) == 0 && api.nvmlShutdown() == 0,
	      "another can begin");
	ask_of_many_threads();
	printf("1..%d\n", checks);
	return failures != 0;
}

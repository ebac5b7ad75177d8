/* SPDX-License-Identifier: Apache-2.0 */

#include "driverd/internal.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <wchar.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/paths.h"
#include "base/str.h"
#include "driverd/protocol.h"
#include "dxg/dxg.h"
#include "model/nvml.h"

bool library_load(const char *path, const struct library_symbol *symbols, struct driverd_reply *reply)
{
	void *library = path[0] == '/' ? dlopen(path, RTLD_LAZY | RTLD_LOCAL) : NULL;

	if (!library) {
		answer_failure(reply, DRIVERD_NOT_LOADED, "%s",
			       path[0] == '/' ? dlerror() : "its path is not absolute");
		return false;
	}
	for (; symbols->name; symbols++) {
		void *function = dlsym(library, symbols->name);

		if (!function && !symbols->optional) {
			answer_failure(reply, DRIVERD_NO_SYMBOLS, "it has no %s", symbols->name);
			return false;
		}
		memcpy(symbols->function, &function, sizeof(function));
	}
	return true;
}

/*
 * libdxcore opens /dev/dxg in a static initialiser, so loading it is the first call. Its functions have C linkage and
 * return NTSTATUS, of which negative values are failures (libdxg src/d3dkmt-wsl.cpp). WCHAR is wchar_t there.
 */

typedef int32_t ntstatus;

/* As the kernel interface's negative errno values become NTSTATUS (libdxg, LinuxErrToNTSTATUS). */
#define STATUS_INVALID_PARAMETER ((ntstatus)0xc000000d)
#define STATUS_BUFFER_TOO_SMALL ((ntstatus)0xc0000023)
#define STATUS_NO_MEMORY ((ntstatus)0xc0000017)

static struct {
	ntstatus (*enumerate3)(struct d3dkmt_enumadapters3 *); /* NULL: an older library */
	ntstatus (*enumerate2)(struct d3dkmt_enumadapters2 *);
	ntstatus (*query)(struct d3dkmt_queryadapterinfo *);
	ntstatus (*close)(struct d3dkmt_closeadapter *);
} dxcore;

static const struct library_symbol dxcore_symbols[] = {
	{"D3DKMTEnumAdapters3", &dxcore.enumerate3, true},
	{"D3DKMTEnumAdapters2", &dxcore.enumerate2, false},
	{"D3DKMTQueryAdapterInfo", &dxcore.query, false},
	{"D3DKMTCloseAdapter", &dxcore.close, false},
	{0},
};

static ntstatus last_failure;

static int dxcore_to_errno(ntstatus status)
{
	if (status >= 0)
		return 0;
	last_failure = status;
	switch (status) {
	case STATUS_BUFFER_TOO_SMALL:
		return -EOVERFLOW;
	case STATUS_NO_MEMORY:
		return -ENOMEM;
	case STATUS_INVALID_PARAMETER:
		return -EINVAL;
	default:
		return -EIO;
	}
}

static int dxcore_call_enumerate3(const struct d3dkmt *d3dkmt, struct d3dkmt_enumadapters3 *arguments)
{
	(void)d3dkmt;
	return dxcore.enumerate3 ? dxcore_to_errno(dxcore.enumerate3(arguments)) : -ENOSYS;
}

static int dxcore_call_enumerate2(const struct d3dkmt *d3dkmt, struct d3dkmt_enumadapters2 *arguments)
{
	(void)d3dkmt;
	return dxcore_to_errno(dxcore.enumerate2(arguments));
}

/*
 * The library writes a name as UTF-8 into 260 bytes of its stack, however long it becomes (libdxg src/d3dkmt-wsl.cpp).
 * So the kernel is asked for names, with the library's handle: handles belong to the process and not to an open file
 * (dxgkrnl dxgprocess.c). It is open for that alone: the library finds no descriptor of ours.
 */
static int dxcore_call_query(const struct d3dkmt *d3dkmt, struct d3dkmt_queryadapterinfo *arguments)
{
	_cleanup_close_ int fd = -1;

	(void)d3dkmt;
	if (arguments->type != D3DKMT_QUERY_ADAPTERREGISTRYINFO)
		return dxcore_to_errno(dxcore.query(arguments));
	fd = open(PATH_DXG, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -EBADF : ioctl_query(fd, arguments);
}

static void dxcore_call_close(const struct d3dkmt *d3dkmt, struct d3dkmt_closeadapter *arguments)
{
	(void)d3dkmt;
	(void)dxcore.close(arguments);
}

static void dxcore_ask(struct driverd_reply *reply)
{
	const struct d3dkmt calls = {
		.enumerate3 = dxcore_call_enumerate3,
		.enumerate2 = dxcore_call_enumerate2,
		.query = dxcore_call_query,
		.close = dxcore_call_close,
		.char_size = sizeof(wchar_t),
		.fd = -1,
	};
	int r;

	r = d3dkmt_describe_adapters(&calls, &reply->facts, &reply->fact_count);
	if (r == -EPROTO)
		return answer_failure(reply, DRIVERD_REFUSED,
				      "D3DKMTEnumAdapters counts more adapters than it was given room for");
	if (r < 0)
		answer_failure(reply, DRIVERD_REFUSED, "D3DKMTEnumAdapters2 returned 0x%08x (is /dev/dxg accessible?)",
			       (unsigned)last_failure);
}

void dxcore_describe_adapters(const char *path, struct driverd_reply *reply)
{
	if (library_load(path, dxcore_symbols, reply))
		dxcore_ask(reply);
}

/*
 * The little of nvml.h and cuda.h that is asked for. Their functions return 0 for success; handles are pointers. A GPU
 * that has no parts, or cannot, says so by an error and is passed over.
 */

typedef struct nvmlDevice_st *nvml_device;

/* nvmlPciInfo_t, as nvmlDeviceGetPciInfo_v3() fills it in, and room for what may come behind it. */
struct nvml_pci {
	char bus_id_legacy[16];
	unsigned domain, bus, device, ids, subsystem_ids;
	char bus_id[32], room[64];
};

static struct {
	int (*init)(void);
	int (*count)(unsigned *count);
	int (*device)(unsigned index, nvml_device *device);
	int (*uuid)(nvml_device device, char *uuid, unsigned size);
	int (*pci)(nvml_device device, struct nvml_pci *pci);
	int (*part_count)(nvml_device device, unsigned *count);
	int (*part)(nvml_device device, unsigned index, nvml_device *part);
	int (*gpu_instance)(nvml_device part, unsigned *id);
	int (*compute_instance)(nvml_device part, unsigned *id);
	int (*name)(nvml_device device, char *name, unsigned size);
} nvml;

/* Optional: of GPUs whose parts have no names, and of drivers for Windows. */
static const struct library_symbol symbols[] = {
	{"nvmlInit_v2", &nvml.init, false},
	{"nvmlDeviceGetCount_v2", &nvml.count, false},
	{"nvmlDeviceGetHandleByIndex_v2", &nvml.device, false},
	{"nvmlDeviceGetUUID", &nvml.uuid, false},
	{"nvmlDeviceGetPciInfo_v3", &nvml.pci, true},
	{"nvmlDeviceGetMaxMigDeviceCount", &nvml.part_count, true},
	{"nvmlDeviceGetMigDeviceHandleByIndex", &nvml.part, true},
	{"nvmlDeviceGetGpuInstanceId", &nvml.gpu_instance, true},
	{"nvmlDeviceGetComputeInstanceId", &nvml.compute_instance, true},
	{"nvmlDeviceGetName", &nvml.name, true},
	{0},
};

/* nvmlProcessInfo_v2_t, which the third version of the functions fills in, too. */
struct nvml_process {
	unsigned pid;
	unsigned long long memory; /* NVML_VALUE_NOT_AVAILABLE: all bits are set */
	unsigned gpu_instance, compute_instance;
};

/* nvmlProcessUtilizationSample_t */
struct nvml_sample {
	unsigned pid;
	unsigned long long time; /* microseconds since 1970 */
	unsigned percent, memory, encoder, decoder;
};

static struct {
	int (*compute)(nvml_device device, unsigned *count, struct nvml_process *processes);
	int (*graphics)(nvml_device device, unsigned *count, struct nvml_process *processes);
	int (*samples)(nvml_device device, struct nvml_sample *samples, unsigned *count, unsigned long long since);
} nvml_use;

static const struct library_symbol use_symbols[] = {
	{"nvmlDeviceGetComputeRunningProcesses_v3", &nvml_use.compute, false},
	{"nvmlDeviceGetGraphicsRunningProcesses_v3", &nvml_use.graphics, true},
	{"nvmlDeviceGetProcessUtilization", &nvml_use.samples, true},
	{0},
};

enum { NVML_NAME_SIZE = 96 /* NVML_DEVICE_NAME_V2_BUFFER_SIZE */ };

static char *nvml_read_uuid(nvml_device device)
{
	char *uuid = calloc(1, DRIVERD_UUID_MAX + 1);

	if (!uuid)
		abort();
	if (nvml.uuid(device, uuid, DRIVERD_UUID_MAX) == 0 && !memchr(uuid, '\0', DRIVERD_UUID_MAX + 1))
		uuid[DRIVERD_UUID_MAX] = '\0';
	return uuid;
}

/* Behind the last " MIG " of a part's name: "NVIDIA H200 MIG 1g.18gb". */
static char *nvml_read_profile(nvml_device part)
{
	static const char mark[] = " MIG ";
	char name[NVML_NAME_SIZE] = "", *profile = NULL;

	if (!nvml.name || nvml.name(part, name, sizeof(name)) != 0 || !memchr(name, '\0', sizeof(name)))
		return NULL;
	for (char *found = name; (found = strstr(found, mark));)
		profile = found += strlen(mark);
	return profile ? strdup(profile) : NULL;
}

/* "0000:01:00.0"; GPUs have the function 0. */
static char *nvml_read_address(nvml_device gpu)
{
	struct nvml_pci pci = {0};
	char *address = NULL;

	if (nvml.pci && nvml.pci(gpu, &pci) == 0 &&
	    str_format(&address, "%04x:%02x:%02x.0", pci.domain, pci.bus & 0xff, pci.device & 0x1f) < 0)
		abort();
	return address;
}

/* One that both computes and draws is in both lists, with the same memory. @first: those of its GPU begin there. */
static struct driverd_process *nvml_find_process(struct driverd_reply *reply, size_t first, unsigned pid)
{
	size_t i = first;

	while (i < reply->process_count && reply->processes[i].pid != pid)
		i++;
	if (i == DRIVERD_PROCESSES_MAX)
		return NULL;
	if (i == reply->process_count) {
		reply->process_count++;
		reply->processes[i] = (struct driverd_process){
			.name = (unsigned)reply->name_count - 1,
			.pid = pid,
			.percent = DRIVERD_UNKNOWN_PERCENT,
		};
	}
	return &reply->processes[i];
}

/* Return: what NVML returned. */
static int nvml_add_processes(nvml_device device, size_t first, bool draws, struct driverd_reply *reply)
{
	static struct nvml_process list[DRIVERD_PROCESSES_MAX];
	unsigned count = DRIVERD_PROCESSES_MAX;
	int r = draws ? nvml_use.graphics(device, &count, list) : nvml_use.compute(device, &count, list);

	for (unsigned i = 0; r == 0 && i < count && i < DRIVERD_PROCESSES_MAX; i++) {
		struct driverd_process *process = nvml_find_process(reply, first, list[i].pid);

		if (!process)
			break;
		process->memory = list[i].memory; /* DRIVERD_UNKNOWN_MEMORY is NVML's own number */
		process->draws |= draws;
		process->computes |= !draws;
	}
	return r;
}

/* The last sample of each process, of those of the last second. Parts have none, nor have older GPUs. */
static void nvml_add_samples(nvml_device device, size_t first, struct driverd_reply *reply)
{
	static struct nvml_sample list[DRIVERD_PROCESSES_MAX];
	unsigned long long last[DRIVERD_PROCESSES_MAX] = {0}, since;
	unsigned count = DRIVERD_PROCESSES_MAX;
	struct timespec now;

	(void)clock_gettime(CLOCK_REALTIME, &now);
	since = ((unsigned long long)now.tv_sec - 1) * 1000000 + (unsigned long long)now.tv_nsec / 1000;
	if (!nvml_use.samples || nvml_use.samples(device, list, &count, since) != 0)
		return;
	for (unsigned i = 0; i < count && i < DRIVERD_PROCESSES_MAX; i++)
		for (size_t j = first; j < reply->process_count; j++)
			if (reply->processes[j].pid == list[i].pid && list[i].time >= last[j]) {
				reply->processes[j].percent =
					list[i].percent <= 100 ? list[i].percent : DRIVERD_UNKNOWN_PERCENT;
				last[j] = list[i].time;
			}
}

/* Of what was named last, if processes are asked for. */
static void nvml_add_use(nvml_device device, struct driverd_reply *reply)
{
	const size_t first = reply->process_count;
	int r;

	if (!nvml_use.compute)
		return;
	r = nvml_add_processes(device, first, false, reply);
	reply->names[reply->name_count - 1].refused = (unsigned)r;
	/* GPUs that draw nothing may have no such list. */
	if (r == 0 && nvml_use.graphics)
		(void)nvml_add_processes(device, first, true, reply);
	if (r == 0)
		nvml_add_samples(device, first, reply);
}

static void nvml_add_name(struct driverd_reply *reply, struct driverd_name name)
{
	reply->names[reply->name_count++] = name;
}

static void nvml_add_part(nvml_device gpu, unsigned index, struct driverd_reply *reply)
{
	unsigned gpu_instance, compute_instance;
	nvml_device part;

	if (reply->name_count == DRIVERD_NAMES_MAX || nvml.part(gpu, index, &part) != 0 ||
	    nvml.gpu_instance(part, &gpu_instance) != 0 || nvml.compute_instance(part, &compute_instance) != 0)
		return;
	nvml_add_name(reply, (struct driverd_name){
				     .uuid = nvml_read_uuid(part),
				     .of = nvml_read_uuid(gpu),
				     .is_part = true,
				     .gpu_instance = gpu_instance,
				     .compute_instance = compute_instance,
				     .profile = nvml_read_profile(part),
			     });
	nvml_add_use(part, reply);
}

static void nvml_add_gpu(nvml_device gpu, struct driverd_reply *reply)
{
	unsigned count = 0;

	if (reply->name_count == DRIVERD_NAMES_MAX)
		return;
	nvml_add_name(reply, (struct driverd_name){.uuid = nvml_read_uuid(gpu), .of = nvml_read_address(gpu)});
	if (!nvml.part_count || !nvml.part || !nvml.gpu_instance || !nvml.compute_instance ||
	    nvml.part_count(gpu, &count) != 0)
		return;
	for (unsigned i = 0; i < count && i < DRIVERD_NAMES_MAX; i++)
		nvml_add_part(gpu, i, reply);
}

static void nvml_query(struct driverd_reply *reply)
{
	unsigned count = 0;
	nvml_device gpu;
	int r;

	r = nvml.init();
	if (r == 0)
		r = nvml.count(&count);
	if (r != 0)
		return answer_failure(reply, DRIVERD_REFUSED, "NVML returned %d (are the nodes in /dev accessible?)",
				      r);
	reply->names = calloc(DRIVERD_NAMES_MAX, sizeof(*reply->names));
	if (!reply->names)
		abort();
	for (unsigned i = 0; i < count && i < DRIVERD_NAMES_MAX; i++) {
		const size_t first = reply->name_count;

		if (nvml.device(i, &gpu) == 0)
			nvml_add_gpu(gpu, reply);
		/* One with parts would name what its parts name, and only to root. */
		if (reply->name_count == first + 1)
			nvml_add_use(gpu, reply);
	}
}

/* The NVML of a driver store loads libdxcore.so by its name, which not every host's loader finds. */
static void nvml_load_dxcore(const char *path)
{
	if (str_has_prefix(path, PATH_WSL "/") && !dlopen("libdxcore.so", RTLD_LAZY | RTLD_LOCAL))
		(void)dlopen(PATH_WSL_LIB "/libdxcore.so", RTLD_LAZY | RTLD_LOCAL);
}

void nvml_list_names(const char *path, struct driverd_reply *reply)
{
	nvml_load_dxcore(path);
	if (library_load(path, symbols, reply))
		nvml_query(reply);
}

void nvml_list_processes(const char *path, struct driverd_reply *reply)
{
	if (!library_load(path, use_symbols, reply))
		return;
	reply->processes = calloc(DRIVERD_PROCESSES_MAX, sizeof(*reply->processes));
	if (!reply->processes)
		abort();
	nvml_list_names(path, reply);
}

/* This function alone needs neither cuInit() nor a device. */
void cuda_read_version(const char *path, struct driverd_reply *reply)
{
	int (*get_version)(int *version);
	const struct library_symbol functions[] = {{"cuDriverGetVersion", &get_version, false}, {0}};
	int r;

	if (!library_load(path, functions, reply))
		return;
	r = get_version(&reply->version);
	if (r != 0)
		answer_failure(reply, DRIVERD_REFUSED, "cuDriverGetVersion returned %d", r);
}

/* ---- watching GPUs by NVML ---- */

/*
 * A watch: NVML's events, and how GPUs are by the driver's own word. The caller decides what follows of it, and has the
 * watch begin anew where a GPU is to be let go of.
 */

enum {
	WATCH_WAIT_MS = 1000,      /* for an event, before the caller is looked for */
	WATCH_LOOK_MS = 60 * 1000, /* when GPUs are looked at without a reason */
	WATCH_SOON_MS = 2000,      /* after an error: what the driver says of it may come a little later */
};

static struct {
	int (*init)(void);
	int (*count)(unsigned *count);
	int (*device)(unsigned index, void **device);
	int (*uuid)(void *device, char *uuid, unsigned size);
	int (*make_set)(void **set);
	int (*put)(void *device, unsigned long long kinds, void *set);
	int (*wait)(void *set, struct nvml_event *event, unsigned milliseconds);
	struct nvml_questions questions;
} events;

static const struct library_symbol event_symbols[] = {
	{"nvmlInit_v2", &events.init, false},
	{"nvmlDeviceGetCount_v2", &events.count, false},
	{"nvmlDeviceGetHandleByIndex_v2", &events.device, false},
	{"nvmlDeviceGetUUID", &events.uuid, false},
	{"nvmlEventSetCreate", &events.make_set, false},
	{"nvmlDeviceRegisterEvents", &events.put, false},
	{"nvmlEventSetWait_v2", &events.wait, false},
	{"nvmlDeviceGetMemoryInfo", &events.questions.memory, false},
	{"nvmlDeviceGetFieldValues", &events.questions.fields, true},
	{0},
};

struct watch {
	int socket;
	void *set;
	struct watch_gpu {
		void *device;
		char uuid[DRIVERD_UUID_MAX + 1];
		enum nvml_state state; /* as it was told last */
		int64_t look_at;       /* once more, and it is told in any case; 0: it is not */
	} gpus[DRIVERD_NAMES_MAX];
	unsigned count;
	int64_t look_at; /* all of them */
};

/* Sends an event to the caller. An error means that the caller has gone, and is ignored. */
static void nvml_watch_tell(const struct watch *watch, enum driverd_event_kind kind, const struct watch_gpu *gpu,
			    unsigned number, const struct nvml_event *event)
{
	static unsigned char datagram[DRIVERD_DATAGRAM_MAX];
	const struct driverd_reply told = {
		.event = {
			.kind = kind,
			.uuid = gpu ? (char *)(uintptr_t)gpu->uuid : NULL,
			.number = number,
			.gpu_instance = event ? event->gpu_instance : NVML_NO_INSTANCE,
			.compute_instance = event ? event->compute_instance : NVML_NO_INSTANCE,
		}};
	const size_t size = protocol_write_reply(DRIVERD_NVML_WATCH, &told, datagram);

	(void)!write(watch->socket, datagram, size);
}

static void nvml_watch_look(const struct watch *watch, struct watch_gpu *gpu, bool tell)
{
	const enum nvml_state state = nvml_state_ask(&events.questions, gpu->device);

	if (tell || state != gpu->state)
		nvml_watch_tell(watch, DRIVERD_EVENT_STATE, gpu, state, NULL);
	gpu->state = state;
}

static void nvml_watch_look_at_some(struct watch *watch)
{
	const int64_t now = clock_now_ms();
	const bool all = now >= watch->look_at;

	for (unsigned i = 0; i < watch->count; i++) {
		struct watch_gpu *gpu = &watch->gpus[i];
		const bool due = gpu->look_at && now >= gpu->look_at;

		if (all || due)
			nvml_watch_look(watch, gpu, due);
		if (due)
			gpu->look_at = 0;
	}
	if (all)
		watch->look_at = now + WATCH_LOOK_MS;
}

static void nvml_watch_serve(struct watch *watch, const struct nvml_event *event)
{
	for (unsigned i = 0; i < watch->count && event->kind == NVML_EVENT_XID; i++) {
		struct watch_gpu *gpu = &watch->gpus[i];

		if (gpu->device != event->gpu)
			continue;
		nvml_watch_tell(watch, DRIVERD_EVENT_XID, gpu, (unsigned)event->number, event);
		gpu->look_at = clock_now_ms() + WATCH_SOON_MS;
	}
}

/* Whether a list with commas has it. */
static bool nvml_watch_is_left_out(const char *list, const char *uuid)
{
	const size_t length = strlen(uuid);

	for (const char *at = list; at && *at; at += strcspn(at, ","), at += *at == ',')
		if (strcspn(at, ",") == length && strncmp(at, uuid, length) == 0)
			return true;
	return false;
}

/* A GPU without events is still reported by its state. NVML may give no handle for a lost GPU; that one is left out. */
static void nvml_watch_add(struct watch *watch, unsigned index, const char *without)
{
	struct watch_gpu *gpu = &watch->gpus[watch->count];

	if (events.device(index, &gpu->device) != NVML_SUCCESS ||
	    events.uuid(gpu->device, gpu->uuid, DRIVERD_UUID_MAX) != NVML_SUCCESS ||
	    nvml_watch_is_left_out(without, gpu->uuid))
		return;
	(void)events.put(gpu->device, NVML_EVENT_XID, watch->set);
	nvml_watch_look(watch, gpu, true);
	watch->count++;
}

static bool nvml_watch_begin(struct watch *watch, const struct driverd_request *request, struct driverd_reply *reply)
{
	unsigned count = 0;
	int r;

	if (!library_load(request->library, event_symbols, reply))
		return false;
	r = events.init();
	if (r == NVML_SUCCESS)
		r = events.count(&count);
	if (r == NVML_SUCCESS)
		r = events.make_set(&watch->set);
	if (r != NVML_SUCCESS) {
		answer_failure(reply, DRIVERD_REFUSED, "NVML returned %d (are the nodes in /dev accessible?)", r);
		return false;
	}
	for (unsigned i = 0; i < count && watch->count < DRIVERD_NAMES_MAX; i++)
		nvml_watch_add(watch, i, request->without);
	nvml_watch_tell(watch, DRIVERD_EVENT_BEGUN, NULL, 0, NULL);
	watch->look_at = clock_now_ms() + WATCH_LOOK_MS;
	return true;
}

static bool nvml_watch_has_caller(const struct watch *watch)
{
	struct pollfd caller = {.fd = watch->socket};

	return poll(&caller, 1, 0) == 0;
}

void nvml_watch(const struct driverd_request *request, int socket, struct driverd_reply *reply)
{
	static const struct timespec moment = {.tv_sec = WATCH_WAIT_MS / 1000};
	static struct watch watch;
	struct nvml_event event = {0};

	watch.socket = socket;
	if (!nvml_watch_begin(&watch, request, reply))
		return;
	while (nvml_watch_has_caller(&watch)) {
		const int r = events.wait(watch.set, &event, WATCH_WAIT_MS);

		if (r == NVML_SUCCESS)
			nvml_watch_serve(&watch, &event);
		/* Of a GPU that is lost it may say so at once, each time. */
		if (r != NVML_SUCCESS && r != NVML_TIMEOUT) {
			watch.look_at = 0;
			(void)nanosleep(&moment, NULL);
		}
		nvml_watch_look_at_some(&watch);
	}
}

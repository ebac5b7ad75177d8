/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A watch: NVML's events, and how GPUs are by the driver's own word. The caller decides what follows of it, and has the
 * watch begin anew where a GPU is to be let go of.
 */

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/str.h"
#include "driverd/internal.h"
#include "model/nvml.h"

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
} nvml;

static const struct library_symbol symbols[] = {
	{"nvmlInit_v2", &nvml.init, false},
	{"nvmlDeviceGetCount_v2", &nvml.count, false},
	{"nvmlDeviceGetHandleByIndex_v2", &nvml.device, false},
	{"nvmlDeviceGetUUID", &nvml.uuid, false},
	{"nvmlEventSetCreate", &nvml.make_set, false},
	{"nvmlDeviceRegisterEvents", &nvml.put, false},
	{"nvmlEventSetWait_v2", &nvml.wait, false},
	{"nvmlDeviceGetMemoryInfo", &nvml.questions.memory, false},
	{"nvmlDeviceGetFieldValues", &nvml.questions.fields, true},
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
	const enum nvml_state state = nvml_state_ask(&nvml.questions, gpu->device);

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

	if (nvml.device(index, &gpu->device) != NVML_SUCCESS ||
	    nvml.uuid(gpu->device, gpu->uuid, DRIVERD_UUID_MAX) != NVML_SUCCESS ||
	    nvml_watch_is_left_out(without, gpu->uuid))
		return;
	(void)nvml.put(gpu->device, NVML_EVENT_XID, watch->set);
	nvml_watch_look(watch, gpu, true);
	watch->count++;
}

static bool nvml_watch_begin(struct watch *watch, const struct driverd_request *request, struct driverd_reply *reply)
{
	unsigned count = 0;
	int r;

	if (!library_load(request->library, symbols, reply))
		return false;
	r = nvml.init();
	if (r == NVML_SUCCESS)
		r = nvml.count(&count);
	if (r == NVML_SUCCESS)
		r = nvml.make_set(&watch->set);
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
		const int r = nvml.wait(watch.set, &event, WATCH_WAIT_MS);

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

/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One server has no client. It asks NVIDIA's NVML what happens to the GPUs of all containers, and tells the manager,
 * which itself loads nothing of the driver's. It has the rights of every other server. No container talks to it, so the
 * manager believes what it says.
 */

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>

#include "model/nvml.h"
#include "vcuda/server/driver.h"
#include "vcuda/server/quota.h"
#include "vcuda/server/server.h"

enum {
	WATCH_MS = 1000, /* for which the manager waits for an answer at most */
	WATCH_EACH = 60, /* of these the GPUs are looked at without a reason */
	WATCH_UUID = 48,
};

static struct {
	int (*find)(const char *uuid, void **ret);
	int (*make_set)(void **ret);
	int (*put)(void *gpu, unsigned long long kinds, void *set);
	int (*wait)(void *set, struct nvml_event *ret, unsigned milliseconds);
	struct nvml_questions questions;
} nvml;

static struct {
	void *gpu; /* NULL: NVML does not know it */
	bool lost; /* the manager was told */
} watched[START_GPUS];

static bool watch_load(void)
{
	const struct {
		const char *name;
		void *to;
	} functions[] = {
		{"nvmlDeviceGetHandleByUUID", &nvml.find},
		{"nvmlEventSetCreate", &nvml.make_set},
		{"nvmlDeviceRegisterEvents", &nvml.put},
		{"nvmlEventSetWait_v2", &nvml.wait},
		{"nvmlDeviceGetMemoryInfo", &nvml.questions.memory},
	};
	void *const library = driver_memory_library();

	for (size_t i = 0; library && i < sizeof(functions) / sizeof(functions[0]); i++) {
		void *function = dlsym(library, functions[i].name);

		if (!function)
			return false;
		memcpy(functions[i].to, &function, sizeof(function));
	}
	if (library)
		*(void **)&nvml.questions.fields = dlsym(library, "nvmlDeviceGetFieldValues");
	return library;
}

static void watch_tell(enum start_event_kind kind, unsigned gpu, uint32_t number, const char *text)
{
	server_tell(kind, (uint64_t)gpu << START_EVENT_GPU_BIT | number, text);
}

static void watch_tell_lost(unsigned gpu, const char *as_what)
{
	if (!watched[gpu].lost)
		watch_tell(START_EVENT_LOST, gpu, 0, as_what);
	watched[gpu].lost = true;
}

/* What the driver itself says is to be done for it. */
static void watch_look(unsigned gpu)
{
	enum nvml_state state;

	if (!watched[gpu].gpu)
		return;
	state = nvml_state_ask(&nvml.questions, watched[gpu].gpu);
	if (nvml_state_is_bad(state))
		watch_tell_lost(gpu, nvml_state_text(state));
}

static void watch_look_at_all(void)
{
	for (unsigned i = 0; i < server.start.gpu_count; i++)
		watch_look(i);
}

static void watch_find(unsigned gpu)
{
	const uint8_t *b = server.start.gpus[gpu].uuid;
	char uuid[WATCH_UUID];
	int r;

	(void)snprintf(uuid, sizeof(uuid), "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
		       b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14],
		       b[15]);
	r = nvml.find(uuid, &watched[gpu].gpu);
	if (r != NVML_SUCCESS)
		watched[gpu].gpu = NULL;
	if (r == NVML_GPU_IS_LOST || r == NVML_RESET_REQUIRED)
		watch_tell_lost(gpu, "fallen off the bus");
}

static void watch_tell_memory(unsigned gpu)
{
	enum { MIB_BITS = 20 };
	unsigned long long memory[3];

	if (watched[gpu].gpu && nvml.questions.memory(watched[gpu].gpu, memory) == NVML_SUCCESS)
		watch_tell(START_EVENT_MEMORY, gpu, (uint32_t)(memory[0] >> MIB_BITS), "");
}

/* Return: NULL; what could not be done. */
static const char *watch_begin(void **ret_set)
{
	unsigned count = 0;

	if (!watch_load())
		return "loading NVML";
	/* Which NVML says also where it has no events. */
	for (unsigned i = 0; i < server.start.gpu_count; i++) {
		watch_find(i);
		watch_tell_memory(i);
	}
	if (nvml.make_set(ret_set) != NVML_SUCCESS)
		return "asking NVML for events";
	for (unsigned i = 0; i < server.start.gpu_count; i++)
		if (watched[i].gpu && nvml.put(watched[i].gpu, NVML_EVENT_XID, *ret_set) == NVML_SUCCESS)
			count++;
	watch_look_at_all();
	if (count == 0)
		return "asking NVML for events of a GPU";
	return server_sandbox_close(&server.start) < 0 ? "loading the system call filter" : NULL;
}

static void watch_serve(const struct nvml_event *event)
{
	for (unsigned i = 0; i < server.start.gpu_count; i++)
		if (watched[i].gpu == event->gpu) {
			watch_tell(START_EVENT_XID, i, (uint32_t)event->number, "");
			watch_look(i);
		}
}

/* Return: whether the manager is there. */
static bool watch_receive(void)
{
	struct start_event event;
	ssize_t size;

	while ((size = recv(START_MANAGER, &event, sizeof(event), MSG_DONTWAIT)) > 0)
		if (event.kind == START_EVENT_LOOK)
			watch_look_at_all();
	return size < 0;
}

int watch_run(void)
{
	const struct timespec moment = {.tv_sec = WATCH_MS / 1000};
	struct nvml_event event;
	void *set = NULL;
	const char *step;

	(void)prctl(PR_SET_NAME, "ctr-gpu-vcuda-w");
	step = watch_begin(&set);
	if (step) {
		server_tell(START_EVENT_FAILED, 0, step);
		return 1;
	}
	server_tell(START_EVENT_WATCHES, 0, "");
	for (unsigned i = 1; watch_receive(); i++) {
		const int r = nvml.wait(set, &event, WATCH_MS);

		if (r == NVML_SUCCESS && event.kind == NVML_EVENT_XID)
			watch_serve(&event);
		/* Of a GPU that is lost it may say so at once, each time. */
		if (r != NVML_SUCCESS && r != NVML_TIMEOUT)
			(void)nanosleep(&moment, NULL);
		if ((r != NVML_SUCCESS && r != NVML_TIMEOUT) || i % WATCH_EACH == 0)
			watch_look_at_all();
	}
	return 0;
}

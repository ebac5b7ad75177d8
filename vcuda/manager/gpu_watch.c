/* SPDX-License-Identifier: Apache-2.0 */

#include "vcuda/manager/manager.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "model/adapter.h"
#include "model/nvml.h"
#include "vcuda/protocol/pidref.h"

enum {
	WATCHER_END_MS = 100,          /* a process in the driver may take long to end */
	WATCHER_AGAIN_MS = 1000,       /* after one has ended */
	WATCHER_FAILED_MS = 60 * 1000, /* after one could not begin */
	WATCHER_HEARD = 64,            /* of its messages before others have their turn */
};

/* ---- what is told ---- */

/* Whether a server has, or had, a context there, as it says itself. */
static bool gpu_watch_uses(const struct worker *worker, const uint8_t uuid[static 16])
{
	const struct tenant *tenant = worker->tenant;
	const uint64_t client =
		__atomic_load_n((const uint64_t *)&tenant->quota->client[worker->slot], __ATOMIC_RELAXED);

	for (size_t i = 0; i < tenant->gpu_count && i < START_GPUS; i++)
		if (client >> (32 + i) & 1 && memcmp(manager_find_gpu(tenant, tenant->places, i)->bytes, uuid,
						     sizeof(tenant->gpus[i].bytes)) == 0)
			return true;
	return false;
}

/*
 * Programs there get CUDA_ERROR_LAUNCH_FAILED as soon as their servers are gone, whether or not the driver would have
 * told them. Those with work on other GPUs alone go on.
 */
static void gpu_watch_lose(struct manager *manager, const uint8_t uuid[static 16], const char *why)
{
	struct gpu_trouble *trouble = gpu_trouble_note(manager, uuid);

	if (!trouble || trouble->lost)
		return;
	gpu_trouble_state(trouble, true, why);
	for (struct tenant *tenant = manager->tenants; tenant; tenant = tenant->next)
		if (tenant->first >= 0 && memcmp(manager_find_gpu(tenant, tenant->places, (size_t)tenant->first)->bytes,
						 uuid, sizeof(trouble->gpu.bytes)) == 0)
			tenant->first = -1;
	for (struct worker *worker = manager->workers; worker; worker = worker->next)
		if (gpu_watch_uses(worker, uuid))
			server_process_stop(worker);
	manager->changed = true;
}

/* What a driver from R565 on says itself (Xid 154) is asked for by the one that watches. */
static void gpu_watch_take_xid(struct manager *manager, const uint8_t uuid[static 16], uint32_t xid)
{
	const struct gpu *gpu = gpu_trouble_find_gpu(manager, uuid);
	char why[START_NAME];

	(void)snprintf(why, sizeof(why), "Xid %u", xid);
	if (gpu)
		audit_write("xid", NULL, json_pack("{s:s, s:I}", "gpu", gpu->uuid, "number", (json_int_t)xid));
	if (nvml_xid_is_fatal(xid))
		gpu_watch_lose(manager, uuid, why);
	else if (nvml_xid_is_doubtful(xid))
		gpu_trouble_suspect(manager, uuid, why, 0);
}

static void gpu_watch_take_memory(struct manager *manager, const uint8_t uuid[static 16], uint32_t mebibytes)
{
	size_t i = 0;

	while (i < manager->memory_count &&
	       memcmp(manager->memories[i].uuid, uuid, sizeof(manager->memories[i].uuid)) != 0)
		i++;
	if (i == MANAGER_TROUBLES)
		return;
	memcpy(manager->memories[i].uuid, uuid, sizeof(manager->memories[i].uuid));
	manager->memories[i].bytes = (uint64_t)mebibytes << 20;
	manager->memory_count += i == manager->memory_count;
}

void gpu_watch_serve(struct manager *manager, const struct start_event *event)
{
	struct watcher *watcher = &manager->watcher;
	const uint64_t gpu = event->number >> START_EVENT_GPU_BIT;
	char text[START_NAME];

	(void)snprintf(text, sizeof(text), "%.*s", (int)sizeof(event->text) - 1, event->text);
	if (event->kind == START_EVENT_FAILED) {
		audit_write("not-watched", NULL, json_pack("{s:s}", "what", text));
		watcher->start_at = manager_now() + WATCHER_FAILED_MS;
	}
	watcher->watches |= event->kind == START_EVENT_WATCHES;
	if (gpu >= watcher->gpu_count)
		return;
	if (event->kind == START_EVENT_XID)
		gpu_watch_take_xid(manager, watcher->gpus[gpu], (uint32_t)event->number);
	else if (event->kind == START_EVENT_LOST)
		gpu_watch_lose(manager, watcher->gpus[gpu], text);
	else if (event->kind == START_EVENT_MEMORY)
		gpu_watch_take_memory(manager, watcher->gpus[gpu], (uint32_t)event->number);
}

/* One question is enough for all that is to be asked until it is read. */
static void gpu_watch_ask(const struct watcher *watcher)
{
	const struct start_event event = {.kind = START_EVENT_LOOK};
	int unread = 0;

	if (ioctl(watcher->fd, SIOCOUTQ, &unread) == 0 && unread == 0)
		(void)send(watcher->fd, &event, sizeof(event), MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* ---- its life ---- */

static bool gpu_watch_is_watched(const struct watcher *watcher, const uint8_t uuid[static 16])
{
	for (size_t i = 0; i < watcher->gpu_count; i++)
		if (memcmp(watcher->gpus[i], uuid, sizeof(watcher->gpus[i])) == 0)
			return true;
	return false;
}

/*
 * All GPUs of containers, without those that are lost: what has one open keeps it from being reset. Return: the
 * driver's library; NULL: there is nothing to be watched.
 */
static const char *gpu_watch_gather(const struct manager *manager, struct watcher *ret, struct start *start)
{
	const char *library = NULL;

	for (const struct tenant *tenant = manager->tenants; tenant; tenant = tenant->next)
		for (size_t i = 0; i < tenant->gpu_count && !tenant->ending; i++) {
			const struct gpu *gpu = manager_find_gpu(tenant, tenant->places, i);
			struct start_gpu *to = &start->gpus[ret->gpu_count];

			if (ret->gpu_count == START_GPUS || gpu_watch_is_watched(ret, gpu->bytes) ||
			    gpu_trouble_is_lost(manager, gpu))
				continue;
			memcpy(to->uuid, gpu->bytes, sizeof(to->uuid));
			to->place = pci_address_number(gpu->address);
			memcpy(ret->gpus[ret->gpu_count++], gpu->bytes, sizeof(gpu->bytes));
			library = tenant->library;
		}
	start->gpu_count = (uint32_t)ret->gpu_count;
	return library;
}

static int gpu_watch_start(struct manager *manager, struct start *start, const char *library)
{
	struct watcher *watcher = &manager->watcher;
	uid_t uid;
	int r = tenant_draw_uid(manager, &uid);

	if (r == 0)
		r = server_process_start_beside(manager->server, "ctr-gpu-vcuda-watch", uid, START_MANAGER,
						&watcher->pid, &watcher->fd);
	if (r < 0)
		return r;
	fd_closer_refuse(watcher->fd);
	start->uid = start->gid = uid;
	if (strlen(library) < sizeof(start->library))
		memcpy(start->library, library, strlen(library) + 1);
	/* One that cannot be told ends, which is seen as the end of any. */
	(void)send(watcher->fd, start, sizeof(*start), MSG_NOSIGNAL);
	return 0;
}

static void gpu_watch_begin(struct manager *manager)
{
	struct start start = {.magic = START_MAGIC, .size = sizeof(start)};
	struct watcher new = {.fd = -1};
	const char *library = gpu_watch_gather(manager, &new, &start);
	int r;

	manager->watcher = new;
	if (!library)
		return;
	start.flags = START_WATCH | server_process_path_flags();
	r = gpu_watch_start(manager, &start, library);
	if (r < 0) {
		audit_write("not-watched", NULL, json_pack("{s:s}", "what", strerror(-r)));
		manager->watcher.start_at = manager_now() + WATCHER_FAILED_MS;
	}
}

/* It may be in the driver for long: its end is looked for, and not waited for. */
static void gpu_watch_end(struct watcher *watcher)
{
	fd_closer_close(&watcher->fd);
	watcher->watches = false;
	(void)kill(watcher->pid, SIGKILL);
}

static void gpu_watch_receive(struct manager *manager)
{
	struct watcher *watcher = &manager->watcher;

	for (int i = 0; i < WATCHER_HEARD; i++) {
		struct start_event event;
		const ssize_t size = fd_closer_receive(watcher->fd, &event, sizeof(event));

		if (size < 0 && errno == EAGAIN)
			return;
		if (size == sizeof(event)) {
			gpu_watch_serve(manager, &event);
			continue;
		}
		if (watcher->watches)
			audit_write("watch-ended", NULL, NULL);
		if (watcher->start_at <= manager_now())
			watcher->start_at = manager_now() + WATCHER_AGAIN_MS;
		gpu_watch_end(watcher);
		return;
	}
}

/* Whether it watches another list of GPUs than it should. One that nobody has any more stays until all are gone. */
static bool gpu_watch_is_out_of_date(const struct manager *manager)
{
	const struct watcher *watcher = &manager->watcher;
	struct watcher wanted = {.fd = -1};
	struct start start;

	if (!gpu_watch_gather(manager, &wanted, &start))
		return watcher->gpu_count > 0;
	for (size_t i = 0; i < wanted.gpu_count; i++)
		if (!gpu_watch_is_watched(watcher, wanted.gpus[i]))
			return true;
	for (size_t i = 0; i < watcher->gpu_count; i++) {
		const struct gpu_trouble *trouble = gpu_trouble_find(manager, watcher->gpus[i]);

		if (trouble && trouble->lost)
			return true;
	}
	return false;
}

/* Return: whether there is none any more. */
static bool gpu_watch_reap(struct watcher *watcher)
{
	int wait_status;

	if (waitpid(watcher->pid, &wait_status, WNOHANG) == 0)
		return false;
	watcher->pid = 0;
	watcher->gpu_count = 0;
	return true;
}

void gpu_watch_look(struct manager *manager, bool ready)
{
	struct watcher *watcher = &manager->watcher;

	if (watcher->pid && watcher->fd >= 0 && ready)
		gpu_watch_receive(manager);
	if (watcher->pid && watcher->fd >= 0 && gpu_watch_is_out_of_date(manager))
		gpu_watch_end(watcher);
	if (watcher->watches && watcher->asked)
		gpu_watch_ask(watcher);
	watcher->asked = false;
	if (watcher->pid && (watcher->fd >= 0 || !gpu_watch_reap(watcher)))
		return;
	if (watcher->start_at <= manager_now())
		gpu_watch_begin(manager);
}

int64_t gpu_watch_next(const struct manager *manager)
{
	const struct watcher *watcher = &manager->watcher;

	if (watcher->pid)
		return watcher->fd < 0 ? manager_now() + WATCHER_END_MS : INT64_MAX;
	return watcher->start_at && gpu_watch_is_out_of_date(manager) ? watcher->start_at : INT64_MAX;
}

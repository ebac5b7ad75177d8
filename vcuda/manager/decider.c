/* SPDX-License-Identifier: Apache-2.0 */

#include "vcuda/manager/manager.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "vcuda/manager/page.h"
#include "vcuda/protocol/descriptors.h"

enum {
	DECIDER_AGAIN_MS = 1000, /* after one has ended */
	DECIDER_FEWEST = 2,      /* containers: one has no rival */
	DECIDER_MEASURE_MS = 5000,
	DECIDER_UNREAD_MAX = 1 << 20, /* bytes; the kernel gives it as much of that as net.core.wmem_max lets it */
};

/* ---- what it is told ---- */

static void decider_describe(const struct tenant *tenant, struct turns_order *ret)
{
	for (size_t i = 0; i < tenant->gpu_count; i++)
		memcpy(ret->gpus[i], manager_find_gpu(tenant, tenant->places, i)->bytes, sizeof(ret->gpus[i]));
	ret->gpu_count = (uint32_t)tenant->gpu_count;
}

/*
 * One that does not read is of no use, and another is started. But while too many descriptors of root's are on their
 * way, from whatever process, no other would get more. @fds: two, or NULL. Return: whether it is to be sent again later
 */
static bool decider_send(struct decider *decider, struct turns_order *order, const int *fds)
{
	if (descriptors_send(decider->fd, order, sizeof(*order), fds, fds ? 2 : 0, 0) >= 0)
		return false;
	if (errno == ETOOMANYREFS)
		return true;
	(void)shutdown(decider->fd, SHUT_RDWR);
	return false;
}

void decider_add(struct manager *manager, struct tenant *tenant)
{
	struct turns_order order = {.kind = TURNS_ADD, .user = tenant->uid, .share = tenant->limits.share};
	_cleanup_close_ int quota = -1, turns = -1;

	tenant->decide_at = 0;
	if (!manager->decider.pid)
		return;
	quota = page_open_again(tenant->quota_fd, O_RDONLY);
	turns = page_open_again(tenant->turns_fd, O_RDWR);
	decider_describe(tenant, &order);
	if (quota < 0 || turns < 0 || decider_send(&manager->decider, &order, (const int[]){quota, turns}))
		tenant->decide_at = manager_now() + DECIDER_AGAIN_MS;
}

/* Those of which it could not be told. */
static void decider_add_again(struct manager *manager)
{
	for (struct tenant *tenant = manager->tenants; tenant; tenant = tenant->next)
		if (tenant->decide_at && tenant->decide_at <= manager_now())
			decider_add(manager, tenant);
}

void decider_drop(struct manager *manager, const struct tenant *tenant)
{
	struct turns_order order = {.kind = TURNS_DROP, .user = tenant->uid};

	if (manager->decider.pid)
		(void)decider_send(&manager->decider, &order, NULL);
}

void decider_weigh(struct manager *manager, const struct tenant *tenant)
{
	struct turns_order order = {.kind = TURNS_WEIGH, .user = tenant->uid, .share = tenant->limits.share};

	if (manager->decider.pid)
		(void)decider_send(&manager->decider, &order, NULL);
}

void decider_divide(struct manager *manager)
{
	for (struct tenant *tenant = manager->tenants; tenant; tenant = tenant->next) {
		const uint32_t share = owner_share(manager, tenant);

		if (tenant->ending || share == tenant->limits.share)
			continue;
		tenant->limits.share = share;
		decider_weigh(manager, tenant);
	}
}

static bool decider_has_to_measure(const struct manager *manager)
{
	return manager->measured_until > manager_now();
}

static void decider_tell_measure(struct manager *manager)
{
	struct turns_order order = {.kind = TURNS_MEASURE, .share = decider_has_to_measure(manager)};

	if (!manager->decider.pid || manager->decider.measures == (bool)order.share)
		return;
	manager->decider.measures = order.share;
	(void)decider_send(&manager->decider, &order, NULL);
}

void decider_measure(struct manager *manager)
{
	const int64_t until = manager_now() + DECIDER_MEASURE_MS;

	if (manager->measured_until < until)
		manager->measured_until = until;
}

_Static_assert((int)TURNS_MANAGER == (int)START_CLIENT, "it is the first of its descriptors");

/* ---- its life ---- */

static int decider_start(struct manager *manager)
{
	static const int unread = DECIDER_UNREAD_MAX;
	struct decider *decider = &manager->decider;
	uid_t uid;
	int r = tenant_draw_uid(manager, &uid);

	if (r == 0)
		r = server_process_start_beside(decider->path, "ctr-gpu-vcuda-turns", uid, TURNS_MANAGER, &decider->pid,
						&decider->fd);
	if (r < 0)
		return r;
	(void)fcntl(decider->fd, F_SETFL, O_NONBLOCK);
	/* It is told of all containers before it reads the first. */
	(void)setsockopt(decider->fd, SOL_SOCKET, SO_SNDBUF, &unread, sizeof(unread));
	decider->measures = false;
	for (struct tenant *tenant = manager->tenants; tenant; tenant = tenant->next)
		decider_add(manager, tenant);
	return 0;
}

static void decider_end(struct decider *decider)
{
	int wait_status;

	cleanup_closep(&decider->fd);
	(void)kill(decider->pid, SIGKILL);
	(void)waitpid(decider->pid, &wait_status, 0);
	decider->pid = 0;
	decider->start_at = manager_now() + DECIDER_AGAIN_MS;
}

static bool decider_is_needed(const struct manager *manager)
{
	return manager->tenant_count >= (decider_has_to_measure(manager) ? 1 : DECIDER_FEWEST);
}

int64_t decider_next(const struct manager *manager)
{
	int64_t next = manager->decider.measures ? manager->measured_until : INT64_MAX;

	if (!manager->decider.pid)
		return decider_is_needed(manager) ? manager->decider.start_at : INT64_MAX;
	for (const struct tenant *tenant = manager->tenants; tenant; tenant = tenant->next)
		if (tenant->decide_at && tenant->decide_at < next)
			next = tenant->decide_at;
	return next;
}

void decider_look(struct manager *manager, bool ended)
{
	struct decider *decider = &manager->decider;
	int r = 0;

	decider_divide(manager);
	if (ended && decider->pid) {
		audit_write("turns-ended", NULL, NULL);
		decider_end(decider);
	}
	if (!decider->pid && decider_next(manager) <= manager_now())
		r = decider_start(manager);
	if (r < 0) {
		audit_write("turns-not-started", NULL, json_pack("{s:s}", "error", strerror(-r)));
		decider->start_at = manager_now() + DECIDER_AGAIN_MS;
	}
	if (decider->pid)
		decider_add_again(manager);
	decider_tell_measure(manager);
}

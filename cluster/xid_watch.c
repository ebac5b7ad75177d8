/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Has NVML watch the GPUs of NVIDIA's driver. A process that has a GPU open keeps it from being reset, so the watch
 * leaves those in trouble out, and once a minute another has all of them, to see whether they are well again. The next
 * watch has begun before the last one ends, so that nothing is missed between them.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/str.h"
#include "cluster/plugin.h"
#include "lib/context.h"
#include "nvidia/nvidia.h"

#define XID_WATCH_MODULE "/sys/module/nvidia"

enum {
	XID_WATCH_AGAIN_MS = 1000,       /* after one has ended */
	XID_WATCH_FAILED_MS = 60 * 1000, /* after one could not begin */
	XID_WATCH_BEGINS_MS = 30 * 1000,
	XID_WATCH_LOOK_MS = 60 * 1000,
	XID_WATCH_EVENTS = 256, /* before others have their turn */
};

static void xid_watch_note(struct xid_watch *watch, const char *why)
{
	free(watch->why);
	watch->why = why ? strdup(why) : NULL;
	/* A message is a line. */
	if (watch->why)
		watch->why[strcspn(watch->why, "\n")] = '\0';
}

/* @without: taken over */
static void xid_watch_start(struct xid_watch *watch, char *without, int64_t now)
{
	struct ctr_gpu_context *context = NULL;
	int r = ctr_gpu_context_new(&context);

	free(watch->next_without);
	watch->next_without = without;
	if (r == 0)
		r = ctr_gpu_context_load_config(context, NULL);
	if (r == 0)
		r = nvidia_watch(&context->settings, without, &watch->next, &context->err);
	watch->until = now + (r == 0 ? XID_WATCH_BEGINS_MS : XID_WATCH_FAILED_MS);
	watch->look_at = now + XID_WATCH_LOOK_MS;
	if (r != 0 && r != -ENOENT)
		xid_watch_note(watch, context && *context->err.text ? context->err.text : strerror(-r));
	ctr_gpu_context_unref(context);
}

static void xid_watch_change(struct xid_watch *watch)
{
	driverd_watch_end(&watch->now);
	watch->now = watch->next;
	watch->next = DRIVERD_WATCH_NONE;
	free(watch->without);
	watch->without = steal_ptr(watch->next_without);
	watch->until = 0;
	xid_watch_note(watch, NULL);
}

/* Return: whether something is known now that was not, or the other way round. */
static bool xid_watch_read(struct xid_watch *watch, struct driverd_watch *from, int64_t now)
{
	bool changed = false;

	for (int i = 0; from->pid && i < XID_WATCH_EVENTS; i++) {
		struct driverd_event event = {0};
		struct err err = {0};
		const int r = driverd_watch_read(from, &event, &err);

		if (r == 0)
			break;
		if (r == 1)
			changed |= troubles_take(&watch->troubles, &event, now);
		free(event.uuid);
		if (r == 1 && event.kind == DRIVERD_EVENT_BEGUN && from == &watch->next) {
			xid_watch_change(watch);
			break;
		}
		if (r == 1)
			continue;
		if (r == CTR_GPU_E_DRIVER_LIBRARY)
			xid_watch_note(watch, err.text);
		driverd_watch_end(from);
		watch->until = now + (r == -EPIPE ? XID_WATCH_AGAIN_MS : XID_WATCH_FAILED_MS);
	}
	return changed;
}

static void xid_watch_stop(struct xid_watch *watch)
{
	driverd_watch_end(&watch->now);
	driverd_watch_end(&watch->next);
	watch->until = 0;
}

/* What was known of its GPUs ended with a driver that was loaded again. Return: whether that is so. */
static bool xid_watch_look_at_driver(struct xid_watch *watch)
{
	struct stat st = {0};
	const bool there = stat(XID_WATCH_MODULE, &st) == 0, same = there && st.st_ino == watch->module;
	const bool knew = watch->troubles.count > 0;

	watch->module = there ? st.st_ino : 0;
	if (same)
		return false;
	xid_watch_stop(watch);
	watch->troubles.count = 0;
	xid_watch_note(watch, NULL);
	return knew;
}

/* What one should be without that begins now; NULL: the one that is there will do. */
static char *xid_watch_decide(const struct xid_watch *watch, int64_t now)
{
	_cleanup_free_ char *without = NULL;

	if (troubles_list(&watch->troubles, now, &without) < 0)
		return NULL;
	if (watch->now.pid && *watch->without && now >= watch->look_at)
		return strdup("");
	return watch->now.pid && streq(without, watch->without) ? NULL : steal_ptr(without);
}

bool xid_watch_serve(struct xid_watch *watch)
{
	const int64_t now = grpc_now();
	bool changed = xid_watch_look_at_driver(watch);
	char *without;

	changed |= xid_watch_read(watch, &watch->now, now);
	changed |= xid_watch_read(watch, &watch->next, now);
	if (watch->next.pid && now >= watch->until) {
		driverd_watch_end(&watch->next);
		watch->until = now + XID_WATCH_FAILED_MS;
		xid_watch_note(watch, "NVML does not begin to watch the GPUs");
	}
	if (!watch->module || watch->next.pid || now < watch->until)
		return changed;
	without = xid_watch_decide(watch, now);
	if (without)
		xid_watch_start(watch, without, now);
	return changed;
}

/* SPDX-License-Identifier: Apache-2.0 */

/* What is known against GPUs: errors that their driver reported, and its own word; and the watch that hears of them. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/str.h"
#include "cluster/devices.h"
#include "cluster/plugin.h"
#include "lib/context.h"
#include "nvidia/nvidia.h"

/* ---- troubles ---- */

enum {
	TROUBLE_AGE_MS = 1500,    /* before that the driver may not know yet what is to be done after an error */
	TROUBLE_LET_GO_MS = 5000, /* until which it has said it */
};

static bool trouble_is_of_gpu(const struct trouble *trouble)
{
	return trouble->gpu_instance == NVML_NO_INSTANCE;
}

static struct trouble *troubles_seek(struct troubles *troubles, const struct driverd_event *event)
{
	for (size_t i = 0; i < troubles->count; i++) {
		struct trouble *trouble = &troubles->list[i];

		if (streq(trouble->gpu, event->uuid) && trouble->gpu_instance == event->gpu_instance &&
		    trouble->compute_instance == event->compute_instance)
			return trouble;
	}
	return NULL;
}

/* Return: whether it was not known. */
static bool troubles_note(struct troubles *troubles, const struct driverd_event *event, int64_t now)
{
	const bool is_error = event->kind == DRIVERD_EVENT_XID;
	struct trouble *trouble = troubles_seek(troubles, event);
	const bool known = trouble && (is_error ? trouble->xid == event->number : trouble->state == event->number);

	if (!trouble && troubles->count == TROUBLES_MAX)
		return false;
	if (!trouble) {
		trouble = &troubles->list[troubles->count++];
		*trouble = (struct trouble){.gpu_instance = event->gpu_instance,
					    .compute_instance = event->compute_instance};
		(void)snprintf(trouble->gpu, sizeof(trouble->gpu), "%s", event->uuid);
	}
	if (is_error)
		trouble->xid = event->number;
	else
		trouble->state = (enum nvml_state)event->number;
	trouble->since = is_error || !known ? now : trouble->since;
	return !known;
}

/* Return: whether there was something. */
static bool troubles_forget(struct troubles *troubles, const char *gpu, int64_t now)
{
	const size_t before = troubles->count;

	for (size_t i = troubles->count; i > 0; i--)
		if (streq(troubles->list[i - 1].gpu, gpu) && now - troubles->list[i - 1].since >= TROUBLE_AGE_MS)
			troubles->list[i - 1] = troubles->list[--troubles->count];
	return troubles->count < before;
}

bool troubles_take(struct troubles *troubles, const struct driverd_event *event, int64_t now)
{
	if (!event->uuid || strlen(event->uuid) > RESOURCE_NAME_MAX)
		return false;
	if (event->kind == DRIVERD_EVENT_XID)
		return !nvml_xid_is_of_program(event->number) && troubles_note(troubles, event, now);
	if (event->kind != DRIVERD_EVENT_STATE || event->number >= NVML_STATES)
		return false;
	if (event->number == NVML_STATE_WELL)
		return troubles_forget(troubles, event->uuid, now);
	return nvml_state_is_bad((enum nvml_state)event->number) && troubles_note(troubles, event, now);
}

/* Of an error of a GPU instance the driver need not know in which of its compute instances it was. */
static bool trouble_is_of_part(const struct trouble *trouble, int gpu_instance, int compute_instance)
{
	return trouble->gpu_instance == (unsigned)gpu_instance &&
	       (trouble->compute_instance == NVML_NO_INSTANCE ||
		trouble->compute_instance == (unsigned)compute_instance);
}

const struct trouble *troubles_find(const struct troubles *troubles, const char *gpu, int gpu_instance,
				    int compute_instance)
{
	for (size_t i = 0; gpu && i < troubles->count; i++) {
		const struct trouble *trouble = &troubles->list[i];

		if (streq(trouble->gpu, gpu) &&
		    (trouble_is_of_gpu(trouble) || trouble_is_of_part(trouble, gpu_instance, compute_instance)))
			return trouble;
	}
	return NULL;
}

int troubles_print(const struct troubles *troubles, char **ret)
{
	int r = 0;

	for (size_t i = 0; i < troubles->count && r == 0; i++) {
		const struct trouble *trouble = &troubles->list[i];

		r = str_append(ret, "%s%s", i ? "; " : "", trouble->gpu);
		if (r == 0 && !trouble_is_of_gpu(trouble))
			r = trouble->compute_instance == NVML_NO_INSTANCE
				    ? str_append(ret, " (part %u)", trouble->gpu_instance)
				    : str_append(ret, " (part %u/%u)", trouble->gpu_instance,
						 trouble->compute_instance);
		if (r == 0)
			r = str_append(ret, " cannot be used");
		if (r == 0 && trouble->xid)
			r = str_append(ret, ": Xid %u", trouble->xid);
		if (r == 0 && trouble->state)
			r = str_append(ret, "%s %s", trouble->xid ? "," : ":", nvml_state_text(trouble->state));
	}
	return r;
}

int troubles_list(const struct troubles *troubles, int64_t now, char **ret)
{
	int r = str_append(ret, "%s", "");

	for (size_t i = 0; i < troubles->count && r == 0; i++) {
		const struct trouble *trouble = &troubles->list[i];

		if (trouble_is_of_gpu(trouble) && (trouble->state || now - trouble->since >= TROUBLE_LET_GO_MS))
			r = str_append(ret, "%s%s", **ret ? "," : "", trouble->gpu);
	}
	return r;
}

/* ---- xid watch ---- */

/*
 * Has NVML watch the GPUs of NVIDIA's driver. A process that has a GPU open keeps it from being reset, so the watch
 * leaves those in trouble out, and once a minute another has all of them, to see whether they are well again. The next
 * watch has begun before the last one ends, so that nothing is missed between them.
 */

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

/* SPDX-License-Identifier: Apache-2.0 */

/* What is known against GPUs: errors that their driver reported, and its own word. It does not touch the machine. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "cluster/devices.h"

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

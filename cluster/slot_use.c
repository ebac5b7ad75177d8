/* SPDX-License-Identifier: Apache-2.0 */

/* In the child that looks at the host: what vCUDA's manager says of slots, and of GPUs that are lost. */

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/print.h"
#include "base/str.h"
#include "cluster/plugin.h"
#include "vcuda/protocol/control.h"
#include "vcuda_rpc.h"

/* Of the time for a look, which must not end for want of an answer: all GPUs would be unhealthy then. */
enum { SLOT_USE_PATIENCE_MS = 500 };

static json_t *slot_use_describe(const struct vcudad_grant *grant)
{
	const uint64_t bytes = STR_SHARE_BYTES(grant->limits.memory);
	const unsigned percent = STR_SHARE_PERCENT(grant->limits.memory);
	_cleanup_free_ char *device = NULL;

	if (str_format(&device, "%s:%u", grant->gpus.gpus_val[0].uuid, grant->slot - 1) < 0)
		return NULL;
	return json_pack("{s:o, s:o, s:o, s:o, s:I, s:i, s:i}", "device", print_string(device), "container",
			 print_string(grant->id), "limit", bytes ? json_integer((json_int_t)bytes) : json_null(),
			 "ratio", percent ? json_real(percent / 100.0) : json_null(), "used", (json_int_t)grant->used,
			 "share", (int)grant->limits.share, "processes", (int)grant->clients);
}

static int slot_use_list_slots(const struct vcudad_grants *list, json_t *slots)
{
	int r = 0;

	for (u_int i = 0; i < list->grants.grants_len && r == 0; i++) {
		const struct vcudad_grant *grant = &list->grants.grants_val[i];

		if (grant->slot > 0 && grant->gpus.gpus_len == 1)
			r = json_array_append_new(slots, slot_use_describe(grant));
	}
	return r < 0 ? -ENOMEM : 0;
}

static int slot_use_list_lost(const struct vcudad_grants *list, json_t *lost)
{
	int r = 0;

	for (u_int i = 0; i < list->troubles.troubles_len && r == 0; i++)
		if (list->troubles.troubles_val[i].lost)
			r = json_array_append_new(lost, print_string(list->troubles.troubles_val[i].uuid));
	return r < 0 ? -ENOMEM : 0;
}

int slot_use_read(json_t *slots, json_t *lost)
{
	struct vcudad_grants list = {0};
	_cleanup_close_ int fd = -1;
	char nothing = '\0';
	int r = control_open(&fd);

	if (r == 0)
		r = control_ask_within(fd, VCUDAD_LIST, &nothing, SLOT_USE_PATIENCE_MS, &list);
	if (r == 0)
		r = slot_use_list_slots(&list, slots);
	if (r == 0)
		r = slot_use_list_lost(&list, lost);
	control_free_reply(VCUDAD_LIST, &list);
	return r;
}

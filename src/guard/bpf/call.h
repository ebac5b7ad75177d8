/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
#pragma once

/*
 * Guarded threads that are in a call, and their processes. Who reached another adapter is condemned, makes no further
 * call, and is killed when its last call has ended. Never earlier: dxgvmb_send_sync_msg() waits killably and then
 * frees a packet that the channel's callback may still use.
 */

#include "guard/bpf/request.h"

enum progress {
	NOT_BEGUN,
	GATED,  /* the gate has let the call pass */
	DRIVEN, /* and a probe has seen it in the driver */
};

/* A guarded thread, and its call from before the driver has it to its end. */
struct call {
	struct request request;
	__u64 opening; /* the adapter that the driver opens just now, and where its handle will be; for probes */
	__u64 opening_handle;
	__u32 begun; /* enum progress */
	__u32 found; /* allowed adapters that the driver opened for it */
	struct adapter_info infos[GUARD_ADAPTERS_MAX];
};

/** Return: the caller's; NULL if it is not in one. */
struct call *call_get_begun(void);

/** A thread whose last call's end was missed is still counted. Return: 0 or negative errno. */
int call_note(const struct request *request);

void call_leave(struct call *call);
void call_mark_for_kill(void);
bool call_is_marked_for_kill(void);

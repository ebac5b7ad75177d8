/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
#pragma once

/*
 * Guarded threads that are in a call, and their processes. Who reached another adapter is condemned with all that have
 * the same choice: none of them makes a further call, and each is killed at the next one, when its last call has ended.
 * Never earlier: dxgvmb_send_sync_msg() waits killably and then frees a packet that the channel's callback may still
 * use.
 *
 * Between the guard's look and the driver's copy a thread does not sleep, unless a page of its arguments is missing,
 * and there are at most as many such threads as processors. So when the first thread is seen with another adapter, few
 * other threads are past the look and may reach that adapter, too.
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
	__u32 begun;       /* enum progress */
	__u32 found;       /* allowed adapters that the driver opened for it */
	__u32 opened, sum; /* how many in all, and what their entries of the list add up to */
	__u32 placed;      /* whether it has a place to wait in */
	__u32 reached;     /* whether the driver has found what the arguments name, and so has copied them */
	__u32 listed;      /* whether the list was written again */
	struct adapter_info infos[GUARD_ADAPTERS_MAX];
};

/**
 * call_stay() - no other task runs on this processor until call_stay_no_more()
 *
 * So a task is preempted in a program at its end alone, when its work is done. Amid it, before Linux 7.1, the task
 * would keep all others of the processor from making storage, for seconds if it has no share of the processor. The
 * kernel skips the program for them all the same.
 */
void call_stay(void);
void call_stay_no_more(void);

/** Return: the caller's; NULL if it is not in one. */
struct call *call_get_begun(void);

/** A thread whose last call's end was missed is still counted. Return: 0 or negative errno. */
int call_note(const struct request *request);

void call_leave(struct call *call);

/** Whether the thread may wait for a page of its arguments, until call_note_copied() or the call's end. */
bool call_take_place(struct call *call);

/** The driver has the arguments. */
void call_note_copied(struct call *call);

/** The caller, and every process with the same choice, makes no further call. */
void call_mark_for_kill(const struct call *call);
bool call_is_marked_for_kill(const struct call *call);

/** What may be an attack, and may be the kernel's doing, is one if it happens again and again. */
void call_doubt(const struct call *call);

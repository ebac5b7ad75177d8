/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
#pragma once

/* The driver's answers to an enumeration: the caller's list is written again with the chosen adapters alone. */

#include "guard/bpf/call.h"

/* Whether the kernel preempts itself, set by the loader. */
extern const volatile bool guard_preempts;

/** Whether the call is an enumeration. */
bool list_is_asked(const struct call *call);

/**
 * list_note_opened() - the driver has opened an adapter
 * @handle: where its handle is
 *
 * What an enumeration opens is what it lists; a LUID that another thread put there after our look is judged.
 */
void list_note_opened(struct call *call, struct dxgadapter *adapter, const void *handle);

/** The driver has answered an enumeration with room for a list, or one that asks how many there are; or it failed. */
void list_end_enum3(struct call *call, __u64 arguments, int answer);

/**
 * list_end_enum2() - the driver has answered the older one
 *
 * Without an array the driver's own count stays: a program that then brings room for just the chosen ones would have
 * EOVERFLOW of the driver, before it has opened any.
 */
void list_end_enum2(struct call *call, __u64 arguments, int answer);

/** A call has ended that may be an enumeration whose own end no program saw, since the kernel preempts itself. */
void list_end_late(struct call *call, int answer);

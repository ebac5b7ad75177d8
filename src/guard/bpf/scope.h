/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
#pragma once

/* Whose calls are judged, and by which choice: the one of the caller's cgroup, or of one above it. */

#include "guard/bpf/kernel.h"
#include "guard/layout.h"

/** Whether no cgroup has a choice. */
bool scope_is_idle(void);

/** Whether no other load of these programs comes between the driver's answer and ours. */
bool scope_is_first(void);

/** Finds the caller's choice. Return: whether there is one. */
bool scope_find(struct guard_key *ret);

/** A choice that went with its cgroup, from which a process was moved just now, has no adapter. */
bool scope_allows(const struct guard_key *who, __u64 luid);

/** Return: how many adapters the choice has; more than there can be if it is gone. */
__u32 scope_count(const struct guard_key *who);

/** Adds to the state of a choice. Return: what it was before; 0 if the choice is gone. */
__u32 scope_add_state(const struct guard_key *who, __u32 change);

/** No process of this choice makes a further call. */
void scope_mark_for_kill(const struct guard_key *who);
bool scope_is_marked_for_kill(const struct guard_key *who);

/** Notes that the caller has no choice, until it is in the driver. */
void scope_mark(void);

/** Return: whether the caller's mark was there. It holds for one call. */
bool scope_take_mark(void);

static __always_inline __u64 scope_luid(struct dxgadapter *adapter)
{
	return (__u64)BPF_CORE_READ(adapter, luid.b) << 32 | BPF_CORE_READ(adapter, luid.a);
}

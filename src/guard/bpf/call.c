/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */

#include "guard/bpf/call.h"

#include "guard/bpf/scope.h"

enum { MAKE_TRIES = 4 };

struct process {
	__u32 busy; /* threads that are in a call */
	__u32 condemned;
};

/*
 * What is known of a thread and, with its group's leader, of a process is stored with the task and ends with it: no
 * process can fill a table that others need.
 */
struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct call);
} calls SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct process);
} processes SEC(".maps");

/* How many processors there are, set by the loader. */
const volatile __u32 guard_processors = 1;

/* Whether the kernel preempts itself and has these functions (Linux 6.10), set by the loader. */
const volatile bool guard_can_stay = false;
extern void bpf_preempt_disable(void) __weak __ksym;
extern void bpf_preempt_enable(void) __weak __ksym;

__hidden void call_stay(void)
{
	if (guard_can_stay)
		bpf_preempt_disable();
}

__hidden void call_stay_no_more(void)
{
	if (guard_can_stay)
		bpf_preempt_enable();
}

/* Return: NULL if it never made a guarded call. */
static __always_inline struct call *call_get(void)
{
	return bpf_task_storage_get(&calls, bpf_get_current_task_btf(), NULL, 0);
}

__hidden struct call *call_get_begun(void)
{
	struct call *call = call_get();

	return call && call->begun ? call : NULL;
}

static __always_inline struct process *call_get_process(void)
{
	struct task_struct *task = bpf_get_current_task_btf();

	return bpf_task_storage_get(&processes, task->group_leader, NULL, 0);
}

/* Newer kernels do not wait for a lock that another processor has: one failure does not mean a lack of memory. */
static __always_inline void *call_make(void *map, struct task_struct *task)
{
	void *storage = NULL;

	for (int i = 0; i < MAKE_TRIES && !storage; i++)
		storage = bpf_task_storage_get(map, task, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
	return storage;
}

__hidden int call_note(const struct request *request)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct process *process = call_make(&processes, task->group_leader);
	struct call *call = call_make(&calls, task);

	if (!call || !process)
		return -ENOMEM;
	if (call->placed)
		call_note_copied(call);
	call->request = *request;
	call->opening = 0;
	call->found = 0;
	call->opened = 0;
	call->sum = 0;
	call->reached = 0;
	call->listed = 0;
	if (!call->begun)
		(void)__sync_fetch_and_add(&process->busy, 1);
	call->begun = GATED;
	return 0;
}

__hidden bool call_take_place(struct call *call)
{
	__u32 before;

	if (call->placed)
		return true;
	before = scope_add_state(&call->request.key, GUARD_PLACE);
	if ((before / GUARD_PLACE & GUARD_PLACES) >= guard_processors) {
		(void)scope_add_state(&call->request.key, -GUARD_PLACE);
		return false;
	}
	call->placed = 1;
	return true;
}

__hidden void call_note_copied(struct call *call)
{
	__u32 before;

	call->reached = 1;
	if (!call->placed)
		return;
	call->placed = 0;
	before = scope_add_state(&call->request.key, -GUARD_PLACE);
	/* The choice was written anew meanwhile. */
	if (!(before / GUARD_PLACE & GUARD_PLACES))
		(void)scope_add_state(&call->request.key, GUARD_PLACE);
}

__hidden void call_leave(struct call *call)
{
	struct process *process = call_get_process();

	call_note_copied(call);
	call->begun = NOT_BEGUN;
	if (!process)
		return;
	/* The last thread to leave may end the process: no other is in the driver, and none gets in. */
	if (__sync_fetch_and_add(&process->busy, -1) == 1 && call_is_marked_for_kill(call))
		(void)bpf_send_signal(SIGKILL);
}

/* The process is marked, too: it stays so when it is moved to another cgroup. */
__hidden void call_mark_for_kill(const struct call *call)
{
	struct process *process = call_get_process();

	if (process)
		*(volatile __u32 *)&process->condemned = 1;
	scope_mark_for_kill(&call->request.key);
}

__hidden bool call_is_marked_for_kill(const struct call *call)
{
	struct process *process = call_get_process();

	return (process && *(volatile __u32 *)&process->condemned) || scope_is_marked_for_kill(&call->request.key);
}

__hidden void call_doubt(const struct call *call)
{
	if (scope_add_state(&call->request.key, GUARD_DOUBT) / GUARD_DOUBT >= guard_processors)
		call_mark_for_kill(call);
}

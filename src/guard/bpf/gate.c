/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */

/*
 * The guard: a container's choice among the adapters behind one /dev/dxg, held in the kernel.
 *
 * Before a call, what names another adapter is refused as the driver refuses an unknown one, so that no message
 * leaves the guest. Behind an enumeration the caller's list is written again with the chosen adapters alone. Who
 * changes the words between our look and the driver's copy of them reaches another adapter once (guard/bpf/call.h).
 *
 * The kernel skips a program that already runs on the same CPU, which a kernel that preempts itself can bring about.
 * So every program does what one before it left undone, and such a kernel has probes besides, which are not skipped.
 */

#include "guard/bpf/call.h"
#include "guard/bpf/scope.h"

/* ---- page faults ---- */

/*
 * A guarded thread whose arguments the driver copies meets a page that is not there. The page's keeper (userfaultfd,
 * FUSE, a file) can now make it wait for as long as it likes, in a call that the guard has let pass.
 */

enum {
	X86_PF_WRITE = 1 << 1,
	FAULT_FLAG_WRITE = 1 << 0,
};

/*
 * Where the driver is past a LUID, it has just copied that: the LUID is checked again, which catches a thread that
 * exchanges it all the time. Elsewhere the page was there when the guard looked, or the call has a place. Calls that
 * find all places taken are not an accident.
 */
static __always_inline void fault_check(struct call *call, __u64 offset)
{
	__u32 end = request_luid_end(&call->request);
	int r = end && offset >= end ? request_check(&call->request) : -EFAULT;

	if (r == -EINVAL || (r == -EFAULT && !call_take_place(call)))
		call_mark_for_kill(call);
}

static __always_inline void fault_note(__u64 address, bool writes)
{
	struct call *call = scope_is_idle() || writes ? NULL : call_get_begun();

	if (call && !call->reached && address - call->request.arguments < call->request.size)
		fault_check(call, address - call->request.arguments);
}

/* Before any lock is taken; the kernel's own faults alone, which are few. */
SEC("tp_btf/page_fault_kernel")
int BPF_PROG(guard_fault, unsigned long address, struct pt_regs *regs, unsigned long error_code)
{
	fault_note(address, error_code & X86_PF_WRITE);
	return 0;
}

/* Where the architecture has no such event. */
SEC("fentry/handle_mm_fault")
int BPF_PROG(guard_fault_any, void *area, unsigned long address, unsigned int flags)
{
	call_stay();
	fault_note(address, flags & FAULT_FLAG_WRITE);
	call_stay_no_more();
	return 0;
}

/* ---- the gate ---- */

/* The kernel's number of /dev/dxg, set by the loader. The driver cannot go while programs are attached to it. */
const volatile __u32 guard_device = 0;

static __always_inline bool gate_is_dxg(struct file *file)
{
	struct inode *inode = file->f_inode;

	return inode->i_rdev == guard_device && (inode->i_mode & S_IFMT) == S_IFCHR;
}

/*
 * Of a call that is noted. One that waits behind a LUID is looked at when it begins to. A handle may mean another
 * adapter by the time that it has waited, and a device there may be only then.
 */
static __always_inline int gate_find_obstacle(struct call *call)
{
	if (call_is_marked_for_kill(call))
		return -EPERM;
	return call->request.missing && !request_luid_end(&call->request) && !call_take_place(call) ? -EFAULT : 0;
}

static __always_inline int gate_find_answer(struct file *file, unsigned int command, unsigned long arguments,
					    int answer)
{
	struct request request = {0};
	struct call *call;
	int r;

	if (answer || (command >> 8 & 0xff) != TYPE_DXG || scope_is_idle() || !gate_is_dxg(file))
		return answer;
	request_begin(&request, command, arguments);
	if (!scope_find(&request.key)) {
		call = call_get_begun();
		if (call)
			call_leave(call);
		scope_mark();
		return 0;
	}
	request.process = (__u64)file->private_data;
	r = request_look(&request);
	if (!r)
		r = call_note(&request);
	call = r ? NULL : call_get_begun();
	if (!call)
		return r;
	/* Counted first: a thread that condemns this process later sees this call. */
	r = gate_find_obstacle(call);
	if (r)
		call_leave(call);
	return r;
}

static __always_inline int gate_check(struct file *file, unsigned int command, unsigned long arguments, int answer)
{
	int r;

	call_stay();
	r = gate_find_answer(file, command, arguments, answer);
	call_stay_no_more();
	return r;
}

SEC("fmod_ret/security_file_ioctl")
int BPF_PROG(guard_ioctl, struct file *file, unsigned int command, unsigned long arguments, int answer)
{
	return gate_check(file, command, arguments, answer);
}

/* 32-bit callers have a hook of their own since 6.8 and the stable kernels of early 2024; before they had that one. */
SEC("fmod_ret/security_file_ioctl_compat")
int BPF_PROG(guard_ioctl_compat, struct file *file, unsigned int command, unsigned long arguments, int answer)
{
	return gate_check(file, command, arguments, answer);
}

/*
 * Again, as a security module, for kernels that preempt themselves: these programs the kernel never skips, but runs
 * only where "bpf" is in its list of security modules.
 */
SEC("lsm/file_ioctl")
int BPF_PROG(guard_lsm, struct file *file, unsigned int command, unsigned long arguments)
{
	return gate_check(file, command, arguments, 0);
}

SEC("lsm/file_ioctl_compat")
int BPF_PROG(guard_lsm32, struct file *file, unsigned int command, unsigned long arguments)
{
	return gate_check(file, command, arguments, 0);
}

/* Another security module may refuse what the gate let pass, at the caller's own wish (Landlock): then it is over. */
static __always_inline void gate_end_refused(unsigned int command, int answer)
{
	struct call *call;

	call_stay();
	call = answer && (command >> 8 & 0xff) == TYPE_DXG ? call_get_begun() : NULL;
	if (call)
		call_leave(call);
	call_stay_no_more();
}

SEC("fexit/security_file_ioctl")
int BPF_PROG(guard_refused, struct file *file, unsigned int command, unsigned long arguments, int answer)
{
	gate_end_refused(command, answer);
	return 0;
}

SEC("fexit/security_file_ioctl_compat")
int BPF_PROG(guard_refused_compat, struct file *file, unsigned int command, unsigned long arguments, int answer)
{
	gate_end_refused(command, answer);
	return 0;
}

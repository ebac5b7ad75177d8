/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */

/*
 * A guarded thread whose arguments the driver copies meets a page that is not there. The page's keeper (userfaultfd,
 * FUSE, a file) can now make it wait for as long as it likes, in a call that the guard has let pass.
 */

#include "guard/bpf/call.h"
#include "guard/bpf/scope.h"

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

/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */

/*
 * For kernels that preempt themselves: a probe runs without preemption, so no task stays in one, and it is not skipped.
 * So each of these does again what another program does in the driver, which changes nothing if that one ran.
 */

#include "guard/bpf/driver.h"
#include "guard/bpf/list.h"
#include "guard/bpf/scope.h"

/* It comes before the program at the same place. A call that it has seen already is one whose end was missed. */
static __always_inline void probe_call(struct file *file, unsigned int command, unsigned long arguments)
{
	struct call *call;

	if (scope_is_idle())
		return;
	call = call_get_begun();
	if (!call || call->begun == DRIVEN)
		driver_begin_late(file, command, arguments);
	call = call_get_begun();
	if (call)
		call->begun = DRIVEN;
}

SEC("kprobe/dxgk_unlocked_ioctl")
int BPF_KPROBE(guard_probe_begin, struct file *file, unsigned int command, unsigned long arguments)
{
	probe_call(file, command, arguments);
	return 0;
}

SEC("kprobe/dxgk_compat_ioctl")
int BPF_KPROBE(guard_probe_begin32, struct file *file, unsigned int command, unsigned long arguments)
{
	probe_call(file, command, arguments);
	return 0;
}

SEC("kretprobe/dxgk_unlocked_ioctl")
int BPF_KRETPROBE(guard_probe_end, long answer)
{
	driver_end((int)answer);
	return 0;
}

SEC("kretprobe/dxgk_compat_ioctl")
int BPF_KRETPROBE(guard_probe_end32, long answer)
{
	driver_end((int)answer);
	return 0;
}

/*
 * The kernel follows only so many callers at once to a function's end: of others the last end may be missed. Where its
 * list was, there may be anything by now.
 */
SEC("tp_btf/sched_process_exit")
int BPF_PROG(guard_probe_exit)
{
	struct call *call = scope_is_idle() ? NULL : call_get_begun();

	if (call)
		call_leave(call);
	return 0;
}

/* Of however many threads; what another thread puts behind the handle after this look, the next one sees. */
SEC("kprobe/dxgprocess_adapter_by_handle")
int BPF_KPROBE(guard_probe_look, struct dxgprocess *process, __u32 handle)
{
	struct call *call = scope_is_idle() ? NULL : call_get_begun();

	if (call && request_hides(&call->request.key, process, handle))
		call_mark_for_kill(call);
	return 0;
}

SEC("kretprobe/dxgprocess_adapter_by_handle")
int BPF_KRETPROBE(guard_probe_handle, struct dxgadapter *result)
{
	driver_check_call(result);
	return 0;
}

SEC("kretprobe/dxgprocess_device_by_object_handle")
int BPF_KRETPROBE(guard_probe_device, struct dxgdevice *result)
{
	if (result)
		driver_check_call(BPF_CORE_READ(result, adapter));
	return 0;
}

SEC("kprobe/dxgvmb_send_query_statistics")
int BPF_KPROBE(guard_probe_query, __u64 process, struct dxgadapter *adapter)
{
	driver_check_call(adapter);
	return 0;
}

SEC("kprobe/dxgprocess_open_adapter")
int BPF_KPROBE(guard_probe_open, struct dxgprocess *process, struct dxgadapter *adapter, void *handle)
{
	struct call *call = call_get_begun();

	if (!call)
		return 0;
	/* No program saw the last one's end. */
	if (call->opening && list_is_asked(call))
		list_note_opened(call, (void *)call->opening, (void *)call->opening_handle);
	call->opening = (__u64)adapter;
	call->opening_handle = (__u64)handle;
	if (!list_is_asked(call))
		driver_check_call(adapter);
	return 0;
}

/* What is still being opened, no other program has noted. */
SEC("kretprobe/dxgprocess_open_adapter")
int BPF_KRETPROBE(guard_probe_opened, int answer)
{
	struct call *call = call_get_begun();

	if (!call || !call->opening)
		return 0;
	if (answer >= 0)
		list_note_opened(call, (void *)call->opening, (void *)call->opening_handle);
	call->opening = 0;
	return 0;
}

SEC("kretprobe/dxgkio_enum_adapters3")
int BPF_KRETPROBE(guard_probe_enum3, int answer)
{
	struct call *call = call_get_begun();

	if (call)
		list_end_enum3(call, call->request.arguments, answer);
	return 0;
}

SEC("kretprobe/dxgkio_enum_adapters")
int BPF_KRETPROBE(guard_probe_enum2, int answer)
{
	struct call *call = call_get_begun();

	if (call)
		list_end_enum2(call, call->request.arguments, answer);
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */

#include "guard/bpf/driver.h"

#include "guard/bpf/call.h"
#include "guard/bpf/list.h"
#include "guard/bpf/scope.h"

enum { ARGUMENTS_MAX = 64 }; /* bytes of them that are cleared */

static const char nothing[ARGUMENTS_MAX] = {0};

/* What the driver will find is nothing that it knows. */
static __always_inline void driver_clear_arguments(unsigned int command, unsigned long arguments)
{
	__u32 size = command >> 16 & 0x3fff, others = size - 1; /* _IOC_SIZE */

	if (!size)
		return;
	if (others >= ARGUMENTS_MAX)
		others = ARGUMENTS_MAX - 1;
	asm volatile("" : "+r"(others));
	others &= ARGUMENTS_MAX - 1;
	(void)bpf_probe_write_user((void *)arguments, nothing, others + 1);
}

/* The gate was skipped. What it would have refused can be made useless only. */
static __always_inline void driver_pass_late(struct request *request, unsigned int command)
{
	int r = request_look(request);
	struct call *call = call_note(request) ? NULL : call_get_begun();

	if (!call || r || call_is_marked_for_kill(call) ||
	    (request->missing && !request_luid_end(request) && !call_take_place(call)))
		driver_clear_arguments(command, request->arguments);
}

__hidden void driver_begin_late(struct file *file, unsigned int command, unsigned long arguments)
{
	struct request request = {0};

	request_begin(&request, command, arguments);
	if (scope_take_mark() || !scope_find(&request.key))
		return;
	request.process = (__u64)BPF_CORE_READ(file, private_data);
	driver_pass_late(&request, command);
}

static __always_inline void driver_begin(struct file *file, unsigned int command, unsigned long arguments)
{
	call_stay();
	if (!scope_is_idle() && !call_get_begun())
		driver_begin_late(file, command, arguments);
	call_stay_no_more();
}

__hidden void driver_end(int answer)
{
	struct call *call = scope_is_idle() ? NULL : call_get_begun();

	if (!call)
		return;
	if (guard_preempts)
		list_end_late(call, answer);
	call_leave(call);
}

SEC("fentry/dxgk_unlocked_ioctl")
int BPF_PROG(guard_begin_native, struct file *file, unsigned int command, unsigned long arguments)
{
	driver_begin(file, command, arguments);
	return 0;
}

SEC("fentry/dxgk_compat_ioctl")
int BPF_PROG(guard_begin_compat, struct file *file, unsigned int command, unsigned long arguments)
{
	driver_begin(file, command, arguments);
	return 0;
}

static __always_inline void driver_return(long answer)
{
	call_stay();
	driver_end((int)answer);
	call_stay_no_more();
}

SEC("fexit/dxgk_unlocked_ioctl")
int BPF_PROG(guard_end_native, struct file *file, unsigned int command, unsigned long arguments, long answer)
{
	driver_return(answer);
	return 0;
}

SEC("fexit/dxgk_compat_ioctl")
int BPF_PROG(guard_end_compat, struct file *file, unsigned int command, unsigned long arguments, long answer)
{
	driver_return(answer);
	return 0;
}

__hidden void driver_check_call(struct dxgadapter *adapter)
{
	struct call *call = scope_is_idle() ? NULL : call_get_begun();

	if (!call || !adapter)
		return;
	call_note_copied(call);
	if (!scope_allows(&call->request.key, scope_luid(adapter)))
		call_mark_for_kill(call);
}

SEC("fexit/dxgprocess_adapter_by_handle")
int BPF_PROG(guard_by_handle, struct dxgprocess *process, __u64 handle, struct dxgadapter *result)
{
	call_stay();
	driver_check_call(result);
	call_stay_no_more();
	return 0;
}

/* Devices that were made before the process was guarded. */
SEC("fexit/dxgprocess_device_by_object_handle")
int BPF_PROG(guard_by_device, struct dxgprocess *process, int type, __u64 handle, struct dxgdevice *result)
{
	call_stay();
	if (result)
		driver_check_call(BPF_CORE_READ(result, adapter));
	call_stay_no_more();
	return 0;
}

SEC("fentry/dxgvmb_send_query_statistics")
int BPF_PROG(guard_statistics, __u64 process, struct dxgadapter *adapter)
{
	call_stay();
	driver_check_call(adapter);
	call_stay_no_more();
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */

#include "guard/bpf/request.h"

#include "guard/bpf/scope.h"

/* How far into the arguments a LUID is; -1: the call has none. */
static __always_inline int request_luid_place(__u32 number)
{
	switch (number) {
	case OPEN_ADAPTER_FROM_LUID:
	case ENUM_PROCESSES:
		return 0;
	case QUERY_STATISTICS:
		return 4;
	default:
		return -1;
	}
}

/* The same of an adapter's handle. */
static __always_inline int request_handle_place(__u32 number)
{
	switch (number) {
	case CREATE_DEVICE:
	case 0x08:
	case 0x09:
	case 0x0d:
	case 0x15:
	case 0x1f:
	case 0x20:
	case 0x3d:
	case 0x49:
		return 0;
	case QUERY_VIDEO_MEMORY_INFO:
	case QUERY_CLOCK_CALIBRATION_PROCESS:
		return 8;
	default:
		return -1;
	}
}

__hidden bool request_hides(const struct guard_key *who, struct dxgprocess *process, __u32 handle)
{
	struct hmgrentry *table = BPF_CORE_READ(process, local_handle_table.entry_table);
	__u32 size = BPF_CORE_READ(process, local_handle_table.table_size), index = handle >> 6 & 0xffffff;
	struct hmgrentry *entry = (void *)table + (__u64)index * bpf_core_type_size(struct hmgrentry);

	if (index >= size || BPF_CORE_READ_BITFIELD_PROBED(entry, type) != HMGRENTRY_TYPE_DXGADAPTER)
		return false;
	return !scope_allows(who, scope_luid(BPF_CORE_READ(entry, object)));
}

/* What cannot be read now is refused: whoever waits with a page would have the driver read what we did not see. */
static __always_inline int request_check(const struct request *request)
{
	int luid_place = request_luid_place(request->number), handle_place = request_handle_place(request->number);
	__u32 handle;
	__u64 luid;

	if (luid_place >= 0) {
		if (bpf_probe_read_user(&luid, sizeof(luid), (void *)(request->arguments + luid_place)))
			return -EFAULT;
		return scope_allows(&request->key, luid) ? 0 : -EINVAL;
	}
	if (handle_place >= 0) {
		if (bpf_probe_read_user(&handle, sizeof(handle), (void *)(request->arguments + handle_place)))
			return -EFAULT;
		return request_hides(&request->key, (void *)request->process, handle) ? -EINVAL : 0;
	}
	return 0;
}

static __always_inline int request_note_list(struct request *request)
{
	struct enum_adapters2 two;
	struct enum_adapters3 three;

	if (request->number == ENUM_ADAPTERS2) {
		if (bpf_probe_read_user(&two, sizeof(two), (void *)request->arguments))
			return -EFAULT;
		request->room = two.count;
		request->list = two.adapters;
	} else if (request->number == ENUM_ADAPTERS3) {
		if (bpf_probe_read_user(&three, sizeof(three), (void *)request->arguments))
			return -EFAULT;
		request->room = three.count;
		request->list = three.adapters;
	}
	return 0;
}

__hidden int request_look(struct request *request)
{
	int r = request_check(request);

	return r ? r : request_note_list(request);
}

/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */

#include "guard/bpf/request.h"

#include "guard/bpf/scope.h"

enum {
	PAGE = 4096, /* or more */
	PAGES = 4,   /* that arguments lie on, besides the first */
	TABLE_TRIES = 3,
};

__hidden void request_begin(struct request *request, unsigned int command, unsigned long arguments)
{
	request->number = command & 0xff;
	request->size = command >> 16 & 0x3fff; /* _IOC_SIZE */
	request->arguments = arguments;
}

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

__hidden __u32 request_luid_end(const struct request *request)
{
	int place = request_luid_place(request->number);

	return place >= 0 ? place + sizeof(__u64) : 0;
}

/* @table: the process's handles */
static __always_inline bool request_hides_in(const struct guard_key *who, struct dxgprocess *process,
					     struct hmgrentry *table, __u32 handle)
{
	__u32 size = BPF_CORE_READ(process, local_handle_table.table_size), index = handle >> 6 & 0xffffff;
	struct hmgrentry *entry = (void *)table + (__u64)index * bpf_core_type_size(struct hmgrentry);

	if (index >= size || BPF_CORE_READ_BITFIELD_PROBED(entry, type) != HMGRENTRY_TYPE_DXGADAPTER)
		return false;
	return !scope_allows(who, scope_luid(BPF_CORE_READ(entry, object)));
}

/* The driver frees the table when it has made a larger one; what was read from it then may be anything. */
__hidden bool request_hides(const struct guard_key *who, struct dxgprocess *process, __u32 handle)
{
	struct hmgrentry *table = BPF_CORE_READ(process, local_handle_table.entry_table), *later;

	for (int i = 0; i < TABLE_TRIES; i++) {
		if (!request_hides_in(who, process, table, handle))
			return false;
		later = BPF_CORE_READ(process, local_handle_table.entry_table);
		if (later == table)
			return true;
		table = later;
	}
	return true;
}

static __always_inline bool request_lacks(const struct request *request, __u32 offset)
{
	char byte;

	return bpf_probe_read_user(&byte, sizeof(byte), (void *)(request->arguments + offset));
}

/* A page is there or not, so a byte of each is enough. */
static __always_inline bool request_lacks_any(const struct request *request)
{
	if (!request->size)
		return false;
	for (__u32 i = 0; i < PAGES && i * PAGE < request->size; i++)
		if (request_lacks(request, i * PAGE))
			return true;
	return request_lacks(request, request->size - 1);
}

__hidden int request_check(const struct request *request)
{
	int luid_place = request_luid_place(request->number), handle_place = request_handle_place(request->number);
	__u32 handle;
	__u64 luid;

	if ((luid_place > 0 || handle_place > 0) && request_lacks(request, 0))
		return -EFAULT;
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

	request->missing = request_lacks_any(request);
	return r ? r : request_note_list(request);
}

__hidden bool request_is_exchanged(const struct request *request)
{
	struct enum_adapters2 two;
	struct enum_adapters3 three;

	if (request->number == ENUM_ADAPTERS2)
		return !bpf_probe_read_user(&two, sizeof(two), (void *)request->arguments) &&
		       (two.count != request->room || two.adapters != request->list);
	return !bpf_probe_read_user(&three, sizeof(three), (void *)request->arguments) &&
	       (three.count != request->room || three.adapters != request->list);
}

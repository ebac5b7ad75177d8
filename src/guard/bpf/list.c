/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */

#include "guard/bpf/list.h"

#include "guard/bpf/scope.h"

enum {
	CLEARED_AT_ONCE = 64,
	CLEARED_MAX = 16, /* times that many entries */
};

static const char zeros[CLEARED_AT_ONCE * sizeof(struct adapter_info)] = {0};

__hidden bool list_is_asked(const struct call *call)
{
	return call->request.number == ENUM_ADAPTERS2 || call->request.number == ENUM_ADAPTERS3;
}

__hidden void list_note_opened(struct call *call, struct dxgadapter *adapter, const void *handle)
{
	__u64 luid = scope_luid(adapter);
	struct adapter_info *info;
	__u32 index = call->found;

	if (!scope_allows(&call->request.key, luid)) {
		if (!list_is_asked(call))
			call_mark_for_kill();
		return;
	}
	if (index >= GUARD_ADAPTERS_MAX)
		return;
	asm volatile("" : "+r"(index));
	info = &call->infos[index & (GUARD_ADAPTERS_MAX - 1)];
	info->luid[0] = (__u32)luid;
	info->luid[1] = (__u32)(luid >> 32);
	(void)bpf_probe_read_kernel(&info->handle, sizeof(info->handle), handle);
	call->found = index + 1;
}

SEC("fexit/dxgprocess_open_adapter")
int BPF_PROG(guard_opened, struct dxgprocess *process, struct dxgadapter *adapter, struct d3dkmthandle *handle,
	     int answer)
{
	struct call *call = call_get_begun();

	if (!call)
		return 0;
	call->opening = 0;
	if (answer >= 0)
		list_note_opened(call, adapter, handle);
	return 0;
}

/* Not static, so that the verifier looks at it once, and not in every round of a loop. */
int list_clear_some(__u64 list, __u32 from, __u32 to);

/* Return: how many entries; none if there is nothing left. */
__noinline int list_clear_some(__u64 list, __u32 from, __u32 to)
{
	__u32 others;

	if (from >= to)
		return 0;
	/* Besides the first: the verifier then knows that it is not nothing. */
	others = to - from - 1;
	if (others >= CLEARED_AT_ONCE)
		others = CLEARED_AT_ONCE - 1;
	asm volatile("" : "+r"(others));
	(void)bpf_probe_write_user((void *)(list + (__u64)from * sizeof(struct adapter_info)), zeros,
				   (others + 1) * sizeof(struct adapter_info));
	return (int)others + 1;
}

/* Entries behind the list: the driver wrote hidden adapters there. */
static __always_inline void list_clear(__u64 list, __u32 from, __u32 to)
{
	for (int i = 0; i < CLEARED_MAX; i++) {
		int cleared = list_clear_some(list, from, to);

		if (!cleared)
			break;
		from += cleared;
	}
}

/* Writes what was found. Return: how many; none if that cannot be. */
static __always_inline __u32 list_write(struct call *call)
{
	__u32 found = call->found, others = found - 1;

	if (!found || found > GUARD_ADAPTERS_MAX)
		return 0;
	asm volatile("" : "+r"(others));
	others &= GUARD_ADAPTERS_MAX - 1;
	return bpf_probe_write_user((void *)call->request.list, call->infos,
				    (others + 1) * sizeof(struct adapter_info)) == 0
		       ? found
		       : 0;
}

/*
 * @told: the count that the driver wrote
 * Return: the count to write in its place.
 */
static __always_inline __u32 list_rewrite(struct call *call, __u32 told)
{
	bool fits = call->found <= call->request.room;
	__u32 written = fits ? list_write(call) : 0;

	/* More than there is room for is a count of what there is; nothing was written then. */
	if (told <= call->request.room)
		list_clear(call->request.list, written, told);
	return fits ? written : call->found;
}

__hidden void list_end_enum3(struct call *call, __u64 arguments)
{
	__u64 place = arguments + offsetof(struct enum_adapters3, count);
	__u32 told, count;

	if (bpf_probe_read_user(&told, sizeof(told), (void *)place))
		return;
	if (call->request.list && call->request.room) {
		told = list_rewrite(call, told);
	} else {
		count = scope_count(&call->request.key);
		if (count < told)
			told = count;
	}
	(void)bpf_probe_write_user((void *)place, &told, sizeof(told));
}

__hidden void list_end_enum2(struct call *call, __u64 arguments)
{
	__u64 place = arguments + offsetof(struct enum_adapters2, count);
	__u32 told;

	if (!call->request.list || bpf_probe_read_user(&told, sizeof(told), (void *)place))
		return;
	told = list_rewrite(call, told);
	(void)bpf_probe_write_user((void *)place, &told, sizeof(told));
}

SEC("fexit/dxgkio_enum_adapters3")
int BPF_PROG(guard_enum3, struct dxgprocess *process, void *arguments, int answer)
{
	struct call *call = call_get_begun();

	if (call && answer >= 0)
		list_end_enum3(call, (__u64)arguments);
	return 0;
}

SEC("fexit/dxgkio_enum_adapters")
int BPF_PROG(guard_enum2, struct dxgprocess *process, void *arguments, int answer)
{
	struct call *call = call_get_begun();

	if (call && answer >= 0)
		list_end_enum2(call, (__u64)arguments);
	return 0;
}

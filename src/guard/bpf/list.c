/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */

#include "guard/bpf/list.h"

#include "guard/bpf/scope.h"

enum {
	CLEARED_AT_ONCE = 64,
	CLEARED_MAX = 16, /* times that many entries */
};

/* Whether the kernel preempts itself, set by the loader. */
const volatile bool guard_preempts = false;

static const __u64 UNREADABLE = 1ULL << 32;
static const char zeros[CLEARED_AT_ONCE * sizeof(struct adapter_info)] = {0};

__hidden bool list_is_asked(const struct call *call)
{
	return call->request.number == ENUM_ADAPTERS2 || call->request.number == ENUM_ADAPTERS3;
}

/* What an entry of a list adds to it. */
static __always_inline __u32 list_weigh(__u64 luid, __u32 handle)
{
	return handle * 0x9e3779b1 + (__u32)luid * 0x85ebca6b + (__u32)(luid >> 32) * 0xc2b2ae35;
}

/*
 * An enumeration goes on. The driver takes the list's address from its own copy of the arguments; we have only what we
 * saw in memory. So a process whose arguments have been exchanged when we look is stopped, and so is one for which the
 * driver opens an adapter although we saw no list.
 */
static __always_inline void list_check_place(struct call *call)
{
	if (!list_is_asked(call))
		call_note_copied(call);
	else if (!call->request.list || !call->request.room || request_is_exchanged(&call->request))
		call_mark_for_kill(call);
}

static __always_inline void list_note(struct call *call, struct dxgadapter *adapter, __u32 word)
{
	__u64 luid = scope_luid(adapter);
	struct adapter_info *info;
	__u32 index = call->found;

	if (list_is_asked(call)) {
		if (call->opened < GUARD_ADAPTERS_MAX)
			call->sum += list_weigh(luid, word);
		call->opened++;
	}
	if (!scope_allows(&call->request.key, luid)) {
		if (!list_is_asked(call))
			call_mark_for_kill(call);
		return;
	}
	if (index >= GUARD_ADAPTERS_MAX)
		return;
	asm volatile("" : "+r"(index));
	info = &call->infos[index & (GUARD_ADAPTERS_MAX - 1)];
	info->luid[0] = (__u32)luid;
	info->luid[1] = (__u32)(luid >> 32);
	info->handle = word;
	call->found = index + 1;
}

__hidden void list_note_opened(struct call *call, struct dxgadapter *adapter, const void *handle)
{
	__u32 word = 0;

	(void)bpf_probe_read_kernel(&word, sizeof(word), handle);
	list_check_place(call);
	list_note(call, adapter, word);
}

SEC("fexit/dxgprocess_open_adapter")
int BPF_PROG(guard_opened, struct dxgprocess *process, struct dxgadapter *adapter, struct d3dkmthandle *handle,
	     int answer)
{
	struct call *call;

	call_stay();
	call = call_get_begun();
	if (call)
		call->opening = 0;
	if (call && answer >= 0)
		list_note_opened(call, adapter, handle);
	call_stay_no_more();
	return 0;
}

/* Not static, so that the verifier looks at it once. Where the kernel preempts itself it is not called. */
__u64 list_add_up(__u64 list, __u32 count);

/* Return: the sum, or UNREADABLE. */
__noinline __u64 list_add_up(__u64 list, __u32 count)
{
	struct adapter_info info;
	__u32 sum = 0;

	for (__u32 i = 0; i < GUARD_ADAPTERS_MAX && i < count; i++) {
		if (bpf_probe_read_user(&info, sizeof(info), (void *)(list + (__u64)i * sizeof(info))))
			return UNREADABLE;
		sum += list_weigh((__u64)info.luid[1] << 32 | info.luid[0], info.handle);
	}
	return sum;
}

static __always_inline void *list_place(__u64 list, __u32 index)
{
	return (void *)(list + (__u64)index * sizeof(struct adapter_info));
}

/*
 * Entries behind the list: the driver wrote hidden adapters there. Only the last piece has a size that the verifier
 * does not know, which it would follow back through every piece before.
 * Return: whether it is done.
 */
static __always_inline bool list_clear(__u64 list, __u32 from, __u32 to)
{
	__u32 others;

	for (int i = 0; i < CLEARED_MAX && from < to && to - from > CLEARED_AT_ONCE; i++) {
		if (bpf_probe_write_user(list_place(list, from), zeros, sizeof(zeros)))
			return false;
		from += CLEARED_AT_ONCE;
	}
	if (from >= to)
		return true;
	/* Besides the first: the verifier then knows that it is not nothing. */
	others = to - from - 1;
	if (others >= CLEARED_AT_ONCE)
		return false;
	asm volatile("" : "+r"(others));
	others &= CLEARED_AT_ONCE - 1;
	return bpf_probe_write_user(list_place(list, from), zeros, (others + 1) * sizeof(struct adapter_info)) == 0;
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

/* Whether the list that we saw is the one that the driver wrote. */
static __always_inline void list_check(struct call *call)
{
	__u64 sum = list_add_up(call->request.list, call->opened);

	if (sum == UNREADABLE)
		call_doubt(call);
	else if ((__u32)sum != call->sum)
		call_mark_for_kill(call);
}

/*
 * How many entries the driver wrote, if they fit: as many as it opened, even if another thread has overwritten its
 * count. Where the kernel preempts itself, we may not have seen every opening.
 */
static __always_inline __u32 list_count(const struct call *call, __u64 place)
{
	__u32 told = 0;

	if (guard_preempts && !bpf_probe_read_user(&told, sizeof(told), (void *)place) && told > call->opened)
		return told;
	return call->opened;
}

/*
 * The last opening, whose end no program saw: the handle is in the driver's list alone now. It need not be true. Nor is
 * the list's room what it was: the driver has written its count there.
 */
static __always_inline void list_note_last(struct call *call)
{
	struct dxgadapter *adapter = (void *)call->opening;
	__u32 word = 0;

	call->opening = 0;
	(void)bpf_probe_read_user(&word, sizeof(word),
				  (void *)(call->request.list + (__u64)call->opened * sizeof(struct adapter_info)));
	list_note(call, adapter, word);
}

/*
 * @place: of the count
 * Return: the count to write there.
 */
static __always_inline __u32 list_rewrite(struct call *call, __u64 place)
{
	__u32 count, written;
	bool fits;

	if (guard_preempts && call->opening)
		list_note_last(call);
	fits = call->found <= call->request.room;
	count = list_count(call, place);

	/* More than there is room for is a count of what there is; nothing was written then. */
	if (count <= call->request.room && !guard_preempts && scope_is_first())
		list_check(call);
	written = fits ? list_write(call) : 0;
	if (count <= call->request.room && !list_clear(call->request.list, written, count))
		call_doubt(call);
	return fits ? written : call->found;
}

/* Some entries may have been written before one that could not be. */
static __always_inline void list_end_failed(struct call *call)
{
	if (call->request.list && call->opened <= call->request.room)
		(void)list_clear(call->request.list, 0, call->opened);
}

__hidden void list_end_enum3(struct call *call, __u64 arguments, int answer)
{
	__u64 place = arguments + offsetof(struct enum_adapters3, count);
	__u32 told, count;

	if (call->listed)
		return;
	call->listed = 1;
	if (answer < 0) {
		list_end_failed(call);
		return;
	}
	if (call->request.list && call->request.room) {
		told = list_rewrite(call, place);
	} else {
		if (bpf_probe_read_user(&told, sizeof(told), (void *)place))
			return;
		count = scope_count(&call->request.key);
		if (count < told)
			told = count;
	}
	(void)bpf_probe_write_user((void *)place, &told, sizeof(told));
}

__hidden void list_end_enum2(struct call *call, __u64 arguments, int answer)
{
	__u64 place = arguments + offsetof(struct enum_adapters2, count);
	__u32 told;

	if (call->listed || !call->request.list)
		return;
	call->listed = 1;
	if (answer < 0) {
		list_end_failed(call);
		return;
	}
	told = list_rewrite(call, place);
	(void)bpf_probe_write_user((void *)place, &told, sizeof(told));
}

__hidden void list_end_late(struct call *call, int answer)
{
	if (call->request.number == ENUM_ADAPTERS3)
		list_end_enum3(call, call->request.arguments, answer);
	else if (call->request.number == ENUM_ADAPTERS2)
		list_end_enum2(call, call->request.arguments, answer);
}

static __always_inline void list_return3(void *arguments, int answer)
{
	struct call *call;

	call_stay();
	call = call_get_begun();
	if (call)
		list_end_enum3(call, (__u64)arguments, answer);
	call_stay_no_more();
}

static __always_inline void list_return2(void *arguments, int answer)
{
	struct call *call;

	call_stay();
	call = call_get_begun();
	if (call)
		list_end_enum2(call, (__u64)arguments, answer);
	call_stay_no_more();
}

SEC("fexit/dxgkio_enum_adapters3")
int BPF_PROG(guard_enum3, struct dxgprocess *process, void *arguments, int answer)
{
	list_return3(arguments, answer);
	return 0;
}

SEC("fexit/dxgkio_enum_adapters")
int BPF_PROG(guard_enum2, struct dxgprocess *process, void *arguments, int answer)
{
	list_return2(arguments, answer);
	return 0;
}

/*
 * Again, for kernels that preempt themselves: a task is preempted in one of them alone, so what the kernel skips of one
 * it hardly skips of the other.
 */
SEC("fexit/dxgkio_enum_adapters3")
int BPF_PROG(guard_again_enum3, struct dxgprocess *process, void *arguments, int answer)
{
	list_return3(arguments, answer);
	return 0;
}

SEC("fexit/dxgkio_enum_adapters")
int BPF_PROG(guard_again_enum2, struct dxgprocess *process, void *arguments, int answer)
{
	list_return2(arguments, answer);
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */

/*
 * The guard: a container's choice among the adapters behind one /dev/dxg, held in the kernel.
 *
 * Before a call, what names another adapter is refused as the driver refuses an unknown one, so that no message
 * leaves the guest. Behind an enumeration the caller's list is written again with the chosen adapters alone. Who
 * changes the words between our look and the driver's copy of them reaches another adapter once: the process is
 * condemned, makes no further call, and is killed when its last call has ended. Never earlier: dxgvmb_send_sync_msg()
 * waits killably and then frees a packet that the channel's callback may still use.
 *
 * The kernel skips a program that already runs on the same CPU, which a kernel that preempts itself can bring about.
 * So every program does what one before it left undone, and such a kernel has probes besides, which are not skipped.
 */

#include <stdbool.h>
#include <stddef.h>

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;
typedef int __s32;
typedef long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;

enum {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_TASK_STORAGE = 29,
	BPF_F_NO_PREALLOC = 1 << 0,
	BPF_F_MMAPABLE = 1 << 10,
	BPF_LOCAL_STORAGE_GET_F_CREATE = 1,
};

/* What a probe is given, by the names that libbpf knows: uapi/asm/ptrace.h. */
#ifdef __TARGET_ARCH_arm64
struct pt_regs;
struct user_pt_regs {
	__u64 regs[31], sp, pc, pstate;
};
#else
struct pt_regs {
	__u64 r15, r14, r13, r12, rbp, rbx, r11, r10, r9, r8, rax, rcx, rdx, rsi, rdi;
	__u64 orig_rax, rip, cs, eflags, rsp, ss;
};
#endif

/* clang-format off */
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>
/* clang-format on */

#include "guard/layout.h"

#define CORE __attribute__((preserve_access_index))

/* Of the kernel and the driver, what is read of them. The loader compares both with the running ones. */
enum cgroup_subsys_id { devices_cgrp_id = 1 };
struct kernfs_node {
	__u64 id;
} CORE;
struct cgroup_root {
	__u32 subsys_mask;
	int hierarchy_id;
} CORE;
struct cgroup {
	struct cgroup_root *root;
	int level;
	struct kernfs_node *kn;
} CORE;
struct cgroup___ids { /* before Linux 6.1 */
	__u64 ancestor_ids[1];
} CORE;
struct cgroup___ancestors {
	struct cgroup *ancestors[1];
} CORE;
struct cgroup_subsys_state {
	struct cgroup *cgroup;
} CORE;
struct css_set {
	struct cgroup_subsys_state *subsys[1];
} CORE;
struct task_struct {
	struct css_set *cgroups;
	struct task_struct *group_leader;
} CORE;
struct inode {
	__u16 i_mode;
	__u32 i_rdev;
} CORE;
struct file {
	struct inode *f_inode;
	void *private_data;
} CORE;
struct winluid {
	__u32 a, b;
} CORE;
struct d3dkmthandle {
	__u32 v;
};
struct dxgadapter {
	struct winluid luid;
} CORE;
struct dxgdevice {
	struct dxgadapter *adapter;
} CORE;
struct hmgrentry {
	void *object;
	__u32 type : 5;
} CORE;
struct hmgrtable {
	struct hmgrentry *entry_table;
	__u32 table_size;
} CORE;
struct dxgprocess {
	struct hmgrtable local_handle_table;
} CORE;

/* The driver's calls (d3dkmthk.h), by their numbers. */
enum {
	TYPE_DXG = 0x47,
	OPEN_ADAPTER_FROM_LUID = 0x01,
	CREATE_DEVICE = 0x02,
	QUERY_VIDEO_MEMORY_INFO = 0x0a,
	ENUM_ADAPTERS2 = 0x14,
	QUERY_CLOCK_CALIBRATION_PROCESS = 0x16,
	ENUM_ADAPTERS3 = 0x3e,
	QUERY_STATISTICS = 0x43,
	ENUM_PROCESSES = 0x48,
};
struct enum_adapters2 {
	__u32 count, pad;
	__u64 adapters;
};
struct enum_adapters3 {
	__u64 filter;
	__u32 count, pad;
	__u64 adapters;
};
struct adapter_info {
	__u32 handle;
	__u32 luid[2];
	__u32 sources, present;
};

enum {
	EPERM = 1,
	ENOMEM = 12,
	EFAULT = 14,
	EINVAL = 22,
	SIGKILL = 9,
	S_IFMT = 0170000,
	S_IFCHR = 0020000,
	HMGRENTRY_TYPE_DXGADAPTER = 1,
	ARGUMENTS_MAX = 64, /* bytes of them that are cleared */
	CLEARED_AT_ONCE = 64,
	CLEARED_MAX = 16, /* times that many entries */
	MAKE_TRIES = 4,
};

/* What a guarded thread asks the driver. */
struct request {
	struct guard_key key;
	__u64 process;   /* the driver's object for the caller, struct dxgprocess */
	__u64 arguments; /* the caller's */
	__u64 list;      /* of an enumeration: the caller's array, and its room */
	__u32 room;
	__u32 number;
};

enum progress {
	NOT_BEGUN,
	GATED,  /* the gate has let the call pass */
	DRIVEN, /* and a probe has seen it in the driver */
};

/* A guarded thread, and its call from before the driver has it to its end. */
struct call {
	struct request request;
	__u64 opening; /* the adapter that the driver opens just now, and where its handle will be; for probes */
	__u64 opening_handle;
	__u32 begun; /* enum progress */
	__u32 found; /* allowed adapters that the driver opened for it */
	struct adapter_info infos[GUARD_ADAPTERS_MAX];
};

struct process {
	__u32 busy; /* threads that are in a call */
	__u32 condemned;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, GUARD_CHOICES_MAX);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct guard_key);
	__type(value, struct guard_choice);
} choices SEC(".maps");

/*
 * What is known of a thread and, with its group's leader, of a process is the task's own and ends with it: nobody can
 * fill a table that others need.
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

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct guard_counts);
} present SEC(".maps");

/* The thread that the gate found without a choice, until it is in the driver. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} marks SEC(".maps");

/* The kernel's number of /dev/dxg, set by the loader. The driver cannot go while programs are attached to it. */
const volatile __u32 guard_device = 0;
/* Whether the kernel has these functions (Linux 6.10), set by the loader. */
const volatile bool guard_can_stay = false;
extern void bpf_preempt_disable(void) __weak __ksym;
extern void bpf_preempt_enable(void) __weak __ksym;
static const char zeros[CLEARED_AT_ONCE * sizeof(struct adapter_info)] = {0};

char guard_license[] SEC("license") = "GPL";

/* ---- who is guarded ---- */

static __always_inline struct guard_counts *guard_get_counts(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&present, &zero);
}

static __always_inline bool guard_is_present(__u32 hierarchy)
{
	struct guard_counts *counts = guard_get_counts();

	return counts && *(volatile __u32 *)&counts->choices[hierarchy];
}

/* Whether nobody has a choice. */
static __always_inline bool guard_is_idle(void)
{
	struct guard_counts *counts = guard_get_counts();

	return counts && !(*(volatile __u32 *)&counts->choices[GUARD_CGROUP2] |
			   *(volatile __u32 *)&counts->choices[GUARD_DEVICES]);
}

static __always_inline bool guard_has(struct guard_key *key, __u64 cgroup, __u64 hierarchy)
{
	key->cgroup = cgroup;
	key->hierarchy = hierarchy;
	return bpf_map_lookup_elem(&choices, key) != NULL;
}

static __always_inline __u64 guard_ancestor(struct cgroup *cgroup, int level)
{
	struct cgroup *ancestor = NULL;
	__u64 id = 0;

	if (bpf_core_field_exists(struct cgroup___ids, ancestor_ids)) {
		(void)bpf_probe_read_kernel(&id, sizeof(id),
					    (void *)cgroup + bpf_core_field_offset(struct cgroup___ids, ancestor_ids) +
						    level * sizeof(id));
		return id;
	}
	(void)bpf_probe_read_kernel(&ancestor, sizeof(ancestor),
				    (void *)cgroup + bpf_core_field_offset(struct cgroup___ancestors, ancestors) +
					    level * sizeof(ancestor));
	return BPF_CORE_READ(ancestor, kn, id);
}

/* The cgroup of version 1 that holds the caller's devices; version 2 has its root there. */
static __always_inline struct cgroup *guard_devices_cgroup(void)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	struct css_set *set = BPF_CORE_READ(task, cgroups);
	struct cgroup_subsys_state *state = NULL;

	if (!bpf_core_enum_value_exists(enum cgroup_subsys_id, devices_cgrp_id))
		return NULL;
	(void)bpf_probe_read_kernel(&state, sizeof(state),
				    (void *)set + bpf_core_field_offset(struct css_set, subsys) +
					    bpf_core_enum_value(enum cgroup_subsys_id, devices_cgrp_id) *
						    sizeof(state));
	return BPF_CORE_READ(state, cgroup);
}

/* A container's own cgroup is found below the root, so how deep it nests others does not matter. */
static __noinline bool guard_find(struct guard_key *key)
{
	struct cgroup *devices;
	int depth;

	if (!key)
		return false;
	for (int level = 1; level <= GUARD_LEVELS_MAX && guard_is_present(GUARD_CGROUP2); level++) {
		__u64 id = bpf_get_current_ancestor_cgroup_id(level);

		if (!id)
			break;
		if (guard_has(key, id, GUARD_CGROUP2))
			return true;
	}
	if (!guard_is_present(GUARD_DEVICES))
		return false;
	devices = guard_devices_cgroup();
	depth = devices ? BPF_CORE_READ(devices, level) : 0;
	for (int level = 1; level <= GUARD_LEVELS_MAX; level++) {
		if (level > depth)
			break;
		if (guard_has(key, guard_ancestor(devices, level), GUARD_DEVICES))
			return true;
	}
	return false;
}

/* A choice that went with its cgroup, from which a process was moved just now, has no adapter. */
static __noinline bool guard_allows(const struct guard_key *who, __u64 luid)
{
	struct guard_choice *choice;
	struct guard_key key;

	if (!who)
		return false;
	key = *who;
	choice = bpf_map_lookup_elem(&choices, &key);
	for (__u32 i = 0; choice && i < GUARD_ADAPTERS_MAX; i++) {
		if (i >= choice->count)
			break;
		if (choice->luids[i] == luid)
			return true;
	}
	return false;
}

static __always_inline __u64 guard_luid(struct dxgadapter *adapter)
{
	return (__u64)BPF_CORE_READ(adapter, luid.b) << 32 | BPF_CORE_READ(adapter, luid.a);
}

static __always_inline __u32 guard_thread(void)
{
	return (__u32)bpf_get_current_pid_tgid();
}

/* A choice goes with its cgroup. Every hierarchy has numbers of its own. */
SEC("tp_btf/cgroup_rmdir")
int BPF_PROG(guard_removed, struct cgroup *cgroup)
{
	struct guard_key key = {.cgroup = BPF_CORE_READ(cgroup, kn, id)};
	struct cgroup_root *root = BPF_CORE_READ(cgroup, root);
	struct guard_counts *counts = guard_get_counts();

	if (BPF_CORE_READ(root, hierarchy_id) != 0) {
		if (!bpf_core_enum_value_exists(enum cgroup_subsys_id, devices_cgrp_id) ||
		    !(BPF_CORE_READ(root, subsys_mask) >> bpf_core_enum_value(enum cgroup_subsys_id, devices_cgrp_id) &
		      1))
			return 0;
		key.hierarchy = GUARD_DEVICES;
	}
	if (bpf_map_delete_elem(&choices, &key) == 0 && counts)
		(void)__sync_fetch_and_add(&counts->choices[key.hierarchy == GUARD_DEVICES], -1);
	return 0;
}

/* ---- calls ---- */

/*
 * Before Linux 7.1 nobody makes storage on a processor where another task is preempted while it looks at its own, and
 * a task without a share of the processor stays so for seconds.
 */
static __always_inline void *guard_get_storage(void *map, struct task_struct *task, __u64 flags)
{
	void *storage;

	if (guard_can_stay)
		bpf_preempt_disable();
	storage = bpf_task_storage_get(map, task, NULL, flags);
	if (guard_can_stay)
		bpf_preempt_enable();
	return storage;
}

/* Return: NULL if it never made a guarded call. */
static __always_inline struct call *guard_get_call(void)
{
	return guard_get_storage(&calls, bpf_get_current_task_btf(), 0);
}

/* Return: NULL if the thread is not in one. */
static __always_inline struct call *guard_get_begun(void)
{
	struct call *call = guard_get_call();

	return call && call->begun ? call : NULL;
}

static __always_inline struct process *guard_get_process(void)
{
	struct task_struct *task = bpf_get_current_task_btf();

	return guard_get_storage(&processes, task->group_leader, 0);
}

/* Newer kernels make it without waiting for a lock that another processor has: one failure is no lack of memory. */
static __always_inline void *guard_make(void *map, struct task_struct *task)
{
	void *storage = NULL;

	for (int i = 0; i < MAKE_TRIES && !storage; i++)
		storage = guard_get_storage(map, task, BPF_LOCAL_STORAGE_GET_F_CREATE);
	return storage;
}

/* A thread whose call's end was missed is still counted. */
static __always_inline int guard_enter(const struct request *request)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct process *process = guard_make(&processes, task->group_leader);
	struct call *call = guard_make(&calls, task);

	if (!call || !process)
		return -ENOMEM;
	call->request = *request;
	call->opening = 0;
	call->found = 0;
	if (!call->begun)
		(void)__sync_fetch_and_add(&process->busy, 1);
	call->begun = GATED;
	return 0;
}

static __always_inline void guard_leave(struct call *call)
{
	struct process *process = guard_get_process();

	call->begun = NOT_BEGUN;
	if (!process)
		return;
	/* Whoever sees the last one go may end the process: nobody is in the driver, and nobody gets in. */
	if (__sync_fetch_and_add(&process->busy, -1) == 1 && *(volatile __u32 *)&process->condemned)
		(void)bpf_send_signal(SIGKILL);
}

static __always_inline void guard_condemn(void)
{
	struct process *process = guard_get_process();

	if (process)
		*(volatile __u32 *)&process->condemned = 1;
}

static __always_inline bool guard_is_condemned(void)
{
	struct process *process = guard_get_process();

	return process && *(volatile __u32 *)&process->condemned;
}

/* ---- before a call ---- */

static __always_inline bool guard_is_dxg(struct file *file)
{
	struct inode *inode = file->f_inode;

	return inode->i_rdev == guard_device && (inode->i_mode & S_IFMT) == S_IFCHR;
}

static __always_inline void guard_mark(__u32 thread)
{
	__u32 zero = 0, *mark = bpf_map_lookup_elem(&marks, &zero);

	if (mark)
		*mark = thread;
}

/* Return: whether the mark was there. It holds for one call. */
static __always_inline bool guard_take_mark(__u32 thread)
{
	__u32 zero = 0, *mark = bpf_map_lookup_elem(&marks, &zero);

	if (!mark || *mark != thread)
		return false;
	*mark = 0;
	return true;
}

/* How far into the arguments a LUID is; -1: the call has none. */
static __always_inline int guard_luid_place(__u32 number)
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
static __always_inline int guard_handle_place(__u32 number)
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

/* Whether a handle of the process means an adapter that is not in the choice. */
static __always_inline bool guard_hides(const struct guard_key *who, struct dxgprocess *process, __u32 handle)
{
	struct hmgrentry *table = BPF_CORE_READ(process, local_handle_table.entry_table);
	__u32 size = BPF_CORE_READ(process, local_handle_table.table_size), index = handle >> 6 & 0xffffff;
	struct hmgrentry *entry = (void *)table + (__u64)index * bpf_core_type_size(struct hmgrentry);

	if (index >= size || BPF_CORE_READ_BITFIELD_PROBED(entry, type) != HMGRENTRY_TYPE_DXGADAPTER)
		return false;
	return !guard_allows(who, guard_luid(BPF_CORE_READ(entry, object)));
}

/* What cannot be read now is refused: whoever waits with a page would have the driver read what we did not see. */
static __always_inline int guard_check(const struct request *request, unsigned long arguments)
{
	int luid_place = guard_luid_place(request->number), handle_place = guard_handle_place(request->number);
	__u32 handle;
	__u64 luid;

	if (luid_place >= 0) {
		if (bpf_probe_read_user(&luid, sizeof(luid), (void *)(arguments + luid_place)))
			return -EFAULT;
		return guard_allows(&request->key, luid) ? 0 : -EINVAL;
	}
	if (handle_place >= 0) {
		if (bpf_probe_read_user(&handle, sizeof(handle), (void *)(arguments + handle_place)))
			return -EFAULT;
		return guard_hides(&request->key, (void *)request->process, handle) ? -EINVAL : 0;
	}
	return 0;
}

static __always_inline int guard_note_list(struct request *request, unsigned long arguments)
{
	struct enum_adapters2 two;
	struct enum_adapters3 three;

	if (request->number == ENUM_ADAPTERS2) {
		if (bpf_probe_read_user(&two, sizeof(two), (void *)arguments))
			return -EFAULT;
		request->room = two.count;
		request->list = two.adapters;
	} else if (request->number == ENUM_ADAPTERS3) {
		if (bpf_probe_read_user(&three, sizeof(three), (void *)arguments))
			return -EFAULT;
		request->room = three.count;
		request->list = three.adapters;
	}
	return 0;
}

static __always_inline int guard_gate(struct file *file, unsigned int command, unsigned long arguments, int answer)
{
	struct request request = {.number = command & 0xff, .arguments = arguments};
	struct call *call;
	int r;

	if (answer || (command >> 8 & 0xff) != TYPE_DXG || guard_is_idle() || !guard_is_dxg(file))
		return answer;
	if (!guard_find(&request.key)) {
		call = guard_get_begun();
		if (call)
			guard_leave(call);
		guard_mark(guard_thread());
		return 0;
	}
	request.process = (__u64)file->private_data;
	r = guard_check(&request, arguments);
	if (!r)
		r = guard_note_list(&request, arguments);
	if (!r)
		r = guard_enter(&request);
	/* Counted first: whoever condemns the process later sees us. */
	if (r || !guard_is_condemned())
		return r;
	call = guard_get_begun();
	if (call)
		guard_leave(call);
	return -EPERM;
}

SEC("fmod_ret/security_file_ioctl")
int BPF_PROG(guard_ioctl, struct file *file, unsigned int command, unsigned long arguments, int answer)
{
	return guard_gate(file, command, arguments, answer);
}

/* 32-bit callers have a hook of their own since 6.8 and the stable kernels of early 2024; before they had that one. */
SEC("fmod_ret/security_file_ioctl_compat")
int BPF_PROG(guard_ioctl_compat, struct file *file, unsigned int command, unsigned long arguments, int answer)
{
	return guard_gate(file, command, arguments, answer);
}

/* Another security module may refuse what the gate let pass, at the caller's own wish (Landlock): then it is over. */
static __always_inline void guard_end_refused(unsigned int command, int answer)
{
	struct call *call = answer && (command >> 8 & 0xff) == TYPE_DXG ? guard_get_begun() : NULL;

	if (call)
		guard_leave(call);
}

SEC("fexit/security_file_ioctl")
int BPF_PROG(guard_refused, struct file *file, unsigned int command, unsigned long arguments, int answer)
{
	guard_end_refused(command, answer);
	return 0;
}

SEC("fexit/security_file_ioctl_compat")
int BPF_PROG(guard_refused_compat, struct file *file, unsigned int command, unsigned long arguments, int answer)
{
	guard_end_refused(command, answer);
	return 0;
}

/* ---- in the driver ---- */

/* What the driver will find is nothing that it knows. */
static __always_inline void guard_spoil(unsigned int command, unsigned long arguments)
{
	__u32 size = command >> 16 & 0x3fff, others = size - 1; /* _IOC_SIZE */

	if (!size)
		return;
	if (others >= ARGUMENTS_MAX)
		others = ARGUMENTS_MAX - 1;
	asm volatile("" : "+r"(others));
	others &= ARGUMENTS_MAX - 1;
	(void)bpf_probe_write_user((void *)arguments, zeros, others + 1);
}

/* The gate was skipped. What it would have refused can be made useless only. */
static __always_inline void guard_pass_late(struct request *request, unsigned int command, unsigned long arguments)
{
	int r = guard_check(request, arguments);

	if (!r)
		r = guard_note_list(request, arguments);
	if (guard_enter(request) || r || guard_is_condemned())
		guard_spoil(command, arguments);
}

static __always_inline void guard_begin_late(struct file *file, unsigned int command, unsigned long arguments)
{
	struct request request = {.number = command & 0xff, .arguments = arguments};

	if (guard_take_mark(guard_thread()) || !guard_find(&request.key))
		return;
	request.process = (__u64)BPF_CORE_READ(file, private_data);
	guard_pass_late(&request, command, arguments);
}

static __always_inline void guard_begin(struct file *file, unsigned int command, unsigned long arguments)
{
	if (!guard_is_idle() && !guard_get_begun())
		guard_begin_late(file, command, arguments);
}

static __always_inline void guard_end(void)
{
	struct call *call = guard_is_idle() ? NULL : guard_get_begun();

	if (call)
		guard_leave(call);
}

SEC("fentry/dxgk_unlocked_ioctl")
int BPF_PROG(guard_begin_native, struct file *file, unsigned int command, unsigned long arguments)
{
	guard_begin(file, command, arguments);
	return 0;
}

SEC("fentry/dxgk_compat_ioctl")
int BPF_PROG(guard_begin_compat, struct file *file, unsigned int command, unsigned long arguments)
{
	guard_begin(file, command, arguments);
	return 0;
}

SEC("fexit/dxgk_unlocked_ioctl")
int BPF_PROG(guard_end_native)
{
	guard_end();
	return 0;
}

SEC("fexit/dxgk_compat_ioctl")
int BPF_PROG(guard_end_compat)
{
	guard_end();
	return 0;
}

static __always_inline void guard_judge(struct dxgadapter *adapter)
{
	struct call *call = guard_is_idle() ? NULL : guard_get_begun();

	if (call && adapter && !guard_allows(&call->request.key, guard_luid(adapter)))
		guard_condemn();
}

SEC("fexit/dxgprocess_adapter_by_handle")
int BPF_PROG(guard_by_handle, struct dxgprocess *process, __u64 handle, struct dxgadapter *result)
{
	guard_judge(result);
	return 0;
}

/* Devices that were made before the process was guarded. */
SEC("fexit/dxgprocess_device_by_object_handle")
int BPF_PROG(guard_by_device, struct dxgprocess *process, int type, __u64 handle, struct dxgdevice *result)
{
	if (result)
		guard_judge(BPF_CORE_READ(result, adapter));
	return 0;
}

SEC("fentry/dxgvmb_send_query_statistics")
int BPF_PROG(guard_statistics, __u64 process, struct dxgadapter *adapter)
{
	guard_judge(adapter);
	return 0;
}

/* ---- enumerations ---- */

static __always_inline bool guard_is_enumeration(const struct call *call)
{
	return call->request.number == ENUM_ADAPTERS2 || call->request.number == ENUM_ADAPTERS3;
}

/* What an enumeration opens is what it lists; a LUID that another thread put there after our look is judged. */
static __always_inline void guard_note_opened(struct call *call, struct dxgadapter *adapter, const void *handle)
{
	__u64 luid = guard_luid(adapter);
	struct adapter_info *info;
	__u32 index = call->found;

	if (!guard_allows(&call->request.key, luid)) {
		if (!guard_is_enumeration(call))
			guard_condemn();
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
	struct call *call = guard_get_begun();

	if (!call)
		return 0;
	call->opening = 0;
	if (answer >= 0)
		guard_note_opened(call, adapter, handle);
	return 0;
}

/* Not static, so that the verifier looks at it once, and not in every round of a loop. */
int guard_clear_some(__u64 list, __u32 from, __u32 to);

/* Return: how many entries; none if there is nothing left. */
__noinline int guard_clear_some(__u64 list, __u32 from, __u32 to)
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
static __always_inline void guard_clear(__u64 list, __u32 from, __u32 to)
{
	for (int i = 0; i < CLEARED_MAX; i++) {
		int cleared = guard_clear_some(list, from, to);

		if (!cleared)
			break;
		from += cleared;
	}
}

/* Writes what was found. Return: how many; none if that cannot be. */
static __always_inline __u32 guard_write_list(struct call *call)
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
static __always_inline __u32 guard_list(struct call *call, __u32 told)
{
	bool fits = call->found <= call->request.room;
	__u32 written = fits ? guard_write_list(call) : 0;

	/* More than there is room for is a count of what there is; nothing was written then. */
	if (told <= call->request.room)
		guard_clear(call->request.list, written, told);
	return fits ? written : call->found;
}

/* The driver has answered an enumeration with room for a list, or one that asks how many there are. */
static __always_inline void guard_end_enum3(struct call *call, __u64 arguments)
{
	__u64 place = arguments + offsetof(struct enum_adapters3, count);
	struct guard_choice *choice;
	__u32 told;

	if (bpf_probe_read_user(&told, sizeof(told), (void *)place))
		return;
	if (call->request.list && call->request.room) {
		told = guard_list(call, told);
	} else {
		struct guard_key key = call->request.key;

		choice = bpf_map_lookup_elem(&choices, &key);
		if (choice && choice->count < told)
			told = choice->count;
	}
	(void)bpf_probe_write_user((void *)place, &told, sizeof(told));
}

/*
 * Without an array the driver's own count stays: a program that then brings room for just the chosen ones would have
 * EOVERFLOW of the driver, before it has opened any.
 */
static __always_inline void guard_end_enum2(struct call *call, __u64 arguments)
{
	__u64 place = arguments + offsetof(struct enum_adapters2, count);
	__u32 told;

	if (!call->request.list || bpf_probe_read_user(&told, sizeof(told), (void *)place))
		return;
	told = guard_list(call, told);
	(void)bpf_probe_write_user((void *)place, &told, sizeof(told));
}

SEC("fexit/dxgkio_enum_adapters3")
int BPF_PROG(guard_enum3, struct dxgprocess *process, void *arguments, int answer)
{
	struct call *call = guard_get_begun();

	if (call && answer >= 0)
		guard_end_enum3(call, (__u64)arguments);
	return 0;
}

SEC("fexit/dxgkio_enum_adapters")
int BPF_PROG(guard_enum2, struct dxgprocess *process, void *arguments, int answer)
{
	struct call *call = guard_get_begun();

	if (call && answer >= 0)
		guard_end_enum2(call, (__u64)arguments);
	return 0;
}

/* ---- probes ---- */

/*
 * For kernels that preempt themselves: a probe runs without preemption, so no task stays in one, and it is not skipped.
 * So each of these does again what a program above does in the driver, which changes nothing if that one ran.
 */

/* It comes before the program at the same place. A call that it has seen already is one whose end was missed. */
static __always_inline void guard_probe_call(struct file *file, unsigned int command, unsigned long arguments)
{
	struct call *call;

	if (guard_is_idle())
		return;
	call = guard_get_begun();
	if (!call || call->begun == DRIVEN)
		guard_begin_late(file, command, arguments);
	call = guard_get_begun();
	if (call)
		call->begun = DRIVEN;
}

SEC("kprobe/dxgk_unlocked_ioctl")
int BPF_KPROBE(guard_probe_begin, struct file *file, unsigned int command, unsigned long arguments)
{
	guard_probe_call(file, command, arguments);
	return 0;
}

SEC("kprobe/dxgk_compat_ioctl")
int BPF_KPROBE(guard_probe_begin32, struct file *file, unsigned int command, unsigned long arguments)
{
	guard_probe_call(file, command, arguments);
	return 0;
}

SEC("kretprobe/dxgk_unlocked_ioctl")
int BPF_KRETPROBE(guard_probe_end)
{
	guard_end();
	return 0;
}

SEC("kretprobe/dxgk_compat_ioctl")
int BPF_KRETPROBE(guard_probe_end32)
{
	guard_end();
	return 0;
}

/* The kernel follows only so many callers at once to a function's end: of others the last end may be missed. */
SEC("tp_btf/sched_process_exit")
int BPF_PROG(guard_probe_exit)
{
	guard_end();
	return 0;
}

SEC("kretprobe/dxgprocess_adapter_by_handle")
int BPF_KRETPROBE(guard_probe_handle, struct dxgadapter *result)
{
	guard_judge(result);
	return 0;
}

SEC("kretprobe/dxgprocess_device_by_object_handle")
int BPF_KRETPROBE(guard_probe_device, struct dxgdevice *result)
{
	if (result)
		guard_judge(BPF_CORE_READ(result, adapter));
	return 0;
}

SEC("kprobe/dxgvmb_send_query_statistics")
int BPF_KPROBE(guard_probe_query, __u64 process, struct dxgadapter *adapter)
{
	guard_judge(adapter);
	return 0;
}

SEC("kprobe/dxgprocess_open_adapter")
int BPF_KPROBE(guard_probe_open, struct dxgprocess *process, struct dxgadapter *adapter, void *handle)
{
	struct call *call = guard_get_begun();

	if (!call)
		return 0;
	call->opening = (__u64)adapter;
	call->opening_handle = (__u64)handle;
	if (!guard_is_enumeration(call))
		guard_judge(adapter);
	return 0;
}

/* What is still being opened, no other program has noted. */
SEC("kretprobe/dxgprocess_open_adapter")
int BPF_KRETPROBE(guard_probe_opened, int answer)
{
	struct call *call = guard_get_begun();

	if (!call || !call->opening)
		return 0;
	if (answer >= 0)
		guard_note_opened(call, (void *)call->opening, (void *)call->opening_handle);
	call->opening = 0;
	return 0;
}

SEC("kretprobe/dxgkio_enum_adapters3")
int BPF_KRETPROBE(guard_probe_enum3, int answer)
{
	struct call *call = guard_get_begun();

	if (call && answer >= 0)
		guard_end_enum3(call, call->request.arguments);
	return 0;
}

SEC("kretprobe/dxgkio_enum_adapters")
int BPF_KRETPROBE(guard_probe_enum2, int answer)
{
	struct call *call = guard_get_begun();

	if (call && answer >= 0)
		guard_end_enum2(call, call->request.arguments);
	return 0;
}

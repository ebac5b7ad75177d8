/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
#pragma once

/*
 * What BPF programs are written with, and what they read of the kernel and the driver, which the loader compares with
 * the running ones.
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

#define CORE __attribute__((preserve_access_index))

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
};

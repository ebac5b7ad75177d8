/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */

#include "guard/bpf/scope.h"

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, GUARD_CHOICES_MAX);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct guard_key);
	__type(value, struct guard_choice);
} choices SEC(".maps");

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

char scope_license[] SEC("license") = "GPL";

static __always_inline struct guard_counts *scope_get_counts(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&present, &zero);
}

static __always_inline bool scope_is_present(__u32 hierarchy)
{
	struct guard_counts *counts = scope_get_counts();

	return counts && *(volatile __u32 *)&counts->choices[hierarchy];
}

__hidden bool scope_is_idle(void)
{
	struct guard_counts *counts = scope_get_counts();

	return counts && !(*(volatile __u32 *)&counts->choices[GUARD_CGROUP2] |
			   *(volatile __u32 *)&counts->choices[GUARD_DEVICES]);
}

/* The number of this load, set by the loader. The kernel runs those at a function's end that came last first. */
const volatile __u32 guard_load = 0;

__hidden bool scope_is_first(void)
{
	struct guard_counts *counts = scope_get_counts();

	return counts && *(volatile __u32 *)&counts->first == guard_load;
}

static __always_inline bool scope_has(struct guard_key *key, __u64 cgroup, __u64 hierarchy)
{
	key->cgroup = cgroup;
	key->hierarchy = hierarchy;
	return bpf_map_lookup_elem(&choices, key) != NULL;
}

static __always_inline __u64 scope_ancestor(struct cgroup *cgroup, int level)
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
static __always_inline struct cgroup *scope_devices_cgroup(void)
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
__hidden bool scope_find(struct guard_key *key)
{
	struct cgroup *devices;
	int depth;

	for (int level = 1; level <= GUARD_LEVELS_MAX && scope_is_present(GUARD_CGROUP2); level++) {
		__u64 id = bpf_get_current_ancestor_cgroup_id(level);

		if (!id)
			break;
		if (scope_has(key, id, GUARD_CGROUP2))
			return true;
	}
	if (!scope_is_present(GUARD_DEVICES))
		return false;
	devices = scope_devices_cgroup();
	depth = devices ? BPF_CORE_READ(devices, level) : 0;
	for (int level = 1; level <= GUARD_LEVELS_MAX; level++) {
		if (level > depth)
			break;
		if (scope_has(key, scope_ancestor(devices, level), GUARD_DEVICES))
			return true;
	}
	return false;
}

__hidden bool scope_allows(const struct guard_key *who, __u64 luid)
{
	struct guard_choice *choice;
	struct guard_key key;

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

__hidden __u32 scope_count(const struct guard_key *who)
{
	struct guard_key key = *who;
	struct guard_choice *choice = bpf_map_lookup_elem(&choices, &key);

	return choice ? choice->count : (__u32)-1;
}

static __always_inline __u32 *scope_get_state(const struct guard_key *who)
{
	struct guard_key key = *who;
	struct guard_choice *choice = bpf_map_lookup_elem(&choices, &key);

	return choice ? &choice->state : NULL;
}

__hidden __u32 scope_add_state(const struct guard_key *who, __u32 change)
{
	__u32 *state = scope_get_state(who);

	return state ? __sync_fetch_and_add(state, change) : 0;
}

__hidden void scope_mark_for_kill(const struct guard_key *who)
{
	__u32 *state = scope_get_state(who);

	if (state)
		(void)__sync_fetch_and_or(state, GUARD_RACED);
}

__hidden bool scope_is_marked_for_kill(const struct guard_key *who)
{
	__u32 *state = scope_get_state(who);

	return state && *(volatile __u32 *)state & GUARD_RACED;
}

__hidden void scope_mark(void)
{
	__u32 zero = 0, *mark = bpf_map_lookup_elem(&marks, &zero);

	if (mark)
		*mark = (__u32)bpf_get_current_pid_tgid();
}

__hidden bool scope_take_mark(void)
{
	__u32 zero = 0, *mark = bpf_map_lookup_elem(&marks, &zero);

	if (!mark || *mark != (__u32)bpf_get_current_pid_tgid())
		return false;
	*mark = 0;
	return true;
}

/* A choice goes with its cgroup. Every hierarchy has numbers of its own. */
SEC("tp_btf/cgroup_rmdir")
int BPF_PROG(guard_removed, struct cgroup *cgroup)
{
	struct guard_key key = {.cgroup = BPF_CORE_READ(cgroup, kn, id)};
	struct cgroup_root *root = BPF_CORE_READ(cgroup, root);
	struct guard_counts *counts = scope_get_counts();

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

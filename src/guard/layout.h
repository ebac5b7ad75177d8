/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the guard's BPF programs share with those who write their map: the adapters that the processes of a
 * cgroup, and of those below it, may use. Included by BPF programs too, so it includes nothing.
 */

enum guard_hierarchy {
	GUARD_CGROUP2,
	/*
	 * Of cgroup v1 the devices controller: every runtime puts every process of a container into its cgroup there,
	 * also a later exec's, since the rules of the devices are held there, and a container in a container is below
	 * it. A pid namespace is the host's under --pid=host, and so may the others be.
	 */
	GUARD_DEVICES,
	GUARD_HIERARCHIES,
};

enum {
	GUARD_LEVELS_MAX = 32,   /* how deep below the root a guarded cgroup may be */
	GUARD_ADAPTERS_MAX = 64, /* of one choice; a driver's own limit (D3DKMT_ADAPTERS_MAX) */
	GUARD_CHOICES_MAX = 65536,
};

struct guard_key {
	unsigned long long cgroup;    /* the inode of its directory, which is never used again */
	unsigned long long hierarchy; /* enum guard_hierarchy */
};

struct guard_choice {
	unsigned count, zero;
	unsigned long long luids[GUARD_ADAPTERS_MAX]; /* low part in the low word */
};

/*
 * How many choices there are, at least: without any, the programs look no further. Whoever adds one counts it first,
 * and who removes one counts it afterwards, so who is killed amid that leaves one too many.
 */
struct guard_counts {
	unsigned choices[GUARD_HIERARCHIES];
};

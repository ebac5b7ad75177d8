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

/*
 * What the programs have found out about the processes that have a choice, in one word, which is changed in one step.
 * It stays with the cgroup when its choice becomes another.
 */
enum {
	GUARD_RACED = 1, /* one reached another adapter: none of them makes a further call */
	GUARD_PLACE = 2, /* how many threads may wait for a page of their arguments just now, times that */
	GUARD_PLACES = 0x7fff,
	GUARD_DOUBT = 1 << 16, /* lists that could not be written again, times that */
};

struct guard_choice {
	unsigned count, state;
	unsigned long long luids[GUARD_ADAPTERS_MAX]; /* low part in the low word */
};

/*
 * How many choices there are, or one too many: at 0 the programs look no further. A process counts a choice before it
 * adds one and after it has removed one, so a process that is killed in between leaves one too many.
 */
struct guard_counts {
	unsigned choices[GUARD_HIERARCHIES];
	/* Which load of the programs is the first to see a driver's list; others see what it made of it. */
	unsigned first;
};

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Where the directory of a process's device cgroup is, worked out from the text of /proc/self/mountinfo and
 * /proc/PID/cgroup alone. Text in, candidates out: nothing is opened here. The names in both files were chosen by the
 * processes that made the cgroups and mounts, so a candidate is believed only after it was opened and checked.
 */

#include <stddef.h>
#include <sys/types.h>

#include "base/cleanup.h"

/** A mount that shows the cgroup. Another mount may cover it: compare @dev after opening. */
struct cgroup_place {
	int version; /* 1 or 2 */
	dev_t dev;
	char *point; /* where it is mounted */
	char *below; /* the cgroup's path below that, with no slash in front; "" for the mount itself */
};

enum { CGROUP_PLACES_MAX = 16 };

struct cgroup_places {
	struct cgroup_place items[CGROUP_PLACES_MAX];
	size_t count;
};

void cgroup_places_clear(struct cgroup_places *places);
#define _cleanup_cgroup_places_ _cleanup_(cgroup_places_clear)

/** The path in the line of /proc/PID/cgroup that belongs to @version. Return: new; NULL: none, or no memory. */
char *cgroup_membership(const char *membership, int version);

/**
 * cgroup_places_find() - the mounts that show the device cgroup of a process
 * @mountinfo:  text of /proc/self/mountinfo
 * @membership: text of /proc/PID/cgroup
 * @ret:        the places, version 1 (with the devices controller) before version 2; later mounts before earlier ones,
 *              since those may lie on top; none if no mount shows the cgroup
 *
 * Lines that do not read as the kernel writes them are skipped. Return: 0 or -ENOMEM.
 */
int cgroup_places_find(const char *mountinfo, const char *membership, struct cgroup_places *ret);

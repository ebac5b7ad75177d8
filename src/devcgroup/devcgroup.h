/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The devices that a container's processes may open, by its cgroup: in version 1 through devices.allow; in version 2 by
 * replacing the attached BPF program with one that allows a few more devices and is otherwise the same. Which version
 * holds is what is mounted. Where systemd made the cgroup (a scope), the rule also goes into a drop-in of that unit,
 * since systemd writes its own program again at every daemon-reload.
 */

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"
#include "root/undo_log.h"

struct devcgroup_rule {
	char type; /* 'c' or 'b' */
	unsigned major, minor;
	const char *access; /* of "rwm" */
	const char *path;   /* of the node; for systemd's DeviceAllow= */
};

/**
 * True for root of the initial user namespace. For it a refusal is an error; other users may not change device rules
 * anyway.
 */
bool devcgroup_is_privileged(void);

struct devcgroup; /* what was found */

struct devcgroup *devcgroup_free(struct devcgroup *cgroup);

/**
 * devcgroup_open() - find the device cgroup of a process
 * @pid:     of this pid namespace
 * @process: its directory in procfs; -1: it is found by @pid
 * @ret: new object; NULL if no device controller holds the process (a user namespace without delegation,
 *       cgroup v2 without an attached program): then every device may be opened and nothing needs to be done
 *
 * Must be called before the mount namespace is changed. Return: 0; CTR_GPU_E_NO_CGROUP or negative errno with @err set.
 */
int devcgroup_open(pid_t pid, int process, struct devcgroup **ret, struct err *err);

/* Which cgroup it is, until the next boot: a process of the container may be in another one later. */
struct devcgroup_id {
	dev_t device; /* of the hierarchy */
	ino_t inode;
};

/** Of an open directory. Return: 0; negative errno. */
int additions_identify(int fd, struct devcgroup_id *ret);

/** The same in JSON, as a new reference, NULL without memory; and back: of other JSON an id that no cgroup has. */
json_t *additions_print_id(const struct devcgroup_id *id);
struct devcgroup_id additions_read_id(const json_t *json);

/*
 * What devcgroup_allow() has added at one place. Another process can take it back later, when the list of what was
 * changed is gone.
 */
struct devcgroup_addition {
	struct devcgroup_id cgroup;
	struct devcgroup_rule *rules;
	size_t count;
};

struct devcgroup_additions {
	struct devcgroup_addition *items; /* the oldest first */
	size_t count;
	char *drop_in; /* our file for systemd, below its folder of transient units; NULL: none was made */
};

/** Return: the constant for such letters of "rwm", in their order; NULL for other text. */
const char *additions_access(const char *letters);

void additions_clear(struct devcgroup_additions *additions);

/** Appends rules, which are copied. Return: 0 or -ENOMEM. */
int additions_add(struct devcgroup_additions *additions, const struct devcgroup_id *cgroup,
		  const struct devcgroup_rule *rules, size_t count);

/** The same for a cgroup that is open. Return: 0; negative errno. */
int additions_add_in(struct devcgroup_additions *additions, int fd, const struct devcgroup_rule *rules, size_t count);

/** Return: the list in JSON, a new reference; NULL without memory. */
json_t *additions_print(const struct devcgroup_additions *additions);

/**
 * additions_read() - the additions of a record
 * @json: with the list as "additions", and the name of our file as "dropIn" or null
 *
 * Return: 0 or -ENOMEM; @ret, empty before, is released in any case.
 */
int additions_read(const json_t *json, struct devcgroup_additions *ret);

/** Return: what was added so far, borrowed. */
const struct devcgroup_additions *devcgroup_additions_of(const struct devcgroup *cgroup);

/**
 * devcgroup_open_again() - open cgroups in which something was added, the process's own or above that
 * @pid, @process: as devcgroup_open()
 * @ids:  which; another process may have named them
 * @ret:  new object; NULL if none of them holds the process's devices any more, or @count is 0
 *
 * Return: 0; CTR_GPU_E_NO_CGROUP, also if the process has left one of them, or negative errno, with @err set.
 */
int devcgroup_open_again(pid_t pid, int process, const struct devcgroup_id *ids, size_t count, struct devcgroup **ret,
			 struct err *err);

/** Return: the directory of one of those that are open, borrowed; -1. */
int devcgroup_find_open(const struct devcgroup *cgroup, const struct devcgroup_id *id);

/**
 * devcgroup_take_back() - take additions back, as far as they are still there
 * @cgroup: of devcgroup_open_again(), with the cgroups of all of them
 *
 * The engine may have written the rules anew since. Return: 0; CTR_GPU_E_NO_CGROUP or negative errno with @err set.
 */
int devcgroup_take_back(struct devcgroup *cgroup, const struct devcgroup_additions *additions, struct err *err);

/** Return: the container's own cgroup, a directory, borrowed; @ret_depth: how far below the root it is, at most. */
int devcgroup_directory(const struct devcgroup *cgroup, size_t *ret_depth);

/**
 * devcgroup_allow() - add rules
 * @undo_log: what was changed, also where this fails; once it is undone, nothing more can be added
 *
 * Return: 0; CTR_GPU_E_NO_CGROUP or negative errno with @err set.
 */
int devcgroup_allow(struct devcgroup *cgroup, const struct devcgroup_rule *rules, size_t count,
		    struct undo_log *undo_log, struct err *err);

/**
 * devcgroup_finish() - tell systemd of what was allowed, when nothing can fail any more
 * @cgroup:  NULL: nothing is done
 * @running: the container's processes are
 *
 * Return: 0; negative errno, and systemd knows of it at its next daemon-reload.
 */
int devcgroup_finish(struct devcgroup *cgroup, bool running);

/** devcgroup_tidy() - remove what was written for systemd units that are gone, or were started anew */
void devcgroup_tidy(void);

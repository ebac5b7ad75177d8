/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the files of devcgroup share: the cgroup that was found, and the two versions of changing it. */

#include <stdbool.h>
#include <sys/types.h>

#include "devcgroup/devcgroup.h"

enum { DEVCGROUP_LEVELS_MAX = 8, DEVCGROUP_RULES_MAX = 256 };

/*
 * A cgroup that may be changed for the container: its own, and, where systemd made a unit for it and the engine a
 * cgroup below that one, those up to the unit.
 */
struct devcgroup_level {
	int fd;
	bool kept;  /* the descriptor is an undo step's */
	char *path; /* for messages */
};

struct devcgroup_version {
	/** Return: 1 if the controller holds the process, 0 if it does not, CTR_GPU_E_NO_CGROUP or negative errno. */
	int (*open)(struct devcgroup *cgroup, struct err *err);
	int (*allow)(struct devcgroup *cgroup, const struct devcgroup_rule *rules, size_t count, struct err *err);
	/** Takes back one addition; none is there any more: 0. */
	int (*take_back)(struct devcgroup *cgroup, const struct devcgroup_level *level,
			 const struct devcgroup_addition *addition, struct err *err);
	void (*close)(struct devcgroup *cgroup);
};

extern const struct devcgroup_version devcgroup_v1, devcgroup_v2;

struct devcgroup {
	const struct devcgroup_version *version;
	/* The unit first, the container's own last; of devcgroup_open_again() those that were named, in this order. */
	struct devcgroup_level levels[DEVCGROUP_LEVELS_MAX];
	size_t level_count;
	char *unit;                /* systemd's transient unit whose cgroup levels[0] is; or NULL */
	bool unit_changed;         /* something was forbidden there, and is allowed now */
	struct undo_log *undo_log; /* of devcgroup_allow() */
	struct devcgroup_additions additions;
	bool rewritten; /* devcgroup_take_back(): systemd may have written what our drop-in said */
	void *state;    /* of the version */
	int systemd_fd; /* to systemd, if the rule was given to it by a drop-in file; else -1 */
	char *told;     /* what is in that file */
};

/**
 * devcgroup_find_unit() - the unit of the system manager in a cgroup's path, if it is a transient one
 * @path:      such as "system.slice/docker-1234.scope"
 * @transient: systemd's folder of transient units; the folder of running units is beside it
 * @ret_unit:  its name, new; NULL if there is none
 * @ret_size:  how much of @path leads to it
 *
 * Return: 0 or -ENOMEM.
 */
int devcgroup_find_unit(const char *path, const char *transient, char **ret_unit, size_t *ret_size);

/** Whether systemd has device rules for the unit. It would write them again at a daemon-reload. */
bool devcgroup_systemd_restricts(const char *transient, const char *unit);

/** Whether systemd has the devices already, from the process that started the unit. */
bool devcgroup_systemd_knows(const char *transient, const char *unit, const struct devcgroup_rule *rules, size_t count);

/**
 * devcgroup_write_drop_in() - write the rules for systemd, in a file beside the unit
 * @cgroup:   the container's own
 * @ret_name: new, of the file, below @transient; untouched if the container has it since an earlier time
 *
 * Return: 0; negative errno with @err set.
 */
int devcgroup_write_drop_in(const char *transient, const char *unit, const struct devcgroup_id *cgroup,
			    const struct devcgroup_rule *rules, size_t count, struct undo_log *undo_log,
			    char **ret_name, struct err *err);

/** What that file says, for a unit. @ret: new. Return: 0; -ENOMEM. */
int devcgroup_drop_in_text(const char *unit, const struct devcgroup_rule *rules, size_t count, char **ret);

/** Removes that file, and has systemd forget what no other of our files says. @name: as above */
void devcgroup_remove_drop_in(const char *transient, const char *name);

/**
 * devcgroup_systemd_left() - what systemd knows without one of our files
 * @folder: of the unit's files
 * @gone:   what the file said
 * @ret:    new; lines of DeviceAllow=; untouched if systemd was never asked
 *
 * Return: 0; negative errno.
 */
int devcgroup_systemd_left(int folder, const char *gone, char **ret);

/** Connects to systemd, whose descriptors serve one call each. Return: descriptor; negative errno. */
int devcgroup_systemd_connect(void);

/**
 * devcgroup_systemd_ask() - have systemd allow devices in a unit
 * @fd:   devcgroup_systemd_connect()
 * @anew: no others than these
 * @text: has lines of DeviceAllow=
 *
 * Return: 0; -ETIMEDOUT; -EREMOTEIO if systemd refuses; negative errno.
 */
int devcgroup_systemd_ask(int fd, const char *unit, bool anew, const char *text);

/** Looks for the answer in what systemd has sent. Return: 1; 0 if it is not there yet; as devcgroup_systemd_ask(). */
int devcgroup_systemd_answer(const char *data, size_t size);

/**
 * Removes those of our files whose unit is gone, or was started after they were written. Return: whether @unit had one.
 */
bool devcgroup_remove_stale_drop_ins(const char *transient, const char *unit);

#define DEVCGROUP_TRANSIENT "/run/systemd/transient"

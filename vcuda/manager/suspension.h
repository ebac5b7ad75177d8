/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Containers whose programs rest: what they have on their GPUs is put away into the host's memory, and the GPUs'
 * memory is free meanwhile. Their servers park first (vcuda/protocol/start.h), then ctr-gpu-vcuda-checkpoint has the
 * driver do it. Programs wait at their next call, which brings back what they had, unless an administrator suspended
 * them: then `resume` does.
 *
 * Where a GPU has no room for what is to come back, the container waits in a queue: no other that shares a GPU with it
 * is resumed before it.
 *
 * Before the host sleeps, all are suspended, and none is resumed until the host is awake: then those are that were
 * suspended for it.
 *
 * A container that is moved to another GPU is suspended and comes back there, by one run of that program, which leaves
 * it where it was if it cannot be there. Where it is to be is written down before it begins.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"

struct manager;
struct tenant;
struct worker;

enum suspension_state {
	SUSPENSION_NONE,
	SUSPENSION_PARKING, /* servers finish what is under way */
	SUSPENSION_SAVING,
	SUSPENSION_SUSPENDED,
	SUSPENSION_RESUMING,
	SUSPENSION_MOVING,
};

enum { SUSPENSION_TROUBLE = 160 };

struct suspension {
	enum suspension_state state;
	bool moves;      /* what parks is to be moved */
	bool again;      /* the program was killed, and begins once more */
	bool begun;      /* one that ended early has: what parks may be away already, or some of it elsewhere */
	uint64_t target; /* and where: an arrangement of its GPUs (start_place()) */
	bool by_hand;
	bool for_sleep;    /* it is resumed when all are */
	bool partly;       /* what rests has something on a GPU still, which could not be saved */
	bool wanted;       /* to be resumed */
	uint32_t order;    /* that servers have */
	int64_t began;     /* of what is under way, or of the rest */
	int64_t deadline;  /* of servers that park, and of the program */
	int64_t queued;    /* since when it waits for memory; 0: it does not */
	int64_t try_at;    /* when it is tried again, or whether to suspend */
	pid_t program;     /* that has the driver do it; 0: none */
	int program_pidfd; /* -1: none */
	int program_out;
	bool ending;                      /* the program was killed */
	char trouble[SUSPENSION_TROUBLE]; /* why it could not be done the last time; "": it could */
};

/** What a new one is. */
#define SUSPENSION_NEW ((struct suspension){.program_pidfd = -1, .program_out = -1})

/** Closes what it has open. */
static inline void suspension_close(struct suspension *suspension)
{
	cleanup_closep(&suspension->program_pidfd);
	cleanup_closep(&suspension->program_out);
}

/** "running", "suspending", "suspended", "resuming", "waiting", "moving". */
const char *suspension_name(const struct suspension *suspension);

/** Whether servers may be put away though the container is not suspended: the next manager must know. */
bool suspension_has_begun(const struct suspension *suspension);

/**
 * suspension_take_over() - go on where an earlier manager was
 * @name: as above; what is none is "running"
 * @target: of one that moves
 * @begun: what suspension_has_begun() said
 */
void suspension_take_over(struct manager *manager, struct tenant *tenant, const char *name, uint64_t target,
			  bool begun);

/**
 * suspension_ask() - suspend a container
 * @ret_why: why it cannot be
 *
 * Return: 0, it has begun, or is done already; -EBUSY; -ENOMEM if the host has not the memory; negative errno.
 */
int suspension_ask(struct manager *manager, struct tenant *tenant, bool by_hand, const char **ret_why);

/**
 * suspension_move() - have what a container has on one GPU be on another
 * @places: where its GPUs are to be
 * @ret_why: why they cannot be
 *
 * One that is suspended, or has no programs, is moved at once: it comes back there.
 *
 * Return: 0, it has begun or is done; -EBUSY; -EPERM: the settings keep it from there; -ENOMEM if the host has not the
 * memory, or others wait for the GPU's.
 */
int suspension_move(struct manager *manager, struct tenant *tenant, uint64_t places, const char **ret_why);

/** Return: how long the driver may take to put away, or bring back, what a container has, in milliseconds. */
int64_t suspension_patience(const struct manager *manager, const struct tenant *tenant);

/** Whether a container is being moved. */
bool suspension_moves_any(const struct manager *manager);

/** Resumes one, as soon as it can be. Return: 0; -EALREADY if it is not suspended; -EBUSY while all are. */
int suspension_resume(const struct manager *manager, struct tenant *tenant);

/** Begins to suspend all, also those that come, until suspension_wake(). */
void suspension_sleep(struct manager *manager);

/** Resumes those that suspension_sleep() had suspended, and no others. */
void suspension_wake(struct manager *manager);

/** Whether its connections are accepted. */
bool suspension_accepts(const struct tenant *tenant);

/** Whether they are waited for at all: one that waits has it resumed. */
bool suspension_hears(const struct manager *manager, const struct tenant *tenant);

/** Does what can be done now. */
void suspension_look(struct manager *manager, struct tenant *tenant, int64_t now);

/** Return: when to look next at the latest; INT64_MAX: when something happens. */
int64_t suspension_next(const struct manager *manager, const struct tenant *tenant, int64_t now);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* How much device memory the container may have, and what this process has of it. */

#include <stdbool.h>
#include <stdint.h>

#include "vcuda/protocol/types.h"

enum quota_kind {
	QUOTA_POINTER,
	QUOTA_GRAPH, /* of a graph's own */
	QUOTA_PHYSICAL,
	QUOTA_ARRAY, /* by its handle */
	/* From here on, what the driver takes without being asked for so and so many bytes. */
	QUOTA_CONTEXT,
	/* What kernels have of a context besides, by its handle. */
	QUOTA_STACKS,
	QUOTA_PRINTS,
	QUOTA_HEAP,
	QUOTA_GLOBALS, /* of a module or library, by its handle: what came with it */
};

uint64_t quota_limit(void);

/** Whether there is one at all. */
bool quota_is_limited(void);

/** Return: how much is left. */
uint64_t quota_left(void);

/** Says that this server lives, which keeps what it is about to share from being taken back. Before it is heard. */
void quota_begin(void);

/** Says which process the client is, and that it uses a GPU of its numbering, for those of its container that ask. */
void quota_name_client(uint32_t process);
void quota_use_gpu(uint64_t ordinal);

struct wire_usage;

/** Fills in what the container has, and the processes that use the GPU. */
void quota_report(uint64_t ordinal, struct wire_usage *to);

/** Tells the manager that so much was refused; once a second at most, since allocators ask again and again. */
void quota_tell(uint64_t bytes);

/** Counts @bytes. Return: false if they are too many; nothing is counted then. */
bool quota_take(uint64_t bytes);

/** The same; a refusal is not reported. */
bool quota_try(uint64_t bytes);

/** Counts what is had already, however much that is. */
void quota_count(uint64_t bytes);

/** Whether more is counted than may be. */
bool quota_is_exceeded(void);

/** As quota_try() for memory of the host, whose limits the manager and the start parameters say. */
bool quota_lock(uint64_t bytes);
void quota_unlock(uint64_t bytes);

/** Return: how much is counted for this process, and how much of it is noted for what the driver takes by itself. */
uint64_t quota_counted(void);
uint64_t quota_reserved(void);

/** Return: the sum of what was noted for @key. */
uint64_t quota_noted(enum quota_kind kind, uint64_t key);

/** What was noted for @key counts elsewhere from now on. */
void quota_empty_note(enum quota_kind kind, uint64_t key);

/** Takes what is shared back from servers that have ended. Return: whether that was something. */
bool quota_reap(void);

/** Takes back what was counted. */
void quota_give(uint64_t bytes);

/**
 * Notes that what was counted is for @key, which is of @context. What the driver takes by itself is added to what was
 * noted for it before. Return: false if memory is short.
 */
bool quota_note(enum quota_kind kind, uint64_t key, uint64_t bytes, uint64_t context);

/** Takes back what was counted for @key. Return: whether there was such a note. */
bool quota_forget(enum quota_kind kind, uint64_t key);

/**
 * quota_take_note() - take the note of @key out of the table, before its memory is given back
 *
 * The driver may then use @key for other memory. Return: NULL if there is none. It is counted until
 * quota_end_note(), or goes on after quota_put_note().
 */
struct quota_note *quota_take_note(enum quota_kind kind, uint64_t key);
void quota_end_note(struct quota_note *note);
void quota_put_note(struct quota_note *note);

/** Return: how many bytes it is of; 0: NULL. */
uint64_t quota_note_bytes(const struct quota_note *note);

/**
 * Adds @holders, which may be below 0, to those that keep the memory of @key from being given back by quota_forget().
 * Return: whether it was given back now.
 */
bool quota_hold(enum quota_kind kind, uint64_t key, int holders);

/** Takes back all that was counted for a context's memory. */
void quota_forget_context(uint64_t context);

/*
 * What the driver takes of the GPUs besides what it is asked for: for contexts, code and arrays of modules, local
 * memory of kernels. It alone knows how much that is, and says so by NVML: how much of a GPU's memory a process has in
 * all. What is more than this process has asked for, and than is noted for what the driver takes by itself, is
 * counted, too. None of this happens where the container has no limit.
 */

/** Begins to load NVML, beside the driver's own start, and ends that, before there is a context. */
void driver_memory_begin(void);
void driver_memory_open(void);

/** Return: NVML, initialised, and loaded at the first call; NULL if it is missing. Call it with the lead. */
void *driver_memory_library(void);

/** Whether the driver said how much this process has, when it was counted last. The manager is told once if not. */
bool driver_memory_is_known(void);

/** After a call that may have changed it: it is counted again before memory is next given. */
void driver_memory_set_dirty(void);

/** Return: another number for each time that it was counted. */
uint32_t driver_memory_counts(void);
void driver_memory_settle(void);

/** The same, of so little that it does not matter before it has come to a page of the GPU. */
enum { DRIVER_MEMORY_PAGE = 2 << 20 };
void driver_memory_set_dirty_by(uint64_t bytes);

/** There is a context. A process that NVML does not know when it is counted next, it will not know later either. */
void driver_memory_add_context(void);

/** Counts it, on any thread. Return: false if all that is counted is now more than may be. */
bool driver_memory_count(void);

/** The same, of which the manager is told. */
bool driver_memory_fits(void);

/** Notes for @key, of what is counted and noted for nobody yet, all or as much as @most. */
void driver_memory_note(enum quota_kind kind, uint64_t key, uint64_t most, uint64_t context);

/**
 * Nobody else asks the driver, or is given memory by it, until the end of the block: what it has given is either not
 * counted and not there, or both.
 */
#define DRIVER_MEMORY_HOLD \
	const bool overhead_held __attribute__((cleanup(driver_memory_let_go), unused)) = driver_memory_hold()
bool driver_memory_hold(void);
void driver_memory_let_go(const bool *held);

/* What kernels have of a context besides. */

/** Return: how many bytes a thread's stack has in the current context; 0: the driver does not say. */
uint64_t context_limits_ask_stack(void);

/** Return: what the driver takes for as many stacks of @each bytes as there can be threads at once. */
uint64_t context_limits_of_stacks(uint64_t each);

/**
 * Counts them for the current context, by its handle, as far as they are not counted for it already.
 * Return: CUDA_ERROR_OUT_OF_MEMORY.
 */
CUresult context_limits_take_stacks(uint64_t each, uint64_t context);

/* Pools of memory. They keep what was freed, and that counts. */

/** Begins to count what a pool keeps, if it is not counted yet. Return: false if there are too many. */
bool pool_add(uint64_t pool);

/** Counts what pools keep by now, which they may give back when somebody has waited. Any thread may. */
void pool_settle(void);

/** Has pools give back what they keep, and counts the rest. */
void pool_trim(void);

/** Return: how much they keep, as it is counted. */
uint64_t pool_cached(void);

/**
 * pool_end() - end a pool
 * @keep: whether one that is counted is to be ended later, when nothing of it is in use any more
 *
 * Return: what the driver returned; CUDA_SUCCESS if it is ended later.
 */
CUresult pool_end(uint64_t pool, bool (*keep)(uint64_t pool));

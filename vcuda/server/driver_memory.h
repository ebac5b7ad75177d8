/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the driver takes of the GPUs besides what it is asked for: for contexts, code and arrays of modules, local
 * memory of kernels. It alone knows how much that is, and says so by NVML: how much of a GPU's memory a process has in
 * all. What is more than this process has asked for, and than is noted for what the driver takes by itself, is
 * counted, too. None of this happens where the container has no limit.
 */

#include <stdbool.h>
#include <stdint.h>

#include "vcuda/server/quota.h"

/** Begins to load NVML, beside the driver's own start, and ends that, before there is a context. */
void driver_memory_begin(void);
void driver_memory_open(void);

/** Whether the driver said how much this process has, when it was counted last. The manager is told once if not. */
bool driver_memory_is_known(void);

/** What was done may have made it more or less: whoever next wants memory has it counted first. */
void driver_memory_set_dirty(void);

/** Return: another number for each time that it was counted. */
uint32_t driver_memory_counts(void);
void driver_memory_settle(void);

/** The same, of so little that it does not matter before it has come to a page of the GPU. */
enum { DRIVER_MEMORY_PAGE = 2 << 20 };
void driver_memory_set_dirty_by(uint64_t bytes);

/** Counts it, on any thread, once there was a context. Return: false if all that is counted is now more than may be. */
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

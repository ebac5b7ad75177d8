/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Control groups: what the servers of one container have of the host together, memory, tasks and processors. They are
 * made in the manager's own group of cgroup version 2, if that is its alone, as systemd's Delegate= and OpenRC promise:
 *
 *	manager         this program: a group whose own groups have limits may not have processes, too
 *	container-ID    a container's servers
 *
 * Where there is no such group, nothing of this is limited, and manager->unlimited says why.
 */

#include <stdbool.h>
#include <stdint.h>

struct manager;
struct tenant;

/* How much of the host's processors a control group of cgroup version 2 may have. */

enum { CPU_LIMIT_TEXT_SIZE = 48 };

/* So many microseconds of each so many, which are more than these with several processors; 0: all. */
struct cpu_limit {
	uint64_t time, of;
};

/**
 * cgroup_read_cpu_limit() - the least of what a group and those above it may have, since each limit holds
 * @hierarchy: where it is mounted
 * @group:     below that, as "/system.slice/docker-4f2a.scope"
 * @watch:     of inotify(7), which tells from now on when one of them is changed; -1: none
 * @ret_error: why one of them is not watched; 0: all that are there are, or @watch is -1
 */
struct cpu_limit cgroup_read_cpu_limit(int hierarchy, const char *group, int watch, int *ret_error);

/** The same as cpu.max takes it. */
void cgroup_print_cpu_limit(struct cpu_limit processor, char ret[static CPU_LIMIT_TEXT_SIZE]);

/** Return: how many processors these are; 0: all. */
double cgroup_count_cpus(struct cpu_limit processor);

/** Takes the manager's group for this, or sets why not. */
void cgroup_find(struct manager *manager);

/**
 * cgroup_take() - the same in a hierarchy
 * @hierarchy: of cgroup version 2, where it is mounted
 * @own: of the manager, as /proc/self/cgroup has it
 */
void cgroup_take(struct manager *manager, int hierarchy, const char *own);

/** Makes a group for a container, or takes the one of its name that is there. Return: 0; negative errno. */
int cgroup_make(struct manager *manager, struct tenant *tenant);

/** Sets how much of the host's memory a container's servers may have; 0: all. Return: 0; negative errno. */
int cgroup_limit_memory(struct tenant *tenant, uint64_t bytes);

/**
 * cgroup_limit_processors() - let servers have as much of the host's processors as their container may have now
 *
 * Return: 0, also where nothing limits that; negative errno.
 */
int cgroup_limit_processors(struct manager *manager, struct tenant *tenant);

/** The same of a container whose process has @text in /proc/PID/cgroup. */
int cgroup_follow_processors(struct manager *manager, struct tenant *tenant, const char *text);

/** Watches what all containers may have from now on, and no others. Sets manager->unwatched where that cannot be. */
void cgroup_watch(struct manager *manager);

/** Something of that has changed, or may have without a watch. Not all of it may have been read. */
void cgroup_follow_changes(struct manager *manager);

/** Return: how much memory they have; 0 if that is not counted. */
uint64_t cgroup_measure_memory(const struct tenant *tenant);

/** Return: whether the kernel has killed one of them for want of memory; true once for each kill. */
bool cgroup_has_killed(struct tenant *tenant);

/** Of a process that becomes one of them: goes there. @group: of a container; -1: none. Return: 0; negative errno. */
int cgroup_enter(int group);

/** Removes the groups of containers that are not the manager's any more, as far as they are empty. */
void cgroup_sweep(const struct manager *manager);

/* The host's memory that servers keep: page-locked memory, and what clients have sent and not used yet. */

/** Return: how much all containers together may have of it, which is half of the host's memory. */
uint64_t pinned_memory_measure_host(void);

/** Return: how much each of a container's servers may have, whatever others have. */
uint64_t pinned_memory_measure(const struct tenant *tenant);

/**
 * pinned_memory_host_memory() - say anew how much each container may have, when one has come or gone
 *
 * All get the same share of manager->host_memory. One that has more keeps it and gets no more; the others share the
 * rest. So the limits never come to more than there is.
 */
void pinned_memory_host_memory(struct manager *manager);

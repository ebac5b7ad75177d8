/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* How much of the host's processors a control group of cgroup version 2 may have. */

#include <stdint.h>

enum { CPU_LIMIT_TEXT_SIZE = 48 };

/* So many microseconds of each so many, which are more than these with several processors; 0: all. */
struct cpu_limit {
	uint64_t time, of;
};

/**
 * cpu_limit_read() - the least of what a group and those above it may have, since each limit holds
 * @hierarchy: where it is mounted
 * @group:     below that, as "/system.slice/docker-4f2a.scope"
 * @watch:     of inotify(7), which tells from now on when one of them is changed; -1: none
 */
struct cpu_limit cpu_limit_read(int hierarchy, const char *group, int watch);

/** The same as cpu.max takes it. */
void cpu_limit_print(struct cpu_limit processor, char ret[static CPU_LIMIT_TEXT_SIZE]);

/** Return: how many processors these are; 0: all. */
double cpu_limit_count(struct cpu_limit processor);

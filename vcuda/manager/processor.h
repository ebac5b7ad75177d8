/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* How much of the host's processors a control group of cgroup version 2 may have. */

#include <stdint.h>

enum { PROCESSOR_TEXT_SIZE = 48 };

/* So many microseconds of each so many, which are more than these with several processors; 0: all. */
struct processor {
	uint64_t time, of;
};

/**
 * processor_read() - the least of what a group and those above it may have, since each limit holds
 * @hierarchy: where it is mounted
 * @group:     below that, as "/system.slice/docker-4f2a.scope"
 * @watch:     of inotify(7), which tells from now on when one of them is changed; -1: none
 */
struct processor processor_read(int hierarchy, const char *group, int watch);

/** The same as cpu.max takes it. */
void processor_print(struct processor processor, char ret[static PROCESSOR_TEXT_SIZE]);

/** Return: how many processors these are; 0: all. */
double processor_count(struct processor processor);

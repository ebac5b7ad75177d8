/* SPDX-License-Identifier: Apache-2.0 */

#include "guard/program/detach_wait.h"

#include <bpf/bpf.h>
#include <unistd.h>

#include "base/cleanup.h"

enum { WAIT_ROUNDS = 1000, WAIT_USEC = 10000 };

static bool detach_wait_is(unsigned program)
{
	_cleanup_close_ int fd = bpf_prog_get_fd_by_id(program);

	return fd >= 0;
}

void detach_wait(const struct links *links)
{
	size_t gone = 0;

	for (int round = 0; round < WAIT_ROUNDS && gone < links->count; round++) {
		while (gone < links->count && !detach_wait_is(links->programs[gone]))
			gone++;
		if (gone < links->count)
			(void)usleep(WAIT_USEC);
	}
}

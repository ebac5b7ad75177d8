/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What attaching takes besides: waiting for the end of programs whose pins were removed, choosing the programs that a
 * kernel which preempts itself needs, and telling failures that say nothing of the kernel from those that do.
 */

#include "guard/program/internal.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/str.h"

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

bool probes_may_stay(void)
{
	struct utsname names;

	return uname(&names) == 0 && !strstr(names.version, "PREEMPT_RT");
}

static bool probes_are_possible(void)
{
	return probes_may_stay() && access("/sys/bus/event_source/devices/kprobe/type", R_OK) == 0;
}

bool probes_are_wanted(void)
{
	_cleanup_free_ char *why = NULL;

	return preempt_check(&why) == 0 && why;
}

void probes_choose(struct bpf_object *programs, const struct btf_facts *facts, bool wanted)
{
	const bool possible = probes_are_possible();
	struct bpf_program *program;

	bpf_object__for_each_program(program, programs)
	{
		const char *name = bpf_program__name(program);

		if (str_has_prefix(name, "guard_probe_"))
			(void)bpf_program__set_autoload(program, wanted && possible);
		else if (str_has_prefix(name, "guard_again_"))
			(void)bpf_program__set_autoload(program, wanted);
		else if (streq(name, "guard_lsm"))
			(void)bpf_program__set_autoload(program, wanted && facts->has_bpf_lsm);
		else if (streq(name, "guard_lsm32"))
			(void)bpf_program__set_autoload(program,
							wanted && facts->has_bpf_lsm && facts->has_compat_hook);
	}
}

/* EBUSY: a function that others have attached to in a way that leaves no place for us, such as a live patch. */
bool errno_is_temporary(int r)
{
	static const int passing[] = {EAGAIN, EBUSY, EINTR, EIO, EMFILE, ENFILE, ENOMEM, ENOSPC};

	for (size_t i = 0; i < ARRAY_SIZE(passing); i++)
		if (r == -passing[i])
			return true;
	return false;
}

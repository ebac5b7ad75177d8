/* SPDX-License-Identifier: Apache-2.0 */

#include "guard/program/probes.h"

#include <bpf/libbpf.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "guard/preempt.h"

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
		else if (streq(name, "guard_lsm"))
			(void)bpf_program__set_autoload(program, wanted && facts->has_bpf_lsm);
		else if (streq(name, "guard_lsm32"))
			(void)bpf_program__set_autoload(program,
							wanted && facts->has_bpf_lsm && facts->has_compat_hook);
	}
}

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The programs that are probes. They do again, where nothing can interrupt them, what others may be left out of on a
 * kernel that preempts itself (guard/preempt.h); elsewhere they would only take time.
 */

#include <stdbool.h>

struct bpf_object;

/** Leaves them out of what is loaded, unless this kernel preempts itself and has probes. */
void probes_choose(struct bpf_object *programs);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Whether root has switched the tracing of functions off. The guard's programs can be attached all the same, and are
 * not called; those that are attached already are no longer.
 */

#include <stdbool.h>

/** For sentences. */
#define TRACING_OFF "the tracing of functions is switched off (sysctl kernel.ftrace_enabled)"

/** A kernel without such a switch has it on. */
bool tracing_is_off(void);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Capabilities for single steps: the hook keeps some permitted and not effective (phase.c), and has them
 * effective only while a kernel asks for them. A program that root runs by hand has all effective, and nothing changes.
 */

#include <stdbool.h>
#include <sys/capability.h>

#include "base/cleanup.h"

enum { CAPABILITY_NONE = -1 };

/** What this process was given a moment ago: the kernel need not be asked. */
void capability_know(const struct __user_cap_data_struct words[_LINUX_CAPABILITY_U32S_3]);

/** Makes @value effective if it is only permitted. Return: @value if it was made so; CAPABILITY_NONE if not. */
cap_value_t capability_raise(cap_value_t value);

/** Whether @value is effective. By the kernel's call: libcap's library begins with six questions to the kernel. */
bool capability_is_effective(cap_value_t value);

/** Takes back what capability_raise() returned. */
void capability_lower(cap_value_t *raised);
#define _cleanup_capability_ _cleanup_(capability_lower)

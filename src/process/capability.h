/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Capabilities for single steps: the hook keeps some permitted and not effective (phase.c), and has them
 * effective only while a kernel asks for them. A program that root runs by hand has all effective, and nothing changes.
 */

#include <linux/capability.h>
#include <stdbool.h>

#include "base/cleanup.h"

enum { CAPABILITY_NONE = -1 };

/** What this process was given a moment ago: the kernel need not be asked. */
void capability_know(const struct __user_cap_data_struct words[_LINUX_CAPABILITY_U32S_3]);

/** They are others now, such as in another user namespace. */
void capability_forget(void);

/** Return: what this process has, as far as known without asking; NULL with errno set. */
const struct __user_cap_data_struct *capability_own(void);

/** Makes @value effective if it is only permitted. Return: @value if it was made so; CAPABILITY_NONE if not. */
int capability_raise(int value);

/** Whether @value is effective. */
bool capability_is_effective(int value);

/** Takes back what capability_raise() returned. */
void capability_lower(int *raised);
#define _cleanup_capability_ _cleanup_(capability_lower)

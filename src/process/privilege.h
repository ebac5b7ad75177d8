/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Capabilities for single steps: the hook keeps some permitted and not effective (phase.c), and has them
 * effective only while a kernel asks for them. A program that root runs by hand has all effective, and nothing changes.
 */

#include <linux/capability.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/cleanup.h"

enum { CAPABILITY_NONE = -1 };

/** Makes @value effective if it is only permitted. Return: @value if it was made so; CAPABILITY_NONE if not. */
int capability_raise(int value);

/** Whether @value is effective. */
bool capability_is_effective(int value);

/** Takes back what capability_raise() returned. */
void capability_lower(int *raised);
#define _cleanup_capability_ _cleanup_(capability_lower)

/*
 * Private uids, which no other process has. Processes of one uid can read each other's memory, send each other signals
 * and use up each other's threads. The usual 65534 is not private: services and containers run under it, too.
 *
 * No program gives these numbers away by default: not useradd(8), not SSSD, which maps domains' users to 200000 up to
 * 2000200000, not systemd, whose last ones begin at 2147352576. Root of a container that has CAP_SETUID and no user
 * namespace can take any uid, so they are drawn by chance.
 */

#define PRIVATE_UID_FIRST 2100000000U
#define PRIVATE_UIDS 47000000U

/** Return: 0 or negative errno. */
int private_uid_draw(uid_t *ret);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Users for processes that nobody else's may be reached from, whom the kernel lets do to each other what it lets no
 * others: read their memory, send them signals, use up their threads. "nobody" is not such a user, as services and
 * containers run in that name, too.
 *
 * Nobody gives such numbers away by default: not useradd(8), not SSSD, which maps domains' users to 200000 up to
 * 2000200000, not systemd, whose last ones begin at 2147352576. Root of a container that has CAP_SETUID and no user
 * namespace can be any, so they are drawn by chance.
 */

#include <sys/types.h>

#define PRIVATE_UID_FIRST 2100000000U
#define PRIVATE_UIDS 47000000U

/** Return: 0 or negative errno. */
int private_uid_draw(uid_t *ret);

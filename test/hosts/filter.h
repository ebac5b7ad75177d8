/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The system call filter that hands D3DKMT ioctls to a supervisor, and nothing else unless it is told to. */

#include <stdbool.h>

/**
 * filter_install() - trap the ioctls of this process and of all that it will start
 * @opens: whether openat(2) is trapped, too
 *
 * Needs CAP_SYS_ADMIN, and leaves no_new_privs unset, so that setuid programs (newuidmap of rootless Podman) still work.
 *
 * Return: descriptor to supervise with, O_CLOEXEC; negative errno.
 */
int filter_install(bool opens);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The system call filter that hands D3DKMT ioctls, and nothing else, to a supervisor. */

/**
 * filter_install() - trap the ioctls of this process and of all that it will start
 *
 * Needs CAP_SYS_ADMIN, and leaves no_new_privs unset, so that setuid programs (newuidmap of rootless Podman) still work.
 *
 * Return: descriptor to supervise with, O_CLOEXEC; negative errno.
 */
int filter_install(void);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/**
 * seccomp_load() - from here on, make only the system calls that giving GPUs to a container takes
 *
 * What is not in the table fails with EPERM; calls of another architecture kill the process. It cannot be undone.
 *
 * Return: 0; -ENOSYS for an architecture without a table; negative errno.
 */
int seccomp_load(void);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Threads of the library's own. */

#include <stdbool.h>

/** Whether there can be any: older C libraries have them in a library of its own, which a program may not have loaded. */
bool helper_can_start(void);

/**
 * helper_start() - run @run with @data, for as long as the process lives
 *
 * The thread takes no signal that is for the process: a program that blocks one in all of its own threads waits for it.
 * Return: whether it runs.
 */
bool helper_start(void *(*run)(void *data), void *data);

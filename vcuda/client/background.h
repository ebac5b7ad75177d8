/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Threads of the library's own. */

#include <stdbool.h>

/** Whether there can be any. Older C libraries have them in another library, which a program may not have loaded. */
bool background_can_start(void);

/**
 * background_start() - run @run with @data, for as long as the process lives
 *
 * The thread takes no signal that is for the process: a program that blocks one in all of its own threads waits for it.
 * Return: whether it runs.
 */
bool background_start(void *(*run)(void *data), void *data);

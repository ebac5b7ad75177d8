/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A user who gives up, by ^C or by closing the terminal, while files are written: what has begun is finished or undone,
 * as after an error, and the process ends by the signal then. The same signal once more ends it at once.
 */

#include <stdbool.h>

/** From now on SIGINT, SIGTERM and SIGHUP are only remembered, and system calls that wait fail with EINTR. */
void interrupt_hold(void);

/** Whether one came. */
bool interrupt_came(void);

/** What these signals do is what it was, and one that came does it now. May be called without the above. */
void interrupt_let_go(void);

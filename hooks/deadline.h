/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A bound on a hook's life. An engine waits for its hooks, some without any limit of their own, and a container whose
 * start hangs can often not even be removed.
 */

/**
 * deadline_set() - from now on, a process that is not done in time says so and exits with status 1
 * @seconds:  replaces an earlier deadline
 * @sentence: what it says, the program's name included and without a last newline; a constant
 */
void deadline_set(unsigned seconds, const char *sentence);

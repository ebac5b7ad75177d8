/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Bounds on a hook's life. An engine waits for its hooks, some without any limit of their own, and a container whose
 * start hangs can often not even be removed. This bounds the wait for the engine. The work itself may wait where no
 * signal handler runs, so it is done in a child (ctr_gpu_run_in_child()).
 */

/**
 * deadline_set() - if this process is not done in time, print a sentence and exit with status 1
 * @seconds:  replaces an earlier deadline; 0: there is none
 * @sentence: to print, with the program's name and without a newline at its end; a constant
 */
void deadline_set(unsigned seconds, const char *sentence);

/**
 * deadline_let_go() - close what was inherited, before an exit
 *
 * A child that was left behind has the same descriptors, and an engine waits until the last has closed its pipes. Its
 * own, which closing might have to wait for, are close-on-exec.
 */
void deadline_let_go(void);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Nothing that the hook inherits may decide what it does. It runs as root with what an engine happened to leave behind:
 * with some engines that is the environment which an image's author wrote (CVE-2025-23266), or a descriptor of a host
 * directory (CVE-2024-21626).
 */

#include <stdbool.h>

/**
 * sanitise() - bring this process into a known state, before anything is read
 *
 * An empty environment; descriptors 0 to 2 and no others; the root directory as working directory; no handlers, masks
 * or privileges beyond those that the work needs; no core file, no debugger.
 *
 * Return: 0; a negative errno with *ret_step saying what could not be done.
 */
int sanitise(const char **ret_step);

/** Whether the umask is 022 since sanitise(). */
bool sanitise_has_mask(void);

/** Ignores signals that would stop this process or its children halfway. */
void sanitise_ignore_signals(void);

/* ---- deadline ---- */

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

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

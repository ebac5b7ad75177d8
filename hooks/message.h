/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a failing hook has to say. Engines pass a hook's standard error on to the user, but not all of them: crun under
 * Podman lets it end in /dev/null. There the message goes to the system log; without one, to a file that the doctor
 * shows.
 */

#include <ctr-gpu.h>

/**
 * message_init() - find out where messages go
 *
 * To be called before the mount namespace is changed: in a container's, /dev/log is whatever the image says.
 */
void message_init(void);

/** Says what a step before the library's first failed at. @error: negative errno. Return: the exit status. */
int message_error(const char *what, int error);

/** Says "ctr-gpu-hook: [E_NO_ADAPTER] …" for a result of the library, further lines indented. Return: exit status. */
int message_failure(const struct ctr_gpu_context *context, int r);

/** Writes to the system's log why a container starts without the GPUs that it asks for. */
void message_missing(const char *program, const struct ctr_gpu_context *context, int r);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a failing hook has to say. Engines pass a hook's standard error on to the user, but not all of them: crun under
 * Podman lets it end in /dev/null. There the message goes to the system log; without one, to a file that the doctor
 * shows.
 */

#include <ctr-gpu.h>

/**
 * report_error_init() - find out where messages go
 *
 * To be called before the mount namespace is changed: in a container's, /dev/log is whatever the image says.
 */
void report_error_init(void);

/** Says what a step before the library's first failed at. @error: negative errno. Return: the exit status. */
int report_error_error(const char *what, int error);

/** Ends standard output. Return: the exit status: whether all that was printed has been written. */
int report_error_end_output(void);

/**
 * Says "ctr-gpu-hook: [E_NO_ADAPTER] …" for a result of the library, further lines indented. Return: the exit status.
 */
int report_error_failure(const struct ctr_gpu_context *context, int r);

/**
 * report_error_go_without() - let a container start without the GPUs that it asks for, where the settings say so
 * @quiet:    whether the system's log is not told why
 * @r:        why there is no plan; the context has the message
 * @ret_plan: a plan that does nothing; @request is void then, too
 *
 * Return: 0; @r if the container must not start; another result of the library.
 */
int report_error_go_without(struct ctr_gpu_context *context, struct ctr_gpu_request *request,
			    enum ctr_gpu_method method, bool quiet, int r, struct ctr_gpu_plan **ret_plan);

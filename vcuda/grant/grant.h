/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a plan has of vCUDA, asked of the manager: it makes a socket for the container, in a directory of its own. A
 * user who is not root asks where the manager answers users.
 */

#include <sys/types.h>

#include "base/err.h"
#include "model/plan.h"

/**
 * grant_ask() - have the container's socket made
 * @id:     the engine's name for the container; NULL: it has none
 * @pid:    of its first process; 0: this is in its pid namespace
 * @ret_fd: as long as it is open, and for good after grant_keep(), the container has what it was granted
 *
 * Return: 0; CTR_GPU_E_NO_PERMISSION; CTR_GPU_E_BAD_ARGUMENT; negative errno; @err is set.
 */
int grant_ask(const struct plan *plan, const char *id, pid_t pid, int *ret_fd, char **ret_directory, struct err *err);

struct vcudad_gpu;
struct vcudad_request;
struct vcudad_granted;

/**
 * grant_describe() - what of a plan the manager is asked for
 * @gpus: of VCUDAD_GPUS_MAX; the spares are behind the others
 * @ret:  zeroed before; what its strings are is the plan's
 */
void grant_describe(const struct plan *plan, struct vcudad_gpu *gpus, struct vcudad_request *ret);

/**
 * grant_ask_manager() - ask it for a grant, again while a container that has ended still has what this one is to get
 *
 * That lasts as long as its servers take to end, which are killed after ten seconds.
 *
 * Return: as control_ask().
 */
int grant_ask_manager(int fd, const struct vcudad_request *request, struct vcudad_granted *ret);

/** The container is made: the grant ends with it, or when it is revoked. Return: as grant_ask(). */
int grant_keep(int fd, const char *id, pid_t pid, struct err *err);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* `ctr-gpu doctor`: whether a container would get a GPU on this machine, and the first thing to do if not. */

#include <jansson.h>
#include <stdio.h>

#include "ctr-gpu.h"

struct doctor;

/**
 * doctor_new() - examine this machine
 * @config: that is judged rather than required to be right; NULL: the usual file
 * @rootfs: the root directory of an image to look at, too; NULL: none
 *
 * It waits for whatever hangs for a bounded time only, and says on a terminal what it waits for.
 *
 * Return: 0; CTR_GPU_E_BAD_ARGUMENT; negative errno; with the context's message set.
 */
int doctor_new(struct ctr_gpu_context *context, const char *config, const char *rootfs, struct doctor **ret);
void doctor_free(struct doctor *doctor);

/** Whether an engine here gives a container a GPU that works, by any method. */
bool doctor_would_work(const struct doctor *doctor);

/**
 * doctor_write() - write the findings, for a screen or as JSON
 * @verbose: for a screen what is well, too
 *
 * Return: 0; -EINVAL for another format; -ENOMEM; -EIO.
 */
int doctor_write(const struct doctor *doctor, enum ctr_gpu_format format, bool verbose, FILE *file);

/**
 * doctor_warn_of_host() - say on standard error why a container would get no GPU that works, and what to do about it
 * @host: a host that was read; the caller reports what is wrong with single adapters
 * @plan: a plan whose files are checked; NULL: no files are
 * @noted: the caller has printed the host's notes, which say what is wrong with files
 *
 * Checks the GPUs and their driver only. Return: whether something is wrong.
 */
bool doctor_warn_of_host(struct ctr_gpu_context *context, struct ctr_gpu_host *host, const struct ctr_gpu_plan *plan,
			 bool noted);

/* ---- containers ---- */

/** Return: where the records of `ctr-gpu attach` are, owned by the caller; NULL: this user has no such place. */
char *containers_find_records(void);

/**
 * containers_list() - the containers that run and have GPUs, as far as the caller may look at them
 * @asked: a container has what its configuration asks one of our doors for, also if it does not show it: root in it can
 *         remove the devices that it has open
 * @ret:   new array of {engine, id, name, pid, process, gpus, given: [{door, since, choice, refused}], lacks, old,
 *         restart, error}; process: process_key_make(), "" where it is not known
 *
 * A container that does not answer is waited for 3 seconds. When two have not, those that follow are not looked at.
 * What is not known of one is an error in its entry, which says why; where its process is not known, that is 0, and
 * where it is not known which containers of an engine run, an entry of the engine's has no id. Return: 0 or negative
 * errno.
 */
int containers_list(struct ctr_gpu_context *context, const struct ctr_gpu_host *host, bool asked, json_t **ret);

/** Writes such a list, for a screen or as JSON. Return: 0; -ENOMEM; -EIO. */
int containers_write(json_t *list, enum ctr_gpu_format format, FILE *file);

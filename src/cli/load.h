/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "cli/session.h"
#include "model/backend.h"

/**
 * load_run() - find out what this host lacks of kernel modules and device nodes, and make it unless @dry_run
 * @options: all but their driver_root, which is the session's
 * @ret:     empty after a failure
 *
 * Return: 0; as loaders_run(), with the context's message set.
 */
int load_run(const struct session *session, struct load_options options, bool dry_run, struct load *ret);

/** load_write() - write the steps, and whether each is to do, done, or was there. Return: 0; -EINVAL; -EIO. */
int load_write(const struct load *load, enum ctr_gpu_format format, FILE *file);

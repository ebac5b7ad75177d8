/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "cli/session.h"
#include "nvidia/load.h"

/**
 * load_run() - find out what this host lacks of NVIDIA's modules and nodes, and make it unless @dry_run
 * @options: all but their driver_root, which is the session's
 * @ret:     empty after a failure
 *
 * Return: 0; as load_decide() and load_do(), with the context's message set.
 */
int load_run(const struct session *session, struct load_options options, bool dry_run, struct load *ret);

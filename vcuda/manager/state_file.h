/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a manager that is started again must know: containers and servers, as JSON in a file of root's. Servers go on
 * without a manager.
 */

#include "vcuda/manager/manager.h"

/** Writes it, whole or not at all. Return: 0 or negative errno. */
int state_file_write(const struct manager *manager);

/**
 * state_file_read() - take over what an earlier manager has written, as far as it still lives
 *
 * server_process_sweep() ends the servers that are not taken over.
 *
 * Return: 0; negative errno.
 */
int state_file_read(struct manager *manager);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* One text file for a bug report: what this machine is, what doctor says, and what engines are told of runtimes, and no secrets. */

#include "cli/doctor/run.h"
#include "cli/session.h"

/**
 * report_write() - write the file
 * @session: with what doctor found
 * @path:    a file that does not exist; "-" for standard output
 *
 * Return: 0 or the exit status after a message was printed.
 */
int report_write(struct session *session, const struct doctor *doctor, const char *path);

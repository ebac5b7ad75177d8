/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* One text file for a bug report: this machine, what doctor says, and engines' settings, without secrets. */

#include "cli/doctor/run.h"
#include "cli/session.h"

/* Where nobody names another. Root makes it only in a directory that root alone may change. */
#define REPORT_FILE "ctr-gpu-report.txt"

/**
 * report_write() - write the file
 * @session: with what doctor found
 * @path:    a file that does not exist; "-" for standard output
 *
 * Return: 0 or the exit status after a message was printed.
 */
int report_write(struct session *session, const struct doctor *doctor, const char *path);

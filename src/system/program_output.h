/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Programs that root alone can have put there are run for what they say: versions, configurations, a journal. */

#include <stdbool.h>
#include <stddef.h>

enum { PROGRAM_OUTPUT_USUAL_MS = 5 * 1000 }; /* for one that only says something of itself */

/**
 * program_output_read() - what a program writes to its standard output, until it ends
 * @arguments: its path, then its arguments; a NULL at the end. It has no environment, input or other descriptors
 * @time_ms:   that it has for that; then it is killed
 * @max:       bytes; what is more is not read
 * @ret:       the bytes, with a null behind them, also of a program that did not end well; NULL without memory
 *
 * Return: whether it ended well, with less than @max.
 */
bool program_output_read(const char *const arguments[], int time_ms, size_t max, char **ret, size_t *ret_size);

/**
 * program_output_read_status() - the same of a program whose exit status says something, too
 *
 * Return: its exit status; -1 if it did not end by itself, or with less than @max.
 */
int program_output_read_status(const char *const arguments[], int time_ms, size_t max, char **ret, size_t *ret_size);

/* ---- OCI runtimes ---- */

/*
 * What is known of an OCI runtime by its version: whether it finds the places of mounts safely in a root filesystem
 * that another process changes meanwhile. runc before 1.2.8, 1.3.3 and 1.4.0 looks a path up and then makes what is
 * missing by the path: on the host, if a directory has become a link in between (CVE-2024-45310, CVE-2025-52881). crun
 * has held descriptors for that since 1.8.
 */

/** Whether a runtime that says @version, "runc version 1.1.5+ds1" and more, holds what it has found. */
bool oci_runtime_is_known(const char *version);

/**
 * oci_runtime_holds_places() - the same for a program, which is asked for its version
 *
 * What it says is kept until the next boot, or until the file is another. One that is not root's, or does not answer,
 * is not believed.
 */
bool oci_runtime_holds_places(const char *program);

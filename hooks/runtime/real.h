/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The runtime that does the work. */

#include <ctr-gpu.h>

/**
 * real_find() - the first of the runtimes that is installed, and is not this program under another name
 * @ret_path: absolute, for free(3)
 *
 * Return: 0; -ENOENT; -ENOMEM.
 */
int real_find(const struct ctr_gpu_context *context, char **ret_path);

/** real_beside() - a program that is installed beside this one. Return: absolute path for free(3) or NULL. */
char *real_beside(const char *name);

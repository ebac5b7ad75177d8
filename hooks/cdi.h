/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The hook as nvidia-cdi-hook, the name by which specs of NVIDIA's tools have engines run it. */

#include <stdbool.h>

/** Whether this is the name by which it was called. */
bool cdi_hook_is_called(const char *program);

/** All of it. Return: the exit status. */
int cdi_hook_main(char **argv);

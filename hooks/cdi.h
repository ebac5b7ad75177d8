/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The hook as nvidia-cdi-hook, the name under which engines run it for specs of NVIDIA's tools. */

#include <stdbool.h>

/** Whether it was called by this name. */
bool cdi_hook_is_called(const char *program);

/** All of it. Return: the exit status. */
int cdi_hook_main(char **argv);

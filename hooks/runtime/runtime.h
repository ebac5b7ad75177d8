/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The hook's program as ctr-gpu-runtime: two static programs would be the same libraries twice. */

#include <stdbool.h>

/** Whether it was called by this name. */
bool runtime_is_called(const char *program);

/** All of it. Return: the exit status, unless the program has become the OCI runtime. */
int runtime_main(int argc, char **argv);

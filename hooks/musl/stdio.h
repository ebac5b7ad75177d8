/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include_next <stdio.h>

#ifndef RENAME_NOREPLACE
#define RENAME_NOREPLACE (1 << 0) /* linux/fs.h */

/* Declared alone: the hook makes no device nodes on the host. */
int renameat2(int from, const char *from_path, int to, const char *to_path, unsigned flags);
#endif

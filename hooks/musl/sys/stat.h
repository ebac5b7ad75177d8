/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* statx(2) as the kernel's header has it: musl has none before 1.2.5, and then without the number of a mount. */

#define statx statx_of_musl
#define statx_timestamp statx_timestamp_of_musl
#include_next <sys/stat.h>
#undef statx
#undef statx_timestamp

#include <linux/stat.h>

int statx(int directory, const char *path, int flags, unsigned mask, struct statx *ret);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The same structure and call, of which glibc takes the buffer without a type. */

#include_next <dirent.h>

#undef getdents64
#define getdents64(fd, buffer, size) getdents(fd, (struct dirent *)(void *)(buffer), size)
#define dirent64 dirent

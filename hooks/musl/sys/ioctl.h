/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A request has 32 bits, whose highest is set where something is read. glibc takes an unsigned long, musl an int. */

#include_next <sys/ioctl.h>

#define ioctl(fd, request, ...) (ioctl)(fd, (int)(request), __VA_ARGS__)

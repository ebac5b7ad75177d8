/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* System calls that are newer than the headers of distributions. */

#include <sys/syscall.h>

#ifndef SYS_statmount
#define SYS_statmount 457
#endif

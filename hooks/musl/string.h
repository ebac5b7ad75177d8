/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include_next <string.h>

/* "EINVAL", "SEGV"; NULL if there is none of this number. */
const char *strerrorname_np(int number);
const char *sigabbrev_np(int number);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include_next <unistd.h>

int close_range(unsigned first, unsigned last, int flags);

/* Works without close_range(2), too, before Linux 5.9. */
void closefrom(int first);

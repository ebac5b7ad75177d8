/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include_next <unistd.h>

int close_range(unsigned first, unsigned last, int flags);

/* Also where there is no close_range(2), before Linux 5.9. */
void closefrom(int first);

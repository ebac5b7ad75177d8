/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The end of programs whose pins were removed: it comes after the pins'. */

#include "guard/links.h"

/** Waits until they are detached, for some seconds at most. */
void detach_wait(const struct links *links);

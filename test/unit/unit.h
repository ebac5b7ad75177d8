/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What every unit test includes: cmocka and the headers it needs in front of it. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
/* Of cmocka 2, and as a macro it takes the word from everybody. */
#undef stop

#include "base/cleanup.h"

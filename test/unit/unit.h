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

#include "base/cleanup.h"

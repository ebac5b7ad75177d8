/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The staging memory, which copies from and to ordinary memory pass through. */

#include <stdint.h>

/** A context has ended. */
void stage_forget_context(uint64_t context);

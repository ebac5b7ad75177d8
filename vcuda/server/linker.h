/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Linkers, and what their threads leave behind. */

#include <stdint.h>

/** A context has ended. */
void linker_forget_context(uint64_t context);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Code: images on their way to the server, and what the client knows of the functions in them. */

#include "vcuda/client/thread.h"

struct function {
	_Atomic uint64_t handle;
	_Atomic uint32_t epoch; /* of all code; another than now: ask again */
	struct wire_function info;
};

/** Gets a function's parameters and limits, from the server the first time. */
CUresult image_function(uint64_t handle, const struct function **ret);

/** What was known of functions is to be asked for again: a module or a context is gone. */
void image_forget(uint64_t owner);

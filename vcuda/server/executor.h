/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The thread that carries out the client's commands, in their order, and those that wait for it. */

#include <stdint.h>

/** Serves the client until it goes. */
void executor_run(void) __attribute__((noreturn));

/** Waits until no thread waits or works in a context of the driver's, which ends; object_ref_forget() comes next. */
void executor_await(uint64_t context);

/** Threads have another current context than they know, or none. */
void executor_forget_context(void);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The thread that carries out the client's commands, in their order, and those that wait for it. */

/** Serves the client until it goes. */
void executor_run(void) __attribute__((noreturn));

/** The thread has another current context than it knows, or none. */
void executor_forget_context(void);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Where a static program begins: see early.c. */

/** @stack: what the kernel left there: the number of arguments, these, the environment, each with a NULL at its end */
void early_main(long *stack);

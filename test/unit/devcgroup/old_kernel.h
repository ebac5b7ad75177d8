/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Runs a function as on Linux 5.5: no openat2(2), and no BPF_F_REPLACE. */

/** @refused: how many system calls were refused. Return: false if this kernel cannot pretend. */
_Bool old_kernel_run(void (*function)(void *), void *argument, unsigned *ret_refused);

/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
#pragma once

/* In the driver: a call's beginning and end, and which adapter it reaches. */

#include "guard/bpf/kernel.h"

/** Begins a call that the gate, which was skipped, did not see. */
void driver_begin_late(struct file *file, unsigned int command, unsigned long arguments);
void driver_end(int answer);

/** Condemns the caller if its choice has not got the adapter. */
void driver_check_call(struct dxgadapter *adapter);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The BPF programs, loaded, attached and pinned, where they stay when this program ends. */

#include <stdbool.h>

#include "base/err.h"

/** Whether they are there, of this version of the guard; @ret_other: they are, of another version. */
bool attach_is_done(bool *ret_other);

/**
 * attach_do() - load them, unless they are there
 * @verbose: with the verifier's words on standard error
 *
 * Those of another version are replaced, and choices kept. Return: 0; CTR_GPU_E_GUARD with @err set if this kernel or
 * driver cannot be guarded; CTR_GPU_E_NO_PERMISSION; negative errno.
 */
int attach_do(bool verbose, struct err *err);

/** Takes them away; nothing is guarded any more. Return: 0, also if there are none; negative errno with @err set. */
int attach_undo(struct err *err);

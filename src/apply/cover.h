/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What a plan lays over files and directories of the container. */

#include "apply/attach.h"
#include "model/plan.h"

/** All of it, or what the container does not work without. Return: 0; a result with the error set. */
int cover_all(const struct attach_context *attach_context, const struct plan *plan);

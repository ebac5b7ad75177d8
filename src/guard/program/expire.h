/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Choices of cgroups that are gone, where the kernel did not announce their end. */

#include <stddef.h>

#include "base/err.h"
#include "guard/choice.h"

/** Removes them. Return: 0, with how many there were and are; negative errno with @err set. */
int expire(const struct choices *choices, size_t *ret_removed, size_t *ret_left, struct err *err);

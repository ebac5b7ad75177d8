/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdio.h>

#include "cli/doctor/engine.h"

/** Writes a screen of it, in colour where @file is a terminal. Return: 0 or -EIO. */
int screen_write(const struct findings *findings, const struct engines *engines, FILE *file);

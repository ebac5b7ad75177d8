/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdio.h>

#include "base/str.h"
#include "model/finding.h"

/** Writes a screen of it, in colour where @file is a terminal. Return: 0 or -EIO. */
int print_doctor_write(const struct findings *findings, FILE *file);

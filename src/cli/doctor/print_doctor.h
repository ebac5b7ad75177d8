/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdio.h>

#include "base/str.h"
#include "model/finding.h"

/**
 * print_doctor_write() - write it for a person, in colour and as wide as it is where @file is a terminal
 * @verbose: everything, and not only what works and what is wrong
 *
 * Return: 0 or -EIO.
 */
int print_doctor_write(const struct findings *findings, bool verbose, FILE *file);

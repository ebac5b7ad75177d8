/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What to do about an error of the operating system that says it all by itself, wherever it was met. It is one line,
 * for the message of whoever met it.
 */

/** @error: as in errno. Return: a sentence; NULL where it depends on what was tried. */
const char *remedy_of(int error);

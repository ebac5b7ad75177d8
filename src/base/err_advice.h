/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What to do about an error of the operating system that needs no context, as one line for a message. */

/** @error: as in errno. Return: a sentence; NULL where it depends on what was tried. */
const char *err_errno_advice(int error);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What others wrote, on a terminal or in a log: text and nothing else. An escape sequence begins with a control
 * character, of which UTF-8 has a second set; and some characters turn the order in which others are shown.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** The character at @text, shown or not. Return: how many bytes it has; 0: its UTF-8 is wrong. */
size_t printable_read(const char *text, uint32_t *ret);

/** How many bytes at @text are one character that is shown as it is; 0: there is none, or its UTF-8 is wrong. */
size_t printable_length(const char *text);

/** Whether all of it is shown as it is. JSON takes nothing whose UTF-8 is wrong. */
bool printable_is_all(const char *text);

/** Replaces every byte of all else by a question mark. */
void printable_only(char *text);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Integers that do not fit into json_int_t. jansson refuses them; container configurations have them, as every
 * "unlimited" of a uint64: `docker run --ulimit core=-1` is 18446744073709551615. Where the text is to be written
 * again, they travel through jansson as strings. Each string has a random number of this process in it, so no other
 * process can write one. Elsewhere they are real numbers, so that no code takes them for texts.
 */

#include <stdbool.h>
#include <stddef.h>

/**
 * json_bigint_mark() - a copy of a JSON text in which large integers are such strings
 * @keep: otherwise they are real numbers
 * @ret:  owned by the caller
 *
 * Errors of the text are errors of the copy. Return: 0; -ENOMEM; negative errno without a random number.
 */
int json_bigint_mark(const char *data, size_t size, bool keep, char **ret, size_t *ret_size);

/** Puts the integers back into a text that was made from what was parsed. */
void json_bigint_unmark(char *text);

/*
 * The mark at the beginning of a string that stands for something else while jansson has it: a control character, which
 * JSON can write in one way only, and a random number of this process. No other process can write such a string.
 */

/* The quote, the character and the number. */
enum { JSON_MARK_SIZE = sizeof("\"\\u0001") - 1 + 16 };

/**
 * json_bigint_mark_write() - its first bytes, as JSON text
 * @kind: a digit from 1; each kind is of one file
 *
 * Return: 0; -EAGAIN without a random number.
 */
int json_bigint_mark_write(char kind, char ret[JSON_MARK_SIZE + 1]);

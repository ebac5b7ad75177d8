/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * How a string begins that stands for something else while jansson has it: with a control character, which JSON can
 * write in one way only, and a random number of this process, so that nobody else can write such a string.
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

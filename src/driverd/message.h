/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The words of an answer that is a failure. */

/** Return: a message of printable ASCII and bounded length, owned by the answer; never NULL. */
char *answer_message(const char *format, ...) __attribute__((format(printf, 1, 2)));

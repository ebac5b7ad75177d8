/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * An error as a user reads it: what happened, where, and the next thing to try, in at most three lines.
 *
 * Functions return 0, a negative errno (fatal, passed up unchanged) or a positive CTR_GPU_E_* (an answer documented for
 * the function). The function that knows the object and the step writes the sentence, once, by err_set(); callers may
 * put a few words in front with err_prefix().
 */

#include <stdarg.h>

#include "ctr-gpu-error.h"

enum { ERR_TEXT_MAX = 1024, ERR_LINES_MAX = 5 };

struct err {
	char text[ERR_TEXT_MAX];
};

/**
 * err_set() - write the sentence of an error
 * @err:  where to write; may be NULL
 * @code: the code it belongs to
 *
 * `%m` in @format is the text of @code where that is a negative errno. Where @format is one line and err_errno_advice()
 * has a sentence for that errno, it follows. Control characters become '?'.
 *
 * Return: @code, so that a failing function ends in `return err_set(err, -errno, …)`. It is a macro for the reader that
 * follows one function at a time, compiler or analyser: an error is not taken for 0.
 */
#define err_set(err, code, ...)                          \
	({                                               \
		const int err_code = (code);             \
		err_write((err), err_code, __VA_ARGS__); \
		err_code;                                \
	})

/** Puts words in front of the sentence that is there. Return: @code. */
#define err_prefix(err, code, ...)                                   \
	({                                                           \
		const int err_code __attribute__((unused)) = (code); \
		err_write_before((err), __VA_ARGS__);                \
		err_code;                                            \
	})

void err_write(struct err *err, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));
void err_write_list(struct err *err, int code, const char *format, va_list arguments)
	__attribute__((format(printf, 3, 0)));
void err_write_before(struct err *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/** Return: the stable name of a code, such as "E_NO_ADAPTER" or "EACCES"; never NULL. */
const char *err_name(int code);

/* What to do about an error of the operating system that needs no context, as one line for a message. */

/** @error: as in errno. Return: a sentence; NULL where it depends on what was tried. */
const char *err_errno_advice(int error);

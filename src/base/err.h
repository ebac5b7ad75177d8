/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * An error as a user reads it: what happened and where, on one line, and the next thing to try, on others.
 *
 * Functions return 0, a negative errno (fatal, passed up unchanged) or a positive CTR_GPU_E_* (an answer documented for
 * the function). The function that knows the object and the step writes both, once, by err_set() and its like; callers
 * may put a few words in front with err_prefix().
 */

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>

#include "ctr-gpu-error.h"

enum { ERR_TEXT_MAX = 1024, ERR_MESSAGE_MAX = 2 * ERR_TEXT_MAX };

struct err {
	char text[ERR_TEXT_MAX];   /* one line */
	char advice[ERR_TEXT_MAX]; /* what to try next: lines, the last without its newline; or "" */
};

/**
 * err_set() - write the sentence of an error
 * @err:  where to write; may be NULL
 * @code: the code it belongs to
 *
 * `%m` in the format is the text of @code where that is a negative errno. The advice is what there is to do about
 * that errno in any context, or none. Control characters, line breaks too, become '?'.
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

/** Whether the caller's advice would mislead: this is a matter of the process, whatever it was doing. */
static inline bool err_needs_no_context(int code)
{
	return code == -EMFILE;
}

/** The same with the advice; @text and @advice are a format and its arguments each, in parentheses. */
#define err_set_advised(err, code, text, advice)                           \
	({                                                                 \
		const int advised_code = (code);                           \
		err_write((err), advised_code, ERR_FORMAT text);           \
		if (!err_needs_no_context(advised_code))                   \
			err_write_advice((err), false, ERR_FORMAT advice); \
		advised_code;                                              \
	})
#define ERR_FORMAT(...) __VA_ARGS__

/** Adds a line to the advice. Return: @code. */
#define err_advise(err, code, ...)                                      \
	({                                                              \
		const int advise_code __attribute__((unused)) = (code); \
		err_write_advice((err), true, __VA_ARGS__);             \
		advise_code;                                            \
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
void err_write_advice(struct err *err, bool more, const char *format, ...) __attribute__((format(printf, 3, 4)));
void err_write_before(struct err *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/** Writes the sentence and, on further lines, the advice, without a newline at the end. Return: @ret. */
const char *err_message(const struct err *err, char ret[ERR_MESSAGE_MAX]);

/** Return: the stable name of a code, such as "E_NO_ADAPTER" or "EACCES"; never NULL. */
const char *err_name(int code);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Where the library's remarks go. Nothing is written unless the caller asked for it. */

enum log_level {
	LOG_WARNING, /* a user should know, though the work goes on */
	LOG_DEBUG,   /* what was looked at and decided */
};

struct log {
	void (*sink)(void *user, enum log_level level, const char *text); /* NULL: nothing is wanted */
	void *user;
};

/** One remark without a newline; @log may be NULL. */
void log_write(const struct log *log, enum log_level level, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#define log_warning(log, ...) log_write((log), LOG_WARNING, __VA_ARGS__)
#define log_debug(log, ...) log_write((log), LOG_DEBUG, __VA_ARGS__)

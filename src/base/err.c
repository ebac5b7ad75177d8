/* SPDX-License-Identifier: Apache-2.0 */

#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/str.h"

static const struct {
	int code;
	const char *name;
} names[] = {
#define X(name, number, meaning) {CTR_GPU_E_##name, "E_" #name},
	CTR_GPU_ERRORS(X)
#undef X
};

/* Where lines of ours end: how many bytes of text are before each. */
struct err_breaks {
	size_t at[ERR_LINES_MAX - 1];
	size_t count;
};

static void err_find_breaks(struct err_breaks *ret, const char *format, va_list arguments)
	__attribute__((format(printf, 2, 0)));

/*
 * A line break in the format is ours. What it becomes in the text is found by writing the format up to there alone:
 * any other line break has come from an argument.
 */
static void err_find_breaks(struct err_breaks *ret, const char *format, va_list arguments)
{
	char head[ERR_TEXT_MAX];

	ret->count = 0;
	for (const char *end = strchr(format, '\n'); end && ret->count < ERR_LINES_MAX - 1;
	     end = strchr(end + 1, '\n')) {
		va_list again;
		int length;

		(void)snprintf(head, sizeof(head), "%.*s", (int)(end - format), format);
		va_copy(again, arguments);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
		length = vsnprintf(NULL, 0, head, again);
#pragma GCC diagnostic pop
		va_end(again);
		ret->at[ret->count++] = length < 0 ? 0 : (size_t)length;
	}
}

static bool err_breaks_here(const struct err_breaks *breaks, size_t at)
{
	for (size_t i = 0; i < breaks->count; i++)
		if (breaks->at[i] == at)
			return true;
	return false;
}

/*
 * Paths and values of images end up in sentences, and sentences on terminals and in logs: no escape sequence gets
 * there, and no line that we did not begin.
 */
static void err_disarm(char *text, const struct err_breaks *breaks)
{
	const char *from = text;
	char *to = text;

	while (*from) {
		bool ours = *from == '\n' && err_breaks_here(breaks, (size_t)(from - text));
		size_t length = ours ? 1 : printable_length(from);

		if (length == 0)
			*to++ = '?';
		memmove(to, from, length);
		to += length;
		from += length > 0 ? length : 1;
	}
	*to = '\0';
}

/* A character of which only a part was left is none, and no JSON takes it. */
static void err_end_whole(char *text)
{
	size_t start = strlen(text);

	while (start > 0 && (text[start - 1] & 0xc0) == 0x80)
		start--;
	if (start > 0 && (text[start - 1] & 0x80) && printable_length(text + start - 1) == 0)
		text[start - 1] = '\0';
}

static size_t err_write_text(char ret[ERR_TEXT_MAX], const char *format, va_list arguments)
	__attribute__((format(printf, 2, 0)));

/* Return: the length. */
static size_t err_write_text(char ret[ERR_TEXT_MAX], const char *format, va_list arguments)
{
	char text[2 * ERR_TEXT_MAX];
	struct err_breaks breaks;
	int error = errno;

	err_find_breaks(&breaks, format, arguments);
	errno = error;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	(void)vsnprintf(text, sizeof(text), format, arguments);
#pragma GCC diagnostic pop
	err_disarm(text, &breaks);
	(void)snprintf(ret, ERR_TEXT_MAX, "%.*s", ERR_TEXT_MAX - 1, text);
	err_end_whole(ret);
	return strlen(ret);
}

static void err_add_remedy(char *text, const char *remedy)
{
	size_t length = strlen(text);

	if (remedy && !strchr(text, '\n'))
		(void)snprintf(text + length, ERR_TEXT_MAX - length, "\n%s", remedy);
}

void err_write_list(struct err *err, int code, const char *format, va_list arguments)
{
	if (!err)
		return;
	if (code < 0)
		errno = -code;
	(void)err_write_text(err->text, format, arguments);
	if (code < 0)
		err_add_remedy(err->text, err_errno_advice(-code));
}

void err_write(struct err *err, int code, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	err_write_list(err, code, format, arguments);
	va_end(arguments);
}

void err_write_before(struct err *err, const char *format, ...)
{
	char tail[ERR_TEXT_MAX];
	va_list arguments;
	size_t length;

	if (!err)
		return;
	memcpy(tail, err->text, sizeof(tail));
	va_start(arguments, format);
	length = err_write_text(err->text, format, arguments);
	va_end(arguments);
	(void)snprintf(err->text + length, sizeof(err->text) - length, "%s", tail);
	err_end_whole(err->text);
}

const char *err_name(int code)
{
	const char *name;

	if (code == 0)
		return "OK";
	if (code < 0) {
		name = strerrorname_np(-code);
		return name ? name : "EUNKNOWN";
	}
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (names[i].code == code)
			return names[i].name;
	return "E_UNKNOWN";
}

enum { LINE_MAX_SIZE = 2048 };

void log_write(const struct log *log, enum log_level level, const char *format, ...)
{
	char text[LINE_MAX_SIZE];
	va_list arguments;

	if (!log || !log->sink)
		return;
	va_start(arguments, format);
	(void)vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	/* What others wrote begins no line in a log. */
	printable_only(text);
	log->sink(log->user, level, text);
}

const char *err_errno_advice(int error)
{
	switch (error) {
	case EROFS:
		return "The file system is read-only: remount it writable, or write to another directory.";
	case ENOSPC:
		return "The file system is full (see df -h and df -i): make room, and try again.";
	case EDQUOT:
		return "The disk quota is used up (see quota -s): make room, and try again.";
	default:
		return NULL;
	}
}

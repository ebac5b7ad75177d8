/* SPDX-License-Identifier: Apache-2.0 */

#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
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

/* What to do about an error of the operating system that needs no context. */
static const char *err_errno_advice(int error)
{
	switch (error) {
	case EROFS:
		return "The file system is read-only: remount it writable, or write to another directory.";
	case ENOSPC:
		return "The file system is full (see df -h and df -i): make room, and try again.";
	case EMFILE:
		return "The number of open files is limited: raise \"ulimit -n\", or LimitNOFILE= of the engine's "
		       "service.";
	case ENOTDIR:
		return "A file is where a directory should be: move it away, or name another directory.";
	case EDQUOT:
		return "The disk quota is used up (see quota -s): make room, and try again.";
	default:
		return NULL;
	}
}

/* Cuts an incomplete UTF-8 character off the end of a truncated text, since JSON does not take it. */
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

/*
 * Paths and values of images end up in sentences, and sentences on terminals and in logs: no escape sequence gets
 * there, and no line that an argument began. Return: the length.
 */
static size_t err_write_text(char ret[ERR_TEXT_MAX], const char *format, va_list arguments)
{
	char text[2 * ERR_TEXT_MAX];

	(void)vsnprintf(text, sizeof(text), format, arguments);
	printable_only(text);
	(void)snprintf(ret, ERR_TEXT_MAX, "%.*s", ERR_TEXT_MAX - 1, text);
	err_end_whole(ret);
	return strlen(ret);
}

void err_write_list(struct err *err, int code, const char *format, va_list arguments)
{
	const char *advice = code < 0 ? err_errno_advice(-code) : NULL;

	if (!err)
		return;
	if (code < 0)
		errno = -code;
	(void)err_write_text(err->text, format, arguments);
	(void)snprintf(err->advice, sizeof(err->advice), "%s", advice ? advice : "");
}

void err_write(struct err *err, int code, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	err_write_list(err, code, format, arguments);
	va_end(arguments);
}

void err_write_advice(struct err *err, bool more, const char *format, ...)
{
	char line[ERR_TEXT_MAX];
	va_list arguments;
	size_t length;

	if (!err)
		return;
	va_start(arguments, format);
	(void)err_write_text(line, format, arguments);
	va_end(arguments);
	length = more ? strlen(err->advice) : 0;
	if (sizeof(err->advice) - length > sizeof("\n"))
		(void)snprintf(err->advice + length, sizeof(err->advice) - length, "%s%s", length > 0 ? "\n" : "",
			       line);
	err_end_whole(err->advice);
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

const char *err_message(const struct err *err, char ret[ERR_MESSAGE_MAX])
{
	(void)snprintf(ret, ERR_MESSAGE_MAX, err->advice[0] ? "%s\n%s" : "%s", err->text, err->advice);
	return ret;
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

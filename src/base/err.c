/* SPDX-License-Identifier: Apache-2.0 */

#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct {
	int code;
	const char *name;
} names[] = {
#define X(name, number, meaning) {CTR_GPU_E_##name, "E_" #name},
	CTR_GPU_ERRORS(X)
#undef X
};

/*
 * Paths and values of images end up in sentences, and sentences on terminals: no escape sequence gets there. Line breaks are
 * what our own sentences have, too.
 */
static void disarm(char *text)
{
	for (unsigned char *c = (unsigned char *)text; *c; c++)
		if ((*c < ' ' && *c != '\n') || *c == 0x7f)
			*c = '?';
}

int err_set(struct err *err, int code, const char *format, ...)
{
	va_list arguments;

	if (!err)
		return code;
	if (code < 0)
		errno = -code;
	va_start(arguments, format);
	(void)vsnprintf(err->text, sizeof(err->text), format, arguments);
	va_end(arguments);
	disarm(err->text);
	return code;
}

int err_prefix(struct err *err, int code, const char *format, ...)
{
	char tail[ERR_TEXT_MAX];
	va_list arguments;
	int length;

	if (!err)
		return code;
	memcpy(tail, err->text, sizeof(tail));
	va_start(arguments, format);
	length = vsnprintf(err->text, sizeof(err->text), format, arguments);
	va_end(arguments);
	if (length < 0 || (size_t)length >= sizeof(err->text))
		return code;
	(void)snprintf(err->text + length, sizeof(err->text) - (size_t)length, "%s", tail);
	disarm(err->text);
	return code;
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

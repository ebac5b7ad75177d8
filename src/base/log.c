/* SPDX-License-Identifier: Apache-2.0 */

#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/printable.h"

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

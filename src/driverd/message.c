/* SPDX-License-Identifier: Apache-2.0 */

#include "driverd/message.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/str.h"

void answer_failure(struct driverd_reply *answer, enum driverd_status status, const char *format, ...)
{
	char *message = calloc(1, DRIVERD_MESSAGE_MAX + 1);
	va_list arguments;

	if (!message)
		abort();
	va_start(arguments, format);
	(void)vsnprintf(message, DRIVERD_MESSAGE_MAX + 1, format, arguments);
	va_end(arguments);
	str_make_printable(message);
	*answer = (struct driverd_reply){.status = status, .message = message};
}

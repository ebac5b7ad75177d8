/* SPDX-License-Identifier: Apache-2.0 */

/* What all parts have in common: what the loop waits for, and the log. */

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/print.h"
#include "cluster/plugin.h"

void plugin_log(const char *format, ...)
{
	_cleanup_free_ char *text = NULL;
	va_list arguments;

	va_start(arguments, format);
	if (vasprintf(&text, format, arguments) < 0)
		text = NULL;
	va_end(arguments);
	print_safe(stderr, "ctr-gpu-device-plugin: %s\n", text ? text : format);
}

void waits_add(struct waits *waits, int fd, short events)
{
	if (fd >= 0 && events && waits->count < WAITS_MAX)
		waits->list[waits->count++] = (struct pollfd){.fd = fd, .events = events};
}

void waits_until(struct waits *waits, int64_t when)
{
	if (when < waits->until)
		waits->until = when;
}

short waits_find(const struct waits *waits, int fd)
{
	for (size_t i = 0; i < waits->count; i++)
		if (waits->list[i].fd == fd)
			return waits->list[i].revents;
	return 0;
}

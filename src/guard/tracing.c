/* SPDX-License-Identifier: Apache-2.0 */

#include "guard/tracing.h"

#include "base/cleanup.h"
#include "system/trusted_file.h"

bool tracing_is_off(void)
{
	_cleanup_free_ char *text = file_text("/proc/sys/kernel/ftrace_enabled");

	return text && text[0] == '0';
}

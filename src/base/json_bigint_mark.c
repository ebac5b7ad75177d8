/* SPDX-License-Identifier: Apache-2.0 */

#include "base/json_bigint_mark.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>

/* What the kernel gave the process (getauxval(3)) guards its stack, too; the difference tells nothing of its parts. */
int json_bigint_mark_write(char kind, char ret[JSON_MARK_SIZE + 1])
{
	const void *random = (const void *)(uintptr_t)getauxval(AT_RANDOM);
	uint64_t parts[2];

	if (!random)
		return -EAGAIN;
	memcpy(parts, random, sizeof(parts));
	(void)snprintf(ret, JSON_MARK_SIZE + 1, "\"\\u000%c%016llx", kind, (unsigned long long)(parts[0] - parts[1]));
	return 0;
}

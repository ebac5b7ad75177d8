/* SPDX-License-Identifier: Apache-2.0 */

/* What vCUDA's manager is asked: any bytes as a message, behind its mark. */

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "vcuda/protocol/control.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char reply[CONTROL_CALL_MAX];
	struct control_call call = {0};

	if (size > CONTROL_CALL_MAX)
		return 0;
	/* A call that cannot be read is told so, at most. */
	if (!control_read_call(data, size, &call) && control_write_reply(&call, NULL, reply, sizeof(reply)) == 0)
		abort();
	control_call_clear(&call);
	return 0;
}

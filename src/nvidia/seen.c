/* SPDX-License-Identifier: Apache-2.0 */

#include "nvidia/seen.h"

#include <stdlib.h>

struct seen *seen_free(struct seen *seen)
{
	if (!seen)
		return NULL;
	module_clear(&seen->module);
	strv_clear(&seen->gpus);
	free(seen->parts.items);
	known_close(&seen->known);
	free(seen);
	return NULL;
}

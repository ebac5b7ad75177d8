/* SPDX-License-Identifier: Apache-2.0 */

#include "nvidia/probe.h"

#include <stdlib.h>

struct nvidia_probe *nvidia_probe_free(struct nvidia_probe *seen)
{
	if (!seen)
		return NULL;
	module_clear(&seen->module);
	strv_clear(&seen->gpus);
	free(seen->parts.items);
	nvidia_cache_close(&seen->known);
	free(seen);
	return NULL;
}

/* SPDX-License-Identifier: Apache-2.0 */

/* Any text as what AMD's compute driver writes below /sys/class/kfd. */

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "drm/internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_free_ char *text = strndup((const char *)data, size);
	char target[TOPOLOGY_TARGET_SIZE];
	struct topology_node node;

	if (!text)
		abort();
	if (topology_parse(text, &node) != (node.render_minor > 0) || node.render_minor > 1 << 20)
		abort();
	topology_format_target(node.gfx_target, target);
	return 0;
}

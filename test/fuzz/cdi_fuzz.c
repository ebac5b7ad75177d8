/* SPDX-License-Identifier: Apache-2.0 */

/* CDI specs, as any bytes: as JSON and as YAML. */

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "cdi/cdi.h"
#include "cdi/spec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What is taken for good has what everybody who uses it relies on. */
static void check(const struct cdi_spec *spec)
{
	if (!spec->kind || !cdi_is_kind(spec->kind) || spec->device_count == 0 || spec->declared < spec->needed)
		abort();
	for (size_t i = 0; i < spec->device_count; i++)
		if (!spec->devices[i].name || !cdi_is_device_name(spec->devices[i].name))
			abort();
	for (size_t i = 0; i < spec->edits.node_count; i++)
		if (!spec->edits.nodes[i].path)
			abort();
	for (size_t i = 0; i < spec->edits.mount_count; i++)
		if (!spec->edits.mounts[i].source || !spec->edits.mounts[i].target)
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const names[] = {"x.json", "x.yaml"};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		struct cdi_spec spec = {0};

		if (cdi_spec_parse(names[i], (const char *)data, size, &spec) == 0 && spec.problems.count == 0)
			check(&spec);
		cdi_spec_clear(&spec);
	}
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */

/* What an engine's CDI library knows. Distributions build engines with other libraries at times. */

#include <stdio.h>
#include <string.h>

#include "cdi/report.h"
#include "engines/engine.h"

int cdi_engine_parse(const char *text, struct cdi_engine *ret, struct err *err)
{
	size_t length = strcspn(text, ":");
	const struct engine *known = engine_find(text, length);
	struct cdi_engine engine = {.newest = -1};
	const struct engine_release *release;

	if (!known || !known->releases || text[length] != ':' ||
	    sscanf(text + length + 1 + (text[length + 1] == 'v'), "%4d.%4d", &engine.major, &engine.minor) < 1)
		return err_set(
			err, CTR_GPU_E_BAD_ARGUMENT,
			"\"%.64s\" does not name an engine and its version\n"
			"The engines are docker, podman, containerd, cri-o and buildkit; for example podman:4.3.",
			text);
	engine.name = known->alias ? known->alias : known->name;
	release = engine_cdi(known, ENGINE_VERSION(engine.major, engine.minor));
	if (release) {
		engine.newest = cdi_spec_version(release->cdi);
		engine.remark = release->remark;
	}
	*ret = engine;
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */

/* /etc/ctr-gpu/config.json as any bytes. */

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "lib/context.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_paths(const struct strv *list)
{
	for (size_t i = 0; i < list->count; i++)
		if (list->items[i][0] != '/')
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct settings settings;
	struct err err = {0};
	int r;

	settings_init(&settings);
	r = settings_parse(&settings, "x", (const char *)data, size, &err);
	if (r != 0 && !err.text[0])
		abort();
	if (r == 0 && (settings.driver_timeout_ms == 0 || settings.driver_timeout_ms > 3600 * 1000))
		abort();
	check_paths(&settings.library_dirs);
	if (settings.driver_root && settings.driver_root[0] != '/')
		abort();
	settings_clear(&settings);
	return 0;
}

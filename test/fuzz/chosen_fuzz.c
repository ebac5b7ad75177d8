/* SPDX-License-Identifier: Apache-2.0 */

/* Two readers of a configuration: what the plain one takes, the settings take, too, and they have the same runtimes. */

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "hooks/runtime/chosen.h"
#include "lib/settings.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct settings settings;
	struct chosen chosen;

	if (!chosen_read((const char *)data, size, &chosen))
		return 0;
	settings_init(&settings);
	(void)settings_parse(&settings, "x", (const char *)data, size, NULL);
	if (settings.unread || settings.runtimes.count != chosen.count)
		abort();
	for (size_t i = 0; i < chosen.count; i++)
		if (strlen(settings.runtimes.items[i]) != chosen.items[i].length ||
		    memcmp(settings.runtimes.items[i], chosen.items[i].text, chosen.items[i].length) != 0)
			abort();
	settings_clear(&settings);
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */

/* A list of words that ask for devices: each is parsed, and what it was taken for is inside it. */

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "model/device_name.h"
#include "model/request.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct device_name *name)
{
	const char *end = name->text + strlen(name->text);

	if (name->name < name->text || name->name > end)
		abort();
	if (name->vendor && (name->vendor < name->name || name->vendor + name->vendor_length > end))
		abort();
	if (name->domain && strncmp(name->text, name->domain, strlen(name->domain)) != 0)
		abort();
	if ((name->type == DEVICE_NAME_VENDOR || name->type == DEVICE_NAME_VENDOR_NUMBER) && !name->vendor)
		abort();
	if (name->type >= DEVICE_NAME_VENDOR_NUMBER && (name->number < 0 || name->part < 0))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = strndup((const char *)data, size);
	struct device_names names = {0};
	struct request request = {0};

	if (!text)
		abort();
	if (device_names_split(&names, text) == 0) {
		for (size_t i = 0; i < names.count; i++)
			check(&names.items[i]);
		request_take_devices(&request, &names);
	}
	request_clear(&request);
	device_names_clear(&names);
	free(text);
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */

/* Any text as what the kernel module writes below /proc. */

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "model/adapter.h"
#include "nvidia/internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_free_ char *text = strndup((const char *)data, size), *version = NULL, *changed = NULL, *field = NULL;
	struct adapter adapter = {.minor = -1};
	bool excluded = false;
	unsigned number = 0;

	if (!text)
		abort();
	if (proc_driver_version(text, &version) == 0 && !proc_is_version(version))
		abort();
	if (proc_device_major(text, "nvidia", &number) == 0 && number > 4095)
		abort();
	if (proc_number(text, "DeviceFileMinor", 255, &number) == 0 && number > 255)
		abort();
	if (proc_set_field(text, "ModifyDeviceFiles", "0", &changed) == 0 &&
	    (proc_field(changed, "ModifyDeviceFiles", &field) < 0 || strcmp(field, "0") != 0))
		abort();
	if (gpu_parse_information(text, &adapter, &excluded) == 0 && adapter.minor < 0)
		abort();
	if (pci_address_is_name(text) && (strlen(text) < strlen("0000:01:00.0") || text[strlen(text) - 2] != '.'))
		abort();
	adapter_clear(&adapter);
	return 0;
}

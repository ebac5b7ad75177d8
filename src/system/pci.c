/* SPDX-License-Identifier: Apache-2.0 */

#include "system/machine.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/str.h"
#include "model/adapter.h"
#include "system/trusted_file.h"

enum {
	CLASS_DISPLAY = 0x03, /* pci_ids.h: PCI_BASE_CLASS_DISPLAY; GPUs without a display have it, too */
	FUNCTIONS_MAX = 65536,
};

static unsigned pci_read_id(const char *directory, const char *name)
{
	_cleanup_free_ char *path = NULL, *text = NULL;

	if (str_format(&path, "%s/%s", directory, name) < 0)
		return 0;
	text = file_text(path);
	return text ? (unsigned)strtoul(text, NULL, 16) : 0;
}

static struct pci_function pci_read(const char *directory)
{
	_cleanup_free_ char *path = NULL, *link = NULL;
	struct pci_function function = {
		.vendor = pci_read_id(directory, "vendor"),
		.device = pci_read_id(directory, "device"),
		.display = pci_read_id(directory, "class") >> 16 == CLASS_DISPLAY,
	};

	(void)snprintf(function.address, sizeof(function.address), "%.16s", strrchr(directory, '/') + 1);
	if (str_format(&path, "%s/driver", directory) == 0 && fd_read_link_at(AT_FDCWD, path, &link) == 0)
		(void)snprintf(function.driver, sizeof(function.driver), "%.32s",
			       strrchr(link, '/') ? strrchr(link, '/') + 1 : link);
	return function;
}

bool pci_find(const char *sys, bool (*is_wanted)(const struct pci_function *function), struct pci_function *ret)
{
	_cleanup_strv_ struct strv addresses = {0};
	_cleanup_free_ char *devices = NULL;

	if (str_format(&devices, "%s/bus/pci/devices", sys) < 0 ||
	    fd_list_names(AT_FDCWD, devices, pci_address_is_name, FUNCTIONS_MAX, &addresses) < 0)
		return false;
	for (size_t i = 0; i < addresses.count; i++) {
		_cleanup_free_ char *directory = NULL;

		if (str_format(&directory, "%s/%s", devices, addresses.items[i]) < 0)
			return false;
		*ret = pci_read(directory);
		if (is_wanted(ret))
			return true;
	}
	return false;
}

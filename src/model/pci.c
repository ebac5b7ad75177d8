/* SPDX-License-Identifier: Apache-2.0 */

#include "model/pci.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/file.h"
#include "base/str.h"

#define DEVICES "/sys/bus/pci/devices"

enum { CLASS_DISPLAY = 0x03 }; /* pci_ids.h: PCI_BASE_CLASS_DISPLAY; that of GPUs without a display as well */

static unsigned pci_read_id(const char *address, const char *name)
{
	_cleanup_free_ char *path = NULL, *text = NULL;

	if (str_format(&path, DEVICES "/%s/%s", address, name) < 0)
		return 0;
	text = file_text(path);
	return text ? (unsigned)strtoul(text, NULL, 16) : 0;
}

static struct pci_function pci_read(const char *address)
{
	_cleanup_free_ char *path = NULL, *link = NULL;
	struct pci_function function = {
		.vendor = pci_read_id(address, "vendor"),
		.device = pci_read_id(address, "device"),
		.display = pci_read_id(address, "class") >> 16 == CLASS_DISPLAY,
	};
	const char *slash;

	(void)snprintf(function.address, sizeof(function.address), "%.16s", address);
	if (str_format(&path, DEVICES "/%s/driver", address) < 0 || fd_read_link_at(AT_FDCWD, path, &link) < 0)
		return function;
	slash = strrchr(link, '/');
	(void)snprintf(function.driver, sizeof(function.driver), "%.32s", slash ? slash + 1 : link);
	return function;
}

bool pci_find(bool (*is_wanted)(const struct pci_function *function), struct pci_function *ret)
{
	DIR *directory = opendir(DEVICES);
	const struct dirent *entry;
	bool found = false;

	while (directory && !found && (entry = readdir(directory))) {
		if (entry->d_name[0] == '.')
			continue;
		*ret = pci_read(entry->d_name);
		found = is_wanted(ret);
	}
	if (directory)
		(void)closedir(directory);
	return found;
}

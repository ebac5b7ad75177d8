/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/doctor/pci.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/str.h"
#include "cli/doctor/file.h"
#include "model/adapter.h"

#define DEVICES "/sys/bus/pci/devices"

enum {
	CLASS_DISPLAY = 0x03, /* pci_ids.h: PCI_BASE_CLASS_DISPLAY; that of GPUs without a display as well */
	/* Of Microsoft: what dxgkrnl drives (drivers/hv/dxgkrnl/dxgmodule.c). */
	DEVICE_VIRTUAL_RENDER = 0x008e,
	DEVICE_COMPUTE_ACCELERATOR = 0x008a,
};

static unsigned long pci_read_id(const char *address, const char *name)
{
	_cleanup_free_ char *path = NULL, *text = NULL;

	if (str_format(&path, DEVICES "/%s/%s", address, name) < 0)
		return 0;
	text = file_text(path);
	return text ? strtoul(text, NULL, 16) : 0;
}

static void pci_read_driver(const char *address, char driver[PCI_TEXT_SIZE])
{
	_cleanup_free_ char *path = NULL, *link = NULL;
	const char *slash;

	if (str_format(&path, DEVICES "/%s/driver", address) < 0 || fd_read_link_at(AT_FDCWD, path, &link) < 0)
		return;
	slash = strrchr(link, '/');
	(void)snprintf(driver, PCI_TEXT_SIZE, "%.32s", slash ? slash + 1 : link);
}

static void pci_describe(char text[PCI_TEXT_SIZE], const char *vendor, const char *address)
{
	(void)snprintf(text, PCI_TEXT_SIZE, "%s GPU (PCI %.16s)", vendor, address);
}

static void pci_take(const char *address, struct pci_gpus *gpus)
{
	unsigned long vendor = pci_read_id(address, "vendor"), device = pci_read_id(address, "device");

	if (vendor == PCI_VENDOR_MICROSOFT &&
	    (device == DEVICE_VIRTUAL_RENDER || device == DEVICE_COMPUTE_ACCELERATOR)) {
		(void)snprintf(gpus->paravirtual, PCI_TEXT_SIZE, "%.16s", address);
		return;
	}
	if (pci_read_id(address, "class") >> 16 != CLASS_DISPLAY)
		return;
	if (vendor == PCI_VENDOR_NVIDIA && !gpus->nvidia[0]) {
		pci_describe(gpus->nvidia, "an NVIDIA", address);
		pci_read_driver(address, gpus->nvidia_driver);
	} else if (vendor == PCI_VENDOR_AMD) {
		pci_describe(gpus->other, "an AMD", address);
	} else if (vendor == PCI_VENDOR_INTEL) {
		pci_describe(gpus->other, "an Intel", address);
	}
}

void pci_find_gpus(struct pci_gpus *ret)
{
	DIR *directory = opendir(DEVICES);
	const struct dirent *entry;

	*ret = (struct pci_gpus){0};
	while (directory && (entry = readdir(directory)))
		if (entry->d_name[0] != '.')
			pci_take(entry->d_name, ret);
	if (directory)
		(void)closedir(directory);
}

/* SPDX-License-Identifier: Apache-2.0 */

/* GPUs with a DRM driver of the kernel, as sysfs and the topology of KFD have them. */

#include "drm/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "base/fd.h"
#include "base/paths.h"
#include "base/str.h"
#include "ctr-gpu-error.h"
#include "model/adapter.h"

/* ---- KFD's topology ---- */

#define NODES "/sys/class/kfd/kfd/topology/nodes"

enum {
	NODES_MAX = 1024,
	PROPERTIES_MAX = 16 * 1024,
	RENDER_MINOR_MAX = 1 << 20, /* MINORBITS of include/linux/kdev_t.h */
};

struct topology {
	struct topology_node *nodes;
	size_t count;
};

static void topology_clear(struct topology *topology)
{
	free(topology->nodes);
	*topology = (struct topology){0};
}

/* A line "NAME NUMBER", unsigned and decimal (kfd_topology.c). Return: 0 if it is missing or none. */
static uint64_t topology_number(const char *text, const char *name, uint64_t max)
{
	size_t length = strlen(name);

	for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		const char *value = line + length + 1;
		unsigned long long number;
		char *end;

		if (strncmp(line, name, length) != 0 || line[length] != ' ' || *value < '0' || *value > '9')
			continue;
		errno = 0;
		number = strtoull(value, &end, 10);
		return errno == 0 && (*end == '\n' || *end == '\0') && number <= max ? number : 0;
	}
	return 0;
}

bool topology_parse(const char *text, struct topology_node *ret)
{
	*ret = (struct topology_node){
		.render_minor = (unsigned)topology_number(text, "drm_render_minor", RENDER_MINOR_MAX),
		.unique_id = topology_number(text, "unique_id", UINT64_MAX),
		.gfx_target = (unsigned)topology_number(text, "gfx_target_version", 999999),
		.domain = (uint32_t)topology_number(text, "domain", UINT32_MAX),
		.location = (uint32_t)topology_number(text, "location_id", UINT32_MAX),
	};
	return ret->render_minor > 0;
}

static bool topology_is_node(const char *name)
{
	return *name && name[strspn(name, "0123456789")] == '\0';
}

/* Return: 0, also where there is none; -ENOMEM. */
static int topology_read(struct topology *ret)
{
	_cleanup_(topology_clear) struct topology topology = {0};
	_cleanup_strv_ struct strv names = {0};
	int r = fd_list_names(AT_FDCWD, NODES, topology_is_node, NODES_MAX, &names);

	if (r < 0)
		return r == -ENOMEM ? r : 0;
	topology.nodes = calloc(names.count + 1, sizeof(*topology.nodes));
	if (!topology.nodes)
		return -ENOMEM;
	for (size_t i = 0; i < names.count; i++) {
		_cleanup_free_ char *path = NULL, *text = NULL;

		if (str_format(&path, NODES "/%s/properties", names.items[i]) < 0)
			return -ENOMEM;
		/* A node that a container may not use has an empty file, or one that cannot be read. */
		r = fd_read_file_at(AT_FDCWD, path, PROPERTIES_MAX, &text, NULL);
		if (r == -ENOMEM)
			return r;
		topology.count += r == 0 && topology_parse(text, &topology.nodes[topology.count]);
	}
	*ret = steal_struct(&topology);
	return 0;
}

/* Return: the node of /dev/dri/renderD<minor>; NULL if there is none. */
static const struct topology_node *topology_find(const struct topology *topology, int render_minor)
{
	for (size_t i = 0; i < topology->count; i++)
		if (render_minor >= 0 && topology->nodes[i].render_minor == (unsigned)render_minor)
			return &topology->nodes[i];
	return NULL;
}

void topology_format_target(unsigned gfx_target, char text[TOPOLOGY_TARGET_SIZE])
{
	(void)snprintf(text, TOPOLOGY_TARGET_SIZE, "gfx%u%x%x", gfx_target / 10000, gfx_target / 100 % 100,
		       gfx_target % 100);
}

/* ---- cards ---- */

enum { CARDS_MAX = 512, FILE_MAX = 4096 };

/* Cards and render nodes are of one class of the kernel's. */
static const struct card_class card_render = {"/sys/class/drm", PATH_DRI, "renderD"};
const struct card_class card_screen = {"/sys/class/drm", PATH_DRI, "card"};
static const struct card_class card_accelerator = {"/sys/class/accel", "/dev/accel", "accel"};
const struct card_class card_compute = {"/sys/class/kfd", "/dev", "kfd"};

const struct card_class *card_class(const struct adapter *adapter)
{
	return adapter->is_npu ? &card_accelerator : &card_render;
}

/* ---- nodes ---- */

int card_node(const struct card_class *class, const char *name, char **ret_path, struct stat *ret)
{
	_cleanup_free_ char *number = NULL, *text = NULL;
	unsigned number_major, number_minor;
	int r;

	if (str_format(ret_path, "%s/%s", class->dev, name) < 0 ||
	    str_format(&number, "%s/%s/dev", class->sysfs, name) < 0)
		return -ENOMEM;
	if (stat(*ret_path, ret) < 0)
		return -ENOENT;
	r = fd_read_file_at(AT_FDCWD, number, FILE_MAX, &text, NULL);
	if (r == -ENOMEM)
		return r;
	return r == 0 && S_ISCHR(ret->st_mode) && sscanf(text, "%7u:%7u", &number_major, &number_minor) == 2 &&
			       ret->st_rdev == makedev(number_major, number_minor)
		       ? 0
		       : -ENODEV;
}

static int card_check_node(const struct card_class *class, const char *name, struct adapter *adapter)
{
	_cleanup_free_ char *path = NULL;
	struct stat st;
	int r = card_node(class, name, &path, &st);

	if (r == 0 || r == -ENOMEM)
		return r;
	adapter->unusable = CTR_GPU_E_NO_ADAPTER;
	adapter->remedy = "udev makes such nodes: sudo udevadm trigger; in a container they are its engine's to give.";
	return str_format(&adapter->reason, "its node %s is %s", path,
			  r == -ENOENT ? "missing" : "another device than the kernel lists");
}

/* ---- what sysfs says of one ---- */

static unsigned card_read_id(int device, const char *name)
{
	_cleanup_free_ char *text = NULL;

	return fd_read_file_at(device, name, FILE_MAX, &text, NULL) == 0 ? (unsigned)strtoul(text, NULL, 16) & 0xffff
									 : 0;
}

/* The product name in the GPU's own memory, which only AMD's GPUs for servers have. */
static void card_read_product(int device, char **ret)
{
	_cleanup_free_ char *text = NULL;

	if (fd_read_file_at(device, "product_name", FILE_MAX, &text, NULL) < 0)
		return;
	text[strcspn(text, "\n")] = '\0';
	if (*text)
		*ret = steal_ptr(text);
}

/* Return: 1 for one that is AMD's or Intel's; 0 for another; -ENOMEM. */
static int card_describe(const struct card_class *class, const char *name, const char *link, struct adapter *adapter)
{
	const char *slash = strrchr(link, '/'), *address = slash ? slash + 1 : link;
	_cleanup_close_ int device = -1;
	_cleanup_free_ char *path = NULL;

	/* A partition is a device of the platform's; the topology tells of which GPU it is. */
	if (str_has_prefix(address, "amdgpu_xcp")) {
		adapter->vendor_id = PCI_VENDOR_AMD;
		return 1;
	}
	if (!pci_address_is_name(address))
		return 0;
	if (str_format(&path, "%s/%s/device", class->sysfs, name) < 0)
		return -ENOMEM;
	device = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	adapter->vendor_id = device < 0 ? 0 : card_read_id(device, "vendor");
	if (adapter->vendor_id != PCI_VENDOR_AMD && adapter->vendor_id != PCI_VENDOR_INTEL &&
	    adapter->vendor_id != PCI_VENDOR_AMD_PROCESSOR)
		return 0;
	adapter->device_id = card_read_id(device, "device");
	if (adapter->vendor_id == PCI_VENDOR_AMD)
		card_read_product(device, &adapter->name);
	adapter->pci_address = strdup(address);
	return adapter->pci_address ? 1 : -ENOMEM;
}

static int card_add(const struct card_class *class, const char *name, const struct backend *backend,
		    struct inventory *inventory)
{
	struct adapter adapter = {.backend = backend, .index = -1, .minor = -1, .whole = -1};
	_cleanup_free_ char *path = NULL, *link = NULL;
	int r;

	adapter.minor = atoi(name + strlen(class->prefix));
	adapter.compute_only = adapter.is_npu = class == &card_accelerator;
	if (str_format(&path, "%s/%s/device", class->sysfs, name) < 0)
		return -ENOMEM;
	r = fd_read_link_at(AT_FDCWD, path, &link);
	if (r < 0)
		return r == -ENOMEM ? r : 0;
	r = card_describe(class, name, link, &adapter);
	if (r > 0)
		r = card_check_node(class, name, &adapter);
	else if (r == 0)
		return 0;
	if (r == 0)
		return inventory_take(inventory, &adapter);
	adapter_clear(&adapter);
	return r;
}

static bool card_is_render(const char *name)
{
	return str_has_prefix(name, card_render.prefix);
}

static bool card_is_accelerator(const char *name)
{
	return str_has_prefix(name, card_accelerator.prefix);
}

static int cards_read_class(const struct card_class *class, bool (*wanted)(const char *name),
			    const struct backend *backend, struct inventory *inventory)
{
	_cleanup_strv_ struct strv names = {0};
	int r = fd_list_names(AT_FDCWD, class->sysfs, wanted, CARDS_MAX, &names);

	if (r < 0)
		return r == -ENOMEM ? r : 0;
	for (size_t i = 0; i < names.count && r == 0; i++)
		r = card_add(class, names.items[i], backend, inventory);
	return r;
}

/* ---- what the compute driver says of AMD's ---- */

static int card_identify(const struct topology_node *node, struct adapter *adapter)
{
	if (!adapter->pci_address &&
	    str_format(&adapter->pci_address, "%04x:%02x:%02x.%x", node->domain, node->location >> 8 & 0xff,
		       node->location >> 3 & 0x1f, node->location & 7) < 0)
		return -ENOMEM;
	if (node->unique_id == 0)
		return 0;
	/* As ROCm's libraries write it, and as AMD's tools do. */
	return str_format(&adapter->uuid, "GPU-%016" PRIx64, node->unique_id) < 0 ||
			       str_format(&adapter->alias, "0x%" PRIx64, node->unique_id) < 0
		       ? -ENOMEM
		       : 0;
}

/* A partition has the identity of its GPU, whose first partition is the PCI device itself. */
static int card_complete(const struct inventory *inventory, size_t first, struct adapter *adapter)
{
	for (size_t i = first; i < inventory->count; i++) {
		const struct adapter *other = &inventory->adapters[i];

		if (other->is_npu || adapter->is_npu || !other->pci_address || !adapter->pci_address ||
		    !streq(other->pci_address, adapter->pci_address))
			continue;
		adapter->partitions++;
		adapter->device_id = adapter->device_id ? adapter->device_id : other->device_id;
		if (!adapter->name && other->name && str_replace(&adapter->name, other->name) < 0)
			return -ENOMEM;
	}
	adapter->partitions = adapter->partitions > 1 ? adapter->partitions : 0;
	return 0;
}

static int card_name(const struct topology_node *node, struct adapter *adapter)
{
	char target[TOPOLOGY_TARGET_SIZE] = "";

	if (adapter->name)
		return 0;
	if (node && node->gfx_target)
		topology_format_target(node->gfx_target, target);
	return str_format(&adapter->name, "%s %s%s%s (%04x:%04x)", adapter_vendor(adapter),
			  adapter->is_npu ? "NPU" : "GPU", target[0] ? " " : "", target, adapter->vendor_id,
			  adapter->device_id);
}

static int cards_complete(struct inventory *inventory, size_t first)
{
	_cleanup_(topology_clear) struct topology topology = {0};
	int r = 0;

	for (size_t i = first; i < inventory->count && topology.count == 0 && r == 0; i++)
		if (inventory->adapters[i].vendor_id == PCI_VENDOR_AMD)
			r = topology_read(&topology);
	for (size_t i = first; i < inventory->count && r == 0; i++) {
		struct adapter *adapter = &inventory->adapters[i];
		const struct topology_node *node = adapter->is_npu ? NULL : topology_find(&topology, adapter->minor);

		r = node ? card_identify(node, adapter) : 0;
	}
	for (size_t i = first; i < inventory->count && r == 0; i++)
		r = card_complete(inventory, first, &inventory->adapters[i]);
	for (size_t i = first; i < inventory->count && r == 0; i++)
		r = card_name(topology_find(&topology, inventory->adapters[i].minor), &inventory->adapters[i]);
	return r;
}

/* ---- all ---- */

/* GPUs before NPUs, AMD's before Intel's, each as PCI counts them, and the partitions of one together. */
static int card_compare(const void *a, const void *b)
{
	const struct adapter *x = a, *y = b;
	int r = x->is_npu - y->is_npu;

	if (r == 0)
		r = (x->vendor_id == PCI_VENDOR_INTEL) - (y->vendor_id == PCI_VENDOR_INTEL);
	if (r == 0 && x->pci_address && y->pci_address)
		r = strcmp(x->pci_address, y->pci_address);
	return r != 0 ? r : x->minor - y->minor;
}

int cards_read(const struct backend *backend, struct inventory *inventory)
{
	size_t first = inventory->count;
	int r = cards_read_class(&card_render, card_is_render, backend, inventory);

	if (r == 0)
		r = cards_read_class(&card_accelerator, card_is_accelerator, backend, inventory);
	if (r == 0)
		r = cards_complete(inventory, first);
	if (inventory->count - first > 1)
		qsort(inventory->adapters + first, inventory->count - first, sizeof(*inventory->adapters),
		      card_compare);
	return r;
}

/* SPDX-License-Identifier: Apache-2.0 */

/* Facts: a host with an H200 and driver 580.159.04; nv-procfs.c, nv-caps.c of NVIDIA's open kernel modules for MIG. */

#include "native.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "tree.h"

enum {
	MAJOR_KFD = 235,
	MAJOR_ACCEL = 261,
	RENDER_GROUP = 992,
	MAJOR_NVIDIA = 195,
	MAJOR_DRM = 226,
	MAJOR_UVM = 238,
	MAJOR_NVSWITCH = 239,
	MAJOR_CAPS = 241,
	MAJOR_IMEX = 242,
	MINOR_CTL = 255,
	MINOR_MODESET = 254,
	MINOR_NVSWITCHCTL = 255
};

static const char driver_params[] = "ResmanDebugLevel: 4294967295\n"
				    "RmLogonRC: 1\n"
				    "ModifyDeviceFiles: 1\n"
				    "DeviceFileUID: 0\n"
				    "DeviceFileGID: 0\n"
				    "DeviceFileMode: 438\n"
				    "InitializeSystemMemoryAllocations: 1\n"
				    "UsePageAttributeTable: 4294967295\n"
				    "EnableMSI: 1\n"
				    "ImexChannelCount: 2048\n"
				    "CreateImexChannel0: 0\n"
				    "RegistryDwords: \"\"\n"
				    "ExcludedGpus: \"\"\n";

#define DEVICES_DRM "226 drm\n"
#define DEVICES_BEFORE_UVM "195 nvidia\n195 nvidiactl\n"
#define DEVICES_AFTER_UVM "239 nvidia-nvswitch\n240 nvidia-nvlink\n241 nvidia-caps\n242 nvidia-caps-imex-channels\n"

static int mkdirs_above(char *path)
{
	char *name = strrchr(path, '/');
	int r;

	*name = '\0';
	r = tree_mkdirs(path);
	*name = '/';
	return r;
}

/* Writes a file whose name has a number and so on in it, with its directories. */
__attribute__((format(printf, 2, 3))) static int write_at(const char *text, const char *format, ...)
{
	_cleanup_free_ char *path = NULL;
	va_list arguments;
	int length;

	va_start(arguments, format);
	length = vasprintf(&path, format, arguments);
	va_end(arguments);
	return length < 0 || mkdirs_above(path) < 0 ? -1 : tree_write(path, text);
}

__attribute__((format(printf, 4, 5))) static int node_at(unsigned node_major, unsigned node_minor, mode_t mode,
							 const char *format, ...)
{
	_cleanup_free_ char *path = NULL;
	va_list arguments;
	int length;

	va_start(arguments, format);
	length = vasprintf(&path, format, arguments);
	va_end(arguments);
	return length < 0 || mkdirs_above(path) < 0 ? -1 : tree_node(path, mode, makedev(node_major, node_minor));
}

/* udev gives nodes of rendering and computing to a group. */
__attribute__((format(printf, 2, 3))) static int group_at(gid_t group, const char *format, ...)
{
	_cleanup_free_ char *path = NULL;
	va_list arguments;
	int length;

	va_start(arguments, format);
	length = vasprintf(&path, format, arguments);
	va_end(arguments);
	return length < 0 || chown(path, 0, group) < 0 ? -1 : 0;
}

/* The minors that nvidia-modprobe(1) and mig-minors know: 15 GPU instances for each GPU, 8 compute instances in each. */
static unsigned instance_minor(unsigned gpu, unsigned instance)
{
	return 3 + gpu * 15 * 9 + instance * 9;
}

static int instance_nodes(const struct profile_gpu *gpu, const char *directory)
{
	for (size_t i = 0; i < gpu->mig_count; i++) {
		unsigned first = instance_minor(gpu->minor, gpu->mig[i].id);

		for (unsigned j = first; j <= first + gpu->mig[i].compute_instances; j++)
			if (node_at(MAJOR_CAPS, j, 0444, "%s/nvidia-caps/nvidia-cap%u", directory, j) < 0)
				return -1;
	}
	return 0;
}

static int driver_nodes(const struct profile_native *native, const char *directory)
{
	if (node_at(MAJOR_NVIDIA, MINOR_CTL, 0666, "%s/nvidiactl", directory) < 0 ||
	    node_at(MAJOR_NVIDIA, MINOR_MODESET, 0666, "%s/nvidia-modeset", directory) < 0 ||
	    node_at(MAJOR_CAPS, 1, 0400, "%s/nvidia-caps/nvidia-cap1", directory) < 0 ||
	    node_at(MAJOR_CAPS, 2, 0444, "%s/nvidia-caps/nvidia-cap2", directory) < 0)
		return -1;
	if (!native->uvm)
		return 0;
	return node_at(MAJOR_UVM, 0, 0666, "%s/nvidia-uvm", directory) < 0 ||
			       node_at(MAJOR_UVM, 1, 0666, "%s/nvidia-uvm-tools", directory) < 0
		       ? -1
		       : 0;
}

/* What a machine of an NVLink fabric has besides. */
static int fabric_nodes(const struct profile_native *native, const char *directory)
{
	for (size_t i = 0; i < native->imex_channel_count; i++)
		if (node_at(MAJOR_IMEX, native->imex_channels[i], 0666, "%s/nvidia-caps-imex-channels/channel%u",
			    directory, native->imex_channels[i]) < 0)
			return -1;
	for (unsigned i = 0; i < native->nvswitches; i++)
		if (node_at(MAJOR_NVSWITCH, i, 0666, "%s/nvidia-nvswitch%u", directory, i) < 0)
			return -1;
	return native->nvswitches ? node_at(MAJOR_NVSWITCH, MINOR_NVSWITCHCTL, 0666, "%s/nvidia-nvswitchctl", directory)
				  : 0;
}

/* The kernel's node, and udev's link to it. */
static int card_node(const struct profile_card *card, const char *directory, const char *kind, const char *name,
		     unsigned number)
{
	_cleanup_free_ char *link = NULL, *points_to = NULL;

	if (node_at(MAJOR_DRM, number, 0660, "%s/dri/%s%u", directory, name, number) < 0 ||
	    group_at(RENDER_GROUP, "%s/dri/%s%u", directory, name, number) < 0 ||
	    asprintf(&points_to, "../%s%u", name, number) < 0 ||
	    asprintf(&link, "%s/dri/by-path/pci-%s-%s", directory, card->pci, kind) < 0)
		return -1;
	return mkdirs_above(link) < 0 ? -1 : tree_symlink(points_to, link);
}

/* Of partitions there is no link by address. */
static int partition_nodes(const struct profile_card *card, const char *directory)
{
	for (unsigned i = 1; i < card->partitions; i++)
		if (node_at(MAJOR_DRM, card->render + i, 0660, "%s/dri/renderD%u", directory, card->render + i) < 0 ||
		    group_at(RENDER_GROUP, "%s/dri/renderD%u", directory, card->render + i) < 0)
			return -1;
	return 0;
}

static int card_nodes(const struct profile_native *native, const char *directory)
{
	bool compute = false;

	for (size_t i = 0; i < native->card_count; i++) {
		const struct profile_card *card = &native->cards[i];

		compute |= card->unique_id != NULL;
		if (card->node && (card_node(card, directory, "card", "card", card->card) < 0 ||
				   card_node(card, directory, "render", "renderD", card->render) < 0 ||
				   partition_nodes(card, directory) < 0))
			return -1;
	}
	for (size_t i = 0; i < native->accelerator_count; i++) {
		unsigned number = native->accelerators[i].number;

		if (node_at(MAJOR_ACCEL, number, 0660, "%s/accel/accel%u", directory, number) < 0 ||
		    group_at(RENDER_GROUP, "%s/accel/accel%u", directory, number) < 0)
			return -1;
	}
	if (!compute)
		return 0;
	return node_at(MAJOR_KFD, 0, 0660, "%s/kfd", directory) < 0 ? -1 : group_at(RENDER_GROUP, "%s/kfd", directory);
}

int native_nodes(const struct profile_native *native, const char *directory)
{
	if (card_nodes(native, directory) < 0)
		return -1;
	if (!native->nvidia)
		return 0;
	if (driver_nodes(native, directory) < 0 || fabric_nodes(native, directory) < 0)
		return -1;
	for (size_t i = 0; i < native->gpu_count; i++) {
		const struct profile_gpu *gpu = &native->gpus[i];

		if (gpu->node && node_at(MAJOR_NVIDIA, gpu->minor, 0666, "%s/nvidia%u", directory, gpu->minor) < 0)
			return -1;
		if (instance_nodes(gpu, directory) < 0)
			return -1;
	}
	return 0;
}

static int write_capability(unsigned node_minor, unsigned mode, const char *directory, const char *name)
{
	char text[128];

	(void)snprintf(text, sizeof(text), "DeviceFileMinor: %u\nDeviceFileMode: %u\nDeviceFileModify: 1\n", node_minor,
		       mode);
	return write_at(text, "%s/capabilities/%s", directory, name);
}

static int write_instance(const struct profile_gpu *gpu, size_t number, const char *directory)
{
	unsigned id = gpu->mig[number].id, first = instance_minor(gpu->minor, id);
	char name[64];

	(void)snprintf(name, sizeof(name), "gpu%u/mig/gi%u/access", gpu->minor, id);
	if (write_capability(first, 0444, directory, name) < 0)
		return -1;
	for (unsigned i = 0; i < gpu->mig[number].compute_instances; i++) {
		(void)snprintf(name, sizeof(name), "gpu%u/mig/gi%u/ci%u/access", gpu->minor, id, i);
		if (write_capability(first + 1 + i, 0444, directory, name) < 0)
			return -1;
	}
	return 0;
}

static int write_gpu(const struct profile_gpu *gpu, const char *module, const char *directory)
{
	_cleanup_free_ char *information = NULL, *mig = NULL;

	if (asprintf(&information,
		     "Model: \t\t %s\n"
		     "IRQ:   \t\t %u\n"
		     "GPU UUID: \t %s\n"
		     "Video BIOS: \t 96.00.a5.00.1a\n"
		     "Bus Type: \t PCIe\n"
		     "DMA Size: \t 52 bits\n"
		     "DMA Mask: \t 0xfffffffffffff\n"
		     "Bus Location: \t %s\n"
		     "Device Minor: \t %u\n"
		     "GPU Firmware: \t %s\n"
		     "GPU Excluded:\t %s\n",
		     gpu->name, 41 + gpu->minor, gpu->uuid, gpu->pci, gpu->minor, module,
		     gpu->excluded ? "Yes" : "No") < 0 ||
	    asprintf(&mig, "%s/capabilities/gpu%u/mig", directory, gpu->minor) < 0)
		return -1;
	if (write_at(information, "%s/gpus/%s/information", directory, gpu->pci) < 0 ||
	    write_at("Binary: \"\"\n", "%s/gpus/%s/registry", directory, gpu->pci) < 0 || tree_mkdirs(mig) < 0)
		return -1;
	for (size_t i = 0; i < gpu->mig_count; i++)
		if (write_instance(gpu, i, directory) < 0)
			return -1;
	return 0;
}

/* This machine's list with NVIDIA's drivers in front of the block devices. */
static int write_devices(const struct profile_native *native, const char *path)
{
	char devices[8192];
	_cleanup_fclose_ FILE *proc = fopen("/proc/devices", "re");
	_cleanup_free_ char *text = NULL;
	const char *block;

	devices[proc ? fread(devices, 1, sizeof(devices) - 1, proc) : 0] = '\0';
	block = strstr(devices, "\nBlock devices:");
	if (!block ||
	    asprintf(&text, "%.*s%s" DEVICES_BEFORE_UVM "%s" DEVICES_AFTER_UVM "%s", (int)(block - devices), devices,
		     native->card_count ? DEVICES_DRM : "", native->uvm ? "238 nvidia-uvm\n" : "", block) < 0) {
		(void)fprintf(stderr, "enter: /proc/devices cannot be read\n");
		return -1;
	}
	return tree_write(path, text);
}

int native_proc(const struct profile_native *native, const char *directory)
{
	_cleanup_free_ char *nvidia = NULL, *devices = NULL, *version = NULL;

	if (asprintf(&nvidia, "%s/driver/nvidia", directory) < 0 || asprintf(&devices, "%s/devices", directory) < 0 ||
	    asprintf(&version,
		     "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  %s  Release Build  (nixbld@)  \n"
		     "GCC version:  gcc version 15.3.0 (GCC) \n",
		     native->module) < 0)
		return -1;
	if (write_at(version, "%s/version", nvidia) < 0 || write_at(driver_params, "%s/params", nvidia) < 0 ||
	    write_at("Binary: \"\"\n", "%s/registry", nvidia) < 0 ||
	    write_capability(1, 0400, nvidia, "mig/config") < 0 ||
	    write_capability(2, 0444, nvidia, "mig/monitor") < 0 ||
	    write_capability(4323, 0400, nvidia, "fabric-imex-mgmt") < 0)
		return -1;
	for (size_t i = 0; i < native->gpu_count; i++)
		if (write_gpu(&native->gpus[i], native->module, nvidia) < 0)
			return -1;
	for (unsigned i = 0; i < native->nvswitches; i++) {
		char path[512];

		(void)snprintf(path, sizeof(path), "%s/driver/nvidia-nvswitch/devices/0000:%02x:00.0", directory,
			       0xc1 + i);
		if (tree_mkdirs(path) < 0)
			return -1;
	}
	return write_devices(native, devices);
}

static int write_function(const char *pci, uint32_t vendor, uint32_t device, const char *class, const char *directory)
{
	char vendor_text[16], device_text[16];

	(void)snprintf(vendor_text, sizeof(vendor_text), "0x%04x\n", vendor);
	(void)snprintf(device_text, sizeof(device_text), "0x%04x\n", device);
	return write_at(vendor_text, "%s/%s/vendor", directory, pci) < 0 ||
			       write_at(device_text, "%s/%s/device", directory, pci) < 0 ||
			       write_at(class, "%s/%s/class", directory, pci) < 0
		       ? -1
		       : 0;
}

static int write_card(const struct profile_card *card, const char *directory)
{
	char number[16];

	if (card->vendor && write_function(card->pci, card->vendor, card->device, "0x030000\n", directory) < 0)
		return -1;
	if (card->product && write_at(card->product, "%s/%s/product_name", directory, card->pci) < 0)
		return -1;
	(void)snprintf(number, sizeof(number), "%u:%u\n", MAJOR_DRM, card->card);
	if (write_at(number, "%s/%s/drm/card%u/dev", directory, card->pci, card->card) < 0)
		return -1;
	(void)snprintf(number, sizeof(number), "%u:%u\n", MAJOR_DRM, card->render);
	return write_at(number, "%s/%s/drm/renderD%u/dev", directory, card->pci, card->render);
}

/* Made whenever a driver takes the device. */
static int link_driver(const struct profile_gpu *gpu, const char *directory)
{
	_cleanup_free_ char *link = NULL;

	if (asprintf(&link, "%s/%s/driver", directory, gpu->pci) < 0)
		return -1;
	return tree_symlink("../../../../bus/pci/drivers/nvidia", link);
}

int native_sys(const struct profile_native *native, const char *directory)
{
	for (size_t i = 0; i < native->gpu_count; i++) {
		const struct profile_gpu *gpu = &native->gpus[i];
		char device[16];

		(void)snprintf(device, sizeof(device), "0x%04x\n", gpu->device);
		if (write_at("0x10de\n", "%s/%s/vendor", directory, gpu->pci) < 0 ||
		    write_at(device, "%s/%s/device", directory, gpu->pci) < 0 ||
		    write_at("0x030200\n", "%s/%s/class", directory, gpu->pci) < 0 ||
		    write_at("0\n", "%s/%s/numa_node", directory, gpu->pci) < 0 || link_driver(gpu, directory) < 0)
			return -1;
	}
	for (size_t i = 0; i < native->card_count; i++)
		if (write_card(&native->cards[i], directory) < 0)
			return -1;
	for (size_t i = 0; i < native->accelerator_count; i++)
		if (write_function(native->accelerators[i].pci, native->accelerators[i].vendor,
				   native->accelerators[i].device, "0x120000\n", directory) < 0)
			return -1;
	return 0;
}

/* A device of a class: its number, and the device of a bus that it belongs to. */
static int write_class_device(const char *directory, const char *class, const char *prefix, unsigned number,
			      unsigned node_major, const char *device)
{
	_cleanup_free_ char *link = NULL;
	char text[24];

	(void)snprintf(text, sizeof(text), "%u:%u\n", node_major, number);
	if (write_at(text, "%s/%s/%s%u/dev", directory, class, prefix, number) < 0 ||
	    asprintf(&link, "%s/%s/%s%u/device", directory, class, prefix, number) < 0)
		return -1;
	return tree_symlink(device, link);
}

/* A node of the topology, as kfd_topology.c writes it; a processor has no render node. */
static int write_topology(const char *directory, unsigned number, const struct profile_card *card, unsigned partition)
{
	unsigned domain = 0, bus = 0, device = 0, function = 0;
	_cleanup_free_ char *text = NULL;

	if (card && sscanf(card->pci, "%x:%x:%x.%x", &domain, &bus, &device, &function) != 4)
		return -1;
	if (asprintf(&text,
		     "cpu_cores_count %u\nsimd_count %u\nmem_banks_count 1\ncaches_count 0\nio_links_count 1\n"
		     "cpu_core_id_base 0\nsimd_id_base 0\ngfx_target_version %u\nvendor_id %u\ndevice_id %u\n"
		     "location_id %u\ndomain %u\ndrm_render_minor %u\nunique_id %s\n",
		     card ? 0 : 20, card ? 304 : 0, card ? card->gfx_target : 0, card ? card->vendor : 0,
		     card ? card->device : 0, bus << 8 | device << 3 | function | partition << 28, domain,
		     card ? card->render + partition : 0, card ? card->unique_id : "0") < 0)
		return -1;
	return write_at(text, "%s/kfd/kfd/topology/nodes/%u/properties", directory, number);
}

static int write_card_class(const struct profile_card *card, const char *directory)
{
	char device[64];

	(void)snprintf(device, sizeof(device), "/sys/bus/pci/devices/%s", card->pci);
	if (write_class_device(directory, "drm", "card", card->card, MAJOR_DRM, device) < 0 ||
	    write_class_device(directory, "drm", "renderD", card->render, MAJOR_DRM, device) < 0)
		return -1;
	for (unsigned i = 1; i < card->partitions; i++) {
		(void)snprintf(device, sizeof(device), "../../../amdgpu_xcp_%u", i - 1);
		if (write_class_device(directory, "drm", "renderD", card->render + i, MAJOR_DRM, device) < 0)
			return -1;
	}
	return 0;
}

int native_class(const struct profile_native *native, const char *directory)
{
	unsigned nodes = 0;

	for (size_t i = 0; i < native->card_count; i++) {
		const struct profile_card *card = &native->cards[i];

		if (write_card_class(card, directory) < 0)
			return -1;
		if (card->unique_id && nodes == 0 &&
		    (write_topology(directory, nodes++, NULL, 0) < 0 ||
		     write_at("235:0\n", "%s/kfd/kfd/dev", directory) < 0))
			return -1;
		for (unsigned j = 0; card->unique_id && j < (card->partitions ? card->partitions : 1); j++)
			if (write_topology(directory, nodes++, card, j) < 0)
				return -1;
	}
	for (size_t i = 0; i < native->accelerator_count; i++) {
		char device[64];

		(void)snprintf(device, sizeof(device), "/sys/bus/pci/devices/%s", native->accelerators[i].pci);
		if (write_class_device(directory, "accel", "accel", native->accelerators[i].number, MAJOR_ACCEL,
				       device) < 0)
			return -1;
	}
	return 0;
}

/* Sets of files, and where they lie: in Debian, and below a prefix. */
static const struct native_set {
	const char *name, *debian, *below_prefix;
	mode_t mode;
	bool versioned; /* in a directory of the driver's version */
	bool config;    /* tells a loader of the driver */
} sets[] = {
	{"lib", "/usr/lib/x86_64-linux-gnu", "/lib64", 0755, false, false},
	{"lib32", "/usr/lib/i386-linux-gnu", "/lib32", 0755, false, false},
	{"bin", "/usr/bin", "/bin", 0755, false, false},
	{"firmware", "/usr/lib/firmware/nvidia", "/firmware/nvidia", 0644, true, false},
	{"xorg", "/usr/lib/xorg/modules/drivers", "/xorg/modules/drivers", 0755, false, false},
	{"vulkan", "/usr/share/vulkan/icd.d", "/share/vulkan/icd.d", 0644, false, true},
	{"layers", "/usr/share/vulkan/implicit_layer.d", "/share/vulkan/implicit_layer.d", 0644, false, false},
	{"egl", "/usr/share/glvnd/egl_vendor.d", "/share/glvnd/egl_vendor.d", 0644, false, true},
	{"opencl", "/etc/OpenCL/vendors", "/etc/OpenCL/vendors", 0644, false, true},
	{"profiles", "/usr/share/nvidia", "/share/nvidia", 0644, false, false},
};

static int install(const struct profile_native *native, const struct native_set *set, const char *files)
{
	_cleanup_free_ char *from = NULL, *to = NULL;

	if (set->config && !native->configs)
		return 0;
	if (asprintf(&from, "%s/native-%s/%s", files, native->driver, set->name) < 0 ||
	    asprintf(&to, "%s%s%s/%s", native->root, native->prefix ?: "",
		     native->prefix ? set->below_prefix : set->debian, set->versioned ? native->driver : "") < 0)
		return -1;
	/* Not every compiler makes 32-bit libraries. */
	if (strcmp(set->name, "lib32") == 0 && (!native->compat32 || access(from, F_OK) < 0))
		return 0;
	return tree_mkdirs(to) < 0 ? -1 : tree_copy(from, to, set->mode);
}

int native_files(const struct profile_native *native, const char *files)
{
	const char *prefix = native->prefix ?: "";
	_cleanup_free_ char *directories = NULL;

	for (size_t i = 0; i < sizeof(sets) / sizeof(sets[0]); i++)
		if (install(native, &sets[i], files) < 0)
			return -1;
	if (asprintf(&directories, "%s%s\n%s%s\n", prefix, native->prefix ? sets[0].below_prefix : sets[0].debian,
		     prefix, native->prefix ? sets[1].below_prefix : sets[1].debian) < 0)
		return -1;
	return native->root[0] ? write_at(directories, "%s/etc/ld.so.conf", native->root)
			       : write_at(directories, "/etc/ld.so.conf.d/00-nvidia.conf");
}

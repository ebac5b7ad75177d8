/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Which nodes the loaded modules want: majors from /proc/devices, minors, modes and owners from what the modules say
 * below /proc/driver. The administrator's wishes (NVreg_DeviceFileUID and so on, and NVreg_ModifyDeviceFiles=0, "leave
 * nodes alone") come through there.
 *
 * Facts: nvidia-modprobe-utils.c of nvidia-modprobe; nv-procfs.c, nv-caps.c, procfs_nvswitch.c of NVIDIA's open kernel
 * modules.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/fd.h"
#include "model/adapter.h"
#include "nvidia/internal.h"

enum {
	MINOR_MAX = (1 << 20) - 1, /* MINORMASK of include/linux/kdev_t.h */
	CAPABILITY_DEPTH_MAX = 6,  /* gpu0/mig/gi0/ci0/access has five */
	CAPABILITIES_MAX = 4096,
	IMEX_CHANNELS = 2048, /* unless NVreg_ImexChannelCount says otherwise */
	OWNER_MAX = 0x7fffffff,
};

/* What a module says of its nodes. */
struct permissions {
	bool leave; /* the administrator makes them himself */
	mode_t mode;
	uid_t uid;
	gid_t gid;
};

struct wanted {
	const struct load_host *host;
	const char *devices, *dev;
	struct load *load;
	struct permissions permissions; /* of the driver's own nodes */
};

static unsigned load_nodes_number_or(const char *text, const char *name, unsigned max, unsigned otherwise)
{
	unsigned number;

	return text && proc_number(text, name, max, &number) == 0 ? number : otherwise;
}

static struct permissions load_nodes_parse_permissions(const char *text)
{
	return (struct permissions){
		.leave = load_nodes_number_or(text, "ModifyDeviceFiles", 1, 1) == 0 ||
			 load_nodes_number_or(text, "DeviceFileModify", 1, 1) == 0,
		.mode = load_nodes_number_or(text, "DeviceFileMode", 0777, 0666),
		.uid = load_nodes_number_or(text, "DeviceFileUID", OWNER_MAX, 0),
		.gid = load_nodes_number_or(text, "DeviceFileGID", OWNER_MAX, 0),
	};
}

static char *load_nodes_read_text(const struct load_host *host, const char *name)
{
	_cleanup_free_ char *path = NULL;
	char *text = NULL;

	if (str_format(&path, "%s/driver/%s", host->proc, name) < 0 || module_read_file(path, &text) < 0)
		return NULL;
	return text;
}

/* ---- a step ---- */

static int load_nodes_describe(const struct stat *st, char **ret)
{
	static const struct {
		mode_t type;
		const char *name;
	} types[] = {
		{S_IFREG, "a regular file"}, {S_IFDIR, "a directory"}, {S_IFLNK, "a symbolic link"},
		{S_IFIFO, "a pipe"},         {S_IFSOCK, "a socket"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		if ((st->st_mode & S_IFMT) == types[i].type)
			return str_format(ret, "%s", types[i].name);
	return str_format(ret, "the %s device %u:%u", S_ISCHR(st->st_mode) ? "character" : "block", major(st->st_rdev),
			  minor(st->st_rdev));
}

/* Adds the step with the state that its place is in. */
static int load_nodes_add(const struct wanted *wanted, struct load_step *step)
{
	bool node = step->kind == LOAD_NODE;
	struct stat st;
	int r = 0;

	if (!step->name || lstat(step->name, &st) < 0)
		return load_add(wanted->load, step);
	step->state = LOAD_THERE;
	if (node ? !S_ISCHR(st.st_mode) || st.st_rdev != step->number : !S_ISDIR(st.st_mode)) {
		step->state = LOAD_WRONG;
		r = load_nodes_describe(&st, &step->found);
	} else if (node && ((st.st_mode & 07777) != step->mode || st.st_uid != step->uid || st.st_gid != step->gid)) {
		r = strv_format(&wanted->load->remarks,
				"%s is left as it is, with mode %04o, owner %u:%u; the driver would have %04o, %u:%u",
				step->name, st.st_mode & 07777, st.st_uid, st.st_gid, step->mode, step->uid, step->gid);
	}
	if (r < 0)
		step->reason = (free(step->reason), NULL);
	return load_add(wanted->load, step);
}

/* @name: below /dev. @driver: as /proc/devices calls it; without a line there it has no nodes. */
__attribute__((format(printf, 6, 7))) static int load_nodes_add_node(const struct wanted *wanted,
								     const struct permissions *permissions,
								     const char *driver, unsigned node_minor,
								     const char *name, const char *reason, ...)
{
	struct load_step step = {
		.kind = LOAD_NODE, .mode = permissions->mode, .uid = permissions->uid, .gid = permissions->gid};
	va_list arguments;
	unsigned number;

	if (permissions->leave || module_major(wanted->devices, driver, &number) < 0)
		return 0;
	step.number = makedev(number, node_minor);
	(void)str_format(&step.name, "%s/%s", wanted->dev, name);
	va_start(arguments, reason);
	if (vasprintf(&step.reason, reason, arguments) < 0)
		step.reason = NULL;
	va_end(arguments);
	return load_nodes_add(wanted, &step);
}

static int load_nodes_add_directory(const struct wanted *wanted, const char *name, const char *reason)
{
	struct load_step step = {.kind = LOAD_DIRECTORY, .mode = 0755, .reason = strdup(reason)};

	(void)str_format(&step.name, "%s/%s", wanted->dev, name);
	return load_nodes_add(wanted, &step);
}

/* ---- the driver's own ---- */

/* The module nvidia-uvm has no parameters for its nodes. */
static int load_nodes_add_control_nodes(const struct wanted *wanted)
{
	static const struct permissions open_to_all = {.mode = 0666};
	bool modeset = false;
	int r;

	for (size_t i = 0; i < wanted->load->count; i++) {
		const struct load_step *step = &wanted->load->steps[i];

		modeset = modeset || (step->kind == LOAD_MODULE && step->state == LOAD_THERE &&
				      streq(step->name, "nvidia-modeset"));
	}

	r = load_nodes_add_node(wanted, &wanted->permissions, "nvidia", MINOR_CONTROL, "nvidiactl",
				"the driver's control device");
	if (r == 0)
		r = load_nodes_add_node(wanted, &open_to_all, "nvidia-uvm", 0, "nvidia-uvm",
					"unified memory, without which CUDA does not start");
	if (r == 0)
		r = load_nodes_add_node(wanted, &open_to_all, "nvidia-uvm", 1, "nvidia-uvm-tools",
					"unified memory, for debuggers and profilers");
	if (r == 0 && modeset)
		r = load_nodes_add_node(wanted, &wanted->permissions, "nvidia", MINOR_MODESET, "nvidia-modeset",
					"display modes");
	return r;
}

/* One with an unusable description, or that the driver was told to leave alone, has no node to open. */
static int load_nodes_add_gpu(const struct wanted *wanted, const char *address)
{
	_cleanup_free_ char *file = NULL, *text = NULL, *name = NULL;
	struct adapter gpu = {.minor = -1};
	bool excluded = true;
	int r;

	if (str_format(&file, "nvidia/gpus/%s/information", address) < 0)
		return -ENOMEM;
	text = load_nodes_read_text(wanted->host, file);
	r = text ? gpu_parse_information(text, &gpu, &excluded) : -EINVAL;
	if (r == 0 && !excluded)
		r = str_format(&name, "nvidia%d", gpu.minor) < 0
			    ? -ENOMEM
			    : load_nodes_add_node(wanted, &wanted->permissions, "nvidia", (unsigned)gpu.minor, name,
						  "GPU %s (%s)", address, gpu.name ? gpu.name : "without a name");
	else if (r != -ENOMEM)
		r = strv_format(&wanted->load->remarks, "GPU %s gets no node: %s", address,
				r == 0 ? "the driver was told to leave it alone (NVreg_ExcludedGpus)"
				       : "the driver does not describe it");
	adapter_clear(&gpu);
	return r;
}

static int load_nodes_list(const struct load_host *host, const char *name, bool (*is_wanted)(const char *name),
			   struct strv *ret)
{
	_cleanup_free_ char *path = NULL;

	if (str_format(&path, "%s/driver/%s", host->proc, name) < 0)
		return -ENOMEM;
	return fd_list_names(AT_FDCWD, path, is_wanted, CAPABILITIES_MAX, ret) == -ENOMEM ? -ENOMEM : 0;
}

/* ---- capabilities: parts of GPUs (MIG) and what may be done to them ---- */

static bool load_nodes_is_no_dot(const char *name)
{
	return name[0] != '.';
}

static int load_nodes_add_capability(const struct wanted *wanted, const char *text, const char *what)
{
	struct permissions permissions = load_nodes_parse_permissions(text);
	_cleanup_free_ char *name = NULL;
	unsigned node_minor;

	if (proc_number(text, "DeviceFileMinor", MINOR_MAX, &node_minor) < 0)
		return 0;
	if (str_format(&name, "nvidia-caps/nvidia-cap%u", node_minor) < 0)
		return -ENOMEM;
	return load_nodes_add_node(wanted, &permissions, "nvidia-caps", node_minor, name, "the capability %s", what);
}

static int load_nodes_add_capabilities_below(const struct wanted *wanted, const char *directory, unsigned depth)
{
	_cleanup_strv_ struct strv names = {0};
	int r;

	r = load_nodes_list(wanted->host, directory, load_nodes_is_no_dot, &names);
	for (size_t i = 0; i < names.count && r == 0; i++) {
		_cleanup_free_ char *name = NULL, *text = NULL;

		if (str_format(&name, "%s/%s", directory, names.items[i]) < 0)
			return -ENOMEM;
		text = load_nodes_read_text(wanted->host, name);
		if (text)
			r = load_nodes_add_capability(wanted, text, name + strlen("nvidia/capabilities/"));
		else if (depth < CAPABILITY_DEPTH_MAX)
			r = load_nodes_add_capabilities_below(wanted, name, depth + 1);
	}
	return r;
}

/* ---- memory shared between machines ---- */

static int load_nodes_add_channel(const struct wanted *wanted, const char *channel, unsigned count, struct err *err)
{
	_cleanup_free_ char *name = NULL;

	if (!*channel || strspn(channel, "0123456789") != strlen(channel) || strlen(channel) > 7 ||
	    strtoul(channel, NULL, 10) >= count)
		return err_set(err, CTR_GPU_E_UNKNOWN_DEVICE, "an IMEX channel is a number below %u, not \"%.32s\"",
			       count, channel);
	if (str_format(&name, "nvidia-caps-imex-channels/channel%lu", strtoul(channel, NULL, 10)) < 0)
		return -ENOMEM;
	return load_nodes_add_node(wanted, &wanted->permissions, "nvidia-caps-imex-channels",
				   (unsigned)strtoul(channel, NULL, 10), name,
				   "memory shared with other machines (IMEX)");
}

static int load_nodes_add_channels(const struct wanted *wanted, const struct load_options *options, const char *params,
				   struct err *err)
{
	unsigned number, count = load_nodes_number_or(params, "ImexChannelCount", MINOR_MAX, IMEX_CHANNELS);
	bool first = load_nodes_number_or(params, "CreateImexChannel0", 1, 0) == 1 &&
		     !strv_contains(&options->imex_channels, "0");
	int r;

	if (options->imex_channels.count == 0 && !first)
		return 0;
	if (module_major(wanted->devices, "nvidia-caps-imex-channels", &number) < 0)
		return options->imex_channels.count == 0
			       ? 0
			       : err_set(err, CTR_GPU_E_UNKNOWN_DEVICE,
					 "this driver has no IMEX channels (/proc/devices has no "
					 "nvidia-caps-imex-channels)");
	r = load_nodes_add_directory(wanted, "nvidia-caps-imex-channels", "nodes of IMEX channels");
	if (r == 0 && first)
		r = load_nodes_add_channel(wanted, "0", count, err);
	for (size_t i = 0; i < options->imex_channels.count && r == 0; i++)
		r = load_nodes_add_channel(wanted, options->imex_channels.items[i], count, err);
	return r;
}

/* ---- switches between the GPUs of one machine ---- */

/* The driver numbers them from 0 as it finds them; their directories are named after PCI addresses. */
static int load_nodes_add_switches(const struct wanted *wanted)
{
	_cleanup_free_ char *text = load_nodes_read_text(wanted->host, "nvidia-nvswitch/permissions");
	struct permissions permissions = load_nodes_parse_permissions(text);
	_cleanup_strv_ struct strv switches = {0};
	int r;

	r = load_nodes_list(wanted->host, "nvidia-nvswitch/devices", load_nodes_is_no_dot, &switches);
	if (r == 0 && switches.count > 0)
		r = load_nodes_add_node(wanted, &permissions, "nvidia-nvswitch", MINOR_NVSWITCHCTL,
					"nvidia-nvswitchctl", "control of NVSwitches");
	for (unsigned i = 0; i < switches.count && i < MINOR_NVSWITCHCTL && r == 0; i++) {
		_cleanup_free_ char *name = NULL;

		if (str_format(&name, "nvidia-nvswitch%u", i) < 0)
			return -ENOMEM;
		r = load_nodes_add_node(wanted, &permissions, "nvidia-nvswitch", i, name, "NVSwitch");
	}
	return r;
}

int load_add_nodes(const struct load_host *host, const struct load_options *options, const char *devices,
		   const char *dev, struct load *load, struct err *err)
{
	_cleanup_free_ char *params = load_nodes_read_text(host, "nvidia/params");
	const struct wanted wanted = {
		.host = host,
		.devices = devices,
		.dev = dev,
		.load = load,
		.permissions = load_nodes_parse_permissions(params),
	};
	_cleanup_strv_ struct strv gpus = {0};
	unsigned number;
	int r = 0;

	if (wanted.permissions.leave)
		r = strv_format(&load->remarks,
				"the driver's nodes in %s are left to the administrator (NVreg_ModifyDeviceFiles=0)",
				dev);
	if (r == 0)
		r = load_nodes_add_control_nodes(&wanted);
	if (r == 0)
		r = load_nodes_list(host, "nvidia/gpus", pci_address_is_name, &gpus);
	for (size_t i = 0; i < gpus.count && r == 0; i++)
		r = load_nodes_add_gpu(&wanted, gpus.items[i]);
	if (r == 0 && module_major(devices, "nvidia-caps", &number) == 0) {
		r = load_nodes_add_directory(&wanted, "nvidia-caps", "nodes of capabilities");
		if (r == 0)
			r = load_nodes_add_capabilities_below(&wanted, "nvidia/capabilities", 1);
	}
	if (r == 0)
		r = load_nodes_add_channels(&wanted, options, params, err);
	return r == 0 ? load_nodes_add_switches(&wanted) : r;
}

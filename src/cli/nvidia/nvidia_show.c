/* SPDX-License-Identifier: Apache-2.0 */

/* What nvidia-container-cli shows of this host, in the layout of NVIDIA's program, as scripts expect it. */

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/print.h"
#include "cli/nvidia/nvidia.h"
#include "cli/output.h"
#include "model/adapter.h"

/* ---- info: the driver and its GPUs ---- */

enum { KEY_CSV = 0x100 };

enum {
	BUS_LENGTH = sizeof("00000000:3B:00.0") - 1,
	BUS_SIZE = BUS_LENGTH + 1,
};

/* What nvidia-smi says of what is not known. */
static const char unknown[] = "N/A";

static const struct argp_option info_options[] = {
	{"csv", KEY_CSV, NULL, 0, "Print CSV", 0},
	{0},
};

static error_t nvidia_info_parse(int key, char *argument, struct argp_state *state)
{
	bool *csv = state->input;

	switch (key) {
	case KEY_CSV:
		*csv = true;
		return 0;
	case ARGP_KEY_ARG:
		nvidia_input_error("'%s' is one argument too many", argument);
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* Names are the driver's, and not to be trusted with a terminal. */
static void nvidia_info_print_value(const char *value)
{
	print_write_text(value ? value : unknown, stdout);
}

static void nvidia_info_print_gpu(const struct ctr_gpu_adapter *adapter, const struct ctr_gpu_driver *driver, bool csv)
{
	const char *address = adapter->pci_address ? adapter->pci_address : "";
	char index[16], minor[16], bus[BUS_SIZE];
	const struct {
		const char *label, *value;
	} fields[] = {
		{"Device Index:", index},
		{"Device Minor:", driver->minor < 0 ? NULL : minor},
		{"Model:", adapter->name},
		{"Brand:", driver->brand},
		{"GPU UUID:", adapter->uuid},
		{"Bus Location:", *address && strlen(address) <= BUS_LENGTH ? bus : NULL},
		{"Architecture:", driver->architecture},
	};

	(void)snprintf(index, sizeof(index), "%d", adapter->index);
	(void)snprintf(minor, sizeof(minor), "%d", driver->minor);
	/* "00000000:3B:00.0", as NVML writes addresses: eight digits of the domain. */
	(void)snprintf(bus, sizeof(bus), "%.*s%s", BUS_LENGTH - (int)strnlen(address, BUS_LENGTH), "00000000", address);
	for (char *c = bus; *c; c++)
		*c = (char)toupper((unsigned char)*c);
	(void)fputs(csv ? "" : "\n", stdout);
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
		if (csv)
			(void)fputs(i > 0 ? "," : "", stdout);
		else
			print_safe(stdout, "%-15s ", fields[i].label);
		nvidia_info_print_value(fields[i].value);
		(void)fputs(csv ? "" : "\n", stdout);
	}
	(void)fputs(csv ? "\n" : "", stdout);
}

static void nvidia_info_print_driver(const char *version, const char *cuda, bool csv)
{
	if (csv) {
		(void)fputs("NVRM version,CUDA version\n", stdout);
		print_safe(stdout, "%s,%s\n", version, cuda);
		(void)fputs("\nDevice Index,Device Minor,Model,Brand,GPU UUID,Bus Location,Architecture\n", stdout);
		return;
	}
	print_safe(stdout, "NVRM version:   %s\n", version);
	print_safe(stdout, "CUDA version:   %s\n", cuda);
}

/*
 * Usable adapters come first. The heading is of the first one's driver; on hosts with several that is the one numbered
 * first.
 */
static int nvidia_info_print_host(const struct ctr_gpu_host *host, bool csv)
{
	struct ctr_gpu_adapter adapter;
	int r = 0;

	for (size_t i = 0; ctr_gpu_host_adapter(host, i, &adapter) == 0 && adapter.index >= 0; i++) {
		struct ctr_gpu_driver driver;
		char cuda[32];

		/* Behind NVIDIA's are those of others, for which this program does nothing. */
		if (adapter.vendor_id != PCI_VENDOR_NVIDIA && !adapter.luid)
			continue;
		r = ctr_gpu_host_driver(host, i, &driver);
		if (r)
			return r;
		(void)snprintf(cuda, sizeof(cuda), "%d.%d", driver.cuda_major, driver.cuda_minor);
		if (i == 0)
			nvidia_info_print_driver(driver.version ? driver.version : unknown,
						 driver.cuda_major ? cuda : unknown, csv);
		nvidia_info_print_gpu(&adapter, &driver, csv);
		ctr_gpu_driver_clear(&driver);
	}
	return 0;
}

int nvidia_info(struct nvidia *nvidia, int argc, char **argv)
{
	static const struct argp argp = {
		.options = info_options,
		.parser = nvidia_info_parse,
		.doc = "Show the driver and the GPUs that a container can get.",
	};
	_cleanup_session_ struct session session = {0};
	const struct request_options all = {0};
	bool csv = false;
	int r;

	nvidia_parse(&argp, argc, argv, &csv);
	r = nvidia_open(&session, nvidia);
	/* A host without a usable GPU is an error: the plan for all GPUs has its message. */
	if (!r)
		r = nvidia_plan(&session, &all);
	/* What cannot be had is "N/A". */
	if (!r)
		(void)ctr_gpu_host_identify(session.context, session.host);
	return r ? r : session_check(&session, nvidia_info_print_host(session.host, csv));
}

/* ---- list: the devices and files that a container would get, by kind, one path of the host per line ---- */

enum {
	KEY_COMPAT32 = 0x100,
	KEY_IMEX_CHANNEL,
	KEY_MIG_CONFIG,
	KEY_MIG_MONITOR,
	KEY_NO_PERSISTENCED,
	KEY_NO_FABRICMANAGER,
	KEY_NO_GSP_FIRMWARE,
};

struct nvidia_list {
	struct request_options request;
	unsigned kinds; /* enum ctr_gpu_files */
	bool compat32, no_firmware;
};

static const struct argp_option list_options[] = {
	{"device", 'd', "ID", 0, "Device nodes of these GPUs: all, indexes, UUIDs, PCI addresses", 0},
	{"libraries", 'l', NULL, 0, "Libraries of the driver", 0},
	{"binaries", 'b', NULL, 0, "Programs of the driver", 0},
	{"ipcs", 'i', NULL, 0, "Sockets of the driver's daemons", 0},
	{"firmwares", 'f', NULL, 0, "Firmware of the GPUs", 0},
	{"compat32", KEY_COMPAT32, NULL, 0, "32-bit libraries, too", 0},
	{"mig-config", KEY_MIG_CONFIG, "all", 0, "Nodes for making parts of GPUs (MIG)", 0},
	{"mig-monitor", KEY_MIG_MONITOR, "all", 0, "Nodes for seeing everybody's parts of GPUs (MIG)", 0},
	{"imex-channel", KEY_IMEX_CHANNEL, "CHANNEL", 0, "Nodes of IMEX channels", 0},
	{"no-persistenced", KEY_NO_PERSISTENCED, NULL, OPTION_HIDDEN, NULL, 0},
	{"no-fabricmanager", KEY_NO_FABRICMANAGER, NULL, OPTION_HIDDEN, NULL, 0},
	{"no-gsp-firmware", KEY_NO_GSP_FIRMWARE, NULL, 0, "No firmware", 0},
	{0},
};

/* Which option lists what; of the last two, what they leave out is never listed. */
static const struct {
	int key;
	unsigned kind;
} kinds[] = {
	{'d', CTR_GPU_FILES_DEVICES},
	{'l', CTR_GPU_FILES_LIBRARIES},
	{'b', CTR_GPU_FILES_PROGRAMS},
	{'i', CTR_GPU_FILES_SOCKETS},
	{'f', CTR_GPU_FILES_FIRMWARE},
	{KEY_IMEX_CHANNEL, CTR_GPU_FILES_DEVICES},
	{KEY_MIG_CONFIG, CTR_GPU_FILES_DEVICES},
	{KEY_MIG_MONITOR, CTR_GPU_FILES_DEVICES},
	{KEY_NO_PERSISTENCED, 0},
	{KEY_NO_FABRICMANAGER, 0},
};

static error_t nvidia_list_parse(int key, char *argument, struct argp_state *state)
{
	struct nvidia_list *list = state->input;
	error_t r = ARGP_ERR_UNKNOWN;

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (kinds[i].key == key) {
			list->kinds |= kinds[i].kind;
			r = 0;
		}
	switch (key) {
	case 'd':
		return request_list_append(&list->request.devices, argument);
	case KEY_IMEX_CHANNEL:
		return request_list_append(&list->request.imex_channels, argument);
	case KEY_COMPAT32:
		list->compat32 = true;
		return 0;
	case KEY_MIG_CONFIG:
		nvidia_take_mig("mig-config", argument, CTR_GPU_MIG_CONFIG, &list->request.mig);
		return 0;
	case KEY_MIG_MONITOR:
		nvidia_take_mig("mig-monitor", argument, CTR_GPU_MIG_MONITOR, &list->request.mig);
		return 0;
	case KEY_NO_GSP_FIRMWARE:
		list->no_firmware = true;
		return 0;
	case ARGP_KEY_ARG:
		nvidia_input_error("'%s' is one argument too many", argument);
	default:
		return r;
	}
}

int nvidia_list(struct nvidia *nvidia, int argc, char **argv)
{
	static const struct argp argp = {
		.options = list_options,
		.parser = nvidia_list_parse,
		.doc = "List the devices and files of this host that a container would get; without an option, "
		       "all of them.",
	};
	_cleanup_session_ struct session session = {0};
	struct nvidia_list list = {0};
	bool everything = argc == 1;
	int r = 0;

	nvidia_parse(&argp, argc, argv, &list);
	if (everything)
		list.kinds = ~0U;
	if (list.no_firmware)
		list.kinds &= ~(unsigned)CTR_GPU_FILES_FIRMWARE;
	/* The driver's files are listed whichever devices are. */
	if ((!list.request.devices && request_list_append(&list.request.devices, "all")) ||
	    request_list_append(&list.request.capabilities, "compute,utility,video,graphics,display,ngx") ||
	    ((everything || list.compat32) && request_list_append(&list.request.capabilities, "compat32")))
		r = output_no_memory();
	if (!r)
		r = nvidia_open(&session, nvidia);
	if (!r)
		r = nvidia_plan(&session, &list.request);
	if (!r)
		r = session_check(&session, ctr_gpu_plan_write_files(session.plan, list.kinds, stdout));
	request_options_clear(&list.request);
	return r;
}

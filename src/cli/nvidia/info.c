/* SPDX-License-Identifier: Apache-2.0 */

/* nvidia-container-cli info: the driver and its GPUs, in the layout of NVIDIA's program, as scripts expect it. */

#include <ctype.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/print.h"
#include "cli/nvidia/nvidia.h"
#include "model/adapter.h"

enum { KEY_CSV = 0x100 };

enum {
	BUS_LENGTH = sizeof("00000000:3B:00.0") - 1,
	BUS_SIZE = BUS_LENGTH + 1,
};

/* What nvidia-smi says of what is not known. */
static const char unknown[] = "N/A";

static const struct argp_option options[] = {
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
		.options = options,
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

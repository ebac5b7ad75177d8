/* SPDX-License-Identifier: Apache-2.0 */

/* nvidia-container-cli info: the driver and its GPUs, in the layout of NVIDIA's program, which scripts take apart. */

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "cli/nvidia/nvidia.h"

enum { KEY_CSV = 0x100 };

enum {
	BUS_LENGTH = sizeof("00000000:3B:00.0") - 1,
	BUS_SIZE = BUS_LENGTH + 1,
};

/* What nvidia-smi says of what is not known. */
static const char unknown[] = "N/A";

struct info {
	bool csv;
};

static const struct argp_option options[] = {
	{"csv", KEY_CSV, NULL, 0, "Print CSV", 0},
	{0},
};

static error_t nvidia_info_parse(int key, char *argument, struct argp_state *state)
{
	struct info *info = state->input;

	switch (key) {
	case KEY_CSV:
		info->csv = true;
		return 0;
	case ARGP_KEY_ARG:
		nvidia_input_error("'%s' is one argument too many", argument);
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* A GPU's lines, in their order. */
struct row {
	char index[16], minor[16], bus[BUS_SIZE];
	const char *model, *brand, *uuid, *architecture;
};

/* "00000000:3B:00.0", as NVML writes addresses: eight digits of the domain. */
static void nvidia_info_format_bus(const char *address, char bus[BUS_SIZE])
{
	size_t length = address ? strlen(address) : 0;

	if (length == 0 || length > BUS_LENGTH) {
		(void)strcpy(bus, unknown);
		return;
	}
	(void)memset(bus, '0', BUS_LENGTH - length);
	(void)strcpy(bus + BUS_LENGTH - length, address);
	for (char *c = bus; *c; c++)
		*c = (char)toupper((unsigned char)*c);
}

static void nvidia_info_fill_row(struct row *row, const struct ctr_gpu_adapter *adapter,
				 const struct ctr_gpu_driver *driver)
{
	(void)snprintf(row->index, sizeof(row->index), "%d", adapter->index);
	(void)snprintf(row->minor, sizeof(row->minor), "%d", driver->minor);
	if (driver->minor < 0)
		(void)strcpy(row->minor, unknown);
	nvidia_info_format_bus(adapter->pci_address, row->bus);
	row->model = adapter->name ? adapter->name : unknown;
	row->brand = driver->brand ? driver->brand : unknown;
	row->uuid = adapter->uuid ? adapter->uuid : unknown;
	row->architecture = driver->architecture ? driver->architecture : unknown;
}

/* Names are the driver's, and not to be trusted with a terminal. */
static void nvidia_info_print_value(const char *text)
{
	for (; *text; text++)
		(void)fputc(iscntrl((unsigned char)*text) ? '?' : *text, stdout);
}

static void nvidia_info_print_row(const struct row *row, bool csv)
{
	const struct {
		const char *label, *value;
	} fields[] = {
		{"Device Index:", row->index},
		{"Device Minor:", row->minor},
		{"Model:", row->model},
		{"Brand:", row->brand},
		{"GPU UUID:", row->uuid},
		{"Bus Location:", row->bus},
		{"Architecture:", row->architecture},
	};

	if (!csv)
		(void)fputc('\n', stdout);
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		if (csv)
			(void)fputs(i > 0 ? "," : "", stdout);
		else
			(void)printf("%-15s ", fields[i].label);
		nvidia_info_print_value(fields[i].value);
		if (!csv)
			(void)fputc('\n', stdout);
	}
	if (csv)
		(void)fputc('\n', stdout);
}

static void nvidia_info_print_driver(const struct ctr_gpu_driver *driver, bool csv)
{
	const char *version = driver->version ? driver->version : unknown;
	char cuda[32];

	(void)snprintf(cuda, sizeof(cuda), "%d.%d", driver->cuda_major, driver->cuda_minor);
	if (driver->cuda_major == 0)
		(void)strcpy(cuda, unknown);
	if (csv)
		(void)printf("NVRM version,CUDA version\n%s,%s\n\n"
			     "Device Index,Device Minor,Model,Brand,GPU UUID,Bus Location,Architecture\n",
			     version, cuda);
	else
		(void)printf("%-15s %s\n%-15s %s\n", "NVRM version:", version, "CUDA version:", cuda);
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
		struct row row;

		r = ctr_gpu_host_driver(host, i, &driver);
		if (r)
			return r;
		if (i == 0)
			nvidia_info_print_driver(&driver, csv);
		nvidia_info_fill_row(&row, &adapter, &driver);
		nvidia_info_print_row(&row, csv);
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
	struct info info = {0};
	int r;

	nvidia_parse(&argp, argc, argv, &info);
	r = nvidia_open(&session, nvidia);
	/* A host without a usable GPU is an error, which the plan for all of them has the sentence for. */
	if (!r)
		r = nvidia_plan(&session, &all);
	return r ? r : session_check(&session, nvidia_info_print_host(session.host, info.csv));
}

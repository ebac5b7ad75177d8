/* SPDX-License-Identifier: Apache-2.0 */

/*
 * nvidia-container-cli list: the devices and files that a container would get, by kind, one path of the host per line.
 */

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/nvidia/nvidia.h"
#include "cli/output.h"

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

static const struct argp_option options[] = {
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
		.options = options,
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

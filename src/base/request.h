/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What a container asks for, whichever door it came through. Plain data; src/lib/request.c reads it from options and environments. */

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

enum capability {
	CAPABILITY_COMPUTE = 1 << 0,
	CAPABILITY_COMPAT32 = 1 << 1,
	CAPABILITY_GRAPHICS = 1 << 2,
	CAPABILITY_UTILITY = 1 << 3,
	CAPABILITY_VIDEO = 1 << 4,
	CAPABILITY_DISPLAY = 1 << 5,
	CAPABILITY_NGX = 1 << 6,
	CAPABILITY_ALL = (1 << 7) - 1,
	CAPABILITY_DEFAULT = CAPABILITY_UTILITY | CAPABILITY_COMPUTE,
};

enum request_devices {
	REQUEST_VOID, /* not a GPU container: nothing at all */
	REQUEST_NONE, /* driver libraries, no device */
	REQUEST_SOME, /* those in `devices` */
	REQUEST_ALL,
};

struct request {
	enum request_devices kind;
	bool unnamed;             /* in words that an image may have brought along: "all", "none", a CUDA version */
	struct strv devices;      /* indexes, LUIDs, PCI addresses, UUIDs */
	uint32_t capabilities;    /* enum capability */
	struct strv requirements; /* "cuda>=12.4 brand=tesla,driver>=470" */
	bool requirements_disabled;
	struct strv imex_channels; /* numbers, or "all" */
	bool nodes_only;           /* the device nodes, and nothing of what else a plan has */
	bool nvswitches;           /* the nodes of NVSwitches, for a fabric manager in the container */
	bool mig_config, mig_monitor; /* to make parts of GPUs; to see those of everybody */
};

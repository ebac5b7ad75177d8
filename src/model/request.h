/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What a container asks for, by whichever method. Plain data; src/oci/env_request.c reads it from environments. */

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "model/device_name.h"

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

/* What it says of vCUDA; the settings decide. */
enum request_mode {
	REQUEST_ANY_MODE,
	REQUEST_VCUDA,
	REQUEST_DEVICE,
};

struct request {
	enum request_devices kind;
	bool unnamed;       /* in words that an image may have brought along: "all", "none", a CUDA version */
	const char *domain; /* "nvidia.com", of the vendor in whose words it is; NULL: in no vendor's */
	bool by_engine;     /* `docker run --gpus` has only that vendor's words */
	struct device_names devices;
	bool has_slot;            /* a slot of a GPU is among what it names, which allows for nothing beside it */
	uint32_t capabilities;    /* enum capability */
	struct strv requirements; /* "cuda>=12.4 brand=tesla,driver>=470" */
	bool requirements_disabled;
	struct strv imex_channels;    /* numbers, or "all" */
	bool nodes_only;              /* the device nodes, and nothing of what else a plan has */
	bool groups;                  /* in a CDI spec: those whose members may open nodes that others may not */
	bool nvswitches;              /* the nodes of NVSwitches, for a fabric manager in the container */
	bool mig_config, mig_monitor; /* to make parts of GPUs; to see every container's parts */
	uint32_t unserved;            /* bits of request_unserved[] */
	enum request_mode mode;
	uint64_t vcuda_memory;       /* of GPUs; 0: as much as the settings give */
	unsigned vcuda_share;        /* of GPUs' time, to others'; 0: the same */
	const char *vcuda_directory; /* of a socket that it has by vCUDA already; NULL: none */
};

/* Hardware beside the GPUs that NVIDIA's tools give by a variable, and that a user has to name here. */
enum { REQUEST_UNSERVED = 3 };
extern const struct request_unserved {
	const char *variable, *options; /* of docker run and podman run */
} request_unserved[REQUEST_UNSERVED];

void request_clear(struct request *request);

/** Return: 0 or -ENOMEM. */
int request_set_devices(struct request *request, const char *devices);

/** Takes what is in @list, as far as the request keeps it. "void" outranks "none", and that "all", and that names. */
void request_take_devices(struct request *request, struct device_names *list);

/** Return: 0; CTR_GPU_E_UNKNOWN_CAPABILITY with @err set. */
int request_set_capabilities(struct request *request, const char *capabilities, struct err *err);

/** Return: 0 or -ENOMEM. */
int request_set_imex_channels(struct request *request, const char *channels);

/** The same of a list; takes what it keeps. Return: 0 or -ENOMEM. */
int request_take_imex_channels(struct request *request, struct strv *list);

/** Return: 0; CTR_GPU_E_BAD_REQUIREMENT with @err set; -ENOMEM. */
int request_add_requirement(struct request *request, const char *requirement, struct err *err);

/** Appends the names of its driver capabilities, in the order of the alphabet. Return: 0 or -ENOMEM. */
int request_list_capabilities(const struct request *request, struct strv *ret);

/** Return: how many of the devices are asked for by vCUDA's kind. */
size_t request_count_vcuda(const struct request *request);

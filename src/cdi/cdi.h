/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * CDI specs (Container Device Interface, SPEC.md of cncf-tags/container-device-interface): what they are made of,
 * wherever it is written, read or checked.
 */

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/json.h"
#include "base/str.h"
#include "lib/context.h"

enum {
	CDI_FILE_MAX = 4 << 20, /* of a spec; NVIDIA's have some 30 KiB */
	CDI_FILES_MAX = 1024,   /* of others in a directory; drivers of Kubernetes (DRA) write one a claim */
};

#define CDI_DEVICES_VARIABLE "NVIDIA_VISIBLE_DEVICES"
#define CDI_CAPABILITIES_VARIABLE "NVIDIA_DRIVER_CAPABILITIES"
#define CDI_HOOK_NAME "ctr-gpu-hook"
#define CDI_FILE_PREFIX "ctr-gpu-"

/** Whether @text is "VENDOR/CLASS" as the specification has it. @ret_class may be NULL. */
bool cdi_is_kind(const char *text);

/** Whether a device may be called so. */
bool cdi_is_device_name(const char *text);

/** What a spec is made of. */
struct cdi_options {
	const char *kind;
	const char *hook; /* path of ctr-gpu-hook; NULL: a spec that needs no hook */
	const struct request *request;
};

/**
 * cdi_generate() - the spec of one kind
 * @ret: new reference
 *
 * Return: 0; CTR_GPU_E_NO_ADAPTER if the host has no usable adapter of that kind; as ctr_gpu_plan_new(). @err of the
 * context is set.
 */
int cdi_generate(struct ctr_gpu_context *context, const struct ctr_gpu_host *host, const struct cdi_options *options,
		 json_t **ret);

/** The kinds of the vendors of usable adapters, in the order of the adapters. Return: 0 or -ENOMEM. */
int cdi_kinds(const struct ctr_gpu_host *host, struct strv *ret);

/** The name of the file of a kind, "ctr-gpu-nvidia.json". Return: 0 or -ENOMEM. */
int cdi_file_name(const char *kind, char **ret);

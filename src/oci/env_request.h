/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a container asks for by its configuration, and whether it may: the one place that reads the NVIDIA_* variables,
 * AMD_VISIBLE_DEVICES and the mounts of Kubernetes' device plugins. By whatever method a container asks, it is
 * read here.
 */

#include <stdbool.h>

#include "base/err.h"
#include "base/str.h"
#include "model/request.h"
#include "model/settings.h"

struct oci_config;

/* All borrowed. */
struct env_request {
	const char *const *environment; /* ends with a NULL; may be NULL itself */
	const struct strv *mounts;      /* as in struct oci_config; NULL: none */
	bool privileged;
	bool by_engine; /* the engine was asked for it, with --gpus */
};

struct env_request env_request_of_config(const struct oci_config *config);

/** Whether it asks for anything, permitted or not. If it does not, callers need not read the settings. */
bool env_request_is_something(const struct env_request *env);

/**
 * env_request_is_likely() - whether the text of a config.json that cannot be understood has what a container would ask
 * by
 *
 * A container that asks for nothing never fails because of us, whatever else is wrong with it.
 */
bool env_request_is_likely(const char *text, size_t size);

/**
 * env_request_read() - everything that a container asks for and, by the settings, may
 *
 * What does not count because of the settings is logged.
 *
 * Return: 0; CTR_GPU_E_UNKNOWN_CAPABILITY; CTR_GPU_E_BAD_REQUIREMENT; CTR_GPU_E_BAD_ARGUMENT; CTR_GPU_E_NO_PERMISSION;
 * -ENOMEM. @err is set.
 */
int env_request_read(const struct env_request *env, const struct settings *settings, struct request *request,
		     struct err *err);

/** The same without the devices, where these are named elsewhere. */
int env_request_read_properties(const struct env_request *env, const struct settings *settings, struct request *request,
				struct err *err);

/** Of that, what it says of vCUDA alone: whether, with how much memory, and what share of time. */
int env_request_read_mode(const struct env_request *env, struct request *request, struct err *err);

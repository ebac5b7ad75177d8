/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Behind ctr_gpu_request. What a container asks for by itself is read in src/lib/ask.h. */

#include "base/err.h"
#include "base/request.h"
#include "lib/context.h"

struct ctr_gpu_request {
	struct ctr_gpu_context *context;
	struct request data;
};

void request_clear(struct request *request);

/** Return: 0 or -ENOMEM. */
int request_set_devices(struct request *request, const char *devices);

/** Whether a word such as "all" is in a list, in whatever letters. */
bool request_has_word(const struct strv *list, const char *word);

/** Takes what is in @list, as far as the request keeps it. "void" outranks "none", and that "all", and that names. */
void request_take_devices(struct request *request, struct strv *list);

/** Return: 0; CTR_GPU_E_UNKNOWN_CAPABILITY with @err set. */
int request_set_capabilities(struct request *request, const char *capabilities, struct err *err);

/** Return: 0 or -ENOMEM. */
int request_set_imex_channels(struct request *request, const char *channels);

/** The same of a list, from which it takes what it keeps. Return: 0 or -ENOMEM. */
int request_take_imex_channels(struct request *request, struct strv *list);

/** Return: 0; CTR_GPU_E_BAD_REQUIREMENT with @err set; -ENOMEM. */
int request_add_requirement(struct request *request, const char *requirement, struct err *err);

/** Appends the names of its driver capabilities, in the order of the alphabet. Return: 0 or -ENOMEM. */
int request_list_capabilities(const struct request *request, struct strv *ret);

/** Return: what is behind "nvidia.com/gpu=" or another kind; @device itself if it does not begin with one. */
const char *request_name_without_kind(const char *device);

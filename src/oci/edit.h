/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Edits of an OCI config.json by a plan, as a tree: what the runtime itself can give the container. Everything else in
 * the tree stays as it is, and an edit that was made before makes no difference.
 */

#include <stdbool.h>
#include <sys/stat.h>

#include "base/err.h"
#include "base/json.h"
#include "model/plan.h"

/** oci_edit_apply() without devices and mounts, where a hook adds them: rules, groups of devices, environment. */
int oci_edit_apply_rules(json_t *config, const struct plan *plan, struct err *err);

/**
 * oci_edit_apply() - devices, their rules and groups, mounts, environment
 * @config: of oci_load_config()
 * @nodes:  of the plan's devices, in their order; NULL to have the host's nodes mounted instead of making some
 *
 * Return: 0; CTR_GPU_E_BAD_STATE if the tree is not what it must be there; -ENOMEM. @err is set.
 */
int oci_edit_apply(json_t *config, const struct plan *plan, const struct stat *nodes, struct err *err);

/** Whether a mount is, or may be, of something that others have as well, and is not the plan's from an edit before. */
bool oci_edit_is_volume(const json_t *mount, const struct plan *plan);

/** Whether the container gets its own /dev, which contains nothing from the image. */
bool oci_edit_has_own_dev(const json_t *config);

/** Whether the engine has device rules for the container; without them, runtimes differ in what is allowed. */
bool oci_edit_has_device_rules(const json_t *config);

/* A hook that cleans the container's layer at its end. */
struct oci_edit_hook {
	const char *path; /* NULL: none */
	bool gives;       /* it also gives the container its GPUs, at the stage createRuntime */
	int timeout_s;    /* settings_hook_timeout() */
};

/**
 * oci_edit_set_hooks() - have this hook, and none other of ours or NVIDIA's that acts on the container's environment
 *
 * Return: 0; CTR_GPU_E_BAD_STATE; -ENOMEM. @err is set.
 */
int oci_edit_set_hooks(json_t *config, const struct oci_edit_hook *hook, struct err *err);

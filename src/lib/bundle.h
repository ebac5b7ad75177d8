/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Behind ctr_gpu_bundle: a container that does not exist yet, as its engine has written it down for its runtime. */

#include "base/json.h"
#include "base/str.h"
#include "ctr-gpu.h"
#include "oci/oci.h"
#include "root/rootfs.h"

struct ctr_gpu_bundle {
	int directory;             /* root.path is relative to it; O_PATH */
	struct rootfs config_home; /* where config.json is; it is written by the rules for an image's files */
	char *config_name;         /* "/config.json" */
	char *config_path;         /* for messages */
	char *data;                /* of config.json, as it was */
	json_t *tree;
	struct oci_config config;
	char *hook; /* path of ctr-gpu-hook; NULL: it is missing */
};

/**
 * bundle_file_may_ask() - whether a config.json that cannot be used has what a container would ask for a GPU by
 *
 * However large it is: what is not read is not known to ask for nothing.
 */
bool bundle_file_may_ask(const char *path);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What every part of the native plan works with. */

#include "model/backend.h"
#include "nvidia/install.h"
#include "nvidia/seen.h"

struct planning {
	const struct settings *settings;
	struct seen *seen;
	const struct module *module; /* in that */
	struct install *install;
	uint32_t capabilities;
	const struct adapter *const *selected;
	size_t selected_count;
	struct plan *plan;
	struct err *err;
};

/* Each adds a part of the plan. Return: 0; CTR_GPU_E_* or negative errno, with err set. */

/** Device nodes of the selected GPUs, of the driver, of capabilities and IMEX channels. */
int plan_nodes(const struct planning *planning, const struct request *request);

/** Libraries, where the loader finds them. */
int plan_libraries(const struct planning *planning);

/** Programs, configuration, firmware, sockets, and modules that are looked for in fixed places. */
int plan_files(const struct planning *planning);

/** /proc/driver/nvidia as the container may see it, and the application profile. */
int plan_procfs(const struct planning *planning);

/* For these parts. */

/** Mounts @file on @target; takes over file->path. Return: 0 or -ENOMEM. */
int planning_add_mount(const struct planning *planning, struct install_file *file, const char *target,
		       enum plan_mount_kind kind, const char *reason);

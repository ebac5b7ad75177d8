/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What every part of the native plan works with. */

#include "model/backend.h"
#include "nvidia/driver_files.h"
#include "nvidia/probe.h"

struct nvidia_plan {
	const struct settings *settings;
	struct nvidia_probe *seen;
	const struct module *module; /* in that */
	struct driver_files *install;
	uint32_t capabilities;
	const struct adapter *const *selected;
	size_t selected_count;
	struct plan *plan;
	struct err *err;
};

/* Each adds a part of the plan. Return: 0; CTR_GPU_E_* or negative errno, with err set. */

/** Device nodes of the selected GPUs, of the driver, of capabilities and IMEX channels. */
int plan_nodes(const struct nvidia_plan *planning, const struct request *request);

/** Libraries, where the loader finds them. */
int plan_libraries(const struct nvidia_plan *planning);

/** Programs, configuration, firmware, sockets, and modules that are looked for in fixed places. */
int plan_files(const struct nvidia_plan *planning);

/** /proc/driver/nvidia as the container may see it, and the application profile. */
int plan_procfs(const struct nvidia_plan *planning);

/* For these parts. */

/** Mounts @file on @target; takes over file->path. Return: 0 or -ENOMEM. */
int nvidia_plan_add_mount(const struct nvidia_plan *planning, struct driver_files_file *file, const char *target,
			  enum plan_mount_kind kind, const char *reason);

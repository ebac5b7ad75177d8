/* SPDX-License-Identifier: Apache-2.0 */

#include "nvidia/plan.h"

#include <stdarg.h>
#include <string.h>

int nvidia_plan_add_mount(const struct nvidia_plan *planning, struct driver_files_file *file, const char *target,
			  enum plan_mount_kind kind, const char *reason)
{
	struct plan_mount mount = {
		.source = steal_ptr(file->path),
		.target = strdup(target),
		.directory = S_ISDIR(file->st.st_mode),
		.device = file->st.st_dev,
		.inode = file->st.st_ino,
		.kind = kind,
		.flags = kind == PLAN_LIBRARY || kind == PLAN_PROGRAM ? 0 : PLAN_MOUNT_NOEXEC,
		.reason = strdup(reason),
	};

	return plan_add_mount(planning->plan, &mount);
}

/* SPDX-License-Identifier: Apache-2.0 */

/* What the kernel can do for the hook. */

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cli/doctor/doctor.h"
#include "system/trusted_file.h"

/* Asked with arguments that no kernel accepts, so that nothing happens. */
static bool kernel_has_call(long number)
{
	return syscall(number, -1, NULL, -1, NULL, 0) == 0 || errno != ENOSYS;
}

void check_kernel(struct doctor_context *examination)
{
	bool mounts =
		kernel_has_call(SYS_open_tree) && kernel_has_call(SYS_move_mount) && kernel_has_call(SYS_mount_setattr);
	const char *cgroup = file_exists("/sys/fs/cgroup/cgroup.controllers") ? "cgroup v2"
			     : file_exists("/sys/fs/cgroup/devices")          ? "cgroup v1"
									      : "no device cgroup";

	if (!kernel_has_call(SYS_openat2))
		findings_add(&examination->findings, "kernel.too-old", SEVERITY_PROBLEM,
			     "the kernel lacks openat2: no container gets a GPU\n"
			     "Linux 5.6 or later has it; on WSL: wsl --update.");
	else if (mounts)
		findings_add(&examination->findings, "kernel.new", SEVERITY_OK,
			     "mounts by descriptor, paths resolved in the root, %s", cgroup);
	else
		findings_add(&examination->findings, "kernel.old", SEVERITY_NOTE,
			     "no open_tree, move_mount or mount_setattr: the slower ways of older kernels are taken, "
			     "%s\n"
			     "Linux 5.12 or later has them; on WSL: wsl --update.",
			     cgroup);
}

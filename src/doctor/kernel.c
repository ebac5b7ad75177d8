/* SPDX-License-Identifier: Apache-2.0 */

/* What the kernel can do for the hook. Where it lacks something there is another way, so nothing here is a problem. */

#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "doctor/doctor.h"
#include "doctor/file.h"

/* Asked with arguments that no kernel accepts, so that nothing happens. */
static bool has_call(long number)
{
	return syscall(number, -1, NULL, -1, NULL, 0) == 0 || errno != ENOSYS;
}

static const char *cgroup_text(void)
{
	if (file_exists("/sys/fs/cgroup/cgroup.controllers"))
		return "cgroup v2";
	return file_exists("/sys/fs/cgroup/devices") ? "cgroup v1" : "no device cgroup";
}

void check_kernel(struct examination *examination)
{
	bool mounts = has_call(SYS_open_tree) && has_call(SYS_move_mount) && has_call(SYS_mount_setattr);

	if (mounts && has_call(SYS_openat2)) {
		findings_add(&examination->findings, "kernel.new", SEVERITY_OK, "mounts by descriptor, paths resolved in the root, %s", cgroup_text());
		return;
	}
	findings_add(&examination->findings, "kernel.old", SEVERITY_NOTE, "no %s: the slower ways of older kernels are taken, %s",
		     mounts ? "openat2" : "open_tree, move_mount, mount_setattr", cgroup_text());
	findings_advise(&examination->findings, "Linux 5.12 or later has them; on WSL: wsl --update.");
}

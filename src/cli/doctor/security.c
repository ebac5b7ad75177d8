/* SPDX-License-Identifier: Apache-2.0 */

/* SELinux and AppArmor, where they stand between a container and the device. */

#include <stdio.h>
#include <string.h>
#include <sys/xattr.h>

#include "base/cleanup.h"
#include "cli/doctor/doctor.h"
#include "cli/doctor/file.h"
#include "dxg/ioctl.h"
#include "wsl/paths.h"

#define SELINUX "/sys/fs/selinux"

/* A boolean's file says what it is and what is pending: "1 1". */
static bool security_allows_devices(void)
{
	return file_number(SELINUX "/booleans/container_use_devices", 0) == 1;
}

static void security_read_label(const char *path, char *label, size_t size)
{
	ssize_t length = getxattr(path, "security.selinux", label, size - 1);

	(void)snprintf(label + (length > 0 ? length : 0), size - (size_t)(length > 0 ? length : 0), "%s",
		       length > 0 ? "" : "unknown");
}

static void security_check_selinux(struct examination *examination)
{
	const char *node = examination->gpu_pv ? DXG_DEVICE : "/dev/nvidiactl";
	char label[128];

	if (!security_allows_devices()) {
		security_read_label(node, label, sizeof(label));
		findings_add(
			&examination->findings, "security.selinux", SEVERITY_WARNING,
			"SELinux is enforcing and keeps containers from %s (label %s)\n"
			"sudo setsebool -P container_use_devices 1; or per container: --security-opt label=disable",
			node, label);
		return;
	}
	findings_add(&examination->findings, "security.selinux", SEVERITY_OK,
		     "SELinux is enforcing, and container_use_devices is on");
}

static void security_check_apparmor(struct findings *findings)
{
	_cleanup_free_ char *enabled = file_text("/sys/module/apparmor/parameters/enabled");

	if (!enabled || enabled[0] != 'Y')
		findings_add(findings, "security.none", SEVERITY_OK, "neither SELinux nor AppArmor is in the way");
	else
		findings_add(findings, "security.apparmor", SEVERITY_OK,
			     "AppArmor is on; engines' own profiles let containers use devices they were given");
}

void check_security(struct examination *examination)
{
	if (file_number(SELINUX "/enforce", 0) == 1)
		security_check_selinux(examination);
	else
		security_check_apparmor(&examination->findings);
}

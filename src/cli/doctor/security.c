/* SPDX-License-Identifier: Apache-2.0 */

/* SELinux and AppArmor, where they stand between a container and the device. */

#include <stdio.h>
#include <string.h>
#include <sys/xattr.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "cli/doctor/doctor.h"
#include "system/trusted_file.h"

#define SELINUX "/sys/fs/selinux"

/* What lets containers use devices, by the policy: Fedora's, and the reference policy's, for nodes of one type. */
static const struct policy {
	const char *boolean, *type, *remedy;
} policies[] = {
	{"container_use_devices", "", "sudo setsebool -P container_use_devices 1; or "},
	{"container_use_dri", "dri_device_t",
	 "sudo chcon -t dri_device_t on it and sudo setsebool -P container_use_dri 1; or "},
};

/* A boolean's file says what it is and what is pending: "1 1". Return: -1 where the policy has no such boolean. */
static int security_read_boolean(const char *name)
{
	_cleanup_free_ char *path = NULL;

	return str_format(&path, SELINUX "/booleans/%s", name) < 0 ? -1 : (int)file_number(path, -1);
}

static void security_check_selinux(struct findings *findings, const char *node)
{
	const struct policy *policy = NULL;
	char label[128] = "";

	for (size_t i = 0; i < ARRAY_SIZE(policies) && !policy; i++)
		if (security_read_boolean(policies[i].boolean) >= 0)
			policy = &policies[i];
	if (getxattr(node, "security.selinux", label, sizeof(label) - 1) <= 0)
		(void)snprintf(label, sizeof(label), "unknown");
	if (policy && security_read_boolean(policy->boolean) == 1 && strstr(label, policy->type))
		findings_add(findings, "security.selinux", SEVERITY_OK, "SELinux is enforcing, and %s is on",
			     policy->boolean);
	else
		findings_add(findings, "security.selinux", SEVERITY_WARNING,
			     "SELinux is enforcing and keeps containers from %s (label %s)\n"
			     "%sper container: --security-opt label=disable",
			     node, label, policy ? policy->remedy : "");
}

void check_security(struct doctor_context *examination)
{
	_cleanup_free_ char *apparmor = file_text("/sys/module/apparmor/parameters/enabled");

	if (file_number(SELINUX "/enforce", 0) == 1)
		for (size_t i = 0; examination->here[i]; i++)
			security_check_selinux(&examination->findings, examination->here[i]->backend->device);
	else if (apparmor && apparmor[0] == 'Y')
		findings_add(&examination->findings, "security.apparmor", SEVERITY_OK,
			     "AppArmor is on; engines' own profiles let containers use devices they were given");
	else
		findings_add(&examination->findings, "security.none", SEVERITY_OK,
			     "neither SELinux nor AppArmor is in the way");
}

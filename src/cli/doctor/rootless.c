/* SPDX-License-Identifier: Apache-2.0 */

/* Whether users other than root can make containers with a GPU. */

#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/doctor/doctor.h"
#include "engines/daemon.h"
#include "system/trusted_file.h"

/* Lines `user:first:count`, the user by name or number. */
static bool rootless_has_subordinates(const char *path, const char *name, uid_t uid)
{
	_cleanup_free_ char *text = file_text(path);
	char number[24];

	(void)snprintf(number, sizeof(number), "%u", (unsigned)uid);
	for (const char *line = text; line && *line; line += strcspn(line, "\n"), line += *line == '\n') {
		size_t length = strcspn(line, ":\n");

		if (line[length] == ':' && ((length == strlen(name) && strncmp(line, name, length) == 0) ||
					    (length == strlen(number) && strncmp(line, number, length) == 0)))
			return true;
	}
	return false;
}

/*
 * The name of a user. getpwuid(3) is not used, since in a static program it would load the libraries that
 * /etc/nsswitch.conf names. For users of other databases the environment has the name.
 *
 * Return: valid until the next call; "" for an unknown user.
 */
static const char *rootless_user_name(uid_t uid)
{
	_cleanup_fclose_ FILE *file = fopen("/etc/passwd", "re");
	const struct passwd *entry = NULL;
	const char *name = getenv(geteuid() == 0 ? "SUDO_USER" : "USER");

	while (file && (entry = fgetpwent(file)))
		if (entry->pw_uid == uid)
			return entry->pw_name;
	return name ? name : "";
}

/* A machine without an engine that users can run lacks nothing. */
static enum severity rootless_severity(void)
{
	return path_lookup_is_here("podman") || path_lookup_is_here("dockerd-rootless.sh") ? SEVERITY_WARNING
											   : SEVERITY_NOTE;
}

static void rootless_check_user(struct findings *findings, uid_t uid)
{
	const char *name = rootless_user_name(uid);
	struct stat st;

	if (!rootless_has_subordinates("/etc/subuid", name, uid) ||
	    !rootless_has_subordinates("/etc/subgid", name, uid))
		findings_add(findings, "rootless.no-ids", rootless_severity(),
			     "%s has no subordinate ids in /etc/subuid and /etc/subgid\n"
			     "sudo usermod --add-subuids 100000-165535 --add-subgids 100000-165535 %s",
			     name[0] ? name : "this user", name);
	/* Not only if setuid: distributions give it capabilities instead, which show as an attribute only. */
	else if (stat("/usr/bin/newuidmap", &st) < 0 || !(st.st_mode & S_IXOTH))
		findings_add(findings, "rootless.no-newuidmap", rootless_severity(),
			     "/usr/bin/newuidmap is missing, which gives users their subordinate ids\n"
			     "Install newuidmap: package uidmap or shadow-utils.");
	else
		findings_add(findings, "rootless.ready", SEVERITY_OK,
			     "user namespaces are allowed, and %s has subordinate ids", name);
}

void check_rootless(struct doctor_context *examination)
{
	const char *caller = getenv("SUDO_UID");
	/* The user who called sudo, if any, makes rootless containers; root does not. */
	uid_t uid = geteuid() == 0 && caller ? (uid_t)strtoul(caller, NULL, 10) : geteuid();
	bool clone = file_number("/proc/sys/kernel/unprivileged_userns_clone", 1) != 0;

	if (!clone || file_number("/proc/sys/user/max_user_namespaces", 1) == 0)
		findings_add(&examination->findings, "rootless.forbidden", SEVERITY_NOTE,
			     "only root may make user namespaces: no rootless containers\n"
			     "sudo sysctl -w %s",
			     clone ? "user.max_user_namespaces=28633" : "kernel.unprivileged_userns_clone=1");
	else if (file_number("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", 0) == 1)
		findings_add(&examination->findings, "rootless.apparmor", SEVERITY_NOTE,
			     "AppArmor lets only programs with a profile make user namespaces (sysctl "
			     "apparmor_restrict_unprivileged_userns)\n"
			     "The distribution's podman and docker have one; for other programs write a profile with "
			     "'userns,'.");
	else if (uid == 0)
		findings_add(&examination->findings, "rootless.allowed", SEVERITY_OK,
			     "user namespaces are allowed; run doctor as the user to see more");
	else
		rootless_check_user(&examination->findings, uid);
}

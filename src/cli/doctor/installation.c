/* SPDX-License-Identifier: Apache-2.0 */

/* Our own files: whether the configuration can be read, and the programs are there and fit each other. */

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/paths.h"
#include "cli/doctor/doctor.h"
#include "engines/config.h"
#include "lib/context.h"
#include "system/own_programs.h"

enum { LAST_FAILURE_MAX = 8192 };

static bool installation_check_config(struct doctor_context *examination)
{
	struct settings settings;
	struct err err = {0};
	int r;

	settings_init(&settings);
	r = settings_load(&settings, examination->config, &err);
	settings_clear(&settings);
	if (r != 0)
		findings_add_error(&examination->findings, "ctr-gpu.config", SEVERITY_PROBLEM, &err);
	return r == 0;
}

static bool installation_check_version(struct findings *findings, const char *path)
{
	_cleanup_free_ char *version = NULL;

	/* Its owner may keep others from reading it. */
	if (access(path, R_OK) < 0 ||
	    (own_programs_read_version(path, &version) == 0 && streq(version, CTR_GPU_VERSION)))
		return true;
	findings_add(findings, "ctr-gpu.version", SEVERITY_WARNING,
		     "%s is version %.32s, and ctr-gpu is " CTR_GPU_VERSION "\n"
		     "Install all of ctr-gpu from one place; look for a second copy below /usr/local.",
		     path, version ? version : "unknown");
	return false;
}

/* Beside this program, or where packages put it. */
static bool installation_check_hook(struct findings *findings)
{
	_cleanup_free_ char *beside = own_programs_beside("ctr-gpu-hook");
	const char *const places[] = {beside ? beside : "", "/usr/bin/ctr-gpu-hook", "/usr/local/bin/ctr-gpu-hook"};

	for (size_t i = 0; i < ARRAY_SIZE(places); i++)
		if (access(places[i], X_OK) == 0)
			return installation_check_version(findings, places[i]);
	findings_add(findings, "ctr-gpu.hook", SEVERITY_PROBLEM,
		     "ctr-gpu-hook, which engines run, is not installed\n"
		     "Install ctr-gpu completely: make install, or its package.");
	return false;
}

static bool installation_check_driverd(struct doctor_context *examination)
{
	_cleanup_free_ char *program = NULL;
	struct err err = {0};

	if (own_programs_find_driverd(examination->settings, NULL, &program, &err) == 0)
		return installation_check_version(&examination->findings, program);
	/*
	 * Without ctr-gpu-driverd the kernel is asked, and on native hosts only the names of MIG devices are missing.
	 */
	findings_add_error(&examination->findings, "ctr-gpu.driverd", SEVERITY_WARNING, &err);
	return false;
}

/* The failure that hooks/trace.c saved because neither the engine nor a log shows a hook's message. */
static void installation_show_failure(struct findings *findings)
{
	_cleanup_free_ char *text = NULL;

	if (fd_read_file_at(AT_FDCWD, PATH_RUN "/last-failure", LAST_FAILURE_MAX, &text, NULL) < 0)
		return;
	for (char *c = text; *c; c++)
		*c = *c == '\n' ? ' ' : *c;
	findings_add(findings, "ctr-gpu.last-failure", SEVERITY_NOTE, "the last container that got no GPU: %s", text);
}

static void installation_add_setting(const struct nvidia_setting *setting, void *user)
{
	if (!setting->value)
		findings_add(user, "ctr-gpu.moving", SEVERITY_NOTE,
			     NVIDIA_CONFIG " leaves out %s, and ctr-gpu has another default\n"
					   "Write %s",
			     setting->key, setting->here);
	else
		findings_add(user, "ctr-gpu.moving", SEVERITY_WARNING,
			     setting->has_successor ? NVIDIA_CONFIG " is not read: %s = %s\nWrite %s"
						    : NVIDIA_CONFIG " is not read: %s = %s has no successor: %s",
			     setting->key, setting->value, setting->here);
}

void check_installation(struct doctor_context *examination)
{
	bool well = installation_check_config(examination);

	well &= installation_check_hook(&examination->findings);
	well &= installation_check_driverd(examination);
	installation_show_failure(&examination->findings);
	toolkit_config_each(installation_add_setting, &examination->findings);
	if (well)
		findings_add(&examination->findings, "ctr-gpu.complete", SEVERITY_OK,
			     CTR_GPU_VERSION ": configuration, hook and driver process are in order");
}

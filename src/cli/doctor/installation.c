/* SPDX-License-Identifier: Apache-2.0 */

/* Our own files: whether the configuration can be read, and the programs are there and fit each other. */

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/elf_file.h"
#include "base/fd.h"
#include "base/file.h"
#include "cli/doctor/doctor.h"
#include "driverd/driverd.h"
#include "engines/nvidia_config.h"
#include "lib/settings.h"
#include "model/version_note.h"

enum { LAST_FAILURE_MAX = 8192 };

static bool installation_check_config(struct examination *examination)
{
	struct settings settings;
	struct err err = {0};
	int r;

	settings_init(&settings);
	r = settings_load(&settings, examination->config, &err);
	settings_clear(&settings);
	if (r == 0)
		return true;
	findings_add_message(&examination->findings, "ctr-gpu.config", SEVERITY_PROBLEM, err.text);
	return false;
}

/* Beside this program, and where packages put it. */
static char *installation_find_hook(void)
{
	static const char *const usual[] = {"/usr/bin/ctr-gpu-hook", "/usr/local/bin/ctr-gpu-hook"};
	_cleanup_free_ char *own = NULL, *path = NULL;
	const char *slash;

	if (fd_read_link_at(AT_FDCWD, "/proc/self/exe", &own) == 0 && (slash = strrchr(own, '/')) &&
	    str_format(&path, "%.*s/ctr-gpu-hook", (int)(slash - own), own) == 0 && access(path, X_OK) == 0)
		return steal_ptr(path);
	for (size_t i = 0; i < ARRAY_SIZE(usual); i++)
		if (access(usual[i], X_OK) == 0)
			return strdup(usual[i]);
	return NULL;
}

/* A program of ours carries its version in a note, so that nobody has to run it. */
static bool installation_check_version(struct findings *findings, const char *path)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	_cleanup_free_ char *version = NULL;
	size_t size;

	/* Its owner may keep others from reading it. */
	if (fd < 0)
		return true;
	if (elf_file_read_note(fd, VERSION_NOTE_SECTION, VERSION_NOTE_OWNER, &version, &size) == 0 &&
	    streq(version, CTR_GPU_VERSION))
		return true;
	findings_add(findings, "ctr-gpu.version", SEVERITY_WARNING,
		     "%s is version %.32s, and ctr-gpu is " CTR_GPU_VERSION "\n"
		     "Install all of ctr-gpu from one place; look for a second copy below /usr/local.",
		     path, version ? version : "unknown");
	return false;
}

static bool installation_check_hook(struct findings *findings)
{
	_cleanup_free_ char *hook = installation_find_hook();

	if (hook)
		return installation_check_version(findings, hook);
	findings_add(findings, "ctr-gpu.hook", SEVERITY_PROBLEM,
		     "ctr-gpu-hook, which engines run, is not installed\n"
		     "Install ctr-gpu completely: make install, or its package.");
	return false;
}

static bool installation_check_driverd(struct examination *examination)
{
	_cleanup_free_ char *program = NULL;
	struct err err = {0};

	if (driverd_find(examination->settings, &program, &err) == 0)
		return installation_check_version(&examination->findings, program);
	/* Without it /dev/dxg itself is asked, and on native hosts only the names of MIG devices are missing. */
	findings_add_message(&examination->findings, "ctr-gpu.driverd", SEVERITY_WARNING, err.text);
	return false;
}

/* What hooks/trace.c keeps for root if the engine does not show a hook's message and the machine has no log. */
static void installation_show_failure(struct findings *findings)
{
	_cleanup_free_ char *text = NULL;

	if (fd_read_file_at(AT_FDCWD, "/run/ctr-gpu/last-failure", LAST_FAILURE_MAX, &text, NULL) < 0)
		return;
	for (char *c = text; *c; c++)
		if (*c == '\n')
			*c = ' ';
	findings_add(findings, "ctr-gpu.last-failure", SEVERITY_NOTE, "the last container that got no GPU: %s", text);
}

static void installation_add_setting(const struct nvidia_setting *setting, void *user)
{
	struct findings *findings = user;

	if (!setting->value)
		findings_add(findings, "ctr-gpu.moving", SEVERITY_NOTE,
			     NVIDIA_CONFIG " leaves out %s, and ctr-gpu has another default\nWrite %s", setting->key,
			     setting->here);
	else if (setting->has_successor)
		findings_add(findings, "ctr-gpu.moving", SEVERITY_WARNING,
			     NVIDIA_CONFIG " is not read: %s = %s\nWrite %s", setting->key, setting->value,
			     setting->here);
	else
		findings_add(findings, "ctr-gpu.moving", SEVERITY_WARNING,
			     NVIDIA_CONFIG " is not read: %s = %s has no successor: %s", setting->key, setting->value,
			     setting->here);
}

void check_installation(struct examination *examination)
{
	bool well = installation_check_config(examination);

	well &= installation_check_hook(&examination->findings);
	well &= installation_check_driverd(examination);
	installation_show_failure(&examination->findings);
	nvidia_config_each(installation_add_setting, &examination->findings);
	if (well)
		findings_add(&examination->findings, "ctr-gpu.complete", SEVERITY_OK,
			     CTR_GPU_VERSION ": configuration, hook and driver process are in order");
}

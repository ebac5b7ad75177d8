/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/setup/setup.h"

#include <errno.h>
#include <string.h>

#include "base/json.h"
#include "base/paths.h"
#include "base/str.h"
#include "cli/doctor/doctor.h"
#include "cli/output.h"
#include "cli/session.h"
#include "cli/verbs.h"
#include "engines/config.h"
#include "engines/daemon.h"
#include "lib/context.h"

/* Text that only our specs contain. */
#define OURS "=void"

/* Whether some file has the kind. Engines ignore devices that two files have. */
static bool setup_cdi_has_spec(const struct setup *setup, const struct session *session, const char *kind)
{
	_cleanup_free_ char *path = NULL;
	bool ours = false;

	if (cdi_find_spec(session->context, kind, &path, &ours) < 0)
		return false;
	if (!ours)
		setup_print(setup, "%s has devices of %s already, so no CDI spec of them is written", path, kind);
	return true;
}

static int setup_cdi_save(const struct setup *setup, const struct session *session, const char *kind)
{
	_cleanup_free_ char *hook = path_of_program("ctr-gpu-hook"), *path = NULL, *written = NULL,
			    *output = text_buffer_format("%s/", cdi_directory());
	int r;

	if (!output || !hook)
		return output_no_memory();
	r = ctr_gpu_cdi_path(session->context, kind, output, &path);
	if (!r)
		r = ctr_gpu_cdi_save(session->context, session->host, session->request, kind, hook, path, &written);
	if (!r)
		setup_print(setup, "%s: CDI spec of %s written", path, kind);
	return session_check(session, r);
}

static int setup_cdi_put_kind(const struct setup *setup, const struct session *session, const char *kind)
{
	if (setup_cdi_has_spec(setup, session, kind))
		return 0;
	if (!setup->rootless && !setup->dry_run)
		return setup_cdi_save(setup, session, kind);
	if (setup->rootless)
		setup_print(setup,
			    "the CDI spec of %s, for --device %s=all, is missing; "
			    "root writes it: sudo ctr-gpu cdi generate",
			    kind, kind);
	else
		setup_print(setup, "a CDI spec of %s would be written below %s", kind, cdi_directory());
	return 0;
}

/* Where the engine's file names other directories of specs than ours. */
static void setup_cdi_warn_of_directories(const struct setup *setup)
{
	const struct engine *facts = setup->engine->facts;
	const struct strv *directories = &setup->found.cdi_directories;
	const char *usual = cdi_directory();

	if (directories->count == 0 || strv_contains(directories, usual))
		return;
	setup_print(setup,
		    "%s does not read CDI specs in %s, but in %s; one for it: sudo ctr-gpu cdi generate --output=%s/",
		    facts->label, usual, directories->items[0], directories->items[0]);
}

int setup_cdi_put(const struct setup *setup)
{
	_cleanup_session_ struct session session = {.mute = true};
	_cleanup_free_ char *kinds = NULL;
	char *rest, *kind;
	int r = session_open(&session, setup->globals);

	if (r)
		return r;
	r = ctr_gpu_request_new(session.context, &session.request);
	if (!r)
		r = ctr_gpu_request_set_devices(session.request, "all");
	if (!r)
		r = ctr_gpu_host_new(session.context, &session.host);
	if (!r)
		r = ctr_gpu_cdi_kinds(session.host, &kinds);
	if (r || !*kinds) {
		const char *reason = r ? session.context->err.text : "this host has no GPU that can be used";

		/* The engine's file is right even if the host gets a GPU only later. */
		setup_print(setup, "no CDI spec is written, for --device nvidia.com/gpu=all: %s", reason);
		return 0;
	}
	setup_cdi_warn_of_directories(setup);
	rest = kinds;
	while (!r && (kind = strsep(&rest, ",")))
		r = setup_cdi_put_kind(setup, &session, kind);
	return r;
}

static int setup_cdi_remove_spec(const struct setup *setup, const char *path)
{
	_cleanup_config_file_ struct config_file file = {0};
	int r = config_file_read(path, &file);

	if (r || !file.text.size || !memmem(file.text.data, file.text.size, OURS, strlen(OURS)))
		return r;
	if (setup->dry_run) {
		setup_print(setup, "%s would be removed, unless another engine needs it", path);
		return 0;
	}
	r = config_file_unlink(&file);
	if (!r)
		setup_print(setup, "%s: removed", path);
	return r;
}

int setup_cdi_remove(const struct setup *setup, const char *name)
{
	static const char *const directories[] = {PATH_CDI, PATH_CDI_RUN};
	_cleanup_strv_ struct strv specs = {0};
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(directories) && r == 0; i++) {
		_cleanup_free_ char *pattern = text_buffer_format("%s/%s", directories[i], name);

		r = pattern ? engine_config_expand(pattern, &specs) : -ENOMEM;
	}
	if (r < 0)
		return output_no_memory();
	for (size_t i = 0; i < specs.count && !r; i++)
		r = setup_cdi_remove_spec(setup, specs.items[i]);
	return r;
}

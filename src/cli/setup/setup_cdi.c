/* SPDX-License-Identifier: Apache-2.0 */

/* CDI specs; and vCUDA, of which setup writes a spec, too. */

#include "cli/setup/setup.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/paths.h"
#include "base/str.h"
#include "cli/doctor/doctor.h"
#include "cli/output.h"
#include "cli/verbs.h"
#include "lib/context.h"
#include "system/program_output.h"
#include "system/trusted_file.h"

/* ---- specs ---- */

/* Text that only our specs contain. */
#define OURS "=void"

static int setup_cdi_put_kind(const struct setup *setup, const struct session *session, const char *kind)
{
	_cleanup_free_ char *there = NULL, *written = NULL, *hook = path_of_program("ctr-gpu-hook"),
			    *directory = text_buffer_format("%s/", cdi_directory());
	bool ours = false;
	int r;

	if (!directory || !hook)
		return output_no_memory();
	/* Engines ignore devices that two files have. */
	if (cdi_find_spec(session->context, kind, &there, &ours) == 0) {
		if (!ours)
			setup_print(setup, "%s has devices of %s already, so no CDI spec of them is written", there,
				    kind);
		return 0;
	}
	if (setup->rootless)
		setup_print(setup,
			    "the CDI spec of %s, for --device %s=all, is missing; "
			    "root writes it: sudo ctr-gpu cdi generate",
			    kind, kind);
	else if (setup->dry_run)
		setup_print(setup, "a CDI spec of %s would be written below %s", kind, cdi_directory());
	if (setup->rootless || setup->dry_run)
		return 0;
	r = ctr_gpu_cdi_save(session->context, session->host, session->request, kind, hook, directory, &written);
	if (!r)
		setup_print(setup, "%s: CDI spec of %s written", written, kind);
	return session_check(session, r);
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

/* ---- vCUDA ---- */

/*
 * Its mode in ctr-gpu's own configuration, the CDI spec that follows from that, and the manager's service. It is not an
 * engine, and serves all of them.
 */

#define MODE "vcuda/mode"
#define SERVICE "ctr-gpu-vcudad"
#define UNITS SERVICE ".service " SERVICE ".socket"
#define SPEC "ctr-gpu-vcuda.json"

enum {
	ANSWER_MAX = 4096,
	SERVICE_MS = 300 * 1000, /* above the 90 s that systemd gives a unit to start, and as much to stop */
};

static const char *const files[] = {PATH_CONFIG, NULL};
static const struct engine facts = {.name = "vcuda", .label = "vCUDA", .format = ENGINE_JSON, .files = files};

bool setup_vcuda_is_on(void)
{
	_cleanup_config_file_ struct config_file file = {0};
	_cleanup_json_ json_t *json = NULL;
	struct text_buffer_error error;
	const char *mode;

	if (config_file_read(PATH_CONFIG, &file) || json_file_read(&file.text, &json, &error) < 0)
		return false;
	mode = json_string_value(json_at(json, MODE));
	return mode && !streq(mode, "off");
}

/* Return: the manager's path, owned by the caller; NULL if it is not installed. */
static char *vcuda_find_manager(void)
{
	static const char *const places[] = {"../libexec/ctr-gpu/" SERVICE, SERVICE};

	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		_cleanup_free_ char *path = path_of_program(places[i]);

		if (path && access(path, X_OK) == 0)
			return realpath(path, NULL);
	}
	return NULL;
}

static int vcuda_look(struct setup *setup)
{
	_cleanup_free_ char *manager = NULL;
	int r = setup_refuse_user(setup);

	if (r || setup->remove || setup->config)
		return r;
	if (setup->globals->config && str_replace(&setup->path, setup->globals->config) < 0)
		return output_no_memory();
	manager = vcuda_find_manager();
	if (manager)
		return 0;
	return output_print_advised(("vCUDA's manager " SERVICE " is missing"),
				    ("Install the package ctr-gpu-vcuda, and try again."));
}

/* A mode that gives containers more than is wanted stays, and so does a share. */
static int vcuda_edit(struct setup *setup)
{
	const char *mode = json_string_value(json_at(setup->then, MODE));

	if (mode && !streq(mode, "off") && (!setup->set_default || !streq(mode, "allow")))
		return 0;
	return keys_put(setup, MODE, json_string(setup->set_default ? "default" : "allow"));
}

/* Without systemd it is said what to do: elsewhere a service is where an administrator has put it. */
static void vcuda_advise_service(const struct setup *setup)
{
	_cleanup_free_ char *manager = vcuda_find_manager();

	if (file_exists("/run/openrc"))
		setup_print(setup, "next: %s",
			    setup->remove ? "rc-service " SERVICE " stop && rc-update del " SERVICE
					  : "rc-update add " SERVICE " default && rc-service " SERVICE " start");
	else if (setup->remove)
		setup_print(setup, "next: end " SERVICE);
	else
		setup_print(setup, "next: as root, at each boot, start %s (ctr-gpu-vcudad(8))",
			    manager ? manager : SERVICE);
}

static int vcuda_run_service(const struct setup *setup)
{
	const char *verb = setup->remove ? "disable" : "enable";
	const char *program = file_exists("/usr/bin/systemctl") ? "/usr/bin/systemctl" : "/bin/systemctl";
	const char *const arguments[] = {program, verb, "--now", SERVICE ".service", SERVICE ".socket", NULL};
	_cleanup_free_ char *answer = NULL;
	size_t size;

	if (!file_exists("/run/systemd/system"))
		vcuda_advise_service(setup);
	else if (setup->dry_run)
		setup_print(setup, "systemctl %s --now " UNITS " would be run", verb);
	else if (!program_output_read(arguments, SERVICE_MS, ANSWER_MAX, &answer, &size))
		return output_print_advised(
			("systemctl %s --now " UNITS " has failed", verb),
			("What it says: run it by hand; what the manager said: journalctl -u " SERVICE));
	else
		setup_print(setup, "the service " SERVICE " is %s",
			    setup->remove ? "stopped" : "started, now and at each boot");
	return 0;
}

static int vcuda_finish(struct setup *setup)
{
	const char *mode = json_string_value(json_at(setup->then, MODE));

	if (setup->remove && mode && !streq(mode, "off")) {
		/* An administrator has written it, and it needs its manager. */
		setup_print(setup, "%s: the mode \"%s\" stays, and so does the service", setup->file.path, mode);
		return 0;
	}
	if (setup->remove)
		return vcuda_run_service(setup) || setup_cdi_remove(setup, SPEC);
	if (setup->dry_run)
		setup_print(setup, "a CDI spec of ctr-gpu.org/vcuda would be written, unless there is one");
	else if (setup_cdi_put(setup))
		return EXIT_STATUS_FAILURE;
	return vcuda_run_service(setup);
}

const struct setup_engine setup_vcuda = {
	.facts = &facts,
	.look = vcuda_look,
	.edit = vcuda_edit,
	.finish = vcuda_finish,
};

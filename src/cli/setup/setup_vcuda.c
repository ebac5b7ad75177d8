/* SPDX-License-Identifier: Apache-2.0 */

/*
 * vCUDA: its mode in ctr-gpu's own configuration, the CDI spec that follows from that, and the manager's service. It is
 * no engine, and serves all of them.
 */

#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/paths.h"
#include "base/str.h"
#include "cli/output.h"
#include "cli/setup/setup.h"
#include "cli/verbs.h"
#include "system/program_output.h"
#include "system/trusted_file.h"

#define MODE "vcuda/mode"
#define SERVICE "ctr-gpu-vcudad"
#define SPEC "ctr-gpu-vcuda.json"

enum {
	ANSWER_MAX = 4096,
	SERVICE_MS = 300 * 1000, /* above the 90 s that systemd gives a unit to start, and as much to stop */
};

static const char *const files[] = {PATH_CONFIG, NULL};
static const struct engine facts = {.name = "vcuda", .label = "vCUDA", .format = ENGINE_JSON, .files = files};

bool setup_has_runtimes(const struct setup_engine *engine)
{
	return engine->facts->runtimes;
}

/* ---- the file ---- */

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
	return manager ? 0
		       : output_print_advised(("vCUDA's manager " SERVICE " is missing"),
					      ("Install the package ctr-gpu-vcuda, and try again."));
}

/* A mode that gives containers more than is wanted stays, and so does a share. */
static int vcuda_edit(struct setup *setup, json_t *file)
{
	const char *wanted = setup->set_default ? "default" : "allow", *mode = json_string_value(json_at(file, MODE));
	bool off = !mode || streq(mode, "off") || (setup->set_default && streq(mode, "allow"));

	return off ? keys_put(setup, file, "", MODE, json_string(wanted)) : 0;
}

/* ---- the service ---- */

/* Without systemd it is said what to do: elsewhere a service is where an administrator has put it. */
static int vcuda_advise_service(const struct setup *setup)
{
	_cleanup_free_ char *manager = vcuda_find_manager();
	bool openrc = file_exists("/run/openrc");

	if (openrc)
		setup_print(setup, "next: %s",
			    setup->remove ? "rc-service " SERVICE " stop && rc-update del " SERVICE
					  : "rc-update add " SERVICE " default && rc-service " SERVICE " start");
	else if (setup->remove)
		setup_print(setup, "next: end " SERVICE);
	else
		setup_print(setup, "next: as root, at each boot, start %s (ctr-gpu-vcudad(8))",
			    manager ? manager : SERVICE);
	return 0;
}

static int vcuda_run_service(const struct setup *setup)
{
	const char *verb = setup->remove ? "disable" : "enable";
	const char *const units[] = {SERVICE ".service", SERVICE ".socket"};
	const char *program = file_exists("/usr/bin/systemctl") ? "/usr/bin/systemctl" : "/bin/systemctl";
	const char *const arguments[] = {program, verb, "--now", units[0], units[1], NULL};
	_cleanup_free_ char *answer = NULL;
	size_t size;

	if (!file_exists("/run/systemd/system"))
		return vcuda_advise_service(setup);
	if (setup->dry_run) {
		setup_print(setup, "systemctl %s --now %s %s would be run", verb, units[0], units[1]);
		return 0;
	}
	if (!program_output_read(arguments, SERVICE_MS, ANSWER_MAX, &answer, &size))
		return output_print_advised(
			("systemctl %s --now %s %s has failed", verb, units[0], units[1]),
			("What it says: run it by hand; what the manager said: journalctl -u " SERVICE));
	setup_print(setup, "the service " SERVICE " is %s",
		    setup->remove ? "stopped" : "started, now and at each boot");
	return 0;
}

/* A mode that an administrator has written needs its manager. */
static int vcuda_finish_remove(struct setup *setup)
{
	const char *mode = json_string_value(json_at(setup->then, MODE));
	int r;

	if (mode && !streq(mode, "off")) {
		setup_print(setup, "%s: the mode \"%s\" stays, and so does the service", setup->file.path, mode);
		return 0;
	}
	r = vcuda_run_service(setup);
	return r ? r : setup_cdi_remove(setup, SPEC);
}

static int vcuda_finish(struct setup *setup)
{
	int r;

	if (setup->remove)
		return vcuda_finish_remove(setup);
	if (setup->dry_run)
		setup_print(setup, "a CDI spec of ctr-gpu.org/vcuda would be written, unless there is one");
	r = setup->dry_run ? 0 : setup_cdi_put(setup);
	return r ? r : vcuda_run_service(setup);
}

const struct setup_engine setup_vcuda = {
	.facts = &facts,
	.look = vcuda_look,
	.edit = vcuda_edit,
	.finish = vcuda_finish,
};

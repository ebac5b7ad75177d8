/* SPDX-License-Identifier: Apache-2.0 */

/*
 * ctr-gpu load and refresh: kernel modules and device nodes, on a host where no program has asked for them yet, and CDI
 * specs of what there is then.
 */

#include "cli/verbs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/print.h"
#include "cli/output.h"
#include "cli/session.h"
#include "lib/context.h"

/* ---- every kind of GPU ---- */

#define LOADER_DECLARE(name) extern const struct backend_load loader_##name;
#define LOADER_ADDRESS(name) &loader_##name,
BACKENDS(LOADER_DECLARE)
static const struct backend_load *const loaders[] = {BACKENDS(LOADER_ADDRESS)};

static int loaders_run(const struct load_options *options, bool apply, struct load *ret, struct err *err)
{
	_cleanup_load_ struct load all = {0};
	bool found = false;

	for (size_t i = 0; i < ARRAY_SIZE(loaders); i++) {
		_cleanup_load_ struct load load = {0};
		int r = loaders[i]->decide(options, &load, err);

		if (r == CTR_GPU_E_NO_DEVICE)
			continue;
		if (r == 0 && apply && loaders[i]->apply)
			r = loaders[i]->apply(options, &load, err);
		if (r == 0)
			r = load_merge(&all, &load);
		if (r != 0)
			return r;
		found = true;
	}
	if (!found)
		return CTR_GPU_E_NO_DEVICE;
	*ret = steal_struct(&all);
	return 0;
}

/* ---- showing it ---- */

/* The steps that make a native host ready, for people and programs. */

static const struct {
	const char *text, *json;
} load_states[] = {
	[LOAD_MISSING] = {"to do", "missing"},
	[LOAD_THERE] = {"there", "there"},
	[LOAD_WRONG] = {"replace", "wrong"},
	[LOAD_DONE] = {"done", "done"},
};

static const char *const load_kinds[] = {
	[LOAD_MODULE] = "module", [LOAD_DIRECTORY] = "directory", [LOAD_NODE] = "node"};

static void load_write_step(const struct load_step *step, FILE *file)
{
	print_safe(file, "%-11s %s %s", load_states[step->state].text, load_kinds[step->kind], step->name);
	if (step->kind == LOAD_NODE)
		(void)fprintf(file, " (c %u:%u, mode %04o, owner %u:%u)", major(step->number), minor(step->number),
			      step->mode, step->uid, step->gid);
	if (step->found)
		print_safe(file, ", which was %s", step->found);
	(void)fputs("\n            ", file);
	print_write_text(step->reason, file);
	(void)fputc('\n', file);
}

static json_t *load_step_json(const struct load_step *step)
{
	json_t *json = json_pack("{s:s, s:s, s:o, s:o, s:o}", "kind", load_kinds[step->kind], "state",
				 load_states[step->state].json, "name", print_string(step->name), "reason",
				 print_string(step->reason), "found", print_string(step->found));
	char mode[16];

	(void)snprintf(mode, sizeof(mode), "%04o", step->mode);
	if (json && step->kind == LOAD_NODE &&
	    json_object_update_new(json,
				   json_pack("{s:I, s:I, s:s, s:I, s:I}", "major", (json_int_t)major(step->number),
					     "minor", (json_int_t)minor(step->number), "mode", mode, "uid",
					     (json_int_t)step->uid, "gid", (json_int_t)step->gid)) < 0)
		return json_decref(json), NULL;
	return json;
}

static int load_write(const struct load *load, enum ctr_gpu_format format, FILE *file)
{
	switch (format) {
	case CTR_GPU_FORMAT_TEXT:
		for (size_t i = 0; i < load->count; i++)
			load_write_step(&load->steps[i], file);
		for (size_t i = 0; i < load->remarks.count; i++) {
			(void)fputs("remark      ", file);
			print_write_text(load->remarks.items[i], file);
			(void)fputc('\n', file);
		}
		return print_finish(file);
	case CTR_GPU_FORMAT_JSON:
		return print_write_json(json_pack("{s:o, s:o}", "steps",
						  print_array(i, load->count, load_step_json(&load->steps[i])),
						  "remarks", print_strings(&load->remarks)),
					file);
	case CTR_GPU_FORMAT_CSV:
	case CTR_GPU_FORMAT_PATHS:
		break;
	}
	return -EINVAL;
}

/* ---- the command ---- */

enum {
	KEY_JSON = 0x200,
	KEY_DRY_RUN,
	KEY_MODESET,
	KEY_REPLACE,
	KEY_IMEX_CHANNEL,
};

struct load_verb {
	struct load_options options;
	bool dry_run;
	enum ctr_gpu_format format;
};

static const struct argp_option load_options_table[] = {
	{"dry-run", KEY_DRY_RUN, NULL, 0, "Show what is missing and change nothing", 0},
	{"modeset", KEY_MODESET, NULL, 0, "Load nvidia-modeset, too; screens need it", 0},
	{"imex-channel", KEY_IMEX_CHANNEL, "NUMBERS", 0, "Make the nodes of these IMEX channels, too; may be repeated",
	 0},
	{"replace", KEY_REPLACE, NULL, 0, "Put the right node in the place of a file or of a node with another number",
	 0},
	{"json", KEY_JSON, NULL, 0, "Print JSON", 0},
	{0},
};

static error_t load_parse(int key, char *argument, struct argp_state *state)
{
	struct load_verb *load = state->input;

	switch (key) {
	case KEY_DRY_RUN:
		load->dry_run = true;
		return 0;
	case KEY_MODESET:
		load->options.modeset = true;
		return 0;
	case KEY_REPLACE:
		load->options.replace = true;
		return 0;
	case KEY_IMEX_CHANNEL:
		request_check_channels(state, argument, false);
		return strv_split(argument, ",", &load->options.imex_channels) < 0 ? ENOMEM : 0;
	case KEY_JSON:
		load->format = CTR_GPU_FORMAT_JSON;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

int load_run(const struct session *session, struct load_options options, bool dry_run, struct load *ret)
{
	struct ctr_gpu_context *context = session->context;

	options.driver_root = context->settings.driver_root;
	return loaders_run(&options, !dry_run, ret, &context->err);
}

int verb_load(struct global_options *globals, int argc, char **argv)
{
	static const struct argp argp = {
		.options = load_options_table,
		.parser = load_parse,
		.children = global_options_children,
		.doc = "Load NVIDIA's kernel modules and make their device nodes, where this host lacks them.",
	};
	_cleanup_session_ struct session session = {0};
	struct load_verb verb = {.format = CTR_GPU_FORMAT_TEXT};
	_cleanup_load_ struct load load = {0};
	int r;

	global_options_parse_verb(globals, &argp, argc, argv, &verb);
	output_set_json(verb.format == CTR_GPU_FORMAT_JSON);
	r = session_open(&session, globals);
	if (r)
		return r;
	r = load_run(&session, verb.options, verb.dry_run, &load);
	if (r == 0)
		r = load_write(&load, verb.format, stdout);
	strv_clear(&verb.options.imex_channels);
	return session_check(&session, r);
}

/* ---- refresh ---- */

/*
 * ctr-gpu refresh: bring device nodes and CDI specs up to date after a boot, or when a driver was loaded or an adapter
 * came or went. Services call it on machines of every kind, so it succeeds without a GPU; and often, so it writes
 * nothing if nothing has changed.
 */

enum { KEY_WAIT = 0x200, LONGEST_WAIT_S = 600, WAIT_STEP_MS = 500, MS = 1000 };

static const struct argp_option refresh_options[] = {
	{"wait", KEY_WAIT, "SECONDS", 0, "Look again for so long, if there is a GPU whose driver is not ready", 0},
	{0},
};

static error_t refresh_parse(int key, char *argument, struct argp_state *state)
{
	unsigned *wait_s = state->input;
	char *end;
	long seconds;

	if (key != KEY_WAIT)
		return ARGP_ERR_UNKNOWN;
	seconds = strtol(argument, &end, 10);
	if (end == argument || *end || seconds < 0 || seconds > LONGEST_WAIT_S)
		argp_error(state, "--wait is a whole number of seconds from 0 to %d, not '%s'", LONGEST_WAIT_S,
			   argument);
	*wait_s = (unsigned)seconds;
	return 0;
}

/*
 * Whether another look may find more: a device answers that its driver does not yet, or no adapter can be used and a
 * driver's files are missing, which a boot may still mount. A module that cannot be loaded does not count: udev's rule
 * starts the service again when one is.
 */
static bool refresh_may_change(const struct ctr_gpu_host *host, int r)
{
	bool missing = r == CTR_GPU_E_NO_ADAPTER;

	for (size_t i = 0; !r && i < host->inventory.count; i++) {
		if (!host->inventory.adapters[i].unusable)
			return host->inventory.notes.count > 0;
		missing = missing || host->inventory.adapters[i].unusable == CTR_GPU_E_NO_DRIVER_STORE;
	}
	return missing;
}

static int refresh_look(struct session *session)
{
	_cleanup_load_ struct load load = {0};
	int r;

	host_drop_cache();
	/* Modules and nodes of NVIDIA's driver, where there is a GPU for it. */
	r = load_run(session, (struct load_options){0}, false, &load);
	return !r || r == CTR_GPU_E_NO_DEVICE ? ctr_gpu_host_new(session->context, &session->host) : r;
}

/* Return: what refresh_look() returned last. */
static int refresh_look_until(struct session *session, long long deadline_ms)
{
	int r = refresh_look(session);

	while (refresh_may_change(session->host, r) && clock_now_ms() < deadline_ms) {
		/* What there is to warn of was said once. */
		session->mute = true;
		session_log(session, "the driver is not ready: %s",
			    r ? session->context->err.text : "no adapter can be used");
		session->host = ctr_gpu_host_unref(session->host);
		(void)usleep(WAIT_STEP_MS * MS);
		r = refresh_look(session);
	}
	session->mute = false;
	return r;
}

static int refresh_all(struct session *session, long long deadline_ms)
{
	_cleanup_free_ char *hook = NULL;
	struct err unguarded = {0};
	int r = refresh_look_until(session, deadline_ms), guard = 0;

	if (r && r != CTR_GPU_E_NO_DEVICE)
		return session_check(session, r);
	if (!r)
		guard = host_load_guard(session->host, &unguarded);
	hook = path_of_program("ctr-gpu-hook");
	if (!hook)
		return output_no_memory();
	r = ctr_gpu_cdi_refresh(session->context, session->host, cdi_directory(), hook);
	if (r || !guard)
		return session_check(session, r);
	/* Told last: a container that chooses no GPU needs no guard, and may need its spec. */
	session->context->err = unguarded;
	return session_check(session, guard);
}

int verb_refresh(struct global_options *globals, int argc, char **argv)
{
	static const struct argp argp = {
		.options = refresh_options,
		.parser = refresh_parse,
		.children = global_options_children,
		.doc = "Make device nodes and CDI specs what they should be now, after a boot or a change of GPUs or "
		       "drivers.",
	};
	_cleanup_session_ struct session session = {0};
	unsigned wait_s = 0;
	int r;

	global_options_parse_verb(globals, &argp, argc, argv, &wait_s);
	r = session_open(&session, globals);
	return r ? r : refresh_all(&session, clock_now_ms() + wait_s * MS);
}

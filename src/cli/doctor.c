/* SPDX-License-Identifier: Apache-2.0 */

/* ctr-gpu doctor: whether a GPU container would work here, and the first thing to do if not. */

#include <errno.h>

#include "cli/doctor/run.h"
#include "cli/output.h"
#include "cli/session.h"
#include "cli/try/try.h"
#include "cli/verbs.h"

enum {
	KEY_JSON = 0x200,
	KEY_REPORT,
	KEY_ROOTFS,
	KEY_TRY,
};

struct doctor_verb {
	struct global_options *globals;
	const char *rootfs, *way, *report;
	enum ctr_gpu_format format;
	bool verbose;
};

static const struct argp_option options[] = {
	{"verbose", 'v', NULL, 0, "Everything that was looked at, and what is well", 0},
	{"json", KEY_JSON, NULL, 0, "The same findings for programs", 0},
	{"rootfs", KEY_ROOTFS, "DIR", 0, "Look at an image, too: the root directory of one that is unpacked or mounted",
	 0},
	{"report", KEY_REPORT, "FILE", OPTION_ARG_OPTIONAL, "Write one text file for a bug report (" REPORT_FILE ")",
	 0},
	{"try", KEY_TRY, "ENGINE[:DOOR]", 0,
	 "Run a container with a GPU, and show what arrived: docker, podman or containerd; gpus, runtime, cdi or hook",
	 0},
	{0},
};

static error_t doctor_parse(int key, char *argument, struct argp_state *state)
{
	struct doctor_verb *verb = state->input;
	char suggestion[SUGGESTION_SIZE];

	switch (key) {
	case KEY_JSON:
		verb->format = CTR_GPU_FORMAT_JSON;
		return 0;
	case 'v':
		verb->verbose = true;
		return 0;
	case KEY_ROOTFS:
		verb->rootfs = argument;
		return 0;
	case KEY_REPORT:
		verb->report = argument ? argument : REPORT_FILE;
		return 0;
	case KEY_TRY:
		if (!try_find(argument))
			argp_error(state,
				   "--try is docker, podman or containerd, with :gpus, :runtime, :cdi or :hook behind "
				   "it where there is such a way, not '%s'%s",
				   argument, try_suggest(argument, suggestion));
		verb->way = argument;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static int doctor_run(struct session *session, const struct doctor_verb *verb)
{
	struct doctor *doctor = NULL;
	int r;

	r = doctor_new(session->context, verb->globals->config, verb->rootfs, &doctor);
	if (r == 0 && verb->report)
		r = report_write(session, doctor, verb->report);
	else if (r == 0)
		r = session_check(session, doctor_write(doctor, verb->format, verb->verbose, stdout));
	else
		r = session_check(session, r);
	if (r == 0 && !verb->report && !doctor_would_work(doctor))
		r = EXIT_STATUS_FAILURE;
	doctor_free(doctor);
	return r;
}

int verb_doctor(struct global_options *globals, int argc, char **argv)
{
	static const struct argp argp = {
		.options = options,
		.parser = doctor_parse,
		.children = global_options_children,
		.doc = "Say whether a GPU container would work here and, if not, the first thing to do.",
	};
	/* Warnings and faults of the configuration become findings. */
	_cleanup_session_ struct session session = {.mute = true, .lenient = true};
	struct doctor_verb verb = {.globals = globals, .format = CTR_GPU_FORMAT_TEXT};
	int r;

	global_options_parse_verb(globals, &argp, argc, argv, &verb);
	if (verb.way)
		return try_run(verb.way);
	output_set_json(verb.format == CTR_GPU_FORMAT_JSON);
	r = session_open(&session, globals);
	return r ? r : doctor_run(&session, &verb);
}

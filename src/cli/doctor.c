/* SPDX-License-Identifier: Apache-2.0 */

/* ctr-gpu doctor: whether a GPU container would work here, and the first thing to do if not. */

#include <errno.h>

#include "cli/output.h"
#include "cli/report.h"
#include "cli/session.h"
#include "cli/try.h"
#include "cli/verbs.h"

enum {
	KEY_JSON = 0x200,
	KEY_REPORT,
	KEY_ROOTFS,
	KEY_TRY,
};

struct doctor {
	struct globals *globals;
	const char *rootfs, *way, *report;
	enum ctr_gpu_format format;
};

static const struct argp_option options[] = {
	{"json", KEY_JSON, NULL, 0, "The same findings for programs", 0},
	{"rootfs", KEY_ROOTFS, "DIR", 0, "Look at an image, too: the root directory of one that is unpacked or mounted", 0},
	{"report", KEY_REPORT, "FILE", OPTION_ARG_OPTIONAL, "Write one text file for a bug report (ctr-gpu-report.txt)", 0},
	{"try", KEY_TRY, "ENGINE[:DOOR]", 0, "Run a container with a GPU, and show what arrived: docker, podman or containerd; gpus, runtime, cdi or hook", 0},
	{0},
};

static error_t parse(int key, char *argument, struct argp_state *state)
{
	struct doctor *doctor = state->input;

	switch (key) {
	case KEY_JSON:
		doctor->format = CTR_GPU_FORMAT_JSON;
		return 0;
	case KEY_ROOTFS:
		doctor->rootfs = argument;
		return 0;
	case KEY_REPORT:
		doctor->report = argument ? argument : "ctr-gpu-report.txt";
		return 0;
	case KEY_TRY:
		if (!try_find(argument))
			argp_error(state, "--try is docker, podman or containerd, with :gpus, :runtime, :cdi or :hook behind it where there is such a way, not '%s'", argument);
		doctor->way = argument;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static int run(struct session *session, const struct doctor *doctor)
{
	int result;

	result = ctr_gpu_doctor_new(session->context, doctor->globals->config, doctor->rootfs, &session->doctor);
	if (!result && doctor->report)
		return report_write(session, doctor->report);
	if (!result)
		result = ctr_gpu_doctor_write(session->doctor, doctor->format, stdout);
	if (result)
		return session_check(session, result);
	return ctr_gpu_doctor_would_work(session->doctor) ? 0 : EXIT_STATUS_FAILURE;
}

int verb_doctor(struct globals *globals, int argc, char **argv)
{
	static const struct argp argp = {
		.options = options, .parser = parse, .children = globals_children,
		.doc = "Say whether a GPU container would work here and, if not, the first thing to do.",
	};
	/* Warnings and the configuration's faults are findings. */
	_cleanup_session_ struct session session = {.mute = true, .lenient = true};
	struct doctor doctor = {.globals = globals, .format = CTR_GPU_FORMAT_TEXT};
	int status;

	globals_parse_verb(globals, &argp, argc, argv, &doctor);
	if (doctor.way)
		return try_run(doctor.way);
	status = session_open(&session, globals);
	return status ? status : run(&session, &doctor);
}

/* SPDX-License-Identifier: Apache-2.0 */

/* ctr-gpu cdi: the commands list and check, on the specs there are and whether they would work; the table. */

#include "cli/verbs.h"

#include <stdlib.h>

#include "base/fd.h"
#include "cli/output.h"
#include "cli/session.h"

enum {
	KEY_JSON = 0x200,
	KEY_SPEC_DIR,
	KEY_ENGINE,
};

enum { DIRECTORIES_MAX = 16, FILES_MAX = 64 };

struct spec_report {
	const char *directories[DIRECTORIES_MAX]; /* none: the usual ones */
	size_t directory_count;
	const char *files[FILES_MAX];
	size_t file_count;
	const char *engine;
	enum ctr_gpu_format format;
	bool check;
};

#define COMMON_OPTIONS                                                                \
	{"spec-dir",                                                                  \
	 KEY_SPEC_DIR,                                                                \
	 "DIR",                                                                       \
	 0,                                                                           \
	 "Read this directory instead of /etc/cdi and /var/run/cdi; may be repeated", \
	 0},                                                                          \
	{                                                                             \
		"json", KEY_JSON, NULL, 0, "For programs", 0                          \
	}

static const struct argp_option list_options[] = {COMMON_OPTIONS, {0}};
static const struct argp_option check_options[] = {
	COMMON_OPTIONS,
	{"engine", KEY_ENGINE, "NAME:VERSION", 0,
	 "This engine must be able to load them: podman:4.3, docker:28.2, containerd:1.7, …", 0},
	{0},
};

static error_t cdi_report_parse(int key, char *argument, struct argp_state *state)
{
	struct spec_report *report = state->input;

	switch (key) {
	case KEY_JSON:
		report->format = CTR_GPU_FORMAT_JSON;
		return 0;
	case KEY_SPEC_DIR:
		/* A script's variable that is not set. */
		if (!*argument)
			argp_error(state, "--spec-dir is a directory; it is empty");
		if (report->directory_count == DIRECTORIES_MAX)
			argp_error(state, "--spec-dir is given too often");
		report->directories[report->directory_count++] = argument;
		return 0;
	case KEY_ENGINE:
		report->engine = argument;
		return 0;
	case ARGP_KEY_ARG:
		if (!report->check)
			argp_error(state, "'%s' is one argument too many", argument);
		if (report->file_count == FILES_MAX)
			argp_error(state, "these are too many files; name their directory with --spec-dir");
		report->files[report->file_count++] = argument;
		return 0;
	case ARGP_KEY_END:
		if (report->file_count > 0 && report->directory_count > 0)
			argp_error(state, "files and --spec-dir exclude each other");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static int cdi_report_check_specs(struct session *session, const char *engine)
{
	int r = ctr_gpu_host_new(session->context, &session->host);

	/* On a host without a GPU our specs do not match; that is a finding, not an error. */
	return r && r != CTR_GPU_E_NO_DEVICE ? r : ctr_gpu_cdi_report_check(session->cdi, session->host, engine);
}

/* The usual directories may be missing, those of --spec-dir must exist. */
static void cdi_report_warn_of_directories(const struct spec_report *report)
{
	for (size_t i = 0; i < report->directory_count; i++) {
		_cleanup_dir_ DIR *stream = opendir(report->directories[i]);

		if (!stream)
			(void)output_print("warning: cannot read the directory %s: %m", report->directories[i]);
	}
}

static int cdi_report_run(struct session *session, const struct spec_report *report)
{
	const char *const *directories = report->directory_count > 0 ? report->directories : cdi_directories;
	size_t count = report->file_count > 0 ? 0 : report->directory_count > 0 ? report->directory_count : 2;
	int r, exit_status;

	cdi_report_warn_of_directories(report);
	r = ctr_gpu_cdi_report_new(session->context, &session->cdi);
	for (size_t i = 0; i < report->file_count && !r; i++)
		r = ctr_gpu_cdi_report_read_file(session->cdi, report->files[i]);
	for (size_t i = 0; i < count && !r; i++)
		r = ctr_gpu_cdi_report_read_directory(session->cdi, directories[i]);
	if (!r && report->check)
		r = cdi_report_check_specs(session, report->engine);
	if (!r)
		r = ctr_gpu_cdi_report_write(session->cdi, report->format, stdout);
	exit_status = session_check(session, r);
	return !exit_status && report->check && !ctr_gpu_cdi_report_is_fine(session->cdi) ? EXIT_STATUS_FAILURE
											  : exit_status;
}

static int cdi_report_on_specs(const struct argp *argp, bool check_them, struct global_options *globals, int argc,
			       char **argv)
{
	_cleanup_session_ struct session session = {0};
	struct spec_report report = {.format = CTR_GPU_FORMAT_TEXT, .check = check_them};
	int r;

	global_options_parse_verb(globals, argp, argc, argv, &report);
	output_set_json(report.format == CTR_GPU_FORMAT_JSON);
	r = session_open(&session, globals);
	return r ? r : cdi_report_run(&session, &report);
}

static int cdi_verb_list(struct global_options *globals, int argc, char **argv)
{
	static const struct argp argp = {
		.options = list_options,
		.parser = cdi_report_parse,
		.children = global_options_children,
		.doc = "List the CDI specs of this host, and which device comes from which.",
	};

	return cdi_report_on_specs(&argp, false, globals, argc, argv);
}

static int cdi_verb_check(struct global_options *globals, int argc, char **argv)
{
	static const struct argp argp = {
		.options = check_options,
		.parser = cdi_report_parse,
		.args_doc = "[FILE...]",
		.children = global_options_children,
		.doc = "Find out whether CDI specs would work. The exit status is 0 only if no error is found.",
	};

	return cdi_report_on_specs(&argp, true, globals, argc, argv);
}

/* ---- the table ---- */

static const struct verb commands[] = {
	{"generate", "", "Write specs of the GPUs of this host", cdi_verb_generate},
	{"list", "", "List specs, and which device comes from which", cdi_verb_list},
	{"check", " [FILE...]", "Find out whether specs would work", cdi_verb_check},
	{0},
};

int verb_cdi(struct global_options *globals, int argc, char **argv)
{
	static const struct argp argp = {
		.parser = verb_parse,
		.args_doc = "COMMAND [ARGUMENT...]",
		.children = global_options_children,
		.help_filter = verb_help_filter,
		.doc = "Write, list and check CDI specs, which tell engines the GPUs of this host.\v"
		       "'ctr-gpu cdi COMMAND --help' shows a command's own options; ctr-gpu-cdi(1) explains them all.",
	};

	return verb_run(&argp, commands, "ctr-gpu cdi", globals, argc, argv);
}

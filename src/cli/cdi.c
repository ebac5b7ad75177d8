/* SPDX-License-Identifier: Apache-2.0 */

/* ctr-gpu cdi: generate makes specs; list and check say which there are and whether they would work. */

#include "cli/verbs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/paths.h"
#include "base/print.h"
#include "base/str.h"
#include "cli/output.h"
#include "cli/session.h"
#include "engines/engine.h"
#include "lib/context.h"

/* ---- generate ---- */

/* A spec for each vendor of the host's adapters. */

enum {
	KEY_OUTPUT = 0x200,
	KEY_KIND,
	KEY_NO_HOOKS,
	KEY_HOOK,
	KEY_CAPABILITIES,
	KEY_IMEX_CHANNEL,
	KEY_GROUPS,
};

struct generate {
	const char *output; /* NULL: the usual directory; "-": standard output */
	const char *kind;   /* NULL: one of each vendor */
	const char *hook, *capabilities, *imex_channels;
	bool no_hooks, groups;
};

static const struct argp_option options[] = {
	{"output", KEY_OUTPUT, "PATH", 0,
	 "Write to this file or directory, or to standard output for - (/etc/cdi; /var/run/cdi where /etc is "
	 "read-only)",
	 0},
	{"kind", KEY_KIND, "VENDOR/CLASS", 0,
	 "Write a spec of this kind only: of nvidia.com, amd.com and the like that vendor's adapters, of any other "
	 "vendor all",
	 0},
	{"no-hooks", KEY_NO_HOOKS, NULL, 0, "Write a spec that needs no hook, and is right for today's driver only", 0},
	{"hook", KEY_HOOK, "PATH", 0, "Where engines find ctr-gpu-hook (beside this program)", 0},
	{"capabilities", KEY_CAPABILITIES, "LIST", 0,
	 "Parts of the driver whose device nodes, or without hooks files, are in the spec (utility,compute; without "
	 "hooks all)",
	 0},
	{"imex-channel", KEY_IMEX_CHANNEL, "NUMBERS", 0, "Give every device these IMEX channels, too", 0},
	{"groups", KEY_GROUPS, NULL, 0,
	 "Give containers the groups by which nodes such as /dev/dri/renderD128 are opened (CDI 0.7)", 0},
	{0},
};

const char *const cdi_directories[] = {PATH_CDI, PATH_CDI_RUN, NULL};

/* Whether that is gone after a boot, when `ctr-gpu refresh` writes there again. */
static bool cdi_is_volatile(void)
{
	struct statvfs fs;

	/* What /etc/cdi is on, or would be. */
	return (statvfs(cdi_directories[0], &fs) == 0 || (errno == ENOENT && statvfs("/etc", &fs) == 0)) &&
	       (fs.f_flag & ST_RDONLY);
}

const char *cdi_directory(void)
{
	return cdi_directories[cdi_is_volatile()];
}

static error_t cdi_generate_parse(int key, char *argument, struct argp_state *state)
{
	struct generate *generate = state->input;

	switch (key) {
	case KEY_OUTPUT:
		/* A script's variable that is not set. */
		if (!*argument)
			argp_error(state, "--output is a file, a directory, or - for standard output; it is empty");
		generate->output = argument;
		return 0;
	case KEY_KIND:
		generate->kind = argument;
		return 0;
	case KEY_NO_HOOKS:
		generate->no_hooks = true;
		return 0;
	case KEY_HOOK:
		generate->hook = argument;
		return 0;
	case KEY_CAPABILITIES:
		generate->capabilities = argument;
		return 0;
	case KEY_IMEX_CHANNEL:
		request_check_channels(state, argument, true);
		generate->imex_channels = argument;
		return 0;
	case KEY_GROUPS:
		generate->groups = true;
		return 0;
	case ARGP_KEY_END:
		if (generate->no_hooks && generate->hook)
			argp_error(state, "--no-hooks and --hook exclude each other");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static int cdi_generate_make_request(struct session *session, const struct generate *generate)
{
	const char *capabilities = generate->capabilities ? generate->capabilities : generate->no_hooks ? "all" : "";
	int r;

	r = ctr_gpu_request_new(session->context, &session->request);
	if (!r)
		r = ctr_gpu_request_set_devices(session->request, "all");
	if (!r)
		r = ctr_gpu_request_set_capabilities(session->request, capabilities);
	if (!r && generate->imex_channels)
		r = ctr_gpu_request_set_imex_channels(session->request, generate->imex_channels);
	if (!r)
		session->request->data.groups = generate->groups;
	return r;
}

/* Docker's containerd gets no specs: Docker reads them itself. */
static bool cdi_generate_reads_specs(const struct engine *engine)
{
	return engine->releases && engine_is_installed(engine) &&
	       (engine != &engine_containerd || !engine_is_installed(&engine_docker));
}

/* An engine refuses all of a spec of a version that it does not know. Return: the exit status. */
static int cdi_generate_check_engines(void)
{
	static const char version_of_groups[] = "0.7.0";

	for (size_t i = 0; engine_list[i]; i++) {
		_cleanup_free_ char *version = engine_version(engine_list[i], false);
		const struct engine_release *release =
			version && cdi_generate_reads_specs(engine_list[i])
				? engine_cdi(engine_list[i], engine_version_number(version))
				: NULL;

		if (release && strverscmp(release->cdi, version_of_groups) < 0)
			return output_print_advised(
				("%s %s knows CDI up to %s, and would refuse a spec with groups, which is of %s",
				 engine_list[i]->label, version, release->cdi, version_of_groups),
				("Leave --groups out, or write where only other engines look, with --output."));
	}
	return 0;
}

static int cdi_generate_write_spec(struct session *session, const struct generate *generate, const char *kind,
				   const char *output)
{
	_cleanup_free_ char *path = NULL;
	int r;

	if (!output)
		return ctr_gpu_cdi_write(session->context, session->host, session->request, kind, generate->hook,
					 stdout);
	r = ctr_gpu_cdi_save(session->context, session->host, session->request, kind, generate->hook, output, &path);
	if (!r)
		print_safe(stdout, "%s: %s%s\n", kind, path,
			   !generate->output && cdi_is_volatile() ? ", until the next boot, since /etc is read-only"
								  : "");
	return r;
}

static bool cdi_generate_is_directory(const char *output)
{
	struct stat st;

	return output[strlen(output) - 1] == '/' || (stat(output, &st) == 0 && S_ISDIR(st.st_mode));
}

/* Return: 0, with NULL for standard output; the exit status. */
static int cdi_generate_find_output(const struct generate *generate, char **ret)
{
	/* A slash at its end means a directory, and stays. */
	if (!generate->output)
		return asprintf(ret, "%s/", cdi_directory()) < 0 ? output_no_memory() : 0;
	if (strcmp(generate->output, "-") == 0)
		return 0;
	*ret = path_absolute(generate->output);
	return *ret ? 0 : output_print("cannot find out where to write: %m");
}

/* Removes the spec of a vendor whose adapters are gone. */
static int cdi_generate_remove_stale(const struct session *session, const char *directory)
{
	_cleanup_free_ char *removed = NULL;
	int r = ctr_gpu_cdi_remove_stale(session->context, session->host, directory, &removed);

	if (r || !*removed)
		return r;
	for (char *end = removed; (end = strchr(end, '\n'));)
		*end = ' ';
	print_safe(stdout, "removed from %s, since these adapters are gone: %s\n", directory, removed);
	return 0;
}

/* Return: "nvidia.com/gpu,amd.com/gpu"; NULL without memory. */
static char *cdi_generate_list_kinds(const struct session *session, const struct generate *generate)
{
	_cleanup_free_ char *kinds = NULL;

	if (generate->kind)
		return strdup(generate->kind);
	if (ctr_gpu_cdi_kinds(session->host, &kinds) != 0)
		return NULL;
	/* Without a usable adapter, ctr_gpu_cdi_write() knows why there is none. */
	return *kinds ? steal_ptr(kinds) : strdup("nvidia.com/gpu");
}

static int cdi_generate_write_specs(struct session *session, const struct generate *generate, const char *output,
				    bool directory)
{
	_cleanup_free_ char *kinds = cdi_generate_list_kinds(session, generate);
	int r = 0;

	if (!kinds)
		return output_no_memory();
	if (strchr(kinds, ',') && !directory)
		return output_print_advised(
			("this host has adapters of several vendors, and a file holds one spec: %s", kinds),
			("Choose with --kind, or write to a directory."));
	for (char *rest = kinds, *kind; !r && (kind = strsep(&rest, ","));)
		r = cdi_generate_write_spec(session, generate, kind, output);
	return session_check(session, r);
}

static int cdi_generate_run(struct session *session, const struct generate *generate)
{
	_cleanup_free_ char *output = NULL;
	bool directory;
	int r, exit_status = cdi_generate_find_output(generate, &output);

	if (!exit_status && generate->groups && !generate->output)
		exit_status = cdi_generate_check_engines();
	if (exit_status)
		return exit_status;
	directory = output && cdi_generate_is_directory(output);
	r = cdi_generate_make_request(session, generate);
	if (!r)
		r = ctr_gpu_host_new(session->context, &session->host);
	exit_status = session_check(session, r);
	if ((!r || r == CTR_GPU_E_NO_DEVICE) && !generate->kind && directory) {
		r = cdi_generate_remove_stale(session, output);
		exit_status = exit_status ? exit_status : session_check(session, r);
	}
	return exit_status ? exit_status : cdi_generate_write_specs(session, generate, output, directory);
}

static int cdi_verb_generate(struct global_options *globals, int argc, char **argv)
{
	static const struct argp argp = {
		.options = options,
		.parser = cdi_generate_parse,
		.children = global_options_children,
		.doc = "Write CDI specs, which tell engines the GPUs of this host.",
	};
	_cleanup_session_ struct session session = {0};
	_cleanup_free_ char *hook = NULL;
	struct generate generate = {0};
	int r;

	global_options_parse_verb(globals, &argp, argc, argv, &generate);
	r = session_open(&session, globals);
	if (r)
		return r;
	if (!generate.no_hooks && !generate.hook) {
		generate.hook = hook = path_of_program("ctr-gpu-hook");
		if (!hook)
			return output_no_memory();
		if (access(hook, X_OK) < 0)
			return output_print_advised(
				("the hook %s is missing", hook),
				("Name it with --hook=PATH, or write a spec without hooks with --no-hooks."));
	}
	return cdi_generate_run(&session, &generate);
}

/* ---- list and check ---- */

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
			output_note("warning: cannot read the directory %s: %m", report->directories[i]);
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

/* SPDX-License-Identifier: Apache-2.0 */

/* ctr-gpu doctor: whether a GPU container would work here, and the first thing to do if not. */

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/paths.h"
#include "base/print.h"
#include "base/str.h"
#include "cli/config_file.h"
#include "cli/doctor/run.h"
#include "cli/output.h"
#include "cli/session.h"
#include "cli/try/try.h"
#include "cli/verbs.h"
#include "engines/config.h"
#include "engines/text.h"
#include "system/trusted_file.h"

/* ---- report: its text ---- */

/*
 * One text file for a bug report: this machine, what doctor says, and engines' settings, without secrets. People
 * publish it. Engines' configuration has proxies, registries and their passwords in it: only the settings
 * named here are shown, and nothing of the environment.
 */

/* The default name. Root creates the file only in a directory that root alone may change. */
#define REPORT_FILE "ctr-gpu-report.txt"

enum {
	LINE_SIZE = 1024,
	TICK_MS = 20,
	HOST_TICKS = 2000, /* above what a driver's libraries are given to answer */
	MEMORY_MAX = 256 << 20,
};

static void report_title(FILE *file, const char *text)
{
	(void)fputc('\n', file);
	print_safe(file, "==== %s\n", text);
}

/* Text of a file or a library, without control characters; it must not look like a title. */
static void report_put_text(FILE *file, const char *text)
{
	while (*text) {
		size_t length = *text == '\n' || *text == '\t' ? 1 : printable_length(text);

		if (length == 0)
			(void)fputc('?', file);
		(void)fwrite(text, 1, length, file);
		text += length > 0 ? length : 1;
	}
}

/* ---- report: the machine ---- */

/* Writes the lines of a file that begin with one of @beginnings. */
static void report_put_lines(FILE *file, const char *path, const char *const *beginnings)
{
	FILE *from = fopen(path, "re");
	char line[LINE_SIZE];

	while (from && fgets(line, sizeof(line), from))
		for (size_t i = 0; beginnings[i]; i++)
			if (strncmp(line, beginnings[i], strlen(beginnings[i])) == 0)
				report_put_text(file, line);
	if (from)
		(void)fclose(from);
}

static void report_put_machine(FILE *file)
{
	static const char *const release[] = {"ID=", "VERSION_ID=", "PRETTY_NAME=", NULL}, *const modules[] = {
												   "nvidia", "dxgkrnl",
												   "nouveau", NULL};
	struct utsname name = {0};

	report_title(file, "machine");
	(void)uname(&name);
	print_safe(file, "ctr-gpu %s\n", ctr_gpu_version());
	print_safe(file, "%s %s %s %s\n", name.sysname, name.release, name.version, name.machine);
	report_put_lines(file, "/etc/os-release", release);
	report_put_lines(file, "/proc/modules", modules);
}

/* ---- report: what engines are told ---- */

/* The last name of a path, and a pattern for the one before it. */
static bool report_tells(const char *path)
{
	static const char *const names[] = {
		"version",
		"runtime",
		"default-runtime",
		"default_runtime",
		"default_runtime_name",
		"runtime_type",
		"runtimeType",
		"runtime_path",
		"path",
		"BinaryName",
		"SystemdCgroup",
		"enable_cdi",
		"cdi",
		"cdi_spec_dirs",
		"cdi-spec-dirs",
		"hooks_dir",
		"disabled_plugins",
		"cgroup_manager",
		"exec-opts",
		"userns-remap",
		"storage-driver",
		"live-restore",
	};
	const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
	static const char above[] = "engine/runtimes/";

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(names[i], name) == 0)
			return strcmp(name, "path") != 0 || strncmp(path, "runtimes/", strlen("runtimes/")) == 0;
	return strncmp(path, above, sizeof(above) - 1) == 0 && !strchr(path + sizeof(above) - 1, '/');
}

static void report_put_setting(FILE *file, const char *path, const json_t *value)
{
	_cleanup_free_ char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);

	(void)fputs("  ", file);
	report_put_text(file, path);
	(void)fputs(" = ", file);
	report_put_text(file, text ? text : "?");
	(void)fputc('\n', file);
}

/* Visits objects; everything else is a setting. Return: how many were left out. */
static size_t report_put_json(FILE *file, const char *path, json_t *object)
{
	size_t hidden = 0;
	const char *name;
	json_t *value;

	json_object_foreach (object, name, value) {
		_cleanup_free_ char *below = text_buffer_format("%s%s%s", path, *path ? "/" : "", name);

		if (!below)
			return hidden;
		if (json_is_object(value))
			hidden += report_put_json(file, below, value);
		else if (report_tells(below))
			report_put_setting(file, below, value);
		else
			hidden++;
	}
	return hidden;
}

static void report_put_file(FILE *file, const char *path)
{
	__attribute__((cleanup(config_file_close))) struct config_file config = {0};
	_cleanup_json_ json_t *json = NULL;
	struct text_buffer_error error;
	size_t hidden;

	if (access(path, F_OK) < 0)
		return;
	report_put_text(file, path);
	if (access(path, R_OK) < 0 || config_file_read(path, &config) != 0) {
		(void)fputs(": cannot be read\n", file);
		return;
	}
	(void)fputs(":\n", file);
	json = json_loadb(config.text.size ? config.text.data : "", config.text.size, 0, NULL);
	if (!json && toml_parse_read(&config.text, &json, &error) < 0) {
		(void)fputs("  is not valid\n", file);
		return;
	}
	hidden = report_put_json(file, "", json);
	if (hidden)
		(void)fprintf(file, "  (%zu other settings, left out)\n", hidden);
}

static void report_put_files(FILE *file, const char *pattern)
{
	glob_t found;

	if (!pattern || glob(pattern, 0, NULL, &found) != 0)
		return;
	for (size_t i = 0; i < found.gl_pathc; i++)
		report_put_file(file, found.gl_pathv[i]);
	globfree(&found);
}

static void report_put_engines(FILE *file)
{
	report_title(file, "what engines are told of runtimes, hooks and CDI");
	for (const struct engine *const *engine = engine_list; *engine; engine++) {
		_cleanup_daemon_ struct daemon daemon = DAEMON_NONE;
		const char *const *files = (*engine)->merged_files ? (*engine)->merged_files : (*engine)->files;

		for (; files && *files; files++)
			report_put_files(file, *files);
		report_put_files(file, (*engine)->imported);
		for (size_t i = 0; (*engine)->user_files && (*engine)->user_files[i]; i++) {
			_cleanup_free_ char *path = engine_user_file((*engine)->user_files[i]);

			report_put_files(file, path);
		}
		/* A daemon may have been told to read another file than the usual one. */
		if ((*engine)->option && daemon_find(&(*engine)->daemon, 0, &daemon) == 0) {
			_cleanup_free_ char *path = NULL;

			if (daemon_config(&daemon, (*engine)->option, (*engine)->letter, &path) == 0 && path)
				report_put_file(file, path);
		}
	}
}

/* ---- report: the host ---- */

static int report_write_host(struct session *session, FILE *file)
{
	int r;

	report_title(file, "inventory");
	r = ctr_gpu_host_new(session->context, &session->host);
	if (!r)
		r = ctr_gpu_host_write(session->host, CTR_GPU_FORMAT_TEXT, file);
	if (r)
		return r;
	report_title(file, "plan");
	r = ctr_gpu_request_new(session->context, &session->request);
	if (!r)
		r = ctr_gpu_request_set_devices(session->request, "all");
	if (!r)
		r = ctr_gpu_plan_new(session->context, session->request, session->host, &session->plan);
	return r ? r : ctr_gpu_plan_write(session->plan, CTR_GPU_FORMAT_TEXT, file);
}

/* In a child, as a driver's device or file system may hang, and keep a process where no signal reaches it. */
static void report_put_host(struct session *session, FILE *file)
{
	pid_t pid = fork(), ended = 0;

	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (report_write_host(session, file))
			report_put_text(file, ctr_gpu_context_message(session->context));
		(void)fputc('\n', file);
		_exit(fflush(file) != 0);
	}
	for (int i = 0; pid > 0 && ended == 0 && i < HOST_TICKS; i++) {
		ended = waitpid(pid, NULL, WNOHANG);
		if (ended == 0)
			(void)poll(NULL, 0, TICK_MS);
	}
	if (pid > 0 && ended != 0)
		return;
	(void)fputs("did not come to an end\n", file);
	if (pid > 0)
		(void)kill(pid, SIGKILL);
}

/* ---- report: all of it ---- */

static int report_fill(struct session *session, const struct doctor *doctor, FILE *file)
{
	/* Files of our own, which hold no secret. */
	static const struct {
		const char *title, *path;
	} own[] = {
		{"settings of ctr-gpu", PATH_CONFIG},
		{"last failure", PATH_RUN "/last-failure"},
	};
	(void)fputs("A report on GPU containers, by ctr-gpu doctor --report. Read it before you publish it: it has "
		    "paths and the names of GPUs.\n",
		    file);
	report_put_machine(file);
	report_title(file, "doctor");
	(void)doctor_write(doctor, CTR_GPU_FORMAT_TEXT, true, file);
	report_put_engines(file);
	for (size_t i = 0; i < ARRAY_SIZE(own); i++) {
		_cleanup_config_file_ struct config_file content = {0};

		report_title(file, own[i].title);
		if (access(own[i].path, R_OK) < 0 || config_file_read(own[i].path, &content) != 0)
			print_safe(file, "%s: %s\n", own[i].path, strerror(errno));
		else if (content.text.size)
			report_put_text(file, content.text.data);
	}
	if (fflush(file) != 0)
		return -1;
	report_put_host(session, file);
	return fflush(file) != 0 || ferror(file) ? -1 : 0;
}

/* Writes the file at the end, so that a user who interrupts a hanging driver gets no incomplete report. */
static int report_put_in_file(int memory, const char *path)
{
	/* Root may write it into another user's directory. */
	_cleanup_close_ int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	int r;

	if (fd < 0)
		return output_print_advised(("cannot make %s: %m", path),
					    ("Name another file: --report=FILE, or - for standard output."));
	r = fd_copy(memory, fd, MEMORY_MAX);
	if (r < 0) {
		(void)unlink(path);
		errno = -r;
		return output_print("cannot write %s: %m", path);
	}
	print_safe(stdout, "%s has the report; read it before you publish it\n", path);
	return 0;
}

/* Refuses another user's directory: its owner could have made a link at that name, and could read the report. */
static int report_check_place(const char *path)
{
	_cleanup_free_ char *absolute = geteuid() == 0 && streq(path, REPORT_FILE) ? path_absolute(path) : NULL;

	if (!absolute || trusted_file_look(absolute, TRUSTED_FILE_ROOT_ONLY) != -EPERM)
		return 0;
	return output_print_advised(("this directory is not root's alone, and root writes no file there unasked"),
				    ("Have your shell make it: sudo ctr-gpu doctor --report=- >" REPORT_FILE));
}

/*
 * report_write() - write the file
 * @session: with what doctor found
 * @path:    a file that does not exist; "-" for standard output
 *
 * Return: 0 or the exit status after a message was printed.
 */
static int report_write(struct session *session, const struct doctor *doctor, const char *path)
{
	_cleanup_close_ int memory = -1;
	_cleanup_fclose_ FILE *file = NULL;
	struct stat st;
	int r;

	if (strcmp(path, "-") == 0)
		return output_finish(report_fill(session, doctor, stdout));
	r = report_check_place(path);
	if (r)
		return r;
	if (lstat(path, &st) == 0)
		return output_print_advised(("%s is there already", path),
					    ("Name another file: --report=FILE, or - for standard output."));
	memory = memfd_create("report", MFD_CLOEXEC);
	file = memory < 0 ? NULL : fdopen(dup(memory), "a");
	if (!file || report_fill(session, doctor, file) < 0)
		return output_print("cannot write the report: %m");
	return report_put_in_file(memory, path);
}

/* ---- the command ---- */

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

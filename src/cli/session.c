/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/session.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "cli/output.h"
#include "cli/verbs.h"
#include "lib/context.h"
#include "process/sanitise.h"

/* ---- global options ---- */

enum {
	/* Above the characters, so that argp makes no short option of it, and below its own keys. */
	LONG_ONLY = 0x1000,
	KEY_INVENTORY = 0x100,
	KEY_TIMEOUT,
};

/* clang-format off */
#define OPTIONS(flag) \
	{"config", 'c' | (flag), "FILE", 0, "Read FILE instead of /etc/ctr-gpu/config.json", 0}, \
	{"inventory", KEY_INVENTORY | (flag), "SOURCE", 0, \
	 "Who describes the adapters behind /dev/dxg: dxcore (the host's libdxcore), ioctl (the kernel), or auto", 0}, \
	{"root", 'r' | (flag), "DIR", 0, \
	 "Where a native driver is installed, such as /run/nvidia/driver (default: /)", 0}, \
	{"timeout", KEY_TIMEOUT | (flag), "SECONDS", 0, \
	 "How long a driver library may take to answer (default: 10)", 0}, \
	{"debug", 'd' | (flag), "FILE", OPTION_ARG_OPTIONAL, \
	 "Say what is looked at and decided, on standard error or in FILE", 0}

/* argp knows --help and -?. */
#define HELP {NULL, 'h', NULL, 0, "The same as --help", -1}
/* clang-format on */

static const struct argp_option options_before[] = {OPTIONS(0), HELP, {0}};
static const struct argp_option options_behind[] = {OPTIONS(LONG_ONLY), HELP, {0}};

static error_t global_options_take(struct global_options *globals, int key, char *argument,
				   const struct argp_state *state)
{
	static const char *const sources[] = {[CTR_GPU_INVENTORY_AUTO] = "auto",
					      [CTR_GPU_INVENTORY_DXCORE] = "dxcore",
					      [CTR_GPU_INVENTORY_IOCTL] = "ioctl"};
	char suggestion[SUGGESTION_SIZE], *end;
	double seconds;
	size_t source;

	switch (key) {
	case 'c':
		/* A script's variable that is not set. */
		if (!*argument)
			argp_error(state, "--config is a file; it is empty");
		globals->config = argument;
		return 0;
	case 'd':
		globals->debug = true;
		globals->debug_file = argument;
		return 0;
	case 'r':
		globals->driver_root = argument;
		return 0;
	case KEY_INVENTORY:
		for (source = 0; source < ARRAY_SIZE(sources) && strcmp(sources[source], argument) != 0; source++)
			;
		if (source == ARRAY_SIZE(sources))
			argp_error(state, "--inventory is auto, dxcore or ioctl, not '%s'%s", argument,
				   str_suggest(sources, ARRAY_SIZE(sources), argument, suggestion));
		globals->inventory = (enum ctr_gpu_inventory)source;
		globals->inventory_given = true;
		return 0;
	case KEY_TIMEOUT:
		seconds = strtod(argument, &end);
		if (end == argument || *end || !(seconds >= 0.001 && seconds <= (double)SETTINGS_LONGEST_S))
			argp_error(state, "--timeout is a number of seconds from 0.001 to %d, not '%s'",
				   SETTINGS_LONGEST_S, argument);
		globals->timeout_ms = (unsigned)(seconds * 1000);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* Only a parent's parser gives an argp child its input. Most parents have none for this one, so it is kept here. */
static struct global_options *behind_verb;

static error_t global_options_parse_before(int key, char *argument, struct argp_state *state)
{
	if (key == 'h')
		argp_state_help(state, stdout, ARGP_HELP_STD_HELP);
	return global_options_take(state->input, key, argument, state);
}

static error_t global_options_parse_behind(int key, char *argument, struct argp_state *state)
{
	if (key == ARGP_KEY_ARG)
		argp_error(state, "'%s' is one argument too many", argument);
	if (key == 'h')
		argp_state_help(state, stdout, ARGP_HELP_STD_HELP);
	if (!(key & LONG_ONLY))
		return ARGP_ERR_UNKNOWN;
	return global_options_take(state->input ? state->input : behind_verb, key & ~LONG_ONLY, argument, state);
}

const struct argp global_options_before_verb = {.options = options_before, .parser = global_options_parse_before};
const struct argp global_options_behind_verb = {.options = options_behind, .parser = global_options_parse_behind};
const struct argp_child global_options_children[] = {{&global_options_behind_verb, 0, "Options of every command:", 1},
						     {0}};

void global_options_parse_verb(struct global_options *globals, const struct argp *argp, int argc, char **argv,
			       void *input)
{
	error_t error;

	behind_verb = globals;
	suggest_option(argp, argv[0], argc, argv);
	error = argp_parse(argp, argc, argv, 0, NULL, input);
	if (error) {
		errno = error;
		exit(output_print("cannot read the command line: %m"));
	}
}

/* ---- session ---- */

void session_close(struct session *session)
{
	session->cdi = ctr_gpu_cdi_report_unref(session->cdi);
	session->container = ctr_gpu_container_unref(session->container);
	session->plan = ctr_gpu_plan_unref(session->plan);
	session->host = ctr_gpu_host_unref(session->host);
	session->request = ctr_gpu_request_unref(session->request);
	session->context = ctr_gpu_context_unref(session->context);
	if (session->log && fclose(session->log))
		output_note("the log is not complete: %m");
	session->log = NULL;
}

static void session_write_line(void *user, enum ctr_gpu_log_level level, const char *text)
{
	const struct session *session = user;

	if (level == CTR_GPU_LOG_WARNING && !session->mute)
		(void)fprintf(stderr, "%s: warning: %s\n", output_name(), text);
	if (session->debug && (session->log || session->mute || level == CTR_GPU_LOG_DEBUG))
		(void)fprintf(session->log ? session->log : stderr, "%s: %s: %s\n", output_name(),
			      level == CTR_GPU_LOG_WARNING ? "warning" : "debug", text);
}

void session_log(const struct session *session, const char *format, ...)
{
	va_list arguments;
	char *text;

	va_start(arguments, format);
	if (vasprintf(&text, format, arguments) < 0)
		text = NULL;
	va_end(arguments);
	if (text)
		session_write_line((void *)session, CTR_GPU_LOG_DEBUG, text);
	free(text);
}

static FILE *session_open_log(const char *path)
{
	int fd = fd_open_log(path);

	errno = fd < 0 ? -fd : 0;
	return fd < 0 ? NULL : fdopen(fd, "a");
}

int session_open(struct session *session, const struct global_options *globals)
{
	int r;

	if (ctr_gpu_context_new(&session->context) < 0)
		return output_no_memory();
	session->debug = globals->debug;
	if (globals->debug_file && !(session->log = session_open_log(globals->debug_file)))
		return output_print("cannot write the log to %s: %m", globals->debug_file);
	ctr_gpu_context_set_log(session->context, session_write_line, session);
	r = ctr_gpu_context_load_config(session->context, globals->config);
	if (r && !session->lenient)
		return session_check(session, r);
	if (globals->inventory_given)
		ctr_gpu_context_set_inventory(session->context, globals->inventory);
	if (globals->timeout_ms)
		ctr_gpu_context_set_driver_timeout(session->context, globals->timeout_ms);
	if (globals->driver_root)
		return session_check(session, ctr_gpu_context_set_driver_root(session->context, globals->driver_root));
	return 0;
}

int session_enter(enum phase phase)
{
	errno = -phase_enter(phase);
	return errno ? output_print("cannot give up capabilities: %m") : 0;
}

void session_run_in_child(struct session *session, int (*work)(void *user), void *user)
{
	int r, exit_status;

	r = ctr_gpu_run_in_child(session->context, work, user, &exit_status);
	if (r) {
		exit_status = output_error(session->context, r);
		deadline_let_go();
	}
	(void)fflush(stdout);
	/* The child has closed standard output, whose descriptor is the same. */
	_exit(exit_status);
}

int session_check(const struct session *session, int r)
{
	return r ? output_error(session->context, r) : 0;
}

/* ---- request ---- */

enum {
	KEY_CAPABILITIES = 0x100,
	KEY_COMPAT32,
	KEY_IMEX_CHANNEL,
};

static const struct argp_option options[] = {
	{"device", 'd', "IDS", 0,
	 "Devices: all, none (driver libraries only), or a list of indexes, names, UUIDs, PCI addresses, LUIDs, "
	 "names of CDI, vendor:NAME, npu:INDEX",
	 0},
	{"require", 'r', "EXPR", 0, "A condition on the driver, such as 'cuda>=12.4'; may be repeated", 0},
	{"capabilities", KEY_CAPABILITIES, "LIST", 0,
	 "Parts of the driver: compute, compat32, graphics, utility, video, display, ngx, or all (default: "
	 "utility,compute)",
	 0},
	{"imex-channel", KEY_IMEX_CHANNEL, "NUMBERS", 0,
	 "IMEX channels, for memory shared with other machines; may be repeated", 0},
	{NULL, 0, NULL, 0, "One part of the driver each; may be combined:", 0},
	{"compute", 'c', NULL, 0, "CUDA and OpenCL", 0},
	{"utility", 'u', NULL, 0, "nvidia-smi and the management library", 0},
	{"video", 'v', NULL, 0, "Video encoding and decoding", 0},
	{"graphics", 'g', NULL, 0, "OpenGL, Vulkan, Direct3D", 0},
	{"display", 'D', NULL, 0, "X11 and Wayland", 0},
	{"ngx", 'n', NULL, 0, "NGX", 0},
	{"compat32", KEY_COMPAT32, NULL, 0, "32-bit libraries too", 0},
	{0},
};

static const struct {
	int key;
	const char *name;
} capabilities[] = {
	{'c', "compute"}, {'u', "utility"},           {'v', "video"}, {'g', "graphics"}, {'D', "display"},
	{'n', "ngx"},     {KEY_COMPAT32, "compat32"},
};

error_t request_list_append(char **list, const char *item)
{
	char *longer;

	if (asprintf(&longer, "%s%s%s", *list ? *list : "", *list && **list ? "," : "", item) < 0)
		return ENOMEM;
	free(*list);
	*list = longer;
	return 0;
}

void request_check_channels(const struct argp_state *state, const char *text, bool words)
{
	if (!text[strspn(text, "0123456789,")] ||
	    (words && (strcmp(text, "all") == 0 || strcmp(text, "none") == 0 || strcmp(text, "void") == 0)))
		return;
	argp_error(state, "--imex-channel is a list of numbers such as 0,1%s, not '%s'", words ? ", all, or none" : "",
		   text);
}

static error_t request_parse(int key, char *argument, struct argp_state *state)
{
	struct request_options *request = state->input;
	char **more;

	switch (key) {
	case 'd':
		return request_list_append(&request->devices, argument);
	case 'r':
		more = reallocarray(request->requirements, request->requirement_count + 1, sizeof(*more));
		if (!more)
			return ENOMEM;
		request->requirements = more;
		more[request->requirement_count] = strdup(argument);
		return more[request->requirement_count] ? (request->requirement_count++, 0) : ENOMEM;
	case KEY_CAPABILITIES:
		return request_list_append(&request->capabilities, argument);
	case KEY_IMEX_CHANNEL:
		request_check_channels(state, argument, true);
		return request_list_append(&request->imex_channels, argument);
	default:
		for (size_t i = 0; i < sizeof(capabilities) / sizeof(capabilities[0]); i++)
			if (capabilities[i].key == key)
				return request_list_append(&request->capabilities, capabilities[i].name);
		return ARGP_ERR_UNKNOWN;
	}
}

const struct argp request_argp = {.options = options, .parser = request_parse};
const struct argp_child request_children[] = {
	{&global_options_behind_verb, 0, "Options of every command:", 2},
	{&request_argp, 0, NULL, 1},
	{0},
};

bool request_parse_pid(const char *text, pid_t *ret)
{
	char *end;
	long pid;

	errno = 0;
	pid = strtol(text, &end, 10);
	if (errno || end == text || *end || pid <= 0 || pid > INT_MAX)
		return false;
	*ret = (pid_t)pid;
	return true;
}

void request_options_clear(struct request_options *request)
{
	for (size_t i = 0; i < request->requirement_count; i++)
		free(request->requirements[i]);
	for (size_t i = 0; request->environment && request->environment[i]; i++)
		free(request->environment[i]);
	free(request->environment);
	free(request->requirements);
	free(request->capabilities);
	free(request->devices);
	free(request->imex_channels);
	*request = (struct request_options){0};
}

int request_plan(struct session *session, const struct request_options *request)
{
	int r;

	/* A script's variable that is not set; programs that call NVIDIA's mean nothing by it. */
	if (request->devices && !*request->devices && !request->domain) {
		(void)output_print_advised(("--device is empty"),
					   ("It is all, none, or names of devices: see ctr-gpu info."));
		return EXIT_STATUS_USAGE;
	}
	r = ctr_gpu_request_new(session->context, &session->request);
	if (!r)
		r = ctr_gpu_request_set_devices(session->request, request->devices ? request->devices : "all");
	if (!r)
		session->request->data.domain = request->domain;
	if (!r && request->capabilities)
		r = ctr_gpu_request_set_capabilities(session->request, request->capabilities);
	if (!r && request->environment)
		r = request_read_mode(session->request, (const char *const *)request->environment);
	if (!r)
		ctr_gpu_request_set_mig(session->request, request->mig);
	if (!r && request->imex_channels)
		r = ctr_gpu_request_set_imex_channels(session->request, request->imex_channels);
	for (size_t i = 0; !r && i < request->requirement_count; i++)
		r = ctr_gpu_request_add_requirement(session->request, request->requirements[i]);
	if (!r)
		r = ctr_gpu_host_new(session->context, &session->host);
	if (!r)
		r = ctr_gpu_plan_new(session->context, session->request, session->host, &session->plan);
	return session_check(session, r);
}

int request_prepare(struct session *session, const struct request_options *request)
{
	int exit_status = request_plan(session, request);

	if (!exit_status)
		exit_status = session_check(session, ctr_gpu_plan_prepare(session->context, session->plan));
	return exit_status ? exit_status : session_enter(PHASE_GIVE);
}

int request_give(struct session *session, bool no_cgroups, bool json)
{
	int r;

	if (no_cgroups)
		ctr_gpu_container_leave_cgroup(session->container);
	r = ctr_gpu_plan_apply(session->context, session->plan, session->container);
	return !r && json ? ctr_gpu_plan_write(session->plan, CTR_GPU_FORMAT_JSON, stdout) : r;
}

/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/session.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "cli/output.h"
#include "lib/context.h"

enum {
	KEY_CAPABILITIES = 0x100,
	KEY_COMPAT32,
	KEY_IMEX_CHANNEL,
};

static const struct argp_option options[] = {
	{"device", 'd', "IDS", 0,
	 "Devices: all, none (driver libraries only), or a list of indexes, LUIDs, PCI addresses and UUIDs", 0},
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

/* Checks the list's form here, since the library ignores the list on a host without IMEX channels. */
static bool request_is_channels(const char *text)
{
	return !*text || strcmp(text, "all") == 0 || strcmp(text, "none") == 0 || strcmp(text, "void") == 0 ||
	       !text[strspn(text, "0123456789,")];
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
		if (!request_is_channels(argument))
			argp_error(state, "--imex-channel is a list of numbers such as 0,1, all, or none, not '%s'",
				   argument);
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

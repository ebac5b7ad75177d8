/* SPDX-License-Identifier: Apache-2.0 */

/* ctr-gpu vcuda: what vCUDA's manager has granted, and changes of it. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "vcuda_rpc.h"

#include "base/print.h"
#include "base/str.h"
#include "cli/output.h"
#include "cli/verbs.h"
#include "vcuda/protocol/control.h"

enum { KEY_JSON = 0x100, KEY_MEMORY, KEY_HOST_MEMORY, KEY_MAX_CLIENTS };

struct vcuda {
	bool json;
	struct vcudad_limit limit; /* its id is of every command's */
	const char *memory, *max_clients;
};

/* ---- the manager ---- */

static int vcuda_print_silence(int r)
{
	errno = -r;
	if (r == -E2BIG)
		return output_print("no container has GPUs by vCUDA whose id is so long\n"
				    "    ctr-gpu vcuda list shows what is granted.");
	if (r == -ENOENT || r == -ECONNREFUSED)
		return output_print("vCUDA's manager ctr-gpu-vcudad does not run\n"
				    "    Start it: systemctl enable --now ctr-gpu-vcudad (OpenRC: rc-service "
				    "ctr-gpu-vcudad start);\n"
				    "    the package ctr-gpu-vcuda has it.");
	if (r == -EACCES || r == -EPERM || r == -EPIPE || r == -ECONNRESET)
		return output_print("vCUDA's manager answers root alone\n    Run this as root.");
	return output_print("vCUDA's manager ctr-gpu-vcudad does not answer: %m\n"
			    "    What it said last: journalctl -u ctr-gpu-vcudad");
}

/* Return: 0, or the exit status after a message was printed. */
static int vcuda_ask(unsigned procedure, const void *arguments, void *ret)
{
	_cleanup_close_ int fd = -1;
	int r = control_open(&fd);

	if (r == 0)
		r = control_ask(fd, procedure, arguments, ret);
	return r < 0 ? vcuda_print_silence(r) : 0;
}

static const char *vcuda_advise(int error)
{
	if (error == ENOENT || error == ENOTUNIQ)
		return "ctr-gpu vcuda list shows what is granted, by the ids that docker ps shows.";
	return error == EOPNOTSUPP ? "ctr-gpu-vcudad(8) says which hosts can limit it; --memory is for the GPUs' own."
				   : "ctr-gpu(1) says what a container may have.";
}

/* For procedures that answer only whether it was done. */
static int vcuda_do(unsigned procedure, const void *arguments)
{
	struct vcudad_done done = {0};
	int r = vcuda_ask(procedure, arguments, &done);

	if (r == 0 && done.error != 0)
		r = output_print("%s%.300s\n    %s",
				 done.error == EOPNOTSUPP ? "the host's memory is not limited here: " : "",
				 done.message, vcuda_advise(done.error));
	control_free_reply(procedure, &done);
	return r;
}

/* ---- list ---- */

static void vcuda_print_memory(const struct vcudad_grant *grant)
{
	char used[BYTES_TEXT_SIZE], all[BYTES_TEXT_SIZE];

	str_format_size(grant->used, used);
	str_format_size(grant->memory, all);
	print_safe(stdout, "    memory     %s in use of %s\n", used, grant->memory ? all : "all that there is");
}

/* @unlimited: why that is not limited; "": it is */
static void vcuda_print_host_memory(const struct vcudad_grant *grant, const char *unlimited)
{
	char used[BYTES_TEXT_SIZE], all[BYTES_TEXT_SIZE];

	str_format_size(grant->host_used, used);
	str_format_size(grant->host_memory, all);
	if (*unlimited)
		print_safe(stdout, "    host       no limit for its servers: %s\n", unlimited);
	else
		print_safe(stdout, "    host       %s in use of %s, by its servers\n", used, all);
}

static void vcuda_print_processors(const struct vcudad_grant *grant)
{
	if (grant->processors > 0)
		(void)printf("    processors %g at most, for its servers\n", grant->processors);
	else
		(void)puts("    processors no limit for its servers");
}

static void vcuda_print_grant(const struct vcudad_grant *grant, const char *unlimited)
{
	print_safe(stdout, "%s\n", grant->id);
	for (u_int i = 0; i < grant->gpus.gpus_len; i++) {
		print_safe(stdout, "    GPU        %s ", grant->gpus.gpus_val[i].uuid);
		print_write_text(grant->gpus.gpus_val[i].name, stdout);
		(void)putchar('\n');
	}
	vcuda_print_memory(grant);
	vcuda_print_host_memory(grant, unlimited);
	if (!*unlimited)
		vcuda_print_processors(grant);
	(void)printf("    processes  %u of %u; %llu so far, %llu refused, %llu crashed\n", grant->clients,
		     grant->max_clients, (unsigned long long)grant->connects, (unsigned long long)grant->denied,
		     (unsigned long long)grant->crashes);
	(void)printf("    container  first process %d; its servers are user %u\n", grant->pid, grant->uid);
}

static json_t *vcuda_pack_grant(const struct vcudad_grant *grant, bool limited)
{
	json_t *gpus = print_array(i, grant->gpus.gpus_len, ({
					   const struct vcudad_gpu *gpu = &grant->gpus.gpus_val[i];

					   json_pack("{s:o, s:o, s:o}", "uuid", print_string(gpu->uuid), "pciAddress",
						     print_string(*gpu->address ? gpu->address : NULL), "name",
						     print_string(*gpu->name ? gpu->name : NULL));
				   }));

	return json_pack("{s:o, s:i, s:I, s:o, s:o, s:I, s:o, s:o, s:o, s:I, s:I, s:I, s:I, s:I, s:b}", "container",
			 print_string(grant->id), "pid", grant->pid, "uid", (json_int_t)grant->uid, "gpus", gpus,
			 "memory", grant->memory ? json_integer((json_int_t)grant->memory) : json_null(), "used",
			 (json_int_t)grant->used, "hostMemory",
			 limited ? json_integer((json_int_t)grant->host_memory) : json_null(), "hostUsed",
			 limited ? json_integer((json_int_t)grant->host_used) : json_null(), "processors",
			 grant->processors > 0 ? json_real(grant->processors) : json_null(), "maxClients",
			 (json_int_t)grant->max_clients, "clients", (json_int_t)grant->clients, "connects",
			 (json_int_t)grant->connects, "denied", (json_int_t)grant->denied, "crashes",
			 (json_int_t)grant->crashes, "kept", grant->kept);
}

static int vcuda_print_list(const struct vcudad_grants *list, bool json)
{
	const bool limited = !*list->unlimited;
	int r = 0;

	if (json)
		r = print_write_json(json_pack("{s:I, s:I, s:b, s:o}", "servers", (json_int_t)list->servers,
					       "maxServers", (json_int_t)list->servers_max, "driverApiOnly",
					       list->driver_api_only, "containers",
					       print_array(i, list->grants.grants_len,
							   vcuda_pack_grant(&list->grants.grants_val[i], limited))),
				     stdout);
	for (u_int i = 0; i < list->grants.grants_len && !json; i++)
		vcuda_print_grant(&list->grants.grants_val[i], list->unlimited);
	if (list->grants.grants_len == 0 && !json)
		(void)puts("No container has GPUs by vCUDA.");
	if (list->driver_api_only && !json)
		(void)puts("driver API only: programs with NVIDIA's CUDA runtime do not run by this build");
	return r == -ENOMEM ? output_no_memory() : 0;
}

/* ---- the commands ---- */

static const struct argp_option list_options[] = {{"json", KEY_JSON, NULL, 0, "Print JSON", 0}, {0}};
static const struct argp_option limit_options[] = {
	{"memory", KEY_MEMORY, "AMOUNT", 0, "What its processes may have of the GPUs together: 8G, 512M, or all", 0},
	{"host-memory", KEY_HOST_MEMORY, "AMOUNT", 0, "What its servers may have of the host's memory together: 8G", 0},
	{"max-clients", KEY_MAX_CLIENTS, "NUMBER", 0, "How many of its processes may use CUDA at once", 0},
	{0},
};

static void vcuda_parse_memory(struct vcuda *vcuda, const char *argument, const struct argp_state *state)
{
	uint64_t bytes = 0;

	if (!streq(argument, "all") && !str_parse_size(argument, &bytes))
		argp_error(state, "--memory is an amount such as 8G or 512M, or all, not \"%s\"", argument);
	vcuda->limit.has_memory = true;
	vcuda->limit.memory = bytes;
}

static void vcuda_parse_host_memory(struct vcuda *vcuda, const char *argument, const struct argp_state *state)
{
	uint64_t bytes = 0;

	if (!str_parse_size(argument, &bytes))
		argp_error(state, "--host-memory is an amount such as 8G or 512M, not \"%s\"", argument);
	vcuda->limit.has_host_memory = true;
	vcuda->limit.host_memory = bytes;
}

static void vcuda_parse_max_clients(struct vcuda *vcuda, const char *argument, const struct argp_state *state)
{
	uint64_t number;

	if (!str_parse_size(argument, &number) || number > UINT8_MAX + 1)
		argp_error(state, "--max-clients is a number from 1 to 256, not \"%s\"", argument);
	vcuda->limit.has_max_clients = true;
	vcuda->limit.max_clients = (u_int)number;
}

static error_t vcuda_parse(int key, char *argument, struct argp_state *state)
{
	struct vcuda *vcuda = state->input;

	switch (key) {
	case KEY_JSON:
		vcuda->json = true;
		return 0;
	case KEY_MEMORY:
		vcuda_parse_memory(vcuda, argument, state);
		return 0;
	case KEY_HOST_MEMORY:
		vcuda_parse_host_memory(vcuda, argument, state);
		return 0;
	case KEY_MAX_CLIENTS:
		vcuda_parse_max_clients(vcuda, argument, state);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* For commands about one container. */
static error_t vcuda_parse_container(int key, char *argument, struct argp_state *state)
{
	struct vcuda *vcuda = state->input;

	switch (key) {
	case ARGP_KEY_ARG:
		if (vcuda->limit.id)
			argp_error(state, "one container at a time");
		vcuda->limit.id = argument;
		return 0;
	case ARGP_KEY_END:
		if (!vcuda->limit.id)
			argp_error(state,
				   "a container must be named, as ctr-gpu vcuda list does, or by how its name begins");
		return 0;
	default:
		return vcuda_parse(key, argument, state);
	}
}

static int vcuda_list(struct global_options *globals, int argc, char **argv)
{
	static const struct argp argp = {
		.options = list_options,
		.parser = vcuda_parse,
		.children = global_options_children,
		.doc = "List the containers that have GPUs by vCUDA, and what they use of them.",
	};
	struct vcudad_grants list = {0};
	struct vcuda vcuda = {0};
	char nothing = '\0';
	int r;

	global_options_parse_verb(globals, &argp, argc, argv, &vcuda);
	r = vcuda_ask(VCUDAD_LIST, &nothing, &list);
	if (!r)
		r = vcuda_print_list(&list, vcuda.json);
	control_free_reply(VCUDAD_LIST, &list);
	return r;
}

static int vcuda_limit(struct global_options *globals, int argc, char **argv)
{
	static const struct argp argp = {
		.options = limit_options,
		.parser = vcuda_parse_container,
		.children = global_options_children,
		.args_doc = "CONTAINER",
		.doc = "Change what a running container may have of its GPUs.",
	};
	struct vcuda vcuda = {0};

	global_options_parse_verb(globals, &argp, argc, argv, &vcuda);
	if (!vcuda.limit.has_memory && !vcuda.limit.has_host_memory && !vcuda.limit.has_max_clients) {
		(void)output_print("nothing to change is given\n"
				   "    Try: ctr-gpu vcuda limit %.128s --memory=2G --max-clients=4",
				   vcuda.limit.id);
		return EXIT_STATUS_USAGE;
	}
	return vcuda_do(VCUDAD_LIMIT, &vcuda.limit);
}

static int vcuda_revoke(struct global_options *globals, int argc, char **argv)
{
	static const struct argp argp = {
		.parser = vcuda_parse_container,
		.children = global_options_children,
		.args_doc = "CONTAINER",
		.doc = "Take its GPUs away from a running container: what its processes ask for fails from then on.",
	};
	struct vcuda vcuda = {0};

	global_options_parse_verb(globals, &argp, argc, argv, &vcuda);
	return vcuda_do(VCUDAD_REVOKE, &vcuda.limit.id);
}

static const struct verb commands[] = {
	{"list", "", "List containers that have GPUs by vCUDA", vcuda_list},
	{"limit", " CONTAINER", "Change what a container may have", vcuda_limit},
	{"revoke", " CONTAINER", "Take a container's GPUs away", vcuda_revoke},
	{0},
};

int verb_vcuda(struct global_options *globals, int argc, char **argv)
{
	static const struct argp argp = {
		.parser = verb_parse,
		.args_doc = "list|limit|revoke [ARGUMENT...]",
		.children = global_options_children,
		.doc = "Look after containers that have GPUs by vCUDA, without a device.\v"
		       "'ctr-gpu vcuda COMMAND --help' shows a command's own options; ctr-gpu(1) explains them all.",
	};

	return verb_run(&argp, commands, "ctr-gpu vcuda", globals, argc, argv);
}

/* SPDX-License-Identifier: Apache-2.0 */

/* ctr-gpu vcuda: what vCUDA's manager has granted, and changes of it. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "vcuda_rpc.h"

#include "base/json.h"
#include "base/print.h"
#include "base/str.h"
#include "cli/output.h"
#include "cli/session.h"
#include "cli/verbs.h"
#include "model/adapter.h"
#include "vcuda/protocol/control.h"

enum {
	KEY_JSON = 0x100,
	KEY_MEMORY,
	KEY_HOST_MEMORY,
	KEY_MAX_CLIENTS,
	KEY_IDLE,
	KEY_BALANCE,
	KEY_SHARE,
	KEY_DEVICE,
	KEY_FROM,
	KEY_ALL,
	SHARE_MOST = 1000,
	LOOK_MS = 100
};

struct vcuda {
	bool json, all;
	struct vcudad_limit limit; /* its id is the container, also for commands that limit nothing */
	const char *device, *from; /* GPUs, as users name them */
};

/* ---- list ---- */

static void vcuda_print_memory(const struct vcudad_grant *grant)
{
	char used[BYTES_TEXT_SIZE], all[BYTES_TEXT_SIZE];

	str_format_size(grant->used, used);
	str_format_share(grant->limits.memory, all);
	print_safe(stdout, "    memory     %s in use of %s\n", used, grant->limits.memory ? all : "all that there is");
}

/* @unlimited: why that is not limited; "": it is */
static void vcuda_print_host_memory(const struct vcudad_grant *grant, const char *unlimited)
{
	char used[BYTES_TEXT_SIZE], all[BYTES_TEXT_SIZE];

	str_format_size(grant->host_used, used);
	str_format_size(grant->limits.host_memory, all);
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

static void vcuda_print_state(const struct vcudad_grant *grant)
{
	print_safe(stdout, "    state      %s%s\n", streq(grant->state, "waiting") ? "suspended" : grant->state,
		   streq(grant->state, "waiting") ? ", waits for memory of its GPUs"
		   : grant->by_hand               ? ", until ctr-gpu vcuda resume"
						  : "");
	if (grant->slot)
		(void)printf("    slot       %u of its GPU\n", grant->slot - 1);
	if (grant->limits.idle)
		(void)printf("    idle       suspended when it has rested for %u s\n", grant->limits.idle);
	if (grant->limits.balance)
		(void)printf("    balance    moved when its GPU has had more work than others for %u s\n",
			     grant->limits.balance);
	if (grant->limits.balance && grant->stays)
		(void)printf("               was moved; stays for %u s\n", grant->stays);
	if (*grant->trouble)
		print_safe(stdout, "    trouble    %s\n", grant->trouble);
}

/* Return: the UUID of the GPU where one of its GPUs is. */
static const char *vcuda_find_on(const struct vcudad_grant *grant, u_int number)
{
	return number < grant->on.on_len ? grant->on.on_val[number] : grant->gpus.gpus_val[number].uuid;
}

static void vcuda_print_grant(const struct vcudad_grant *grant, const char *unlimited)
{
	print_safe(stdout, "%s\n", grant->id);
	if (grant->owner)
		(void)printf("    user       %u, who started it without root\n", grant->owner);
	vcuda_print_state(grant);
	for (u_int i = 0; i < grant->gpus.gpus_len; i++) {
		print_safe(stdout, "    GPU        %s ", grant->gpus.gpus_val[i].uuid);
		print_write_text(grant->gpus.gpus_val[i].name, stdout);
		(void)putchar('\n');
		if (!streq(vcuda_find_on(grant, i), grant->gpus.gpus_val[i].uuid))
			print_safe(stdout, "               on %s, to which it was moved\n", vcuda_find_on(grant, i));
	}
	vcuda_print_memory(grant);
	vcuda_print_host_memory(grant, unlimited);
	if (!*unlimited)
		vcuda_print_processors(grant);
	(void)printf("    share      %u of its GPUs' time, where others want it, too\n", grant->limits.share);
	(void)printf("    processes  %u of %u; %llu so far, %llu refused, %llu crashed\n", grant->clients,
		     grant->limits.max_clients, (unsigned long long)grant->connects, (unsigned long long)grant->denied,
		     (unsigned long long)grant->crashes);
	(void)printf("    container  first process %d; its servers are user %u\n", grant->pid, grant->uid);
}

static json_t *vcuda_pack_grant(const struct vcudad_grant *grant, bool limited)
{
	json_t *gpus = print_array(i, grant->gpus.gpus_len, ({
					   const struct vcudad_gpu *gpu = &grant->gpus.gpus_val[i];

					   json_pack("{s:o, s:o, s:o, s:o}", "uuid", print_string(gpu->uuid),
						     "pciAddress", print_string(*gpu->address ? gpu->address : NULL),
						     "name", print_string(*gpu->name ? gpu->name : NULL), "on",
						     print_string(vcuda_find_on(grant, (u_int)i)));
				   }));
	struct vcuda_limits limits = grant->limits;
	json_t *packed =
		json_pack("{s:o, s:i, s:I, s:I, s:o, s:I, s:o, s:o, s:I, s:I, s:I, s:I, s:b, s:o, s:b, s:i, s:o, s:o}",
			  "container", print_string(grant->id), "pid", grant->pid, "owner", (json_int_t)grant->owner,
			  "uid", (json_int_t)grant->uid, "gpus", gpus, "used", (json_int_t)(grant->used & INT64_MAX),
			  "hostUsed", limited ? json_integer((json_int_t)grant->host_used) : json_null(), "processors",
			  grant->processors > 0 ? json_real(grant->processors) : json_null(), "clients",
			  (json_int_t)grant->clients, "connects", (json_int_t)grant->connects, "denied",
			  (json_int_t)grant->denied, "crashes", (json_int_t)grant->crashes, "kept", grant->kept,
			  "state", print_string(grant->state), "byHand", grant->by_hand, "stays", (int)grant->stays,
			  "slot", grant->slot ? json_integer((json_int_t)grant->slot - 1) : json_null(), "trouble",
			  print_string(*grant->trouble ? grant->trouble : NULL));

	if (!limited)
		limits.host_memory = 0;
	return vcuda_limits_pack(&limits, packed);
}

/* Containers get a lost one again when the administrator says that it is well. */
static void vcuda_print_trouble(const struct vcudad_trouble *trouble)
{
	char since[sizeof("2026-01-01T00:00:00Z")] = "";
	const time_t when = (time_t)trouble->since;
	struct tm utc;

	if (gmtime_r(&when, &utc))
		(void)strftime(since, sizeof(since), "%FT%TZ", &utc);
	print_safe(stdout, "%s ", trouble->uuid);
	print_write_text(trouble->name, stdout);
	(void)putchar('\n');
	print_safe(stdout, "    %s since %s: %s\n", trouble->lost ? "lost" : "suspected", since, trouble->why);
	print_safe(stdout, "    %s: ctr-gpu vcuda clear %s\n",
		   trouble->lost ? "no container gets it; when it has been reset" : "if it is well", trouble->uuid);
}

static json_t *vcuda_pack_troubles(const struct vcudad_grants *list)
{
	return print_array(i, list->troubles.troubles_len, ({
				   const struct vcudad_trouble *trouble = &list->troubles.troubles_val[i];

				   json_pack("{s:o, s:o, s:b, s:o, s:I}", "uuid", print_string(trouble->uuid), "name",
					     print_string(trouble->name), "lost", trouble->lost, "why",
					     print_string(trouble->why), "since", (json_int_t)trouble->since);
			   }));
}

static int vcuda_print_list(const struct vcudad_grants *list, bool json)
{
	const bool limited = !*list->unlimited;
	int r = 0;

	if (json)
		r = print_write_json(
			json_pack("{s:I, s:I, s:b, s:b, s:o, s:o, s:o}", "servers", (json_int_t)list->servers,
				  "maxServers", (json_int_t)list->servers_max, "driverApiOnly", list->driver_api_only,
				  "allSuspended", list->asleep, "drained",
				  print_array(i, list->drained.drained_len, print_string(list->drained.drained_val[i])),
				  "containers",
				  print_array(i, list->grants.grants_len,
					      vcuda_pack_grant(&list->grants.grants_val[i], limited)),
				  "gpuTroubles", vcuda_pack_troubles(list)),
			stdout);
	for (u_int i = 0; i < list->grants.grants_len && !json; i++)
		vcuda_print_grant(&list->grants.grants_val[i], list->unlimited);
	if (list->grants.grants_len == 0 && !json)
		(void)puts("No container has GPUs by vCUDA.");
	for (u_int i = 0; i < list->troubles.troubles_len && !json; i++)
		vcuda_print_trouble(&list->troubles.troubles_val[i]);
	for (u_int i = 0; i < list->drained.drained_len && !json; i++)
		print_safe(stdout, "drained: %s, on which no container begins\n", list->drained.drained_val[i]);
	if (list->asleep && !json)
		(void)puts("all are suspended, and those that come, until ctr-gpu vcuda resume --all");
	if (list->driver_api_only && !json)
		(void)puts("driver API only: programs with NVIDIA's CUDA runtime do not run by this build");
	return output_finish(r);
}

/* ---- the commands ---- */

static const struct argp_option list_options[] = {{"json", KEY_JSON, NULL, 0, "Print JSON", 0}, {0}};
static const struct argp_option limit_options[] = {
	{"memory", KEY_MEMORY, "AMOUNT", 0, "What its processes may have of the GPUs together: 8G, 50%, or all", 0},
	{"host-memory", KEY_HOST_MEMORY, "AMOUNT", 0, "What its servers may have of the host's memory together: 8G", 0},
	{"max-clients", KEY_MAX_CLIENTS, "NUMBER", 0, "How many of its processes may use CUDA at once", 0},
	{"idle", KEY_IDLE, "SECONDS", 0, "After how long a rest it is suspended; 0: never", 0},
	{"balance", KEY_BALANCE, "SECONDS", 0,
	 "After how long with more work on its GPU than on others it is moved there; 0: never", 0},
	{"share", KEY_SHARE, "NUMBER", 0, "Its share of its GPUs' time, in proportion to others' shares: 1 to 1000", 0},
	{0},
};
static const struct argp_option all_options[] = {
	{"all", KEY_ALL, NULL, 0, "All containers: suspend them before the host sleeps, resume them afterwards", 0},
	{0},
};
static const struct argp_option move_options[] = {
	{"device", KEY_DEVICE, "DEVICE", 0, "The GPU that it is moved to, as ctr-gpu info numbers it, or its UUID", 0},
	{"from", KEY_FROM, "DEVICE", 0, "Of several that it has, the one where what is moved is now", 0},
	{0},
};

static void vcuda_parse_memory(struct vcuda *vcuda, const char *argument, const struct argp_state *state)
{
	uint64_t bytes = 0;

	if (!str_parse_share(argument, &bytes))
		argp_error(state, "--memory is an amount such as 8G, a share such as 50%%, or all, not \"%s\"",
			   argument);
	vcuda->limit.which |= VCUDA_LIMIT_MEMORY;
	vcuda->limit.limits.memory = bytes;
}

static void vcuda_parse_host_memory(struct vcuda *vcuda, const char *argument, const struct argp_state *state)
{
	uint64_t bytes = 0;

	if (!str_parse_size(argument, &bytes))
		argp_error(state, "--host-memory is an amount such as 8G or 512M, not \"%s\"", argument);
	vcuda->limit.which |= VCUDA_LIMIT_HOST_MEMORY;
	vcuda->limit.limits.host_memory = bytes;
}

static void vcuda_parse_max_clients(struct vcuda *vcuda, const char *argument, const struct argp_state *state)
{
	uint64_t number;

	if (!str_parse_size(argument, &number) || number > UINT8_MAX + 1)
		argp_error(state, "--max-clients is a number from 1 to 256, not \"%s\"", argument);
	vcuda->limit.which |= VCUDA_LIMIT_MAX_CLIENTS;
	vcuda->limit.limits.max_clients = (unsigned)number;
}

/* 0: never */
static unsigned vcuda_parse_seconds(const char *option, const char *argument, const struct argp_state *state)
{
	uint64_t seconds = 0;

	if (!streq(argument, "0") && (!str_parse_size(argument, &seconds) || seconds > VCUDA_LIMIT_LONGEST_S))
		argp_error(state, "%s is a number of seconds from 0 to 2592000, not \"%s\"", option, argument);
	return (unsigned)seconds;
}

static void vcuda_parse_share(struct vcuda *vcuda, const char *argument, const struct argp_state *state)
{
	uint64_t share = 0;

	if (!str_parse_size(argument, &share) || share > SHARE_MOST)
		argp_error(state, "--share is a number from 1 to 1000, not \"%s\"", argument);
	vcuda->limit.which |= VCUDA_LIMIT_SHARE;
	vcuda->limit.limits.share = (unsigned)share;
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
	case KEY_IDLE:
		vcuda->limit.limits.idle = vcuda_parse_seconds("--idle", argument, state);
		vcuda->limit.which |= VCUDA_LIMIT_IDLE;
		return 0;
	case KEY_BALANCE:
		vcuda->limit.limits.balance = vcuda_parse_seconds("--balance", argument, state);
		vcuda->limit.which |= VCUDA_LIMIT_BALANCE;
		return 0;
	case KEY_SHARE:
		vcuda_parse_share(vcuda, argument, state);
		return 0;
	case KEY_ALL:
		vcuda->all = true;
		return 0;
	case KEY_DEVICE:
		vcuda->device = argument;
		return 0;
	case KEY_FROM:
		vcuda->from = argument;
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
		if (vcuda->limit.id && vcuda->all)
			argp_error(state, "a container, or --all, and not both");
		if (!vcuda->limit.id && !vcuda->all)
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
	output_set_json(vcuda.json);
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
	if (!vcuda.limit.which) {
		(void)output_print_advised(
			("nothing to change is given"),
			("Try: ctr-gpu vcuda limit %.128s --memory=2G --max-clients=4", vcuda.limit.id));
		return EXIT_STATUS_USAGE;
	}
	return vcuda_ask_done(VCUDAD_LIMIT, &vcuda.limit);
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
	return vcuda_ask_done(VCUDAD_REVOKE, &vcuda.limit.id);
}

/* ---- suspend and resume: begun by the manager's answer, and done when the list says so ---- */

/* Return: the one that is meant; NULL: it is not there any more. */
static const struct vcudad_grant *vcuda_find(const struct vcudad_grants *list, const char *text)
{
	const struct vcudad_grant *found = NULL;

	for (u_int i = 0; i < list->grants.grants_len; i++) {
		if (streq(list->grants.grants_val[i].id, text))
			return &list->grants.grants_val[i];
		if (str_has_prefix(list->grants.grants_val[i].id, text))
			found = &list->grants.grants_val[i];
	}
	return found;
}

static int vcuda_check_state(const struct vcudad_grant *grant, const char *wanted)
{
	if (!grant)
		return output_print_advised(("the container has ended"), ("ctr-gpu vcuda list shows those that run."));
	if (streq(wanted, "moved") && *grant->trouble)
		return output_print_advised(
			("it was not moved: %.300s", grant->trouble),
			("It goes on where it was; ctr-gpu vcuda list shows what is on which GPU."));
	if (streq(grant->state, wanted) || streq(wanted, "moved"))
		return 0;
	if (streq(grant->state, "waiting") && streq(wanted, "suspended") && *grant->trouble)
		return output_print_advised(
			("it was not suspended: %.300s; it is resumed when its GPUs have room again", grant->trouble),
			("Suspend another container, or end a program: ctr-gpu vcuda list shows them."));
	if (streq(grant->state, "waiting"))
		return output_print_advised(
			("its GPUs have no room for what it has; it is resumed when they do"),
			("Suspend another container, or end a program: ctr-gpu vcuda list shows them."));
	return output_print_advised(("it is %.16s: %.300s", grant->state,
				     *grant->trouble ? grant->trouble : "something else has been asked for meanwhile"),
				    ("The manager's audit has more: ctr-gpu vcuda audit"));
}

/*
 * Of a container that is on its way to @wanted: one that is to be resumed may be suspended first. "resuming" it is from
 * when that was asked for, so one that is suspended has been suspended again.
 */
static bool vcuda_is_transient(const char *state, const char *wanted)
{
	/* What was suspended before is moved already. */
	if (streq(wanted, "moved"))
		return streq(state, "moving");
	if (streq(state, "suspending"))
		return true;
	return streq(wanted, "running") && (streq(state, "resuming") || streq(state, "moving"));
}

/*
 * @id: becomes the whole one, so that none that comes later and begins so is taken for it
 *
 * Return: whether it is still under way; otherwise *ret is the exit status.
 */
static bool vcuda_look_again(char id[static VCUDAD_ID_MAX + 1], const char *wanted, int *ret)
{
	struct vcudad_grants list = {0};
	const struct vcudad_grant *grant;
	char nothing = '\0';
	bool goes_on;

	*ret = vcuda_ask(VCUDAD_LIST, &nothing, &list);
	grant = *ret ? NULL : vcuda_find(&list, id);
	if (grant)
		(void)snprintf(id, VCUDAD_ID_MAX + 1, "%s", grant->id);
	goes_on = grant && !*grant->trouble && vcuda_is_transient(grant->state, wanted);
	if (!*ret && !goes_on)
		*ret = vcuda_check_state(grant, wanted);
	control_free_reply(VCUDAD_LIST, &list);
	return goes_on;
}

static int vcuda_await(const char *text, const char *wanted)
{
	const struct timespec while_it_works = {.tv_nsec = LOOK_MS * 1000000L};
	char id[VCUDAD_ID_MAX + 1];
	int r;

	(void)snprintf(id, sizeof(id), "%s", text);
	while (vcuda_look_again(id, wanted, &r))
		(void)nanosleep(&while_it_works, NULL);
	return r;
}

/* Whether one is what all are to be, and stays so. One that waits since it could not be saved whole is not. */
static bool vcuda_is_settled(const struct vcudad_grant *grant, bool ends)
{
	if (streq(grant->state, "suspended") || (streq(grant->state, "waiting") && !*grant->trouble))
		return true;
	return ends && streq(grant->state, "running");
}

/* Prints those that could not be, with the reason. Return: how many these are. */
static unsigned vcuda_print_sleepless(const struct vcudad_grants *list, bool ends)
{
	unsigned count = 0;

	for (u_int i = 0; i < list->grants.grants_len; i++) {
		const struct vcudad_grant *grant = &list->grants.grants_val[i];

		if (!*grant->trouble || (!ends && vcuda_is_settled(grant, ends)))
			continue;
		print_safe(stdout, "%s is %s: %s\n", grant->id, grant->state, grant->trouble);
		count++;
	}
	return count;
}

static bool vcuda_sleep_goes_on(const struct vcudad_grants *list, bool ends)
{
	for (u_int i = 0; i < list->grants.grants_len; i++) {
		const struct vcudad_grant *grant = &list->grants.grants_val[i];

		if (!*grant->trouble && !vcuda_is_settled(grant, ends))
			return true;
	}
	return false;
}

/* All containers: they are suspended, or that @ends. */
static int vcuda_sleep(bool ends)
{
	const struct timespec while_it_works = {.tv_nsec = LOOK_MS * 1000000L};
	struct vcudad_sleep sleep = {.ends = ends};
	unsigned count = 0;
	char nothing = '\0';
	bool goes_on = true;
	int r = vcuda_ask_done(VCUDAD_SLEEP, &sleep);

	while (!r && goes_on) {
		struct vcudad_grants list = {0};

		r = vcuda_ask(VCUDAD_LIST, &nothing, &list);
		goes_on = !r && vcuda_sleep_goes_on(&list, ends);
		if (!r && !goes_on)
			count = vcuda_print_sleepless(&list, ends);
		control_free_reply(VCUDAD_LIST, &list);
		if (goes_on)
			(void)nanosleep(&while_it_works, NULL);
	}
	if (r || count == 0)
		return r;
	return output_print_advised(("containers that could not be %s: %u", ends ? "resumed" : "suspended", count),
				    ("The manager's audit has more: ctr-gpu vcuda audit"));
}

static int vcuda_suspend(struct global_options *globals, int argc, char **argv)
{
	static const struct argp argp = {
		.options = all_options,
		.parser = vcuda_parse_container,
		.children = global_options_children,
		.args_doc = "CONTAINER|--all",
		.doc = "Put away what a container has on its GPUs, whose memory is free until it is resumed. Its "
		       "programs wait at their next call.",
	};
	struct vcuda vcuda = {0};
	int r;

	global_options_parse_verb(globals, &argp, argc, argv, &vcuda);
	if (vcuda.all)
		return vcuda_sleep(false);
	r = vcuda_ask_done(VCUDAD_SUSPEND, &vcuda.limit.id);
	return r ? r : vcuda_await(vcuda.limit.id, "suspended");
}

static int vcuda_resume(struct global_options *globals, int argc, char **argv)
{
	static const struct argp argp = {
		.options = all_options,
		.parser = vcuda_parse_container,
		.children = global_options_children,
		.args_doc = "CONTAINER|--all",
		.doc = "Bring back what a suspended container had on its GPUs; its programs go on.",
	};
	struct vcuda vcuda = {0};
	int r;

	global_options_parse_verb(globals, &argp, argc, argv, &vcuda);
	if (vcuda.all)
		return vcuda_sleep(true);
	r = vcuda_ask_done(VCUDAD_RESUME, &vcuda.limit.id);
	return r ? r : vcuda_await(vcuda.limit.id, "running");
}

static error_t vcuda_parse_gpu(int key, char *argument, struct argp_state *state)
{
	struct vcuda *vcuda = state->input;

	if (key == ARGP_KEY_ARG && vcuda->limit.id)
		argp_error(state, "one GPU at a time");
	if (key == ARGP_KEY_END && !vcuda->limit.id)
		argp_error(state, "a GPU must be named, by its UUID as ctr-gpu vcuda list shows it");
	if (key != ARGP_KEY_ARG)
		return key == ARGP_KEY_END ? 0 : ARGP_ERR_UNKNOWN;
	vcuda->limit.id = argument;
	return 0;
}

static int vcuda_clear(struct global_options *globals, int argc, char **argv)
{
	static const struct argp argp = {
		.parser = vcuda_parse_gpu,
		.children = global_options_children,
		.args_doc = "GPU",
		.doc = "Give containers a GPU again that was lost, when it has been reset.",
	};
	struct vcuda vcuda = {0};

	global_options_parse_verb(globals, &argp, argc, argv, &vcuda);
	return vcuda_ask_done(VCUDAD_CLEAR, &vcuda.limit.id);
}

/* ---- move and drain ---- */

/* The driver may have to be asked for UUIDs: a name is looked up only if it is not one. */
static int vcuda_open_host(struct session *session, const struct global_options *globals)
{
	int r = session_open(session, globals);

	if (r == 0)
		r = session_check(session, ctr_gpu_host_new(session->context, &session->host));
	if (r == 0)
		(void)ctr_gpu_host_identify(session->context, session->host);
	return r;
}

/* Return: 0; an exit status after a message was printed. @ret: lives as long as the session */
static int vcuda_find_uuid(struct session *session, const struct global_options *globals, const char *text,
			   const char **ret)
{
	struct ctr_gpu_adapter adapter = {0};
	uint8_t bytes[16];
	uint64_t number = 0;
	int r;

	*ret = text;
	if (adapter_read_uuid(text, bytes))
		return 0;
	r = session->host ? 0 : vcuda_open_host(session, globals);
	if (r)
		return r;
	if ((!streq(text, "0") && !str_parse_size(text, &number)) ||
	    ctr_gpu_host_adapter(session->host, number, &adapter) < 0 || adapter.index < 0 || !adapter.uuid)
		return output_print_advised(("this host has no NVIDIA GPU \"%.64s\"", text),
					    ("ctr-gpu info lists the GPUs: take the number of one, or its UUID."));
	*ret = adapter.uuid;
	return 0;
}

/* Return: whether one of its GPUs is there. */
static bool vcuda_is_on(const struct vcudad_grant *grant, const char *uuid)
{
	for (u_int i = 0; i < grant->gpus.gpus_len; i++)
		if (strcasecmp(vcuda_find_on(grant, i), uuid) == 0)
			return true;
	return false;
}

static int vcuda_move(struct global_options *globals, int argc, char **argv)
{
	static const struct argp argp = {
		.options = move_options,
		.parser = vcuda_parse_container,
		.children = global_options_children,
		.args_doc = "CONTAINER --device DEVICE",
		.doc = "Have what a container has on a GPU be on another GPU of the same model. Its programs wait at "
		       "their next call until it is there, and go on.",
	};
	_cleanup_session_ struct session session = {0};
	struct vcuda vcuda = {0};
	struct vcudad_move move = {.from = (char *)(uintptr_t) ""};
	const char *from = "", *to = "";
	int r;

	global_options_parse_verb(globals, &argp, argc, argv, &vcuda);
	if (!vcuda.device) {
		(void)output_print_advised(("it is not said to which GPU"),
					   ("Try: ctr-gpu vcuda move %.128s --device 1", vcuda.limit.id));
		return EXIT_STATUS_USAGE;
	}
	r = vcuda_find_uuid(&session, globals, vcuda.device, &to);
	if (r == 0 && vcuda.from)
		r = vcuda_find_uuid(&session, globals, vcuda.from, &from);
	if (r)
		return r;
	move.id = vcuda.limit.id;
	move.from = (char *)(uintptr_t)from;
	move.to = (char *)(uintptr_t)to;
	r = vcuda_ask_done(VCUDAD_MOVE, &move);
	return r ? r : vcuda_await(vcuda.limit.id, "moved");
}

/* For commands about one GPU. */
static error_t vcuda_parse_device(int key, char *argument, struct argp_state *state)
{
	struct vcuda *vcuda = state->input;

	switch (key) {
	case ARGP_KEY_ARG:
		if (vcuda->device)
			argp_error(state, "one GPU at a time");
		vcuda->device = argument;
		return 0;
	case ARGP_KEY_END:
		if (!vcuda->device)
			argp_error(state, "a GPU must be named, by its number in ctr-gpu info or by its UUID");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* Prints those that stay, with the reason. Return: how many these are. */
static unsigned vcuda_print_drain(const struct vcudad_grants *list, const char *uuid)
{
	unsigned count = 0;

	for (u_int i = 0; i < list->grants.grants_len; i++) {
		const struct vcudad_grant *grant = &list->grants.grants_val[i];

		if (!vcuda_is_on(grant, uuid))
			continue;
		print_safe(stdout, "%s stays: %s\n", grant->id,
			   *grant->trouble ? grant->trouble : "it is being suspended, resumed or moved");
		count++;
	}
	return count;
}

/* Each of those that are there is moved, or it is said why not. */
static bool vcuda_drain_goes_on(const struct vcudad_grants *list, const char *uuid)
{
	for (u_int i = 0; i < list->grants.grants_len; i++) {
		const struct vcudad_grant *grant = &list->grants.grants_val[i];

		if (vcuda_is_on(grant, uuid) && !*grant->trouble)
			return true;
	}
	return false;
}

static int vcuda_await_drain(const char *uuid)
{
	const struct timespec while_it_works = {.tv_nsec = LOOK_MS * 1000000L};
	char nothing = '\0';
	unsigned stay = 0;
	bool goes_on;
	int r;

	do {
		struct vcudad_grants list = {0};

		(void)nanosleep(&while_it_works, NULL);
		r = vcuda_ask(VCUDAD_LIST, &nothing, &list);
		goes_on = !r && vcuda_drain_goes_on(&list, uuid);
		if (!r && !goes_on)
			stay = vcuda_print_drain(&list, uuid);
		control_free_reply(VCUDAD_LIST, &list);
	} while (goes_on);
	if (r || stay == 0)
		return r;
	return output_print_advised(
		("still on the GPU, containers: %u; each is moved as soon as that is possible", stay),
		("ctr-gpu vcuda list shows them; ctr-gpu vcuda undrain ends the drain."));
}

static int vcuda_change_drain(struct global_options *globals, const struct argp *argp, int argc, char **argv, bool ends)
{
	_cleanup_session_ struct session session = {0};
	struct vcuda vcuda = {0};
	struct vcudad_drain drain = {.ends = ends};
	const char *uuid;
	int r;

	global_options_parse_verb(globals, argp, argc, argv, &vcuda);
	r = vcuda_find_uuid(&session, globals, vcuda.device, &uuid);
	if (r)
		return r;
	drain.uuid = (char *)(uintptr_t)uuid;
	r = vcuda_ask_done(VCUDAD_DRAIN, &drain);
	return r || ends ? r : vcuda_await_drain(uuid);
}

static int vcuda_drain(struct global_options *globals, int argc, char **argv)
{
	static const struct argp argp = {
		.parser = vcuda_parse_device,
		.children = global_options_children,
		.args_doc = "DEVICE",
		.doc = "Have no container begin on a GPU any more, and move those that are there to others of the same "
		       "model.",
	};

	return vcuda_change_drain(globals, &argp, argc, argv, false);
}

static int vcuda_undrain(struct global_options *globals, int argc, char **argv)
{
	static const struct argp argp = {
		.parser = vcuda_parse_device,
		.children = global_options_children,
		.args_doc = "DEVICE",
		.doc = "Have containers begin on a GPU again that was drained. What was moved stays where it is.",
	};

	return vcuda_change_drain(globals, &argp, argc, argv, true);
}

static const struct verb commands[] = {
	{"list", "", "List containers that have GPUs by vCUDA", vcuda_list},
	{"top", "", "Show what these use now, process by process", vcuda_top_show},
	{"limit", " CONTAINER", "Change what a container may have", vcuda_limit},
	{"suspend", " CONTAINER|--all", "Put away what a container has on its GPUs", vcuda_suspend},
	{"resume", " CONTAINER|--all", "Bring it back", vcuda_resume},
	{"move", " CONTAINER", "Move what a container has to another GPU", vcuda_move},
	{"drain", " DEVICE", "Move all containers to other GPUs", vcuda_drain},
	{"undrain", " DEVICE", "Have containers begin there again", vcuda_undrain},
	{"revoke", " CONTAINER", "Take a container's GPUs away", vcuda_revoke},
	{"clear", " GPU", "Give containers a GPU again that was lost", vcuda_clear},
	{"audit", "", "Show what happened to containers", vcuda_audit_show},
	{0},
};

int verb_vcuda(struct global_options *globals, int argc, char **argv)
{
	static const struct argp argp = {
		.parser = verb_parse,
		.args_doc = "COMMAND [ARGUMENT...]",
		.children = global_options_children,
		.help_filter = verb_help_filter,
		.doc = "Look after containers that have GPUs by vCUDA, without a device.\v"
		       "'ctr-gpu vcuda COMMAND --help' shows a command's own options; ctr-gpu(1) explains them all.",
	};

	return verb_run(&argp, commands, "ctr-gpu vcuda", globals, argc, argv);
}

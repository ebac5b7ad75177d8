/* SPDX-License-Identifier: Apache-2.0 */

/* ctr-gpu vcuda top: what containers with GPUs by vCUDA use of them, process by process. */

#include <stdlib.h>
#include <string.h>

#include "vcuda_rpc.h"

#include "base/json.h"
#include "base/print.h"
#include "base/str.h"
#include "cli/output.h"
#include "cli/verbs.h"
#include "vcuda/protocol/control.h"

enum { KEY_JSON = 0x100, SHORT_ID = 12 };

struct vcuda_top {
	bool json;
	struct vcudad_usage before, now;
};

/* Of one process, or of all that a container has, since the usage before. */
struct vcuda_rate {
	double gpu[VCUDAD_GPUS_MAX]; /* of 1 */
	double in, out;              /* bytes a second */
	uint64_t used;
	bool known; /* it was there before */
};

/* ---- what is to be shown ---- */

static int vcuda_top_ask(struct vcuda_top *top)
{
	char nothing = '\0';

	control_free_reply(VCUDAD_USAGE, &top->before);
	top->before = top->now;
	top->now = (struct vcudad_usage){0};
	return vcuda_ask(VCUDAD_USAGE, &nothing, &top->now);
}

static const struct vcudad_process *vcuda_top_find_before(const struct vcuda_top *top,
							  const struct vcudad_process *process)
{
	for (u_int i = 0; i < top->before.processes.processes_len; i++) {
		const struct vcudad_process *other = &top->before.processes.processes_val[i];

		if (other->server == process->server && other->started == process->started)
			return other;
	}
	return NULL;
}

/* Counters are what servers write: one that goes back has not risen. */
static double vcuda_top_rise(uint64_t before, uint64_t now, double seconds)
{
	return now > before && seconds > 0 ? (double)(now - before) / seconds : 0;
}

static double vcuda_top_seconds(const struct vcuda_top *top)
{
	return (double)(top->now.now - top->before.now) / 1e9;
}

static void vcuda_top_add(const struct vcuda_top *top, const struct vcudad_process *process, struct vcuda_rate *rate)
{
	const struct vcudad_process *before = vcuda_top_find_before(top, process);
	const double seconds = vcuda_top_seconds(top);

	rate->used += process->used;
	if (!before)
		return;
	rate->known = true;
	rate->in += vcuda_top_rise(before->copied_in, process->copied_in, seconds);
	rate->out += vcuda_top_rise(before->copied_out, process->copied_out, seconds);
	for (u_int i = 0; i < process->busy.busy_len && i < before->busy.busy_len; i++)
		rate->gpu[i] += vcuda_top_rise(before->busy.busy_val[i], process->busy.busy_val[i], seconds * 1e9);
}

static double vcuda_top_sum(const struct vcuda_rate *rate)
{
	double sum = 0;

	for (size_t i = 0; i < ARRAY_SIZE(rate->gpu); i++)
		sum += rate->gpu[i];
	return sum;
}

/* What has had work of its between two looks runs, even if it rests at the moment of the second. */
static const char *vcuda_top_state(const struct vcudad_process *process, const struct vcuda_rate *rate)
{
	return streq(process->state, "idle") && vcuda_top_sum(rate) > 0 ? "running" : process->state;
}

/* ---- text ---- */

static void vcuda_top_print_rate(FILE *file, const struct vcuda_rate *rate)
{
	char in[BYTES_TEXT_SIZE], out[BYTES_TEXT_SIZE];

	str_format_size((uint64_t)rate->in, in);
	str_format_size((uint64_t)rate->out, out);
	if (rate->known)
		print_safe(file, "%5.0f %%  %10s/s  %10s/s", vcuda_top_sum(rate) * 100, in, out);
	else
		print_safe(file, "%7s  %12s  %12s", "-", "-", "-");
}

static void vcuda_top_print_process(const struct vcuda_top *top, const struct vcudad_process *process, FILE *file)
{
	char program[SCREEN_PROGRAM_SIZE], used[BYTES_TEXT_SIZE], pid[16] = "?";
	struct vcuda_rate rate = {0};

	vcuda_top_add(top, process, &rate);
	screen_read_program(process->pid, program);
	str_format_size(process->used, used);
	if (process->pid > 0)
		(void)snprintf(pid, sizeof(pid), "%d", process->pid);
	print_safe(file, "%12s  ", pid);
	vcuda_top_print_rate(file, &rate);
	print_safe(file, "  %10s  %10s  %5s  %-10s  %s\n", used, "", "", vcuda_top_state(process, &rate), program);
}

static void vcuda_top_print_grant(const struct vcuda_top *top, u_int number, FILE *file)
{
	const struct vcudad_grant *grant = &top->now.list.grants.grants_val[number];
	const __typeof__(top->now.processes) *all = &top->now.processes;
	char used[BYTES_TEXT_SIZE], limit[BYTES_TEXT_SIZE];
	struct vcuda_rate rate = {.known = true};

	for (u_int i = 0; i < all->processes_len; i++)
		if (all->processes_val[i].grant == number)
			vcuda_top_add(top, &all->processes_val[i], &rate);
	str_format_size(grant->used, used);
	str_format_share(grant->limits.memory, limit);
	print_safe(file, "%-12.*s  ", SHORT_ID, grant->id);
	vcuda_top_print_rate(file, &rate);
	print_safe(file, "  %10s  %10s  %5u  %s\n", used, grant->limits.memory ? limit : "all", grant->limits.share,
		   grant->state);
	for (u_int i = 0; i < all->processes_len; i++)
		if (all->processes_val[i].grant == number)
			vcuda_top_print_process(top, &all->processes_val[i], file);
}

static void vcuda_top_print(const struct vcuda_top *top, FILE *file)
{
	if (top->now.list.grants.grants_len == 0) {
		(void)fputs("No container has GPUs by vCUDA.\n", file);
		return;
	}
	print_safe(file, "%-12s  %7s  %12s  %12s  %10s  %10s  %5s  %-10s  %s\n", "CONTAINER", "GPU TIME", "TO GPU",
		   "FROM GPU", "MEMORY", "LIMIT", "SHARE", "STATE", "PROGRAM");
	for (u_int i = 0; i < top->now.list.grants.grants_len; i++)
		vcuda_top_print_grant(top, i, file);
}

/* ---- JSON ---- */

static json_t *vcuda_top_pack_process(const struct vcuda_top *top, const struct vcudad_process *process)
{
	struct vcuda_rate rate = {0};
	char program[SCREEN_PROGRAM_SIZE];

	vcuda_top_add(top, process, &rate);
	screen_read_program(process->pid, program);
	return json_pack(
		"{s:o, s:i, s:o, s:I, s:o, s:o, s:o, s:o}", "pid",
		process->pid > 0 ? json_integer(process->pid) : json_null(), "server", process->server, "program",
		print_string(*program ? program : NULL), "memory", (json_int_t)(process->used & INT64_MAX), "gpuTime",
		rate.known ? print_array(i, process->busy.busy_len, json_real(rate.gpu[i])) : json_null(), "toGpu",
		rate.known ? json_real(rate.in) : json_null(), "fromGpu",
		rate.known ? json_real(rate.out) : json_null(), "state", print_string(vcuda_top_state(process, &rate)));
}

static json_t *vcuda_top_pack_grant(const struct vcuda_top *top, u_int number)
{
	const struct vcudad_grant *grant = &top->now.list.grants.grants_val[number];
	json_t *processes = json_array();

	for (u_int i = 0; i < top->now.processes.processes_len; i++)
		if (top->now.processes.processes_val[i].grant == number)
			(void)json_array_append_new(processes,
						    vcuda_top_pack_process(top, &top->now.processes.processes_val[i]));
	return json_pack("{s:o, s:o, s:o, s:o, s:I, s:i, s:o, s:o}", "container", print_string(grant->id), "gpus",
			 print_array(i, grant->gpus.gpus_len, print_string(grant->gpus.gpus_val[i].uuid)), "on",
			 print_array(i, grant->on.on_len, print_string(grant->on.on_val[i])), "memory",
			 json_share(grant->limits.memory), "used", (json_int_t)(grant->used & INT64_MAX), "share",
			 (int)grant->limits.share, "state", print_string(grant->state), "processes", processes);
}

static int vcuda_top_print_json(const struct vcuda_top *top, FILE *file)
{
	return print_write_json(
		       json_pack("{s:f, s:o}", "seconds", vcuda_top_seconds(top), "containers",
				 print_array(i, top->now.list.grants.grants_len, vcuda_top_pack_grant(top, (u_int)i))),
		       file) == -ENOMEM
		       ? output_no_memory()
		       : 0;
}

/* ---- the command ---- */

/* The manager begins to measure when it is first asked. */
static int vcuda_top_look(void *data, FILE *file)
{
	struct vcuda_top *top = data;
	int r = top->now.now ? 0 : vcuda_top_ask(top);

	if (r || (!top->before.now && !screen_wait()))
		return r;
	r = vcuda_top_ask(top);
	if (r)
		return r;
	if (top->json)
		return vcuda_top_print_json(top, file);
	vcuda_top_print(top, file);
	return 0;
}

static error_t vcuda_top_parse(int key, char *argument, struct argp_state *state)
{
	(void)argument;
	if (key != KEY_JSON)
		return ARGP_ERR_UNKNOWN;
	((struct vcuda_top *)state->input)->json = true;
	return 0;
}

int vcuda_top_show(struct global_options *globals, int argc, char **argv)
{
	static const struct argp_option options[] = {{"json", KEY_JSON, NULL, 0, "Print JSON, once", 0}, {0}};
	static const struct argp argp = {
		.options = options,
		.parser = vcuda_top_parse,
		.children = global_options_children,
		.doc = "Show what containers that have GPUs by vCUDA, and their processes, use of them now; on a "
		       "terminal again each second, until q is pressed.",
	};
	struct vcuda_top top = {0};
	int r;

	global_options_parse_verb(globals, &argp, argc, argv, &top);
	r = top.json ? vcuda_top_look(&top, stdout) : screen_run(vcuda_top_look, &top);
	control_free_reply(VCUDAD_USAGE, &top.before);
	control_free_reply(VCUDAD_USAGE, &top.now);
	return r;
}

/* SPDX-License-Identifier: Apache-2.0 */

/* What is asked of vCUDA's manager or was written by it, and shown: ctr-gpu vcuda top and audit. */

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/print.h"
#include "base/str.h"
#include "cli/output.h"
#include "cli/verbs.h"
#include "system/program_output.h"
#include "vcuda/protocol/control.h"
#include "vcuda_rpc.h"

enum { KEY_JSON = 0x100, SHORT_ID = 12 };

/* ---- asking the manager ---- */

static int vcuda_ask_explain(int r)
{
	errno = -r;
	if (r == -E2BIG)
		return output_print_advised(("no container has GPUs by vCUDA whose id is so long"),
					    ("ctr-gpu vcuda list shows what is granted."));
	if (r == -ENOENT || r == -ECONNREFUSED)
		return output_print_advised(("vCUDA's manager ctr-gpu-vcudad does not run"),
					    ("sudo systemctl enable --now ctr-gpu-vcudad (package ctr-gpu-vcuda; "
					     "OpenRC: rc-service ctr-gpu-vcudad start)"));
	if (r == -EACCES || r == -EPERM || r == -EPIPE || r == -ECONNRESET)
		return output_print_advised(("vCUDA's manager answers root alone"), ("Try it with sudo."));
	return output_print_advised(("vCUDA's manager ctr-gpu-vcudad does not answer: %m"),
				    ("What it said last: journalctl -u ctr-gpu-vcudad"));
}

int vcuda_ask(unsigned procedure, const void *arguments, void *ret)
{
	_cleanup_close_ int fd = -1;
	int r = control_open(&fd);

	if (r == 0)
		r = control_ask(fd, procedure, arguments, ret);
	return r < 0 ? vcuda_ask_explain(r) : 0;
}

static const char *vcuda_ask_advise(int error)
{
	if (error == ENOENT || error == ENOTUNIQ)
		return "ctr-gpu vcuda list shows what is granted, by the ids that docker ps shows.";
	if (error == ENOMEM)
		return "ctr-gpu vcuda list shows both; ctr-gpu vcuda limit --host-memory=AMOUNT changes one.";
	if (error == EBUSY || error == EALREADY)
		return "ctr-gpu vcuda list shows its state.";
	if (error == EXDEV)
		return "With {\"vcuda\": {\"move\": true}} in /etc/ctr-gpu/config.json, containers that begin\n"
		       "    from then on may be moved to other GPUs of the same model; ctr-gpu info lists them.";
	return error == EOPNOTSUPP ? "ctr-gpu-vcudad(8) says which hosts can limit it; --memory is for the GPUs' own."
				   : "ctr-gpu(1) says what a container may have.";
}

int vcuda_ask_done(unsigned procedure, const void *arguments)
{
	struct vcudad_done done = {0};
	int r = vcuda_ask(procedure, arguments, &done);

	if (r == 0 && done.error != 0)
		r = output_print_advised(("%s%.300s",
					  done.error == EOPNOTSUPP ? "the host's memory is not limited here: " : "",
					  done.message),
					 ("%s", vcuda_ask_advise(done.error)));
	control_free_reply(procedure, &done);
	return r;
}

/* ---- top: what is to be shown ---- */

/* What containers with GPUs by vCUDA use of them, process by process. */

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

/* ---- top: text ---- */

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

/* ---- top: JSON ---- */

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
	return output_finish(print_write_json(
		json_pack("{s:f, s:o}", "seconds", vcuda_top_seconds(top), "containers",
			  print_array(i, top->now.list.grants.grants_len, vcuda_top_pack_grant(top, (u_int)i))),
		file));
}

/* ---- top: the command ---- */

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
	output_set_json(top.json);
	r = top.json ? vcuda_top_look(&top, stdout) : screen_run(vcuda_top_look, &top);
	control_free_reply(VCUDAD_USAGE, &top.before);
	control_free_reply(VCUDAD_USAGE, &top.now);
	return r;
}

/* ---- audit ---- */

/* What the manager wrote of containers, from systemd's journal or its file. */

enum {
	AUDIT_MAX = 16 << 20,
	JOURNAL_MS = 60 * 1000, /* of a large journal on a slow disk it takes long */
};

#define AUDIT_FILE "/var/log/ctr-gpu-vcudad.log"

struct vcuda_audit {
	const char *container; /* how its id begins; NULL: all */
	json_t *events;        /* NULL: they are printed as they come */
};

/* The last of it, without a line whose beginning is left out. Return: 0; negative errno. */
static int vcuda_audit_read_file(int fd, char **ret, size_t *ret_size)
{
	const off_t size = lseek(fd, 0, SEEK_END), start = size > AUDIT_MAX ? size - AUDIT_MAX : 0;
	char *end;
	int r;

	if (size < 0 || lseek(fd, start, SEEK_SET) < 0)
		return -errno;
	/* It may grow meanwhile. */
	r = fd_read_sized(fd, size - start, AUDIT_MAX + 1, ret, ret_size);
	if (r < 0 || start == 0)
		return r;
	end = strchrnul(*ret, '\n');
	*ret_size -= (size_t)(end - *ret);
	memmove(*ret, end, *ret_size + 1);
	return 0;
}

/* Return: 0, or the exit status after a message was printed. */
static int vcuda_audit_read(char **ret, size_t *ret_size)
{
	static const char *const journal[] = {"/usr/bin/journalctl",
					      "--unit=ctr-gpu-vcudad.service",
					      "--output=cat",
					      "--no-pager",
					      "--quiet",
					      "--lines=20000",
					      NULL};
	_cleanup_close_ int fd = -1;
	int r;

	if (access("/run/systemd/system", F_OK) == 0) {
		if (program_output_read(journal, JOURNAL_MS, AUDIT_MAX, ret, ret_size))
			return 0;
		return output_print_advised(
			("journalctl does not show the audit of ctr-gpu-vcudad"),
			("What it says: journalctl -u ctr-gpu-vcudad; root and the group adm may read it."));
	}
	fd = open(AUDIT_FILE, O_RDONLY | O_CLOEXEC);
	r = fd < 0 ? -errno : vcuda_audit_read_file(fd, ret, ret_size);
	errno = -r;
	if (r < 0)
		return output_print_advised(("cannot read the audit %s: %m", AUDIT_FILE),
					    ("%s", r == -ENOENT ? "OpenRC's ctr-gpu-vcudad writes it when it starts: "
								  "sudo rc-service ctr-gpu-vcudad start"
								: "Root alone may read it: sudo ctr-gpu vcuda audit"));
	return 0;
}

/* Its time, what happened, to which container, and the rest as JSON has it. */
static void vcuda_audit_print(json_t *event)
{
	static const char *const named[] = {"time", "event", "container"};
	const char *separator = "  ";
	const char *key;
	json_t *value;

	for (size_t i = 0; i < ARRAY_SIZE(named); i++) {
		const char *text = json_string_value(json_object_get(event, named[i]));

		print_safe(stdout, "%s%-*s", i > 0 ? "  " : "", i == 1 ? 14 : 12, text ? text : "-");
	}
	json_object_foreach (event, key, value) {
		_cleanup_free_ char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);

		if (streq(key, named[0]) || streq(key, named[1]) || streq(key, named[2]))
			continue;
		print_safe(stdout, "%s%s=%s", separator, key, text ? text : "?");
		separator = " ";
	}
	(void)putchar('\n');
}

/* A line that is none of the audit is systemd's, or a warning of the manager's. */
static void vcuda_audit_take(const struct vcuda_audit *audit, const char *line, size_t size)
{
	json_t *event;
	const char *container;

	if (json_parse(line, size, &event, NULL) < 0)
		return;
	container = json_string_value(json_object_get(event, "container"));
	if (!json_object_get(event, "event") ||
	    (audit->container && (!container || !str_has_prefix(container, audit->container))))
		json_decref(event);
	else if (audit->events)
		(void)json_array_append_new(audit->events, event);
	else {
		vcuda_audit_print(event);
		json_decref(event);
	}
}

static error_t vcuda_audit_parse(int key, char *argument, struct argp_state *state)
{
	struct vcuda_audit *audit = state->input;

	switch (key) {
	case KEY_JSON:
		audit->events = json_array();
		return 0;
	case ARGP_KEY_ARG:
		if (audit->container)
			argp_error(state, "one container at a time");
		audit->container = argument;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

int vcuda_audit_show(struct global_options *globals, int argc, char **argv)
{
	static const struct argp_option options[] = {{"json", KEY_JSON, NULL, 0, "Print JSON", 0}, {0}};
	static const struct argp argp = {
		.options = options,
		.parser = vcuda_audit_parse,
		.children = global_options_children,
		.args_doc = "[CONTAINER]",
		.doc = "Show what happened to containers that have GPUs by vCUDA: grants, refusals, crashes.",
	};
	_cleanup_free_ char *text = NULL;
	struct vcuda_audit audit = {0};
	size_t size;
	int r;

	global_options_parse_verb(globals, &argp, argc, argv, &audit);
	output_set_json(audit.events);
	r = vcuda_audit_read(&text, &size);
	if (r == 0)
		for (char *line = text, *end; *line; line = end + (*end == '\n')) {
			end = strchrnul(line, '\n');
			vcuda_audit_take(&audit, line, (size_t)(end - line));
		}
	if (audit.events && r == 0)
		return output_finish(print_write_json(json_pack("{s:o}", "events", audit.events), stdout));
	json_decref(audit.events);
	return r;
}

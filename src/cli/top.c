/* SPDX-License-Identifier: Apache-2.0 */

/* ctr-gpu top: which processes use which GPUs now, and whose container each is in. */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/print.h"
#include "base/str.h"
#include "cli/output.h"
#include "cli/session.h"
#include "cli/verbs.h"
#include "engines/engine.h"
#include "lib/context.h"

/* ---- screen ---- */

/* What is shown once, or on a terminal again and again until the user has seen enough. */

enum { SCREEN_SECOND_MS = 1000, SCREEN_LINES = 24 };

#define SCREEN_CLEAR "\033[H\033[2J"

static volatile sig_atomic_t screen_ended;
static bool screen_has_keys;
static struct termios screen_before, screen_quiet; /* how the terminal is, and how it is while this runs */

static void screen_end(int number)
{
	(void)number;
	screen_ended = 1;
}

/* Ctrl-Z. Who has the terminal meanwhile has it as it was. */
static void screen_stop(int number)
{
	const int before = errno;

	(void)number;
	(void)tcsetattr(STDIN_FILENO, TCSANOW, &screen_before);
	(void)raise(SIGSTOP);
	(void)tcsetattr(STDIN_FILENO, TCSANOW, &screen_quiet);
	errno = before;
}

static void screen_catch_signals(void)
{
	static const int ends[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
	const struct sigaction end = {.sa_handler = screen_end}, stop = {.sa_handler = screen_stop};

	for (size_t i = 0; i < ARRAY_SIZE(ends); i++)
		(void)sigaction(ends[i], &end, NULL);
	(void)sigaction(SIGTSTP, &stop, NULL);
}

/* Return: how much of the text fits into the terminal. */
static size_t screen_cut(const char *text)
{
	struct winsize size = {0};
	const char *end = text;

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0 || size.ws_row < 2)
		size.ws_row = SCREEN_LINES;
	for (int lines = 1; *end && lines < size.ws_row; lines++)
		end = strchrnul(end, '\n') + (*strchrnul(end, '\n') == '\n');
	return (size_t)(end - text);
}

/* Written when it is whole. Return: 0 or the exit status. */
static int screen_show(int (*look)(void *data, FILE *file), void *data, bool terminal)
{
	struct memstream stream;
	FILE *file = memstream_open(&stream);
	_cleanup_free_ char *text = NULL;
	int r = file ? look(data, file) : 0;

	if (!file || memstream_close(&stream, &text, NULL) < 0)
		return output_no_memory();
	if (r || screen_ended)
		return r;
	if (terminal)
		(void)printf(SCREEN_CLEAR "%.*s", (int)screen_cut(text), text);
	else
		(void)fputs(text, stdout);
	return output_finish(print_finish(stdout));
}

bool screen_wait(void)
{
	struct pollfd keys = {.fd = STDIN_FILENO, .events = POLLIN};
	char key = '\0';

	if (!screen_ended && poll(&keys, screen_has_keys, SCREEN_SECOND_MS) > 0 &&
	    (read(STDIN_FILENO, &key, 1) <= 0 || key == 'q' || key == 'Q'))
		screen_ended = 1;
	return !screen_ended;
}

void screen_read_program(pid_t pid, char ret[static SCREEN_PROGRAM_SIZE])
{
	_cleanup_free_ char *name = NULL;
	char path[32];

	ret[0] = '\0';
	(void)snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
	if (pid > 0 && fd_read_kernel_file(AT_FDCWD, path, SCREEN_PROGRAM_SIZE - 1, &name) == 0)
		(void)snprintf(ret, SCREEN_PROGRAM_SIZE, "%.*s", (int)strcspn(name, "\n"), name);
}

int screen_run(int (*look)(void *data, FILE *file), void *data)
{
	int r = 0;

	if (!isatty(STDOUT_FILENO) || tcgetattr(STDIN_FILENO, &screen_before) < 0)
		return screen_show(look, data, false);
	screen_has_keys = true;
	screen_quiet = screen_before;
	screen_quiet.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	screen_catch_signals();
	(void)tcsetattr(STDIN_FILENO, TCSANOW, &screen_quiet);
	do
		r = screen_show(look, data, true);
	while (!r && screen_wait());
	(void)tcsetattr(STDIN_FILENO, TCSANOW, &screen_before);
	return r;
}

/* ---- the processes ---- */

enum { KEY_JSON = 0x100, SHORT_ID = 12, LABEL_SIZE = 32 };

/* Where the process is, as a JSON and a person have it. */
static const struct top_place {
	const char *id, *label;
} places[] = {
	[CONTAINER_PID_UNKNOWN] = {"unknown", "?"},
	[CONTAINER_PID_HOST] = {"host", "(host)"},
	[CONTAINER_PID_LISTED] = {"container", NULL},
	[CONTAINER_PID_FOREIGN] = {"container", NULL},
};

struct top_process {
	const struct use_process *use;
	enum container_pid_place place;
	const struct container_pid *listed; /* NULL: not in one of the list */
	char id[CONTAINER_PID_ID_SIZE];     /* of one that is not in the list */
	char label[LABEL_SIZE];
	char program[SCREEN_PROGRAM_SIZE];
};

struct top {
	struct session session;
	bool json;
	struct use use;
	struct container_pids containers;
	struct top_process *processes; /* as many as use has */
};

static void top_drop(struct top *top)
{
	free(top->processes);
	top->processes = NULL;
	container_pids_clear(&top->containers);
	use_clear(&top->use);
}

static const char *top_find_container(const struct top_process *process)
{
	return process->listed ? process->listed->id : process->place == CONTAINER_PID_FOREIGN ? process->id : NULL;
}

static void top_describe(const struct top *top, const struct use_process *use, struct top_process *ret)
{
	const char *id;

	*ret = (struct top_process){.use = use};
	ret->place = container_pids_find_owner(&top->containers, use->pid, &ret->listed, ret->id);
	id = top_find_container(ret);
	if (ret->listed && ret->listed->name)
		(void)snprintf(ret->label, sizeof(ret->label), "%.*s", LABEL_SIZE - 1, ret->listed->name);
	else
		(void)snprintf(ret->label, sizeof(ret->label), "%.*s", SHORT_ID, id ? id : places[ret->place].label);
	screen_read_program(use->pid, ret->program);
}

/* Containers by their names, then what is in none, by GPUs. */
static int top_compare(const void *one, const void *other)
{
	const struct top_process *a = one, *b = other;
	const bool a_in = top_find_container(a), b_in = top_find_container(b);
	int r = (int)b_in - (int)a_in;

	r = r ? r : strcmp(a->label, b->label);
	r = r ? r : (a->use->adapter > b->use->adapter) - (a->use->adapter < b->use->adapter);
	return r ? r : (a->use->pid > b->use->pid) - (a->use->pid < b->use->pid);
}

static int top_read(struct top *top)
{
	struct ctr_gpu_context *context = top->session.context;
	int r;

	top_drop(top);
	r = host_find_use(top->session.host, &top->use, &context->err);
	if (r != 0)
		return r;
	r = container_pid_list(&top->containers);
	if (r == 0)
		r = container_pids_mark(&top->containers);
	if (r == 0 && !(top->processes = calloc(top->use.count + 1, sizeof(*top->processes))))
		r = -ENOMEM;
	if (r < 0)
		return err_set(&context->err, r, "cannot look at the containers that run: %m");
	for (size_t i = 0; i < top->use.count; i++)
		top_describe(top, &top->use.processes[i], &top->processes[i]);
	qsort(top->processes, top->use.count, sizeof(*top->processes), top_compare);
	return 0;
}

/* One that is divided is used by its parts. */
static bool top_shows(const struct top *top, const struct adapter *adapter)
{
	return !adapter->unusable && !inventory_divides(&top->session.host->inventory, adapter);
}

/* ---- text ---- */

static void top_print_process(const struct top *top, const struct top_process *process, FILE *file)
{
	const struct use_process *use = process->use;
	char memory[BYTES_TEXT_SIZE] = "?", number[ADAPTER_NUMBER_SIZE], percent[16] = "?";

	adapter_format_number(&top->session.host->inventory.adapters[use->adapter], number);
	if (use->memory != USE_UNKNOWN_MEMORY)
		str_format_size(use->memory, memory);
	if (use->percent != USE_UNKNOWN_PERCENT)
		(void)snprintf(percent, sizeof(percent), "%u %%", use->percent);
	print_safe(file, "%-20s  %-5s  %10d  %10s  %8s  %-8s  %s\n", process->label, number, (int)use->pid, memory,
		   percent,
		   use->computes && use->draws ? "both"
		   : use->draws                ? "graphics"
					       : "compute",
		   process->program);
}

static void top_print_unknown(const struct adapter *adapter, FILE *file)
{
	_cleanup_free_ char *text = NULL;

	if (adapter_describe(adapter, &text) < 0)
		return;
	print_safe(file, "%s: its driver does not tell which processes use it.\n", text);
}

static void top_print(const struct top *top, FILE *file)
{
	const struct inventory *inventory = &top->session.host->inventory;
	size_t known = 0, unknown = 0;

	if (top->use.count > 0)
		print_safe(file, "%-20s  %-5s  %10s  %10s  %8s  %-8s  %s\n", "CONTAINER", "GPU", "PROCESS", "MEMORY",
			   "GPU TIME", "KIND", "PROGRAM");
	for (size_t i = 0; i < top->use.count; i++)
		top_print_process(top, &top->processes[i], file);
	for (size_t i = 0; i < inventory->count; i++)
		if (top_shows(top, &inventory->adapters[i])) {
			known += top->use.known[i];
			unknown += !top->use.known[i];
		}
	if (known > 0 && top->use.count == 0)
		(void)fputs("No process uses a GPU.\n", file);
	for (size_t i = 0; i < inventory->count && unknown > 0; i++)
		if (top_shows(top, &inventory->adapters[i]) && !top->use.known[i])
			top_print_unknown(&inventory->adapters[i], file);
	if (unknown > 0)
		(void)fputs("\"ctr-gpu info --containers\" shows which containers have it.\n", file);
}

/* ---- JSON ---- */

static json_t *top_pack_gpu(const struct top *top, size_t i)
{
	const struct adapter *adapter = &top->session.host->inventory.adapters[i];
	char number[ADAPTER_NUMBER_SIZE];

	adapter_format_number(adapter, number);
	return json_pack("{s:o, s:o, s:o, s:o, s:b}", "gpu", print_string(*number ? number : NULL), "name",
			 print_string(adapter->name), "uuid", print_string(adapter->uuid), "pciAddress",
			 print_string(adapter->pci_address), "known", (int)top->use.known[i]);
}

static json_t *top_pack_container(const struct top_process *process)
{
	const struct container_pid *listed = process->listed;
	const char *id = top_find_container(process);

	if (!id)
		return json_null();
	return json_pack("{s:o, s:o, s:o, s:o}", "engine", print_string(listed ? listed->engine : NULL), "id",
			 print_string(id), "name", print_string(listed ? listed->name : NULL), "pid",
			 listed ? json_integer(listed->pid) : json_null());
}

static json_t *top_pack_process(const struct top *top, const struct top_process *process)
{
	const struct use_process *use = process->use;
	const struct adapter *adapter = &top->session.host->inventory.adapters[use->adapter];
	char number[ADAPTER_NUMBER_SIZE];

	adapter_format_number(adapter, number);
	return json_pack("{s:i, s:o, s:o, s:o, s:o, s:o, s:b, s:b, s:s, s:o}", "pid", (int)use->pid, "program",
			 print_string(*process->program ? process->program : NULL), "gpu",
			 print_string(*number ? number : NULL), "uuid", print_string(adapter->uuid), "memory",
			 use->memory == USE_UNKNOWN_MEMORY ? json_null()
							   : json_integer((json_int_t)(use->memory & INT64_MAX)),
			 "gpuTime", use->percent == USE_UNKNOWN_PERCENT ? json_null() : json_real(use->percent / 100.0),
			 "compute", (int)use->computes, "graphics", (int)use->draws, "where", places[process->place].id,
			 "container", top_pack_container(process));
}

static int top_print_json(const struct top *top, FILE *file)
{
	json_t *gpus = json_array();

	for (size_t i = 0; i < top->session.host->inventory.count; i++)
		if (top_shows(top, &top->session.host->inventory.adapters[i]))
			(void)json_array_append_new(gpus, top_pack_gpu(top, i));
	return output_finish(
		print_write_json(json_pack("{s:s, s:o, s:o}", "version", CTR_GPU_VERSION, "gpus", gpus, "processes",
					   print_array(i, top->use.count, top_pack_process(top, &top->processes[i]))),
				 file));
}

/* ---- the command ---- */

static int top_look(void *data, FILE *file)
{
	struct top *top = data;
	int r = session_check(&top->session, top_read(top));

	if (r)
		return r;
	if (top->json)
		return top_print_json(top, file);
	top_print(top, file);
	return 0;
}

static error_t top_parse(int key, char *argument, struct argp_state *state)
{
	(void)argument;
	if (key != KEY_JSON)
		return ARGP_ERR_UNKNOWN;
	((struct top *)state->input)->json = true;
	return 0;
}

int verb_top(struct global_options *globals, int argc, char **argv)
{
	static const struct argp_option options[] = {{"json", KEY_JSON, NULL, 0, "Print JSON, once", 0}, {0}};
	static const struct argp argp = {
		.options = options,
		.parser = top_parse,
		.children = global_options_children,
		.doc = "Show which processes use which GPUs now, and which containers they are in; on a terminal "
		       "again each second, until q is pressed.",
	};
	struct top top = {.session = {.mute = true}};
	int r;

	global_options_parse_verb(globals, &argp, argc, argv, &top);
	output_set_json(top.json);
	r = session_open(&top.session, globals);
	if (r == 0)
		r = session_check(&top.session, ctr_gpu_host_new(top.session.context, &top.session.host));
	if (r == 0)
		r = top.json ? top_look(&top, stdout) : screen_run(top_look, &top);
	top_drop(&top);
	session_close(&top.session);
	return r;
}

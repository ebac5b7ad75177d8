/* SPDX-License-Identifier: Apache-2.0 */

/*
 * ctr-gpu assign: GPUs that one container at a time may have, and who has them. Which GPUs these are is a key of the
 * configuration, which every start reads, so that without one a start looks for nothing more. Claims say who has one.
 */

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/json.h"
#include "base/lock_file.h"
#include "base/print.h"
#include "base/str.h"
#include "cli/config_file.h"
#include "cli/output.h"
#include "cli/session.h"
#include "cli/verbs.h"
#include "engines/engine.h"
#include "engines/text.h"
#include "lib/context.h"
#include "system/claim_file.h"

#define SETTING "exclusive"
#define LOCK "lock" /* in the directory of claims; no GPU is called so */

enum { KEY_EXCLUSIVE = 0x100, KEY_SHARED, KEY_JSON, NAMES_SIZE = 100, NAME_SIZE = 80, SHORT_ID = 12 };
enum {
	STARTS_MS = 10 * 1000, /* which containers that are being made have until they run */
	WAIT_S = 60,           /* for another process that changes the same settings, and looks at containers */
};

_Static_assert((int)HOST_EXCLUSIVE_KEY_SIZE <= (int)CLAIM_GPU_SIZE, "a claim has the name");

struct assign {
	struct session session;
	const char *config;
	char *names; /* of GPUs; NULL: all are shown, and nothing is changed */
	int wish;    /* KEY_EXCLUSIVE, KEY_SHARED; 0: none */
	bool json;
	struct host_exclusive found;
	bool *exclusive;       /* of it, by position in the inventory */
	bool *named;           /* the same */
	bool *added;           /* the same: exclusive by this process alone */
	struct claim *holders; /* the same; whose process is "": no container has an exclusive GPU */
	json_t *containers;    /* containers_list() */
	bool made_file;        /* the configuration file was not there before */
	int folder, lock;      /* assign_begin() */
};

/* ---- options ---- */

static const struct argp_option options[] = {
	{"exclusive", KEY_EXCLUSIVE, NULL, 0, "One container at a time may have each of these GPUs", 0},
	{"shared", KEY_SHARED, NULL, 0, "Any number of containers may", 0},
	{"json", KEY_JSON, NULL, 0, "Print JSON", 0},
	{0},
};

static error_t assign_parse(int key, char *argument, struct argp_state *state)
{
	struct assign *assign = state->input;

	switch (key) {
	case KEY_EXCLUSIVE:
	case KEY_SHARED:
		if (assign->wish && assign->wish != key)
			argp_error(state, "--exclusive and --shared exclude each other");
		assign->wish = key;
		return 0;
	case KEY_JSON:
		assign->json = true;
		return 0;
	case ARGP_KEY_ARG:
		return request_list_append(&assign->names, argument);
	case ARGP_KEY_END:
		if (!assign->names != !assign->wish)
			argp_error(state, assign->wish ? "GPU is missing: its number, UUID or address, or all"
						       : "--exclusive or --shared is missing");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* ---- what there is ---- */

static const struct adapter *assign_adapter(const struct assign *assign, size_t position)
{
	return &assign->session.host->inventory.adapters[position];
}

/* Parts are shown where they can be had by themselves. */
static bool assign_is_shown(const struct assign *assign, size_t position)
{
	const struct adapter *adapter = assign_adapter(assign, position);

	return !adapter->unusable && (adapter->index >= 0 || adapter->is_part);
}

/* "none" and "void" are lists of devices, too, and name none. */
static int assign_mark(const struct assign *assign)
{
	const struct ctr_gpu_host *host = assign->session.host;
	struct err *err = &assign->session.context->err;
	int r = host_exclusive_mark(host, assign->names, assign->named, err);

	for (size_t i = 0; i < host->inventory.count && r == 0; i++)
		if (assign->named[i])
			return 0;
	return r ? r
		 : err_set_advised(err, CTR_GPU_E_BAD_ARGUMENT, ("\"%.64s\" names no GPU", assign->names),
				   ("Name a GPU by its number, UUID, PCI address or LUID, or say all: ctr-gpu info "
				    "lists them."));
}

static int assign_look(struct assign *assign)
{
	struct ctr_gpu_context *context = assign->session.context;
	int r = ctr_gpu_host_new(context, &assign->session.host);
	size_t count;

	if (r)
		return session_check(&assign->session, r);
	count = assign->session.host->inventory.count;
	assign->named = calloc(count + 1, sizeof(*assign->named));
	assign->added = calloc(count + 1, sizeof(*assign->added));
	assign->holders = calloc(count + 1, sizeof(*assign->holders));
	if (!assign->named || !assign->added || !assign->holders ||
	    host_exclusive_find(assign->session.host, &context->settings.exclusive, &assign->found) < 0)
		return output_no_memory();
	assign->exclusive = assign->found.marked;
	if (assign->names)
		r = assign_mark(assign);
	return session_check(&assign->session, r);
}

static int assign_list(struct assign *assign)
{
	struct ctr_gpu_context *context = assign->session.context;
	json_t *containers = NULL;
	int r = containers_list(context, assign->session.host, true, &containers);

	if (r < 0)
		return session_check(&assign->session,
				     err_set(&context->err, r, "cannot look at the containers that run: %m"));
	json_decref(assign->containers);
	assign->containers = containers;
	return 0;
}

/*
 * Starts of containers wait for this lock. So it is released before anything is printed, since the process that reads
 * the output may be slow. Return: 0 or the exit status.
 */
static int assign_lock(int *ret)
{
	pid_t holder = 0;

	*ret = claim_file_lock(&holder);
	errno = -*ret;
	return *ret == -ETIMEDOUT ? output_print_advised(("process %d does not let go of the list of who has which GPU",
							  (int)holder),
							 ("See what it waits for, or end it; then try again."))
	       : *ret < 0         ? output_print("cannot see who has which GPU: %m")
				  : 0;
}

static void assign_read_claims(const struct assign *assign, int claims)
{
	for (size_t i = 0; i < assign->session.host->inventory.count; i++) {
		char key[HOST_EXCLUSIVE_KEY_SIZE];

		host_exclusive_key(assign_adapter(assign, i), key);
		assign->holders[i] = (struct claim){0};
		if (assign->exclusive[i])
			(void)claim_file_read(claims, key, &assign->holders[i]);
	}
}

static int assign_look_at_claims(const struct assign *assign)
{
	_cleanup_close_ int claims = -1;
	int r = geteuid() == 0 ? assign_lock(&claims) : 0;

	if (claims >= 0)
		assign_read_claims(assign, claims);
	return r;
}

/* Whether containers_list() says so. */
static bool assign_is_given(const json_t *container, const char *gpu)
{
	const json_t *item;
	size_t i;

	json_array_foreach (json_object_get(container, "gpus"), i, item)
		if (json_string_value(item) && streq(json_string_value(item), gpu))
			return true;
	return false;
}

static const char *assign_text(const json_t *container, const char *name)
{
	const char *text = json_string_value(json_object_get(container, name));

	return text ? text : "";
}

static bool assign_is_holder(const json_t *container, const struct claim *claim)
{
	return json_integer_value(json_object_get(container, "pid")) == process_key_pid(claim->process);
}

/* A part of a GPU counts as the GPU. Return: whether a container has it; -ENOMEM. */
static int assign_has(const struct assign *assign, const json_t *container, size_t position)
{
	for (size_t i = 0; i < assign->session.host->inventory.count; i++) {
		_cleanup_free_ char *gpu = NULL;

		if (!host_exclusive_has(assign_adapter(assign, position), assign_adapter(assign, i)))
			continue;
		if (adapter_describe(assign_adapter(assign, i), &gpu) < 0)
			return -ENOMEM;
		if (assign_is_given(container, gpu))
			return 1;
	}
	return 0;
}

/* Return: 0, with an array of {engine, id, name, pid}, the claim's own among them; -ENOMEM. */
static int assign_list_containers(const struct assign *assign, size_t position, const struct claim *claim, json_t **ret)
{
	_cleanup_json_ json_t *list = json_array();
	bool listed = !claim;
	const json_t *item;
	size_t i;
	int r = list ? 0 : -ENOMEM;

	json_array_foreach (assign->containers, i, item) {
		const bool holder = claim && assign_is_holder(item, claim);

		r = r < 0 ? r : assign_has(assign, item, position);
		if (r < 0 || (!holder && r == 0))
			continue;
		listed |= holder;
		r = json_array_append_new(
			list, json_pack("{s:O, s:O, s:O, s:O}", "engine", json_object_get(item, "engine"), "id",
					json_object_get(item, "id"), "name", json_object_get(item, "name"), "pid",
					json_object_get(item, "pid")));
	}
	if (r == 0 && !listed)
		r = json_array_append_new(list, json_pack("{s:n, s:s?, s:n, s:i}", "engine", "id",
							  *claim->container ? claim->container : NULL, "name", "pid",
							  (int)process_key_pid(claim->process)));
	if (r == 0)
		*ret = steal_ptr(list);
	return r < 0 ? -ENOMEM : 0;
}

/* ---- what is shown ---- */

/* The engine's name for it; an id is as short as engines show it. */
static void assign_format_container(const json_t *container, char ret[NAME_SIZE])
{
	const char *name = assign_text(container, "name"), *id = assign_text(container, "id");

	if (*name)
		(void)snprintf(ret, NAME_SIZE, "%s", name);
	else if (*id)
		(void)snprintf(ret, NAME_SIZE, "%.*s", SHORT_ID, id);
	else
		(void)snprintf(ret, NAME_SIZE, "process %d",
			       (int)json_integer_value(json_object_get(container, "pid")));
}

static void assign_format_list(const json_t *containers, size_t most, char ret[NAMES_SIZE])
{
	const json_t *item;
	size_t i, length = 0;

	ret[0] = '\0';
	json_array_foreach (containers, i, item) {
		char name[NAME_SIZE];

		assign_format_container(item, name);
		if (i == most || length + strlen(name) + sizeof(", and 1000 more") > NAMES_SIZE) {
			(void)snprintf(ret + length, NAMES_SIZE - length, "%sand %zu more", i ? ", " : "",
				       json_array_size(containers) - i);
			return;
		}
		length += (size_t)snprintf(ret + length, NAMES_SIZE - length, "%s%s", i ? ", " : "", name);
	}
}

/* Return: 0; -ENOMEM. */
static int assign_find(const struct assign *assign, size_t position, char **ret_gpu, json_t **ret_containers)
{
	const struct claim *claim = &assign->holders[position];
	int r = adapter_describe(assign_adapter(assign, position), ret_gpu);

	return r == 0 ? assign_list_containers(assign, position, *claim->process ? claim : NULL, ret_containers) : r;
}

static int assign_print_one(const struct assign *assign, size_t position)
{
	_cleanup_json_ json_t *containers = NULL;
	_cleanup_free_ char *gpu = NULL;
	char names[NAMES_SIZE], shown[NAME_SIZE / 2];
	int r = assign_find(assign, position, &gpu, &containers);

	if (r < 0)
		return r;
	assign_format_list(containers, json_array_size(containers), names);
	(void)snprintf(shown, sizeof(shown), "%s", gpu);
	printable_only(shown);
	printable_only(names);
	print_safe(stdout, *names ? "%-40s %-10s %s\n" : "%-40s %s\n", shown,
		   assign->exclusive[position] ? "exclusive" : "shared", names);
	return 0;
}

static int assign_print(const struct assign *assign)
{
	const size_t count = assign->session.host->inventory.count;
	bool any = false;
	int r = 0;

	print_safe(stdout, "%-40s %-10s %s\n", "GPU", "MODE", "CONTAINERS");
	for (size_t i = 0; i < count && r == 0; i++)
		if (assign_is_shown(assign, i)) {
			r = assign_print_one(assign, i);
			any |= assign->exclusive[i];
		}
	for (size_t i = 0; i < assign->found.unknown.count; i++) {
		print_safe(stdout, "%-40.40s %-10s ", assign->found.unknown.items[i], "exclusive");
		print_safe(stdout, "%s\n", "(this host does not have it)");
	}
	if (any && geteuid() != 0)
		print_safe(stdout, "%s\n", "Root sees which containers have exclusive GPUs.");
	return r == 0 ? print_finish(stdout) : r;
}

static json_t *assign_describe(const struct assign *assign, size_t position)
{
	const struct adapter *adapter = assign_adapter(assign, position);
	_cleanup_json_ json_t *containers = NULL;
	_cleanup_free_ char *gpu = NULL;
	char number[ADAPTER_NUMBER_SIZE], luid[LUID_TEXT_SIZE];
	const struct claim *claim = &assign->holders[position];

	if (assign_find(assign, position, &gpu, &containers) < 0)
		return NULL;
	adapter_format_number(adapter, number);
	luid_format(adapter->luid, luid);
	return json_pack("{s:s, s:o, s:o, s:o, s:o, s:s, s:O, s:o}", "number", number, "name",
			 print_string(adapter->name), "uuid", print_string(adapter->uuid), "pciAddress",
			 print_string(adapter->pci_address), "luid", print_string(adapter->has_luid ? luid : NULL),
			 "mode", assign->exclusive[position] ? "exclusive" : "shared", "containers", containers,
			 "since", *claim->process ? json_integer((json_int_t)claim->since) : json_null());
}

static int assign_print_json(const struct assign *assign)
{
	_cleanup_json_ json_t *gpus = json_array();
	int r = gpus ? 0 : -ENOMEM;

	for (size_t i = 0; i < assign->session.host->inventory.count && r == 0; i++)
		if (assign_is_shown(assign, i))
			r = json_array_append_new(gpus, assign_describe(assign, i)) < 0 ? -ENOMEM : 0;
	return r == 0 ? print_write_json(json_pack("{s:s, s:O, s:o, s:b}", "version", CTR_GPU_VERSION, "gpus", gpus,
						   "unknown", print_strings(&assign->found.unknown), "claimsRead",
						   geteuid() == 0),
					 stdout)
		      : r;
}

/* ---- signals ---- */

static volatile sig_atomic_t stop_signal;

static void assign_on_signal(int number)
{
	stop_signal = number;
}

/* From here on they end the waiting, and what was done is taken back. One that is ignored, as by nohup(1), stays so. */
static void assign_catch_signals(void)
{
	static const int numbers[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT};
	const struct sigaction action = {.sa_handler = assign_on_signal};
	struct sigaction old;

	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		if (sigaction(numbers[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
			(void)sigaction(numbers[i], &action, NULL);
}

/* ---- what is changed ---- */

static int assign_take_lock(struct assign *assign, pid_t *ret_holder)
{
	assign->lock = lock_file_take(assign->folder, LOCK, 0, ret_holder);
	if (assign->lock != -ETIMEDOUT)
		return assign->lock;
	output_note("waiting for another \"ctr-gpu assign\" to end (process %d)", (int)*ret_holder);
	assign->lock = lock_file_take(assign->folder, LOCK, WAIT_S * 1000, ret_holder);
	return assign->lock;
}

/*
 * One process at a time reads the settings, looks at the containers and changes the settings. It is not the lock of the
 * claims, which starts of containers wait for. Return: 0 or the exit status.
 */
static int assign_begin(struct assign *assign)
{
	pid_t holder = 0;
	int r;

	assign->folder = claim_file_open_directory();
	r = assign->folder < 0 ? assign->folder : assign_take_lock(assign, &holder);
	errno = -r;
	return r == -ETIMEDOUT
		       ? output_print_advised(
				 ("another \"ctr-gpu assign\" (process %d) has not ended in %d s", (int)holder, WAIT_S),
				 ("Nothing was changed. See what it waits for, or end it; then try again."))
	       : r < 0 ? output_print("cannot lock " CLAIM_DIRECTORY "/" LOCK ": %m")
		       : 0;
}

/* The file goes, too: a child that looks at a container and waits in the kernel has it open, and so its lock. */
static void assign_end(struct assign *assign)
{
	if (assign->lock >= 0)
		lock_file_release(assign->folder, LOCK, assign->lock);
	assign->lock = -1;
	cleanup_closep(&assign->folder);
}

/* Whether a name means this adapter and no other. */
static bool assign_names_it(const struct assign *assign, const char *name, size_t position)
{
	const struct ctr_gpu_host *host = assign->session.host;
	_cleanup_free_ bool *marked = calloc(host->inventory.count, sizeof(*marked));
	struct err err = {0};

	if (!name || !marked || strchr(name, ',') || host_exclusive_mark(host, name, marked, &err) != 0 ||
	    !marked[position])
		return false;
	for (size_t i = 0; i < host->inventory.count; i++)
		if (marked[i] && i != position)
			return false;
	return true;
}

/* The name that means it longest: numbers change when GPUs come, and LUIDs with the boot. */
static int assign_add_name(const struct assign *assign, size_t position, struct strv *names)
{
	const struct adapter *adapter = assign_adapter(assign, position);
	char number[ADAPTER_NUMBER_SIZE], luid[LUID_TEXT_SIZE];
	const char *const candidates[] = {
		/* On GPU-PV only the driver's library knows it, which is slow to ask. */
		adapter->has_luid ? NULL : adapter->uuid,
		adapter->is_part ? adapter->alias : NULL,
		adapter->pci_address,
		adapter->has_luid ? luid : NULL,
		number,
	};

	adapter_format_number(adapter, number);
	luid_format(adapter->luid, luid);
	for (size_t i = 0; i < ARRAY_SIZE(candidates); i++)
		if (assign_names_it(assign, candidates[i], position))
			return strv_add(names, candidates[i]);
	return strv_add(names, number);
}

/* Return: 0, with what a list in the file means; -ENOMEM. */
static int assign_find_exclusive(struct assign *assign, const json_t *list)
{
	_cleanup_strv_ struct strv names = {0};
	const json_t *item;
	size_t i;
	int r = 0;

	json_array_foreach (list, i, item)
		if (r == 0 && json_string_value(item))
			r = strv_add(&names, json_string_value(item));
	host_exclusive_clear(&assign->found);
	if (r == 0)
		r = host_exclusive_find(assign->session.host, &names, &assign->found);
	assign->exclusive = assign->found.marked;
	return r;
}

/*
 * What the settings say now: a person, or another program, may have changed them since this process began. Return: 0 or
 * the exit status.
 */
static int assign_read(struct assign *assign, struct config_file *ret_file, json_t **ret_json)
{
	struct text_buffer_error error;
	int r = config_file_read(assign->config ? assign->config : PATH_CONFIG, ret_file);

	if (r)
		return r;
	r = json_file_read(&ret_file->text, ret_json, &error);
	if (r == -EINVAL)
		return output_print_advised(("%s, line %zu: %s", ret_file->path, error.line, error.reason),
					    ("Mend it, and try again."));
	if (r == 0)
		r = assign_find_exclusive(assign, json_object_get(*ret_json, SETTING));
	return r < 0 ? output_no_memory() : 0;
}

static int assign_list_names(const struct assign *assign, struct strv *ret)
{
	int r = 0;

	for (size_t i = 0; i < assign->session.host->inventory.count && r == 0; i++)
		if (assign->exclusive[i] && !assign_adapter(assign, i)->unusable)
			r = assign_add_name(assign, i, ret);
	for (size_t i = 0; i < assign->found.unknown.count && r == 0; i++)
		r = strv_add(ret, assign->found.unknown.items[i]);
	return r;
}

/* Return: 0, with the file's text and those names in it; -ENOMEM. */
static int assign_edit(const struct config_file *file, json_t *json, const struct strv *names, struct text_buffer *ret)
{
	int r = 0;

	if (names->count > 0)
		r = json_object_set_new(json, SETTING, print_strings(names)) < 0 ? -ENOMEM : 0;
	else
		(void)json_object_del(json, SETTING);
	if (r == 0)
		r = text_buffer_set(ret, file->text.data ? file->text.data : "", file->text.size);
	return r == 0 ? json_file_write(ret, json) : r;
}

/* Return: 0 or the exit status. */
static int assign_write(struct assign *assign, struct config_file *file, json_t *json)
{
	_cleanup_text_buffer_ struct text_buffer text = {0};
	_cleanup_strv_ struct strv names = {0};
	const bool existed = file->exists;
	int r;

	if (assign_list_names(assign, &names) < 0 || assign_edit(file, json, &names, &text) < 0)
		return output_no_memory();
	/* What else has come into it since stays. */
	if (assign->made_file && existed && json_object_size(json) == 0)
		return config_file_unlink(file);
	if (text_buffer_is_same(&file->text, &text) || (!existed && names.count == 0))
		return 0;
	r = config_file_write(file, &text, 0644);
	assign->made_file |= !r && !existed;
	return r;
}

/* Return: 0 or the exit status. */
static int assign_add(struct assign *assign)
{
	_cleanup_config_file_ struct config_file file = {0};
	_cleanup_json_ json_t *json = NULL;
	int r = assign_read(assign, &file, &json);

	for (size_t i = 0; i < assign->session.host->inventory.count && !r; i++) {
		assign->added[i] = assign->named[i] && !assign->exclusive[i];
		assign->exclusive[i] |= assign->named[i];
	}
	return r ? r : assign_write(assign, &file, json);
}

/* @which: of them, by position; after assign_read(). Return: 0 or the exit status. */
static int assign_write_without(struct assign *assign, const bool *which, struct config_file *file, json_t *json)
{
	for (size_t i = 0; i < assign->session.host->inventory.count; i++)
		assign->exclusive[i] &= !which[i];
	return assign_write(assign, file, json);
}

/* @which: of them, by position. Return: 0 or the exit status. */
static int assign_remove(struct assign *assign, const bool *which)
{
	_cleanup_config_file_ struct config_file file = {0};
	_cleanup_json_ json_t *json = NULL;
	int r = assign_read(assign, &file, &json);

	return r ? r : assign_write_without(assign, which, &file, json);
}

/* Which process was listed with the number: another may have it by now. */
static const char *assign_listed_process(const struct assign *assign, pid_t pid)
{
	const json_t *item;
	size_t i;

	json_array_foreach (assign->containers, i, item)
		if (json_integer_value(json_object_get(item, "pid")) == pid)
			return assign_text(item, "process");
	return "";
}

/* Has the container that has a GPU now go on to have it. Return: 0; -EBUSY: several have it; negative errno. */
static int assign_claim(const struct assign *assign, size_t position, int claims)
{
	_cleanup_json_ json_t *containers = NULL;
	_cleanup_close_ int process = -1;
	_cleanup_free_ char *gpu = NULL;
	char key[HOST_EXCLUSIVE_KEY_SIZE], path[32];
	struct claim claim = {.since = time(NULL)};
	const json_t *container;
	pid_t pid;

	if (assign_find(assign, position, &gpu, &containers) < 0)
		return -ENOMEM;
	if (json_array_size(containers) > 1)
		return -EBUSY;
	if (json_array_size(containers) == 0 || *assign->holders[position].process)
		return 0;
	container = json_array_get(containers, 0);
	pid = (pid_t)json_integer_value(json_object_get(container, "pid"));
	(void)snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	process = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (process < 0 || process_key_make(pid, process, claim.process) < 0 ||
	    !streq(claim.process, assign_listed_process(assign, pid)))
		return 0;
	(void)snprintf(claim.container, sizeof(claim.container), "%s", assign_text(container, "id"));
	str_make_printable(claim.container);
	host_exclusive_key(assign_adapter(assign, position), key);
	return claim_file_write(claims, key, &claim);
}

/* For each GPU of those, until one fails. */
static int assign_each(const struct assign *assign, const bool *which, int claims,
		       int (*act)(const struct assign *assign, size_t position, int claims))
{
	int r = 0;

	for (size_t i = 0; i < assign->session.host->inventory.count && !r; i++)
		if (which[i])
			r = act(assign, i, claims);
	return r;
}

/* Return: 0; the exit status, if several containers have it. */
static int assign_check(const struct assign *assign, size_t position, int claims)
{
	_cleanup_json_ json_t *containers = NULL;
	_cleanup_free_ char *gpu = NULL;
	char names[NAMES_SIZE];

	(void)claims;
	if (assign_find(assign, position, &gpu, &containers) < 0)
		return output_no_memory();
	if (json_array_size(containers) < 2)
		return 0;
	assign_format_list(containers, json_array_size(containers), names);
	return output_print_advised(
		("GPU %.64s is used by %zu containers: %s", gpu, json_array_size(containers), names),
		("End all of them but one, or leave it shared."));
}

static int assign_free(const struct assign *assign, size_t position, int claims)
{
	char key[HOST_EXCLUSIVE_KEY_SIZE];

	host_exclusive_key(assign_adapter(assign, position), key);
	(void)claim_file_remove(claims, key);
	return 0;
}

/* Return: 0; the exit status, if it is not known of a container which GPUs it has. */
static int assign_check_known(const struct assign *assign)
{
	const json_t *container;
	char name[NAME_SIZE];
	size_t i;

	json_array_foreach (assign->containers, i, container) {
		if (!*assign_text(container, "error"))
			continue;
		if (!*assign_text(container, "id"))
			return output_print_advised(("which containers of %s run is not known: %s",
						     assign_text(container, "engine"), assign_text(container, "error")),
						    ("Mend that, or leave the GPU shared."));
		assign_format_container(container, name);
		return output_print_advised(
			("which GPUs the container %s has is not known: %s", name, assign_text(container, "error")),
			("End it, or leave the GPU shared."));
	}
	return 0;
}

/* Starts that have read the settings before may give a GPU yet, without a claim. */
static int assign_settle(struct assign *assign)
{
	const pid_t starter = container_start_wait(STARTS_MS, &stop_signal);
	int r;

	if (stop_signal)
		return EXIT_STATUS_FAILURE;
	if (starter > 0)
		return output_print_advised(("process %d makes a container, which may get the GPU yet", (int)starter),
					    ("See what it waits for; try again when it has ended."));
	r = assign_list(assign);
	return r ? r : assign_check_known(assign);
}

static int assign_claim_all(const struct assign *assign)
{
	int claims = -1, r = assign_lock(&claims);

	if (r)
		return r;
	assign_read_claims(assign, claims);
	r = assign_each(assign, assign->named, claims, assign_claim);
	if (r == 0)
		assign_read_claims(assign, claims);
	(void)close(claims);
	errno = -r;
	return r == -EBUSY ? assign_each(assign, assign->named, -1, assign_check)
	       : r < 0     ? output_print("cannot write down who has the GPU: %m")
			   : 0;
}

/* What this process has made exclusive, and no more: also the claims that were made of what was shared before. */
static void assign_take_back(struct assign *assign)
{
	int claims = -1, r = assign_remove(assign, assign->added);

	if (r)
		(void)output_print_advised(("the GPUs cannot be made shared again, and are exclusive now"),
					   ("Which these are: ctr-gpu assign; then try: ctr-gpu assign --shared GPU"));
	else if (assign_lock(&claims) == 0) {
		(void)assign_each(assign, assign->added, claims, assign_free);
		(void)close(claims);
	}
	if (!r && stop_signal)
		(void)output_print_advised(
			("stopped by signal %d (%s)", (int)stop_signal, strsignal(stop_signal)),
			("What was not exclusive before is not: the containers have not all been looked at."));
}

/*
 * The settings come first: from then on each start claims what it gives. What starts have given until then is seen in
 * the containers, of which one at most may have it: in those that run, and in those that were being made.
 */
static int assign_make_exclusive(struct assign *assign)
{
	int r = assign_check_known(assign);

	if (!r)
		r = assign_each(assign, assign->named, -1, assign_check);
	if (r)
		return r;
	assign_catch_signals();
	r = assign_add(assign);
	if (r)
		return r;
	r = assign_claim_all(assign);
	if (!r)
		r = assign_settle(assign);
	if (!r)
		r = assign_claim_all(assign);
	if (!r && stop_signal)
		r = EXIT_STATUS_FAILURE;
	if (r)
		assign_take_back(assign);
	return r;
}

/*
 * The settings come first: as long as they say that a GPU is exclusive, it must be known who has it. The lock is held
 * meanwhile, so that no start claims what is shared by then. What the settings say is looked for before: a vendor's
 * library may be asked for that, and starts wait for the lock.
 */
static int assign_make_shared(struct assign *assign)
{
	_cleanup_config_file_ struct config_file file = {0};
	_cleanup_json_ json_t *json = NULL;
	int claims = -1, r = assign_read(assign, &file, &json);

	if (!r)
		r = assign_lock(&claims);
	if (r)
		return r;
	r = assign_write_without(assign, assign->named, &file, json);
	if (!r) {
		(void)assign_each(assign, assign->named, claims, assign_free);
		assign_read_claims(assign, claims);
	}
	(void)close(claims);
	return r;
}

/* ---- the verb ---- */

static int assign_show(const struct assign *assign)
{
	return output_finish(assign->json ? assign_print_json(assign) : assign_print(assign));
}

static void assign_clear(struct assign *assign)
{
	json_decref(assign->containers);
	host_exclusive_clear(&assign->found);
	free(assign->named);
	free(assign->added);
	free(assign->holders);
	free(assign->names);
	session_close(&assign->session);
}

/* As the settings are now, and with what is wished for. Return: 0 or the exit status. */
static int assign_do(struct assign *assign, const struct global_options *globals)
{
	int r = session_open(&assign->session, globals);

	if (!r)
		r = assign_look(assign);
	if (!r)
		r = assign_list(assign);
	if (!r)
		r = assign_look_at_claims(assign);
	if (r || !assign->wish)
		return r;
	return assign->wish == KEY_EXCLUSIVE ? assign_make_exclusive(assign) : assign_make_shared(assign);
}

int verb_assign(struct global_options *globals, int argc, char **argv)
{
	static const struct argp argp = {
		.options = options,
		.parser = assign_parse,
		.args_doc = "[GPU...]",
		.children = global_options_children,
		.doc = "Say that one container at a time may have a GPU, or any number; without GPU, show which "
		       "containers have which GPUs. GPU is its number, UUID, PCI address or LUID, or all.",
	};
	struct assign assign = {.folder = -1, .lock = -1};
	int r = 0;

	global_options_parse_verb(globals, &argp, argc, argv, &assign);
	output_set_json(assign.json);
	assign.config = globals->config;
	if (assign.wish && geteuid() != 0)
		r = output_print_advised(("only root may say who may have a GPU"), ("Try it with sudo."));
	else if (assign.wish)
		r = assign_begin(&assign);
	if (!r)
		r = assign_do(&assign, globals);
	assign_end(&assign);
	if (!r)
		r = assign_show(&assign);
	assign_clear(&assign);
	return r;
}

/* SPDX-License-Identifier: Apache-2.0 */

/* ctr-gpu setup: write into an engine's configuration what it needs to give containers the GPUs, and take it out again. */

#include "cli/setup/setup.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "cli/output.h"
#include "cli/setup/cdi.h"
#include "cli/setup/diff.h"
#include "cli/setup/journal.h"
#include "cli/verbs.h"
#include "engines/nvidia_config.h"

enum {
	KEY_DRY_RUN = 0x200,
	KEY_ENGINE_CONFIG,
	KEY_REMOVE,
	KEY_REPLACE,
	KEY_ROOTLESS,
	KEY_RUNTIME,
	KEY_SET_AS_DEFAULT,
};

static const struct argp_option options[] = {
	{"dry-run", KEY_DRY_RUN, NULL, 0, "Show what would change, and change nothing", 0},
	{"remove", KEY_REMOVE, NULL, 0, "Undo it", 0},
	{"set-as-default", KEY_SET_AS_DEFAULT, NULL, 0, "Make \"nvidia\" the runtime of containers that ask for none, too", 0},
	{"replace", KEY_REPLACE, NULL, 0, "Take over a runtime \"nvidia\" that is another's, until --remove", 0},
	{"rootless", KEY_ROOTLESS, NULL, 0, "The engine that runs as you, with files of your own", 0},
	{"engine-config", KEY_ENGINE_CONFIG, "FILE", 0, "Change this file instead of the one that the engine usually reads", 0},
	{"runtime", KEY_RUNTIME, "FILE", 0, "Where ctr-gpu-runtime is (beside ctr-gpu)", 0},
	{0},
};

static const struct setup_engine *const engines[] = {&setup_docker, &setup_podman, &setup_containerd, &setup_crio};

/* What is there, what is to be, and how the one becomes the other. */
struct change {
	struct config_file file;
	struct journal journal;
	struct text to;
	json_t *entry; /* of the journal, borrowed; NULL: none */
	bool gone;     /* the file is to be removed */
};

void setup_say(const struct setup *setup, const char *format, ...)
{
	/* With --dry-run standard output is the diff. */
	FILE *file = setup->dry_run ? stderr : stdout;
	va_list arguments;

	(void)fprintf(file, "%s: ", setup->engine->name);
	va_start(arguments, format);
	(void)vfprintf(file, format, arguments);
	va_end(arguments);
	(void)fputc('\n', file);
}

/* ---- the command line ---- */

static void take_engine(struct setup *setup, const char *name, const struct argp_state *state)
{
	if (setup->engine || setup->all)
		argp_error(state, "'%s' is one argument too many", name);
	for (size_t i = 0; i < sizeof(engines) / sizeof(engines[0]); i++)
		if (strcmp(engines[i]->name, name) == 0)
			setup->engine = engines[i];
	setup->all |= strcmp(name, "all") == 0;
	if (!setup->engine && !setup->all)
		argp_error(state, "ENGINE is docker, podman, containerd or crio, not '%s'", name);
}

static void take_runtime(struct setup *setup, const char *path, const struct argp_state *state)
{
	if (path[0] != '/')
		argp_error(state, "--runtime must be an absolute path, not '%s'", path);
	setup->runtime_given = path;
}

static error_t parse(int key, char *argument, struct argp_state *state)
{
	struct setup *setup = state->input;

	switch (key) {
	case KEY_DRY_RUN:
		setup->dry_run = true;
		return 0;
	case KEY_REMOVE:
		setup->remove = true;
		return 0;
	case KEY_SET_AS_DEFAULT:
		setup->set_default = true;
		return 0;
	case KEY_REPLACE:
		setup->replace = true;
		return 0;
	case KEY_ROOTLESS:
		setup->rootless = true;
		return 0;
	case KEY_ENGINE_CONFIG:
		setup->config = argument;
		return 0;
	case KEY_RUNTIME:
		take_runtime(setup, argument, state);
		return 0;
	case ARGP_KEY_ARG:
		take_engine(setup, argument, state);
		return 0;
	case ARGP_KEY_END:
		if (!setup->engine && !setup->all)
			argp_error(state, "ENGINE is missing: docker, podman, containerd or crio");
		if (setup->all && (!setup->remove || setup->config))
			argp_error(state, "'all' goes with --remove, and without --engine-config");
		if (setup->remove && (setup->set_default || setup->replace))
			argp_error(state, "--remove undoes --set-as-default and --replace; it does not go with them");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* ---- doing it ---- */

static int no_memory(void)
{
	return output_complain("out of memory");
}

char *setup_find_program(const char *name)
{
	_cleanup_free_ char *self = realpath("/proc/self/exe", NULL);

	/* Packages are removed from trees, too, in which /proc is not mounted. */
	return text_format("%.*s/%s", self ? (int)(strrchr(self, '/') - self) : INT_MAX, self ? self : "/usr/bin", name);
}

int setup_find_daemon(struct setup *setup, const char *name, uid_t uid, bool (*wanted)(const struct daemon *daemon))
{
	int r = daemon_find(name, uid, wanted, &setup->daemon);

	if (r == 0 && !setup->daemon.pid && setup->daemon.stranger)
		setup_say(setup, "process %d is called %s, but is none of this host's (a container's?), and is left alone", setup->daemon.stranger, name);
	if (r == 0)
		return 0;
	errno = -r;
	return output_complain("cannot read /proc: %m");
}

int setup_find_path(struct setup *setup, const char *option, const char *letter, char *usual)
{
	_cleanup_free_ char *otherwise = usual;
	int r = 0;

	if (setup->config)
		setup->path = strdup(setup->config);
	else
		r = daemon_config(&setup->daemon, option, letter, &setup->path);
	if (r == -EPERM)
		return output_complain("the %s that runs (process %d) reads %s, %s\n    Name the file that is meant: --engine-config=FILE", setup->engine->name,
				       setup->daemon.pid, setup->path, setup->daemon.elsewhere ? "which may be another file here" :
				       "which is not a file that root alone may change");
	if (r == 0 && !setup->path) {
		setup->path = otherwise;
		otherwise = NULL;
	}
	return setup->path ? 0 : no_memory();
}

static int find_runtime(struct setup *setup)
{
	setup->runtime = setup->runtime_given ? strdup(setup->runtime_given) : setup_find_program("ctr-gpu-runtime");
	if (!setup->runtime)
		return no_memory();
	if (setup->remove || access(setup->runtime, X_OK) == 0)
		return 0;
	return output_complain("the program %s is missing\n    Install all of ctr-gpu, or name it with --runtime.", setup->runtime);
}

static int check(const struct setup *setup, const struct text *text, const char *path)
{
	struct text_error error = {0};
	int r;

	r = setup->engine->check(text, &error);
	if (r == -EINVAL)
		return output_complain("%s:%zu:%zu: %s\n    The file is not valid, and %s would not read it; nothing was changed.", path, error.line,
				       error.column, error.reason, setup->engine->name);
	return r < 0 ? no_memory() : 0;
}

static void note_restart(struct setup *setup, const json_t *edits)
{
	const json_t *edit;
	size_t i;

	json_array_foreach (edits, i, edit)
		setup->needs_restart |= !setup->engine->restarts_for ||
					setup->engine->restarts_for(json_string_value(json_object_get(edit, "leaf")), setup->remove);
}

static int undo_edits(struct setup *setup, struct change *change)
{
	const json_t *edits = json_object_get(change->entry, "edits");
	int r;

	note_restart(setup, edits);
	for (size_t i = json_array_size(edits); i-- > 0;) {
		r = setup->engine->undo(&change->to, json_array_get(edits, i));
		if (r == -EINVAL)
			return output_complain("%s does not say how to undo what was done to %s\n    Take it out by hand, and remove that entry.",
					       change->journal.file.path, change->file.path);
		if (r < 0)
			return no_memory();
		if (r > 0 && !setup->all)
			setup_say(setup, "%s: somebody has changed since what \"ctr-gpu setup\" had written; that stays", change->file.path);
	}
	return 0;
}

static bool is_blank(const struct text *text)
{
	return strspn(text->size ? text->data : "", " \t\r\n") == text->size;
}

static int decide_removal(struct setup *setup, struct change *change)
{
	int status;

	status = change->entry ? undo_edits(setup, change) : 0;
	/* What somebody has changed since may stay while our programs do. */
	if (!status && (!change->entry || setup->all) && setup->engine->forget(&change->to) < 0)
		return no_memory();
	if (status)
		return status;
	change->gone = change->file.exists && json_is_true(json_object_get(change->entry, "created")) && is_blank(&change->to);
	return 0;
}

/* An entry for a file that is as we left it goes on; that of a file which somebody removed begins anew. */
static json_t *make_entry(const struct setup *setup, const struct change *change)
{
	_cleanup_json_ json_t *missing = NULL;

	if (change->entry && change->file.exists)
		return json_deep_copy(change->entry);
	missing = config_file_missing_directories(&change->file);
	return missing ? json_pack("{s:s, s:b, s:O, s:[]}", "engine", setup->engine->name, "created", !change->file.exists, "directories",
				   missing, "edits")
		       : NULL;
}

/* What could not be written is not remembered. */
static int write_noted(struct change *change, json_t *entry)
{
	_cleanup_json_ json_t *before = json_incref(change->entry);
	const json_t *directories = json_object_get(entry, "directories");
	int status;

	status = journal_set(&change->journal, change->file.path, entry);
	if (status)
		return status;
	status = config_file_make_directories(directories);
	if (!status)
		status = config_file_write(&change->file, &change->to, 0644);
	if (!status)
		return 0;
	if (!change->file.exists)
		config_file_remove_directories(directories);
	(void)journal_set(&change->journal, change->file.path, before);
	return status;
}

static int write_removal(struct setup *setup, struct change *change)
{
	int status = 0;

	if (setup->all && setup->engine->release)
		status = setup->engine->release(setup, &change->file, &change->to);
	if (!status)
		status = change->gone ? config_file_unlink(&change->file) : config_file_write(&change->file, &change->to, 0644);
	if (status)
		return status;
	if (change->gone)
		config_file_remove_directories(json_object_get(change->entry, "directories"));
	setup_say(setup, "%s: %s", change->file.path, change->gone ? "removed" : "what was written is taken out");
	return 0;
}

static bool is_changed(const struct change *change)
{
	return change->gone || change->to.size != change->file.text.size ||
	       (change->to.size && memcmp(change->to.data, change->file.text.data, change->to.size) != 0);
}

static int show(const struct change *change)
{
	const struct text *from = change->file.exists ? &change->file.text : NULL, *to = change->gone ? NULL : &change->to;

	if (!is_changed(change))
		return 0;
	return diff_write(change->file.path, from, to, stdout) < 0 ? no_memory() : 0;
}

static int remove_all(struct setup *setup, struct change *change)
{
	int status;

	status = decide_removal(setup, change);
	if (!status)
		status = check(setup, &change->to, change->file.path);
	if (status || setup->dry_run)
		return status ? status : show(change);
	if (is_changed(change))
		status = write_removal(setup, change);
	else
		setup_say(setup, "%s: nothing to remove", change->file.path);
	if (!status && change->entry)
		status = journal_set(&change->journal, change->file.path, NULL);
	return status;
}

static void say_edits(const struct setup *setup, const struct change *change, const json_t *edits)
{
	const json_t *edit;
	size_t i;

	json_array_foreach (edits, i, edit)
		setup_say(setup, "%s: %s %s", change->file.path, json_string_value(json_object_get(edit, "leaf")),
			  json_object_get(edit, "old") ? "changed" : "written");
}

static int decide_edits(struct setup *setup, struct change *change, json_t *edits, json_t *entry)
{
	int status = setup->engine->edit(setup, &change->to, edits);

	note_restart(setup, edits);
	/* A file that we would spoil stays as it is; it is our mistake then. */
	if (!status)
		status = check(setup, &change->to, change->file.path);
	if (!status && json_array_extend(json_object_get(entry, "edits"), edits) < 0)
		status = no_memory();
	return status;
}

static int put_file(const struct setup *setup, struct change *change, const json_t *edits, json_t *entry)
{
	int status;

	if (!is_changed(change)) {
		setup_say(setup, "%s: everything is there", change->file.path);
		return 0;
	}
	status = write_noted(change, entry);
	if (!status)
		say_edits(setup, change, edits);
	return status;
}

/* The file is the last that is written: without the CDI spec it stays as it is, and a spec goes again without the file. */
static int put_all(struct setup *setup, struct change *change)
{
	_cleanup_json_ json_t *edits = json_array(), *entry = make_entry(setup, change);
	int status;

	if (!edits || !entry)
		return no_memory();
	status = decide_edits(setup, change, edits, entry);
	/* With a file of its own the user wants that file and nothing else. */
	if (!status && !setup->config)
		status = setup_cdi_put(setup, &change->journal);
	if (!status)
		status = setup->dry_run ? show(change) : put_file(setup, change, edits, entry);
	if (status && !setup->dry_run)
		(void)setup_cdi_remove(setup, &change->journal, change->journal.found);
	return status;
}

static void say_setting(const struct nvidia_setting *setting, void *user)
{
	setup_say(user, NVIDIA_CONFIG " is not read: %s%s%s; %s%s", setting->key, setting->value ? " = " : " is not set", setting->value ? setting->value : "",
		  setting->has_successor ? "here: " : "no successor: ", setting->here);
}

static int do_file(struct setup *setup, struct change *change)
{
	bool changed;
	int status;

	status = config_file_read(setup->path, &change->file);
	if (!status)
		status = check(setup, &change->file.text, change->file.path);
	if (!status)
		status = journal_open(&change->journal, geteuid() != 0, !setup->dry_run);
	if (status)
		return status;
	change->entry = json_object_get(change->journal.entries, change->file.path);
	if (text_set(&change->to, change->file.text.data, change->file.text.size) < 0)
		return no_memory();
	status = setup->remove ? remove_all(setup, change) : put_all(setup, change);
	if (!status && setup->remove && !setup->config)
		status = setup_cdi_remove(setup, &change->journal, NULL);
	if (status)
		return status;
	changed = is_changed(change);
	if (!setup->remove)
		nvidia_config_each(say_setting, setup);
	setup->engine->advise(setup, changed);
	return 0;
}

static int do_engine_file(struct setup *setup)
{
	struct change change = {.journal = {.lock = -1}};
	int status;

	status = do_file(setup, &change);
	config_file_close(&change.file);
	journal_close(&change.journal);
	text_clear(&change.to);
	return status;
}

static int run(struct setup *setup)
{
	int status;

	if (setup->rootless && geteuid() == 0)
		return output_complain("a rootless engine is set up by the user who runs it, and you are root\n    Run this as that user, without sudo.");
	status = find_runtime(setup);
	if (!status)
		status = setup->engine->look(setup);
	return status ? status : do_engine_file(setup);
}

static void setup_close(struct setup *setup)
{
	daemon_close(&setup->daemon);
	free(setup->runtime);
	free(setup->version);
	free(setup->path);
}
#define _cleanup_setup_ __attribute__((cleanup(setup_close)))

/* ---- every engine ---- */

/* Whether a file that nobody remembers names us; others' files are not even read as what they are. */
static bool names_us(const char *path)
{
	__attribute__((cleanup(config_file_close))) struct config_file file = {0};
	static const char name[] = "ctr-gpu";

	return access(path, R_OK) == 0 && config_file_read(path, &file) == 0 && file.text.size &&
	       memmem(file.text.data, file.text.size, name, sizeof(name) - 1);
}

/* @path: of a file of the journal; NULL: the one that the engine usually reads. */
static int remove_one(const struct setup *all, const struct setup_engine *engine, const char *path)
{
	_cleanup_setup_ struct setup setup = *all;
	int status;

	setup.engine = engine;
	setup.rootless = geteuid() != 0;
	status = find_runtime(&setup);
	if (!status)
		status = engine->look(&setup);
	if (status || (!path && !names_us(setup.path)))
		return status;
	if (path) {
		free(setup.path);
		setup.path = strdup(path);
	}
	return setup.path ? do_engine_file(&setup) : no_memory();
}

/* One that cannot be undone does not keep the others. */
static int remove_every(struct setup *setup)
{
	_cleanup_journal_ struct journal journal = {.lock = -1};
	const char *path;
	json_t *entry;
	int status, worst;

	worst = journal_open(&journal, geteuid() != 0, false);
	if (worst)
		return worst;
	for (size_t i = 0; i < sizeof(engines) / sizeof(engines[0]); i++) {
		json_object_foreach (journal.entries, path, entry) {
			const char *engine = json_string_value(json_object_get(entry, "engine"));

			status = engine && strcmp(engine, engines[i]->name) == 0 ? remove_one(setup, engines[i], path) : 0;
			worst = status ? status : worst;
		}
		/* CRI-O is root's alone. */
		status = engines[i] == &setup_crio && geteuid() != 0 ? 0 : remove_one(setup, engines[i], NULL);
		worst = status ? status : worst;
	}
	return worst;
}

int verb_setup(struct globals *globals, int argc, char **argv)
{
	static const struct argp argp = {
		.options = options, .parser = parse, .args_doc = "ENGINE", .children = globals_children,
		.doc = "Write into the configuration of docker, podman, containerd or crio what it needs to give containers the GPUs.",
	};
	_cleanup_setup_ struct setup setup = {.globals = globals, .daemon = DAEMON_NONE};

	globals_parse_verb(globals, &argp, argc, argv, &setup);
	return setup.all ? remove_every(&setup) : run(&setup);
}

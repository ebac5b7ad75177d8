/* SPDX-License-Identifier: Apache-2.0 */

/*
 * ctr-gpu setup: write into an engine's configuration what it needs to give containers the GPUs, and take it out
 * again.
 */

#include "cli/setup/setup.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <string.h>

#include "base/json.h"
#include "base/str.h"
#include "cli/output.h"
#include "cli/verbs.h"
#include "system/trusted_file.h"

enum {
	KEY_DRY_RUN = 0x200,
	KEY_REMOVE,
	KEY_REPLACE,
	KEY_ROOTLESS,
	KEY_SET_AS_DEFAULT,
	KEY_ENGINE_CONFIG,
	KEY_RUNTIME,
};

static const struct argp_option options[] = {
	{"dry-run", KEY_DRY_RUN, NULL, 0, "Show what would change in the file, as diff -u does, and change nothing", 0},
	{"remove", KEY_REMOVE, NULL, 0, "Undo it", 0},
	{"set-as-default", KEY_SET_AS_DEFAULT, NULL, 0,
	 "Make \"nvidia\" the runtime of containers that ask for none, too", 0},
	{"replace", KEY_REPLACE, NULL, 0, "Take over a runtime \"nvidia\" that is another's, until --remove", 0},
	{"rootless", KEY_ROOTLESS, NULL, 0, "The engine that runs as you, with files of your own", 0},
	{"engine-config", KEY_ENGINE_CONFIG, "FILE", 0,
	 "Change this file instead of the one that the engine usually reads", 0},
	{"runtime", KEY_RUNTIME, "FILE", 0, "Where ctr-gpu-runtime is (beside ctr-gpu)", 0},
	{0},
};

static const struct setup_engine *const engines[] = {&setup_docker, &setup_podman, &setup_containerd, &setup_crio,
						     &setup_vcuda};

/* ---- the command line ---- */

static void setup_take_engine(struct setup *setup, const char *name, const struct argp_state *state)
{
	const struct engine *other = engine_find(name, strlen(name));
	const char *names[ARRAY_SIZE(engines) + 1] = {"kubernetes"};
	char suggestion[SUGGESTION_SIZE];

	if (setup->engine || setup->all || setup->kubernetes)
		argp_error(state, "'%s' is one argument too many", name);
	for (size_t i = 0; i < ARRAY_SIZE(engines); i++) {
		names[i + 1] = engines[i]->facts->name;
		if (streq(engines[i]->facts->name, name))
			setup->engine = engines[i];
	}
	setup->all |= streq(name, "all");
	setup->kubernetes |= streq(name, "kubernetes");
	if (!setup->engine && !setup->all && !setup->kubernetes)
		argp_error(state, "ENGINE is docker, podman, containerd, crio, kubernetes or vcuda, not '%s'%s", name,
			   str_suggest(names, ARRAY_SIZE(names), other ? other->name : name, suggestion));
}

static void setup_check_line(const struct setup *setup, const struct argp_state *state)
{
	if (!setup->engine && !setup->all && !setup->kubernetes)
		argp_error(state, "ENGINE is missing: docker, podman, containerd, crio, kubernetes or vcuda");
	if (setup->kubernetes && (setup->config || setup->rootless))
		argp_error(state, "'kubernetes' finds the engine and its file; it goes without --engine-config and "
				  "--rootless");
	if (setup->all && (!setup->remove || setup->config))
		argp_error(state, "'all' goes with --remove, and without --engine-config");
	if (setup->remove && (setup->set_default || setup->replace))
		argp_error(state, "--remove undoes --set-as-default and --replace; it does not go with them");
	if (setup->engine == &setup_vcuda && (setup->replace || setup->rootless || setup->runtime_given))
		argp_error(state,
			   "'vcuda' is root's and no engine: --replace, --rootless and --runtime do not go with it");
	if (setup->config && (!*setup->config || setup->config[strlen(setup->config) - 1] == '/'))
		argp_error(state, "--engine-config is a file, not '%s'", setup->config);
	if (setup->runtime_given && setup->runtime_given[0] != '/')
		argp_error(state, "--runtime must be an absolute path, not '%s'", setup->runtime_given);
}

static error_t setup_parse(int key, char *argument, struct argp_state *state)
{
	struct setup *setup = state->input;
	bool *const flags[] = {&setup->dry_run, &setup->remove, &setup->replace, &setup->rootless, &setup->set_default};

	switch (key) {
	case KEY_DRY_RUN ... KEY_SET_AS_DEFAULT:
		*flags[key - KEY_DRY_RUN] = true;
		return 0;
	case KEY_ENGINE_CONFIG:
		setup->config = argument;
		return 0;
	case KEY_RUNTIME:
		setup->runtime_given = argument;
		return 0;
	case ARGP_KEY_ARG:
		setup_take_engine(setup, argument, state);
		return 0;
	case ARGP_KEY_END:
		setup_check_line(setup, state);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* ---- which daemon, which file ---- */

/* Whether a shell takes it as it is; a line with anything else in it is not shown for typing. */
static bool setup_is_plain(const char *path)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+@:=,";

	return path[strspn(path, plain)] == '\0';
}

/* Another process's arguments are only a hint: for a file in an unusual place the user must name it. */
static int setup_refuse_path(const struct setup *setup, bool trusted)
{
	const struct engine *facts = setup->engine->facts;
	bool plain = trusted && setup_is_plain(setup->path);

	if (!trusted && setup->daemon.elsewhere)
		return output_print_advised(("the %s that runs (process %d) reads %s, which may be another file here",
					     facts->name, setup->daemon.pid, setup->path),
					    ("Name the file that is meant: --engine-config=FILE"));
	return output_print_advised(
		("the %s that runs (process %d) reads %s, which is not %s%s", facts->name, setup->daemon.pid,
		 setup->path, trusted ? "below " : "a file that root alone may change",
		 trusted && facts->directories ? facts->directories[0] : ""),
		("%s%s%s --engine-config=%s",
		 plain ? "If you mean that file: sudo ctr-gpu setup " : "Name the file that is meant:",
		 plain && setup->remove ? "--remove " : "", plain ? facts->name : "", plain ? setup->path : "FILE"));
}

/* The file that the daemon's option names, if it is one to follow; NULL. */
static int setup_find_daemon_path(struct setup *setup)
{
	const struct engine *facts = setup->engine->facts;
	int r = daemon_config(&setup->daemon, facts->option, facts->letter, &setup->path);

	if (r == -ENOMEM)
		return output_no_memory();
	if (!setup->path || (r == 0 && (geteuid() != 0 || engine_has_file(facts, setup->path))))
		return 0;
	if (!setup->all)
		return setup_refuse_path(setup, r == 0);
	/* What is remembered is taken out of all the same, and so is the usual file. */
	free(steal_ptr(setup->path));
	return 0;
}

/* Whether an absolute path is called as a file that the engine reads, or is among those of a directory. */
static bool setup_is_called(const char *path, const char *pattern)
{
	return fnmatch(pattern, path, FNM_PATHNAME | FNM_PERIOD) == 0 ||
	       (!strchr(pattern, '*') && streq(strrchr(path, '/'), strrchr(pattern, '/')));
}

static bool setup_has_usual_name(const struct setup *setup, const char *path, const char *usual)
{
	const struct engine *facts = setup->engine->facts;
	bool found = setup_is_called(path, usual);

	for (const char *const *file = facts->files; *file && !found; file++)
		found = setup_is_called(path, *file);
	for (const char *const *file = facts->merged_files; file && *file && !found; file++)
		found = setup_is_called(path, *file);
	for (const char *const *file = facts->user_files; file && *file && !found; file++) {
		_cleanup_free_ char *pattern = engine_user_file(*file);

		found = pattern && setup_is_called(path, pattern);
	}
	return found;
}

/* A mistake in typing makes no file, and no directory. */
static int setup_check_config(const struct setup *setup)
{
	const char *path = setup->config, *slash = path ? strrchr(path, '/') : NULL;
	_cleanup_free_ char *usual = setup_usual_path(setup), *whole = path ? path_absolute(path) : NULL,
			    *directory = slash && slash > path ? strndup(path, (size_t)(slash - path)) : strdup("/");

	if (!path || setup->remove || faccessat(AT_FDCWD, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT)
		return 0;
	if (!usual || !whole || !directory)
		return output_no_memory();
	if (!setup_has_usual_name(setup, whole, usual))
		(void)output_print_advised(("--engine-config: there is no file %s", path),
					   ("%s's is called %s. Correct the path, or make the file first: touch %s",
					    setup->engine->facts->label, strrchr(usual, '/') + 1, path));
	else if (!slash || engine_has_file(setup->engine->facts, path) || access(directory, F_OK) == 0 ||
		 errno != ENOENT)
		return 0;
	else
		(void)output_print_advised(("--engine-config: the directory %s does not exist", directory),
					   ("Correct the path, or make it first: mkdir -p %s", directory));
	return EXIT_STATUS_USAGE;
}

/* The file that --engine-config or the daemon's option names, or the usual one. */
static int setup_find_path(struct setup *setup)
{
	int r = 0;

	if (setup->config)
		setup->path = strdup(setup->config);
	else if (setup->engine->facts->option)
		r = setup_find_daemon_path(setup);
	if (r == 0 && !setup->path)
		setup->path = setup_usual_path(setup);
	return r ? r : setup->path ? 0 : output_no_memory();
}

/* Whether the daemon reads our file and can run our program. */
static bool setup_reaches_daemon(const struct setup *setup)
{
	const struct engine *facts = setup->engine->facts;
	const struct daemon *daemon = &setup->daemon;
	const char *option = facts->option ? daemon_option(daemon, facts->option, facts->letter) : NULL;
	_cleanup_free_ char *used = option ? strdup(option) : setup_usual_path(setup);
	_cleanup_free_ char *ours = realpath(setup->path, NULL), *theirs = used ? realpath(used, NULL) : NULL;
	const char *unseen = ours && !daemon_sees(daemon, ours)     ? ours
			     : !daemon_sees(daemon, setup->runtime) ? setup->runtime
								    : NULL;

	if (used && facts->option && !streq(ours ? ours : setup->path, theirs ? theirs : used))
		setup_print(setup, "the %s that runs (process %d) does not read %s, but %s", facts->daemon.name,
			    daemon->pid, setup->path, used);
	else if (unseen)
		setup_print(setup, "the %s that runs (process %d) has files of its own, and does not see %s",
			    facts->daemon.name, daemon->pid, unseen);
	else
		return true;
	return false;
}

static int setup_look(struct setup *setup)
{
	const struct setup_engine *engine = setup->engine;
	int r;

	setup->runtime = setup->runtime_given ? strdup(setup->runtime_given) : path_of_program("ctr-gpu-runtime");
	if (!setup->runtime)
		return output_no_memory();
	if (!setup->remove && engine->facts->runtimes && access(setup->runtime, X_OK) < 0)
		return output_print_advised(("the program %s is missing", setup->runtime),
					    ("Install all of ctr-gpu, or name it with --runtime."));
	r = engine->facts->daemon.name ? setup_find_daemon(setup, geteuid()) : 0;
	if (!r && engine->look)
		r = engine->look(setup);
	if (!r)
		r = setup_find_path(setup);
	if (r)
		return r;
	/* Before anything is written. A Kubernetes node's daemon reads other files than the one that is written. */
	setup->unreached =
		setup->daemon.pid && !setup->remove && !(setup->node && setup->config) && !setup_reaches_daemon(setup);
	return 0;
}

/* ---- what is to become of the file ---- */

/* A text in the state. Without data, the file did not exist. */
static struct text_buffer setup_saved_text(const struct setup *setup, const char *name)
{
	json_t *string = json_object_get(setup->entry, name);

	return (struct text_buffer){(char *)(uintptr_t)json_string_value(string), json_string_length(string)};
}

static bool setup_is_toml(const struct setup *setup)
{
	return setup->engine->facts->format == ENGINE_TOML;
}

/* A TOML file in its usual place is found without an entry, and says itself what was written. */
static bool setup_needs_no_entry(const struct setup *setup)
{
	_cleanup_free_ char *usual = setup_usual_path(setup);

	return setup_is_toml(setup) && usual && streq(usual, setup->path);
}

static void setup_print_stays(const struct setup *setup)
{
	setup_print(setup, "%s: what \"ctr-gpu setup\" wrote was changed later; that stays", setup->file.path);
}

/* The version that was written into an empty file: what others have put there since may need it. */
static int setup_keep_version(const struct setup *setup, struct text_buffer *text)
{
	const json_t *version = json_object_get(setup->now, "version");
	_cleanup_json_ json_t *left = NULL;
	_cleanup_free_ char *line = NULL;
	int r = setup_read(setup, text, setup->path, &left);

	if (r || !version || !json_object_size(left) || json_object_get(left, "version"))
		return r;
	if (str_format(&line, "version = %d%s", (int)json_integer_value(version), text_buffer_newline(text)) < 0 ||
	    text_buffer_splice(text, text_buffer_bom(text), 0, line, strlen(line)) < 0)
		return output_no_memory();
	return 0;
}

/*
 * Has a JSON file's text as it was or, if the file was changed after setup, without our settings. @ret_known: what
 * setup wrote is known.
 */
static int setup_take_out(const struct setup *setup, struct text_buffer *ret, bool *ret_known)
{
	struct text_buffer before = setup_saved_text(setup, "before"), after = setup_saved_text(setup, "after");
	_cleanup_json_ json_t *old = NULL, *new = NULL, *wanted = json_deep_copy(setup->now);
	int r;

	*ret_known = !text_buffer_is_same(&before, &after);
	if (!wanted)
		return output_no_memory();
	if (setup->entry && text_buffer_is_same(ret, &after))
		return text_buffer_copy(ret, &before) < 0 ? output_no_memory() : 0;
	if (setup_read(setup, &before, setup->state.file.path, &old) ||
	    setup_read(setup, &after, setup->state.file.path, &new))
		return EXIT_STATUS_FAILURE;
	r = keys_undo(wanted, old, new);
	if (r > 0 && setup->remove && !setup->all)
		setup_print_stays(setup);
	return r < 0 ? output_no_memory() : setup_write(setup, ret, wanted);
}

/* The same of a TOML file, which says itself what was written. */
static int setup_take_out_marked(const struct setup *setup, struct text_buffer *ret, bool *ret_known)
{
	enum toml_edit_undo how = keys_is_taken(setup) ? TOML_EDIT_KEEP_TABLES : TOML_EDIT_RESTORE;
	enum toml_edit_undone undone = toml_edit_undo(ret, how);

	if (undone == TOML_EDIT_TABLES_STAY && !setup->all)
		setup_print_stays(setup);
	*ret_known = undone != TOML_EDIT_NOTHING;
	return setup_keep_version(setup, ret);
}

/* Takes our settings out of a file that has no saved state, or that must not name our programs any more. */
static int setup_drop_ours(const struct setup *setup, struct text_buffer *text)
{
	_cleanup_json_ json_t *wanted = NULL;

	if (setup_read(setup, text, setup->path, &wanted))
		return EXIT_STATUS_FAILURE;
	if (keys_drop_ours(setup->engine, wanted) < 0)
		return output_no_memory();
	if (setup_write(setup, text, wanted))
		return EXIT_STATUS_FAILURE;
	if (setup_is_toml(setup))
		(void)toml_edit_undo(text, TOML_EDIT_FORGET);
	return 0;
}

/*
 * A file that setup has made is to go when it says nothing more. A TOML file's marks say whether setup has; if they are
 * gone (!@known), it is a file that only setup would call so.
 */
static void setup_clear_made(const struct setup *setup, struct text_buffer *text, bool known)
{
	bool made = setup_is_toml(setup) ? !known && setup->engine->file && setup_needs_no_entry(setup)
					 : setup->entry && !json_object_get(setup->entry, "before");

	if (made && strspn(text->data ? text->data : "", " \t\r\n{}") == text->size)
		text_buffer_clear(text);
}

static int setup_plan_remove(struct setup *setup)
{
	bool known = false;
	int r = (setup_is_toml(setup) ? setup_take_out_marked : setup_take_out)(setup, &setup->to, &known);

	/* What was changed after setup stays, unless our programs are removed, too. */
	if (!r && (setup->all || !known))
		r = setup_drop_ours(setup, &setup->to);
	setup_clear_made(setup, &setup->to, known);
	return r ? r : setup_read(setup, &setup->to, setup->file.path, &setup->then);
}

static int setup_plan_put(struct setup *setup)
{
	setup->then = json_deep_copy(setup->now);
	if (!setup->then)
		return output_no_memory();
	return setup_read_config(setup, NULL) ||
	       (setup->engine->facts->files[1] && !setup->config && keys_check_others(setup)) ||
	       setup->engine->edit(setup) || setup_write(setup, &setup->to, setup->then);
}

/* Finds out what the file says, and what it is to say. */
static int setup_plan(struct setup *setup)
{
	struct config_file *file = &setup->file;

	if (config_file_read(setup->path, file) || setup_read(setup, &file->text, file->path, &setup->now))
		return EXIT_STATUS_FAILURE;
	if (text_buffer_copy(&setup->to, &file->text) < 0)
		return output_no_memory();
	setup->entry = json_object_get(setup->state.entries, file->path);
	if (setup->remove ? setup_plan_remove(setup) : setup_plan_put(setup))
		return EXIT_STATUS_FAILURE;
	setup->changed = setup->to.data ? !text_buffer_is_same(&setup->to, &file->text) : file->exists;
	return 0;
}

static void setup_show(const struct setup *setup)
{
	const char *what = !setup->changed ? "not change" : setup->to.data ? "change:" : "be removed";

	setup_print(setup, "%s would %s", setup->file.path, what);
	if (setup->to.data)
		diff_write(&setup->file.text, &setup->to, setup->file.path, stdout);
}

/* ---- doing it ---- */

/* Whether a file that is not remembered names our programs. Its text is searched, not parsed. */
static bool setup_is_named(const char *path)
{
	_cleanup_config_file_ struct config_file file = {0};
	static const char name[] = "ctr-gpu";

	return access(path, R_OK) == 0 && config_file_read(path, &file) == 0 && file.text.size &&
	       memmem(file.text.data, file.text.size, name, sizeof(name) - 1);
}

/* Earlier versions remembered no TOML file in its usual place, and what is remembered may be lost. */
static bool setup_finds_another(const struct setup *setup)
{
	for (size_t i = 0; i < ARRAY_SIZE(engines) && engines[i]->facts->runtimes; i++) {
		const char *path = engines[i]->file ? engines[i]->file : engines[i]->facts->files[0];

		if (!(setup->dry_run && streq(path, setup->path)) && setup_is_named(path))
			return true;
	}
	return false;
}

/* CDI specs are root's: whether another engine of root's is, or may be, set up still, or vCUDA is on. */
static bool setup_needs_specs(const struct setup *setup)
{
	const size_t own = setup->dry_run && setup->entry;

	return setup->rootless || setup->forgetful || (setup->engine != &setup_vcuda && setup_vcuda_is_on()) ||
	       json_object_size(setup->state.entries) > own || setup_finds_another(setup);
}

static int setup_remove_file(struct setup *setup)
{
	bool goes = !setup->to.data;

	if (setup->all && setup->engine->release && setup->engine->release(setup))
		return EXIT_STATUS_FAILURE;
	if (goes ? config_file_unlink(&setup->file) : config_file_write(&setup->file, &setup->to, 0644))
		return EXIT_STATUS_FAILURE;
	setup_print(setup, "%s: %s", setup->file.path, goes ? "removed" : "what was written is taken out");
	return 0;
}

static int setup_remove(struct setup *setup)
{
	if (setup->dry_run)
		setup_show(setup);
	else if (!setup->changed)
		setup_print(setup, "%s: nothing to remove", setup->file.path);
	else if (setup_remove_file(setup))
		return EXIT_STATUS_FAILURE;
	if (setup->entry && !setup->dry_run && saved_state_set(&setup->state, setup->file.path, NULL))
		return EXIT_STATUS_FAILURE;
	return setup->all || setup_needs_specs(setup) ? 0 : setup_cdi_remove(setup, SETUP_CDI_OURS);
}

/* What --remove needs besides the file: the text that daemon.json has then. Return: 0 or the exit status. */
static int setup_make_entry(const struct setup *setup, json_t **ret)
{
	_cleanup_text_buffer_ struct text_buffer before = {0};
	const char *name = setup->engine->facts->name;
	bool known;

	if (text_buffer_copy(&before, &setup->file.text) < 0)
		return output_no_memory();
	if (setup_is_toml(setup)) {
		*ret = json_pack("{s:s}", "engine", name);
	} else {
		if (setup_take_out(setup, &before, &known))
			return EXIT_STATUS_FAILURE;
		setup_clear_made(setup, &before, known);
		*ret = json_pack("{s:s, s:s, s:s*}", "engine", name, "after", setup->to.data, "before", before.data);
	}
	return *ret ? 0 : output_no_memory();
}

/* If the file cannot be written, restores the old entry. */
static int setup_put_saved(struct setup *setup)
{
	_cleanup_json_ json_t *before = json_incref(setup->entry), *entry = NULL;
	int r = setup_make_entry(setup, &entry);
	bool other = !keys_same(entry, before) && !setup->forgetful;

	if (!r && other)
		r = saved_state_set(&setup->state, setup->file.path, entry);
	if ((r && !setup_needs_no_entry(setup)) || !setup->changed)
		return r;
	r = config_file_write(&setup->file, &setup->to, 0644);
	if (r && other)
		(void)saved_state_set(&setup->state, setup->file.path, before);
	return r;
}

/* The engine's file is written last. It stays as it is if a CDI spec cannot be written. */
static int setup_put(struct setup *setup)
{
	/* With a file of its own the user wants that file and nothing else. vCUDA's spec depends on its file. */
	int r = (setup->config && !setup->node) || setup->engine->finish ? 0 : setup_cdi_put(setup);

	if (!r && setup->dry_run)
		setup_show(setup);
	if (r || setup->dry_run)
		return r;
	if (setup->changed || !setup->entry)
		r = setup_put_saved(setup);
	if (!r && !setup->changed)
		setup_print(setup, "%s: everything is there", setup->file.path);
	return r;
}

/*
 * A state that cannot be read or locked, which has been said, keeps no file from being changed that needs no entry. One
 * that another process holds does: that is about to change the same file.
 */
static int setup_open_state(struct setup *setup)
{
	int r = saved_state_open(&setup->state, !setup->dry_run);

	if (!r || setup->state.held || !setup_needs_no_entry(setup))
		return r;
	setup->forgetful = true;
	return 0;
}

/*
 * Root writes nowhere where another user could have put the file, or a link, or could do so now. Return: 0; the exit
 * status after a message was printed.
 */
static int setup_check_place(const struct setup *setup)
{
	_cleanup_free_ char *path = geteuid() == 0 ? path_absolute(setup->path) : NULL;

	if (!path || trusted_file_look(path, TRUSTED_FILE_ROOT_ONLY) != -EPERM)
		return 0;
	return output_print_advised(
		("others than root may change what is at %s, or a directory above it", setup->path),
		("Take their rights away (ls -ld). A user's own engine is set up by that user: ctr-gpu setup %s "
		 "--rootless",
		 setup->engine->facts->name));
}

static void setup_print_setting(const struct nvidia_setting *setting, void *user)
{
	setup_print(user, NVIDIA_CONFIG " is not read: %s%s%s; %s%s", setting->key,
		    setting->value ? " = " : " is not set", setting->value ? setting->value : "",
		    setting->has_successor ? "here: " : "no successor: ", setting->here);
}

/* A tree that was built in a home works, until its owner puts another program there. */
static void setup_warn_of_others(const struct setup *setup)
{
	_cleanup_close_ int fd = trusted_file_open(setup->runtime, S_IFREG, TRUSTED_FILE_ROOT_ONLY, O_PATH);

	if (fd == -EPERM)
		setup_print(setup, "%s, which %s runs as root, can be changed by others than root", setup->runtime,
			    setup->engine->facts->label);
}

static void setup_advise(struct setup *setup)
{
	const struct setup_engine *engine = setup->engine;
	/* A user's own one may be anywhere. */
	bool early = !setup->remove && !setup->config && !setup->rootless && !setup->daemon.pid &&
		     !engine_is_installed(engine->facts);

	if (!setup->remove)
		toolkit_config_each(setup_print_setting, setup);
	if (!setup->remove && geteuid() == 0)
		setup_warn_of_others(setup);
	if (early)
		setup_print(setup, "%s is not installed here; it reads the file when it is", engine->facts->label);
	else if (engine->advise)
		engine->advise(setup);
	else if (!setup->node || !setup->node->files)
		setup_advise_restart(setup, setup->changed, ENGINE_RESTART);
	if (setup->kubernetes)
		kubernetes_advise(setup);
}

static int setup_do_file(struct setup *setup)
{
	int r = setup_check_place(setup);

	if (!r && !setup->node)
		r = setup_check_config(setup);
	if (!r && !setup->forgetful)
		r = setup_open_state(setup);
	/* Behind the lock: a setup that was waited for may have changed the file. */
	if (!r)
		r = setup_plan(setup);
	if (!r)
		r = setup->remove ? setup_remove(setup) : setup_put(setup);
	if (r)
		return r;
	for (size_t i = 0; i < setup->changes.count && !setup->dry_run; i++)
		setup_print(setup, "%s: %s", setup->file.path, setup->changes.items[i]);
	if (setup->engine->finish)
		return setup->config ? 0 : setup->engine->finish(setup);
	setup_advise(setup);
	/* Entries and CDI specs that it may have stay. */
	return setup->remove && setup->forgetful ? EXIT_STATUS_FAILURE : 0;
}

static void setup_close(struct setup *setup)
{
	daemon_close(&setup->daemon);
	config_file_close(&setup->file);
	saved_state_close(&setup->state);
	text_buffer_clear(&setup->to);
	json_decref(setup->now);
	json_decref(setup->then);
	engine_config_clear(&setup->found);
	strv_clear(&setup->changes);
	free(setup->runtime);
	free(setup->path);
}
#define _cleanup_setup_ __attribute__((cleanup(setup_close)))

/* ---- every engine ---- */

/* A service or a cron job may lack it. Root's files do not depend on it. */
static bool setup_has_home(void)
{
	const char *home = getenv("HOME"), *state = getenv("XDG_STATE_HOME"), *config = getenv("XDG_CONFIG_HOME");

	return geteuid() == 0 || (home && home[0] == '/') || (state && state[0] == '/' && config && config[0] == '/');
}

/* @path: a file that the saved state has; NULL: the engine's usual file, unless the state has that. */
static int setup_remove_one(const struct setup *all, const struct setup_engine *engine, const char *path)
{
	_cleanup_setup_ struct setup setup = *all;
	int r;

	setup.state = SAVED_STATE_CLOSED;
	setup.engine = engine;
	setup.rootless = geteuid() != 0;
	r = setup_look(&setup);
	if (!r && !path && engine->leave && setup.daemon.pid && !setup.dry_run)
		r = engine->leave(&setup);
	if (r || (!path && (json_object_get(all->state.entries, setup.path) || !setup_is_named(setup.path))))
		return r;
	setup.config = path;
	return path && str_replace(&setup.path, path) < 0 ? output_no_memory() : setup_do_file(&setup);
}

/* If one setup cannot be undone, the others still are, also where what is remembered of them is lost. */
static int setup_remove_all(struct setup *setup)
{
	int r, worst = saved_state_open(&setup->state, false);
	const char *path;
	json_t *entry;

	setup->forgetful = worst;
	for (size_t i = 0; i < ARRAY_SIZE(engines); i++) {
		json_object_foreach (setup->state.entries, path, entry) {
			const char *name = json_string_value(json_object_get(entry, "engine"));

			if (name && streq(name, engines[i]->facts->name))
				worst = (r = setup_remove_one(setup, engines[i], path)) ? r : worst;
		}
		/* CRI-O and vCUDA are root's alone, and vCUDA's file is an administrator's as well. */
		if (engines[i] != &setup_vcuda && (engines[i] != &setup_crio || geteuid() == 0))
			worst = (r = setup_remove_one(setup, engines[i], NULL)) ? r : worst;
	}
	return worst || geteuid() != 0 ? worst : setup_cdi_remove(setup, SETUP_CDI_OURS);
}

int verb_setup(struct global_options *globals, int argc, char **argv)
{
	static const struct argp argp = {
		.options = options,
		.parser = setup_parse,
		.args_doc = "ENGINE",
		.children = global_options_children,
		.doc = "Write into the configuration of docker, podman, containerd or crio, or of a kubernetes node, "
		       "what it needs to give containers the GPUs; or start vCUDA (vcuda).",
	};
	_cleanup_setup_ struct setup setup = {
		.globals = globals, .daemon = DAEMON_NONE, .state = SAVED_STATE_CLOSED, .section = ""};
	int r;

	global_options_parse_verb(globals, &argp, argc, argv, &setup);
	if (!setup_has_home())
		return output_print_advised(("HOME is not set, so where your files are is not known"),
					    ("Try again with HOME=…"));
	if (setup.all)
		return setup_remove_all(&setup);
	if (setup.rootless && geteuid() == 0)
		return output_print_advised(("a rootless engine is set up by the user who runs it, and you are root"),
					    ("Run this as that user, without sudo."));
	r = setup.kubernetes ? kubernetes_choose(&setup) : 0;
	if (!r)
		r = setup_look(&setup);
	return r ? r : setup_do_file(&setup);
}

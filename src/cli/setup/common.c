/* SPDX-License-Identifier: Apache-2.0 */

/* What the setup of each engine uses: remarks, its daemon, what its file says, and the keys that it is to have. */

#include "cli/setup/setup.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/json.h"
#include "base/str.h"
#include "cli/output.h"

void setup_print(const struct setup *setup, const char *format, ...)
{
	/* With --dry-run standard output is the file. */
	FILE *file = setup->dry_run ? stderr : stdout;
	struct err line = {0};
	va_list arguments;

	va_start(arguments, format);
	err_write_list(&line, 0, format, arguments);
	va_end(arguments);
	(void)fprintf(file, "%s: %s\n", setup->engine ? setup->engine->facts->name : "all", line.text);
}

int setup_refuse_user(const struct setup *setup)
{
	const struct engine *facts = setup->engine->facts;
	const char *remove = setup->remove ? "--remove " : "";

	if (geteuid() == 0 || setup->config || setup->rootless || setup->dry_run)
		return 0;
	if (!facts->user_files)
		return output_print("%s's configuration belongs to root: sudo ctr-gpu setup %s%s", facts->label, remove,
				    facts->name);
	return output_print_advised(
		("%s's configuration belongs to root: sudo ctr-gpu setup %s%s", facts->label, remove, facts->name),
		("For one that runs as you: ctr-gpu setup %s%s --rootless", remove, facts->name));
}

int setup_find_daemon(struct setup *setup, uid_t uid)
{
	const struct engine *facts = setup->engine->facts;
	int r = daemon_find(&facts->daemon, uid, &setup->daemon);

	if (r == 0 && !setup->daemon.pid && setup->daemon.rejected_pid)
		setup_print(setup, "process %d is called %s, but %s, and is left alone", setup->daemon.rejected_pid,
			    facts->daemon.name, setup->daemon.rejected_why);
	if (r == 0)
		return 0;
	errno = -r;
	return output_print("cannot read /proc: %m");
}

/* ---- what files say ---- */

char *setup_usual_path(const struct setup *setup)
{
	const struct setup_engine *engine = setup->engine;

	if (setup->rootless)
		return engine_user_file(engine->user_file ? engine->user_file : engine->facts->user_files[0]);
	return strdup(engine->file ? engine->file : engine->facts->files[0]);
}

int setup_read(const struct setup *setup, const struct text_buffer *text, const char *path, json_t **ret)
{
	struct text_buffer_error error;
	int r = engine_config_parse(setup->engine->facts, text, ret, &error);

	if (r == -EINVAL)
		return output_print_advised(("%s:%zu:%zu: %s", path, error.line, error.column, error.reason),
					    ("Nothing was changed. Correct that, and try again."));
	return r < 0 ? output_no_memory() : 0;
}

int setup_read_config(struct setup *setup, const char *import)
{
	const struct engine *facts = setup->engine->facts;
	_cleanup_rootfs_ struct rootfs root = ROOTFS_CLOSED;
	int r = daemon_open_root(&setup->daemon, &root);

	if (r == 0 && import)
		r = engine_config_read_file(facts, &root, import, &setup->found);
	else if (r == 0)
		r = engine_config_read(facts, &setup->daemon, &root, &setup->found);
	return r == -ENOMEM ? output_no_memory() : 0;
}

int setup_write(const struct setup *setup, struct text_buffer *text, json_t *wanted)
{
	const struct engine *facts = setup->engine->facts;
	_cleanup_json_ json_t *before = NULL, *after = NULL;
	struct text_buffer_error error;
	int r = engine_config_parse(facts, text, &before, &error);

	if (r == 0 && json_equal(before, wanted))
		return 0;
	if (r == 0)
		r = engine_config_write(facts, text, wanted);
	if (r == 0)
		r = engine_config_parse(facts, text, &after, &error);
	if (r == -EINVAL || (r == 0 && !json_equal(after, wanted)))
		return output_print_advised(
			("%s has inline tables or dotted keys where tables are to be changed", setup->path),
			("Write them as [tables] with headers, and try again."));
	return r < 0 ? output_no_memory() : 0;
}

void setup_advise_restart(const struct setup *setup, bool changed, enum engine_step step)
{
	const struct engine *facts = setup->engine->facts;
	_cleanup_free_ char *command = NULL;

	if (!setup->daemon.pid)
		setup_print(setup, "no %s is running; it reads the file when it starts", facts->daemon.name);
	if (!setup->daemon.pid || !changed)
		return;
	command = engine_restart_command(facts, &setup->daemon, setup->rootless, step);
	setup_print(setup, "next: %s", command ? command : "restart it");
}

static const char name[] = "nvidia";

/* ---- keys ---- */

static json_t *keys_at(const json_t *file, const char *section, const char *key)
{
	return json_at(*section ? json_at(file, section) : file, key);
}

static json_t *keys_find_runtime(const struct engine *engine, const json_t *file, const char *section)
{
	return json_object_get(keys_at(file, section, engine->runtimes), name);
}

json_t *keys_runtime(const struct setup *setup)
{
	return keys_find_runtime(setup->engine->facts, setup->then, setup->section);
}

/* As setup writes it, wherever that was. */
static bool keys_is_our_path(const char *program)
{
	const char *slash = strrchr(program, '/');

	return strstr(program, NVIDIA_NAMES "/") || (slash && streq(slash, "/ctr-gpu-runtime"));
}

bool keys_is_ours(const struct setup *setup, const char *program)
{
	_cleanup_program_ struct program found = {0};
	_cleanup_free_ char *ours = realpath(setup->runtime, NULL), *theirs = NULL;

	if (!strchr(program, '/') && daemon_look_up(&setup->daemon, program, &found))
		program = found.path;
	theirs = strchr(program, '/') ? realpath(program, NULL) : NULL;
	return ours && theirs && streq(ours, theirs);
}

bool keys_is_taken(const struct setup *setup)
{
	const struct engine *engine = setup->engine->facts;
	bool taken = false;

	for (const char *const *section = engine_config_sections(engine); *section; section++) {
		const char *program = engine_config_program(engine, keys_find_runtime(engine, setup->now, *section));

		taken |= program && !keys_is_our_path(program) && !keys_is_ours(setup, program);
	}
	return taken;
}

bool keys_same(const json_t *a, const json_t *b)
{
	return a == b || json_equal(a, b);
}

/* ---- putting in ---- */

static char *keys_join(const char *section, const char *key, const char *last)
{
	return text_buffer_format("%s%s%s%s%s", section, *section ? "/" : "", key, *last ? "/" : "", last);
}

int keys_put(struct setup *setup, const char *key, json_t *value)
{
	_cleanup_free_ char *path = keys_join(setup->section, key, "");
	_cleanup_json_ json_t *stolen = value;
	json_t *object = setup->then, *old;
	char *last = path;

	if (!path || !value)
		return output_no_memory();
	for (char *slash; (slash = strchr(last, '/')); *slash = '/', last = slash + 1) {
		json_t *below;

		*slash = '\0';
		below = json_object_get(object, last);
		if (below && !json_is_object(below) && !json_is_null(below))
			return output_print_advised(("%s: \"%s\" is not an object, and %s would refuse it too",
						     setup->path, path, setup->engine->facts->label),
						    ("Mend that, and try again."));
		if (!json_is_object(below) && json_object_set_new(object, last, json_object()) < 0)
			return output_no_memory();
		object = json_object_get(object, last);
	}
	old = json_object_get(object, last);
	if (keys_same(old, value))
		return 0;
	if (strv_format(&setup->changes, "%s %s", path, old ? "changed" : "written") < 0 ||
	    json_object_set(object, last, value) < 0)
		return output_no_memory();
	return 0;
}

int keys_check_others(const struct setup *setup)
{
	const char *other = setup->found.runtime_file, *label = setup->engine->facts->label;

	if (!setup->found.runtime || streq(setup->found.runtime, setup->runtime) || streq(other, setup->path))
		return 0;
	/* An imported file counts more than its importer. */
	if (setup->engine->facts->imports ||
	    engine_config_reads_later(setup->engine->facts, &setup->daemon, other, setup->path))
		return output_print_advised(("%s has a runtime \"nvidia\" already, and %s reads it last", other, label),
					    ("Remove that file, and try again."));
	if (setup->replace)
		return 0;
	return output_print_advised(("%s has a runtime \"nvidia\" already", other),
				    ("To let ours count instead, until --remove, add --replace."));
}

static int keys_check_owner(const struct setup *setup)
{
	const json_t *runtime = keys_runtime(setup);
	const char *program = engine_config_program(setup->engine->facts, runtime);

	if (!runtime || json_is_null(runtime) || setup->replace ||
	    (program && (keys_is_our_path(program) || keys_is_ours(setup, program))))
		return 0;
	return output_print_advised(
		("%s has a runtime \"nvidia\" already: %s", setup->path, program ? program : "one without a program"),
		("To take it over, with its old value back after --remove, add --replace."));
}

int keys_put_runtime(struct setup *setup, json_t *value)
{
	const struct engine *engine = setup->engine->facts;
	_cleanup_free_ char *path = keys_join(engine->runtimes, name, "");
	_cleanup_json_ json_t *stolen = value;

	if (!path)
		return output_no_memory();
	if (keys_check_owner(setup) || keys_put(setup, path, steal_ptr(stolen)))
		return EXIT_STATUS_FAILURE;
	return setup->set_default ? keys_put(setup, engine->default_runtime, json_string(name)) : 0;
}

int keys_put_cdi(struct setup *setup, bool by_default)
{
	const char *key = setup->engine->facts->cdi;
	const json_t *there = keys_at(setup->then, setup->section, key);

	if (json_is_true(there) || (!there && by_default))
		return 0;
	if (!json_is_false(there) || setup->replace)
		return keys_put(setup, key, json_true());
	setup_print(setup, "%s turns CDI off (%s); CDI devices need it, and --replace turns it on", setup->path, key);
	return 0;
}

/* ---- taking out ---- */

/* Removes a key, and each object around it that is then empty. */
static void keys_cut(json_t *file, const char *path)
{
	size_t length = strcspn(path, "/");
	_cleanup_free_ char *first = strndup(path, length);
	json_t *below = first ? json_object_get(file, first) : NULL;

	if (path[length] && below)
		keys_cut(below, path + length + 1);
	if (below && (!path[length] || !json_object_size(below)))
		(void)json_object_del(file, first);
}

static int keys_restore(json_t *object, const char *key, json_t *old)
{
	return (old ? json_object_set(object, key, old) : json_object_del(object, key)) < 0 ? -ENOMEM : 0;
}

/* @levels: of objects below this one, of which each key is undone by itself */
static int keys_undo_levels(json_t *file, const json_t *before, const json_t *after, int levels)
{
	const char *key;
	json_t *new;
	bool stays = false;
	int r = 0;

	json_object_foreach ((json_t *)after, key, new) {
		json_t *old = json_object_get(before, key), *now = json_object_get(file, key);
		bool had = json_object_size(now);

		if (!now || keys_same(old, new))
			continue;
		if (levels > 0 && json_is_object(now) && json_is_object(new)) {
			r = keys_undo_levels(now, old, new, levels - 1);
			stays |= r > 0;
			/* An object that others have emptied stays. */
			if (r >= 0 && had && !json_object_size(now) && !json_is_object(old))
				r = keys_restore(file, key, old);
		} else if (keys_same(now, new)) {
			r = keys_restore(file, key, old);
		} else {
			stays = true;
		}
		if (r < 0)
			return r;
	}
	return stays;
}

/* What setup writes is a key, or one of an object: a runtime is taken as a whole. */
int keys_undo(json_t *file, const json_t *before, const json_t *after)
{
	return keys_undo_levels(file, before, after, 1);
}

int keys_drop_ours(const struct setup_engine *engine, json_t *file)
{
	const struct engine *facts = engine->facts;

	for (const char *const *section = engine_config_sections(facts); facts->runtimes && *section; section++) {
		_cleanup_free_ char *path = keys_join(*section, facts->runtimes, name),
				    *chosen = keys_join(*section, facts->default_runtime, "");
		const char *program = engine_config_program(facts, keys_find_runtime(facts, file, *section)), *used;

		if (!path || !chosen)
			return -ENOMEM;
		if (program && keys_is_our_path(program))
			keys_cut(file, path);
		/* No engine starts with a default that it does not have. */
		used = json_string_value(json_at(file, chosen));
		if (!json_at(file, path) && used && streq(used, name))
			keys_cut(file, chosen);
	}
	return 0;
}

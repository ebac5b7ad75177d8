/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/setup/setup.h"

#include <errno.h>
#include <string.h>

#include "base/json.h"
#include "base/str.h"
#include "cli/output.h"
#include "engines/config.h"

static const char name[] = "nvidia";

/* ---- questions ---- */

static json_t *keys_at(const json_t *file, const char *section, const char *key)
{
	return json_at(*section ? json_at(file, section) : file, key);
}

json_t *keys_runtime(const struct engine *engine, const json_t *file, const char *section)
{
	return json_object_get(keys_at(file, section, engine->runtimes), name);
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
		const char *program = engine_config_program(engine, keys_runtime(engine, setup->now, *section));

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

/* Remembers what is to be said once it is written. */
static int keys_set(struct setup *setup, json_t *object, const char *key, const char *path, json_t *value)
{
	const json_t *old = json_object_get(object, key);

	if (keys_same(old, value))
		return 0;
	if (strv_format(&setup->changes, "%s %s", path, old ? "changed" : "written") < 0 ||
	    json_object_set(object, key, value) < 0)
		return output_no_memory();
	return 0;
}

int keys_put(struct setup *setup, json_t *file, const char *section, const char *key, json_t *value)
{
	_cleanup_free_ char *path = keys_join(section, key, "");
	_cleanup_json_ json_t *stolen = value;
	char *slash, *last = path;

	if (!path || !value)
		return output_no_memory();
	for (; (slash = strchr(last, '/')); last = slash + 1) {
		json_t *below;

		*slash = '\0';
		below = json_object_get(file, last);
		if (below && !json_is_object(below) && !json_is_null(below))
			return output_print_advised(("%s: \"%s\" is not an object, and %s would refuse it too",
						     setup->path, path, setup->engine->facts->label),
						    ("Mend that, and try again."));
		if (!json_is_object(below) && json_object_set_new(file, last, json_object()) < 0)
			return output_no_memory();
		file = json_object_get(file, last);
		*slash = '/';
	}
	return keys_set(setup, file, last, path, value);
}

/* What becomes of a runtime that another of the engine's files has. */
static int keys_refuse_other(const struct setup *setup, const char *other)
{
	const char *file = strrchr(other, '/'), *own = strrchr(setup->path, '/');
	/* Engines read the files of a directory in sorted order; an imported file counts more than its importer. */
	bool later = setup->engine->facts->imports ||
		     (own && file - other == own - setup->path &&
		      strncmp(other, setup->path, (size_t)(file - other)) == 0 && strcmp(file, own) > 0);

	if (later)
		return output_print_advised(("%s has a runtime \"nvidia\" already, and %s reads it last", other,
					     setup->engine->facts->label),
					    ("Remove that file, and try again."));
	if (setup->replace)
		return 0;
	return output_print_advised(("%s has a runtime \"nvidia\" already", other),
				    ("To let ours count instead, until --remove, add --replace."));
}

int keys_check_others(const struct setup *setup)
{
	const struct engine_config *found = &setup->found;

	if (!found->runtime || streq(found->runtime, setup->runtime) || streq(found->runtime_file, setup->path))
		return 0;
	return keys_refuse_other(setup, found->runtime_file);
}

static int keys_check_owner(const struct setup *setup, const json_t *runtime)
{
	const char *program = engine_config_program(setup->engine->facts, runtime);

	if (!runtime || json_is_null(runtime) || setup->replace ||
	    (program && (keys_is_our_path(program) || keys_is_ours(setup, program))))
		return 0;
	return output_print_advised(
		("%s has a runtime \"nvidia\" already: %s", setup->path, program ? program : "one without a program"),
		("To take it over, with its old value back after --remove, add --replace."));
}

int keys_put_runtime(struct setup *setup, json_t *file, const char *section, json_t *value)
{
	const struct engine *engine = setup->engine->facts;
	_cleanup_free_ char *path = keys_join(engine->runtimes, name, "");
	_cleanup_json_ json_t *stolen = value;
	int r = path ? keys_check_owner(setup, keys_runtime(engine, file, section)) : output_no_memory();

	if (!r)
		r = keys_put(setup, file, section, path, steal_ptr(stolen));
	if (!r && setup->set_default)
		r = keys_put(setup, file, section, engine->default_runtime, json_string(name));
	return r;
}

int keys_put_cdi(struct setup *setup, json_t *file, const char *section, bool by_default)
{
	const char *key = setup->engine->facts->cdi;
	const json_t *there = keys_at(file, section, key);

	if (json_is_true(there) || (!there && by_default))
		return 0;
	if (!json_is_false(there) || setup->replace)
		return keys_put(setup, file, section, key, json_true());
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

static int keys_undo_one(json_t *object, const char *key, json_t *old, const json_t *new)
{
	const json_t *now = json_object_get(object, key);

	if (!now || keys_same(old, new))
		return 0;
	return keys_same(now, new) ? keys_restore(object, key, old) : 1;
}

/* What setup writes is a key, or one of an object: a runtime is taken as a whole. */
int keys_undo(json_t *file, const json_t *before, const json_t *after)
{
	const char *outer, *inner;
	json_t *new, *value;
	bool stays = false;
	size_t had;
	int r = 0;

	json_object_foreach ((json_t *)after, outer, new) {
		json_t *old = json_object_get(before, outer), *now = json_object_get(file, outer);

		if (!json_is_object(now) || !json_is_object(new)) {
			r = r < 0 ? r : keys_undo_one(file, outer, old, new);
			stays |= r > 0;
			continue;
		}
		had = json_object_size(now);
		json_object_foreach (new, inner, value) {
			r = r < 0 ? r : keys_undo_one(now, inner, json_object_get(old, inner), value);
			stays |= r > 0;
		}
		/* An object that others have emptied stays. */
		if (r >= 0 && had && !json_object_size(now) && !json_is_object(old))
			r = keys_restore(file, outer, old);
	}
	return r < 0 ? r : stays;
}

int keys_drop_ours(const struct setup_engine *engine, json_t *file)
{
	const struct engine *facts = engine->facts;

	for (const char *const *section = engine_config_sections(facts); facts->runtimes && *section; section++) {
		_cleanup_free_ char *path = keys_join(*section, facts->runtimes, name),
				    *chosen = keys_join(*section, facts->default_runtime, "");
		const char *program = engine_config_program(facts, keys_runtime(facts, file, *section)), *used;

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

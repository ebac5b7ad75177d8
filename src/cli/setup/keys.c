/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/setup/setup.h"

#include <errno.h>
#include <string.h>

#include "base/json.h"
#include "base/str.h"
#include "cli/output.h"

static const char name[] = "nvidia";

/* ---- paths ---- */

static const char *const *keys_sections(const struct engine *engine)
{
	static const char *const whole[] = {"", NULL};

	return engine->sections ? engine->sections : whole;
}

static char *keys_join(const char *section, const char *key, size_t length)
{
	return text_buffer_format("%s%s%.*s", section, *section ? "/" : "", (int)length, key);
}

/* Of the path of its program, the part that ends with the runtime's name. */
static char *keys_runtime_path(const struct engine *engine, const char *section)
{
	const char *end = strstr(engine->runtime, "/nvidia") + strlen("/nvidia");

	return keys_join(section, engine->runtime, (size_t)(end - engine->runtime));
}

static int keys_list(const struct setup_engine *engine, struct strv *ret)
{
	const struct engine *facts = engine->facts;
	const char *const others[] = {engine->beside, facts->cdi, facts->default_runtime};
	int r = 0;

	for (const char *const *section = keys_sections(facts); r == 0 && *section; section++) {
		r = facts->runtime ? strv_take(ret, keys_runtime_path(facts, *section)) : 0;
		for (size_t i = 0; i < ARRAY_SIZE(others) && r == 0; i++)
			if (others[i])
				r = strv_take(ret, keys_join(*section, others[i], strlen(others[i])));
	}
	return r;
}

/* ---- questions ---- */

static json_t *keys_at(const json_t *file, const char *section, const char *key)
{
	return json_at(*section ? json_at(file, section) : file, key);
}

json_t *keys_runtime(const struct engine *engine, const json_t *file, const char *section)
{
	_cleanup_free_ char *path = keys_runtime_path(engine, "");

	return path ? keys_at(file, section, path) : NULL;
}

const char *keys_program(const struct engine *engine, const json_t *file, const char *section)
{
	const json_t *program = keys_at(file, section, engine->runtime);

	return json_string_value(json_is_array(program) ? json_array_get(program, 0) : program);
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

	for (const char *const *section = keys_sections(engine); *section; section++) {
		const char *program = keys_program(engine, setup->now, *section);

		taken |= program && !keys_is_our_path(program) && !keys_is_ours(setup, program);
	}
	return taken;
}

static bool keys_same(const json_t *a, const json_t *b)
{
	return a == b || json_equal(a, b);
}

/* ---- putting in ---- */

/* Makes the objects on the way. Steals @value. Return: 0; -ENOTDIR if there is something else; -ENOMEM. */
static int keys_set(json_t *file, const char *path, json_t *value)
{
	size_t length = strcspn(path, "/");
	_cleanup_free_ char *first = strndup(path, length);
	_cleanup_json_ json_t *stolen = value;
	json_t *below = first ? json_object_get(file, first) : NULL;

	if (!first || !value)
		return -ENOMEM;
	if (!path[length])
		return json_object_set(file, first, value) < 0 ? -ENOMEM : 0;
	if (!below || json_is_null(below)) {
		below = json_object();
		if (json_object_set_new(file, first, below) < 0)
			return -ENOMEM;
	}
	return json_is_object(below) ? keys_set(below, path + length + 1, steal_ptr(stolen)) : -ENOTDIR;
}

/* How much of a path leads to what is there and has no members. */
static size_t keys_find_obstacle(const json_t *file, const char *path)
{
	size_t length = 0;

	do {
		_cleanup_free_ char *above = strndup(path, length += strcspn(path + length, "/"));
		const json_t *there = above ? json_at(file, above) : NULL;

		if (there && !json_is_object(there) && !json_is_null(there))
			break;
	} while (path[length] && path[++length]);
	return length;
}

int keys_put(const struct setup *setup, json_t *file, const char *section, const char *key, json_t *value)
{
	_cleanup_free_ char *path = keys_join(section, key, strlen(key));
	_cleanup_json_ json_t *stolen = value;
	int r;

	if (!path)
		return output_no_memory();
	r = keys_set(file, path, steal_ptr(stolen));
	if (r == -ENOTDIR)
		return output_print_advised(("%s: \"%.*s\" is not an object, and %s would refuse it too", setup->path,
					     (int)keys_find_obstacle(file, path), path, setup->engine->facts->label),
					    ("Mend that, and try again."));
	return r < 0 ? output_no_memory() : 0;
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

static int keys_check_owner(const struct setup *setup, const json_t *file, const char *section)
{
	const char *program = keys_program(setup->engine->facts, file, section);
	const json_t *there = keys_runtime(setup->engine->facts, file, section);

	if (!there || json_is_null(there) || setup->replace ||
	    (program && (keys_is_our_path(program) || keys_is_ours(setup, program))))
		return 0;
	return output_print_advised(
		("%s has a runtime \"nvidia\" already: %s", setup->path, program ? program : "one without a program"),
		("To take it over, with its old value back after --remove, add --replace."));
}

int keys_put_runtime(const struct setup *setup, json_t *file, const char *section, json_t *value)
{
	const struct engine *engine = setup->engine->facts;
	_cleanup_free_ char *path = keys_runtime_path(engine, "");
	_cleanup_json_ json_t *stolen = value;
	int r;

	if (!path)
		return output_no_memory();
	r = keys_check_owner(setup, file, section);
	if (!r)
		r = keys_put(setup, file, section, path, steal_ptr(stolen));
	if (!r && setup->set_default)
		r = keys_put(setup, file, section, engine->default_runtime, json_string(name));
	return r;
}

/* ---- taking out ---- */

/* Removes a key, and each object around it that is then empty and that @keep, which may be NULL, does not have. */
static void keys_cut(json_t *file, const char *path, const json_t *keep)
{
	size_t length = strcspn(path, "/");
	_cleanup_free_ char *first = strndup(path, length);
	json_t *below = first ? json_object_get(file, first) : NULL;

	if (path[length] && below)
		keys_cut(below, path + length + 1, json_object_get(keep, first));
	if (below && (!path[length] || (!json_object_size(below) && !json_object_get(keep, first))))
		(void)json_object_del(file, first);
}

int keys_undo(const struct setup_engine *engine, json_t *file, const json_t *before, const json_t *after)
{
	_cleanup_strv_ struct strv keys = {0};
	bool stays = false;
	int r = keys_list(engine, &keys);

	for (size_t i = 0; i < keys.count && r == 0; i++) {
		const char *key = keys.items[i];
		json_t *old = json_at(before, key), *new = json_at(after, key), *now = json_at(file, key);

		if (!now || keys_same(old, new))
			continue;
		if (!keys_same(now, new))
			stays = true;
		else if (old)
			r = keys_set(file, key, json_incref(old));
		else
			keys_cut(file, key, before);
	}
	return r < 0 ? r : stays;
}

int keys_drop_ours(const struct setup_engine *engine, json_t *file)
{
	const struct engine *facts = engine->facts;

	for (const char *const *section = keys_sections(facts); facts->runtime && *section; section++) {
		_cleanup_free_ char *path = keys_runtime_path(facts, *section),
				    *chosen =
					    keys_join(*section, facts->default_runtime, strlen(facts->default_runtime));
		const char *program = keys_program(facts, file, *section), *used;

		if (!path || !chosen)
			return -ENOMEM;
		if (program && keys_is_our_path(program))
			keys_cut(file, path, NULL);
		/* No engine starts with a default that it does not have. */
		used = json_string_value(json_at(file, chosen));
		if (!json_at(file, path) && used && streq(used, name))
			keys_cut(file, chosen, NULL);
	}
	return 0;
}

int keys_compare(struct setup *setup)
{
	bool (*restarts_for)(const char *key, bool remove) = setup->engine->restarts_for;
	_cleanup_strv_ struct strv keys = {0};
	int r = keys_list(setup->engine, &keys);

	for (size_t i = 0; i < keys.count && r == 0; i++) {
		const char *key = keys.items[i];
		const json_t *old = json_at(setup->now, key);

		if (keys_same(old, json_at(setup->then, key)))
			continue;
		setup->needs_restart |= !restarts_for || restarts_for(key, setup->remove);
		if (!setup->remove && !setup->dry_run)
			setup_print(setup, "%s: %s %s", setup->file.path, key, old ? "changed" : "written");
	}
	return r;
}

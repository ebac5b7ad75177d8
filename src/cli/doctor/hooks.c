/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Checks the JSON files by which Podman and CRI-O find hooks (oci-hooks(5)), those of other packages, too. If an engine
 * cannot read a file, no container starts. If a hook's program cannot be executed, the containers that the hook is for
 * do not start. If the program is missing, the engines silently skip the hook (containers/common pkg/hooks; seen with
 * Podman 4.3, 5.4 and 5.8).
 */

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/json.h"
#include "cli/doctor/doctor.h"
#include "engines/daemon.h"
#include "system/trusted_file.h"

enum { HOOK_FILE_MAX = 64 * 1024, HOOK_FILES_MAX = 4096 };

/* Active hooks that act on NVIDIA_VISIBLE_DEVICES: other toolkits' files, and whether one runs our program. */
struct hooks {
	struct engine_check *look;
	struct strv theirs;
	bool ours;
};

/* Schema 1.0.0 has an object, 0.1.0 a path. */
static const char *hooks_program(const json_t *json)
{
	const json_t *hook = json_object_get(json, "hook");

	return json_is_string(hook) ? json_string_value(hook) : json_string_value(json_object_get(hook, "path"));
}

/* Whether the hook is for every container, or selects containers by their command. */
static bool hooks_is_for_many(const json_t *json)
{
	const json_t *when = json_object_get(json, "when");

	return json_is_true(json_object_get(when, "always")) || json_object_get(when, "commands") ||
	       json_object_get(json, "cmds");
}

/* Whether the program is one of those that act on NVIDIA_VISIBLE_DEVICES. */
static bool hooks_is_for_gpus(const char *path)
{
	const char *name = strrchr(path, '/');

	return name && (str_has_prefix(name, "/nvidia-container-") || str_has_prefix(name, "/ctr-gpu"));
}

/* As a program, or as a script whose interpreter, "#!/bin/sh", can be executed. */
static bool hooks_can_execute(const struct rootfs *root, const char *file, struct program *ret)
{
	_cleanup_close_ int handle = -1, fd = -1;
	_cleanup_program_ struct program program = {0};
	char line[256] = "", *start;

	if (!path_lookup_look(root, file, ret))
		return false;
	handle = rootfs_open_path(root, file, O_PATH);
	if (handle >= 0)
		fd = rootfs_open_regular(root, handle);
	if (fd < 0 || read(fd, line, sizeof(line) - 1) < 3 || line[0] != '#' || line[1] != '!')
		return true;
	start = line + 2 + strspn(line + 2, " \t");
	start[strcspn(start, " \t\r\n")] = '\0';
	return path_lookup_look(root, start, &program);
}

static void hooks_check(struct hooks *hooks, const json_t *json, const char *path, const char *file)
{
	_cleanup_program_ struct program program = {0};
	_cleanup_rootfs_ struct rootfs root = ROOTFS_CLOSED;
	bool many = hooks_is_for_many(json);

	if (rootfs_open(AT_FDCWD, "/", &root) < 0)
		return;
	if (access(file, F_OK) < 0 && errno == ENOENT)
		engine_check_add(hooks->look, "hooks.no-program", SEVERITY_WARNING, 0,
				 "%s runs %s, which is not there: the file counts for nothing\n"
				 "Install what %s belongs to again, or remove that file.",
				 path, file, path);
	else if (!hooks_can_execute(&root, file, &program))
		engine_check_add(
			hooks->look, "hooks.broken", many ? SEVERITY_PROBLEM : SEVERITY_WARNING, many ? ALL_METHODS : 0,
			"%s runs %s, which cannot be executed: %s\n"
			"Install what it belongs to again, or remove the file.",
			path, file, many ? "no container starts" : "the containers that it is for do not start");
	else if (hooks_is_for_gpus(file) && program.ours)
		hooks->ours = true;
	else if (hooks_is_for_gpus(file))
		(void)strv_add(&hooks->theirs, path);
}

static void hooks_look(struct hooks *hooks, const char *directory, const char *name)
{
	_cleanup_free_ char *path = NULL, *data = NULL;
	_cleanup_json_ json_t *json = NULL;
	const char *file;
	size_t size;

	if (str_format(&path, "%s/%s", directory, name) < 0 ||
	    fd_read_untrusted_at(AT_FDCWD, path, HOOK_FILE_MAX, &data, &size) < 0)
		return;
	file = json_parse(data, size, &json, NULL) == 0 ? hooks_program(json) : NULL;
	if (file && *file)
		hooks_check(hooks, json, path, file);
	else
		engine_check_add(hooks->look, "hooks.unreadable", SEVERITY_PROBLEM, ALL_METHODS,
				 "%s %s: no container starts\n"
				 "Correct or remove %s.",
				 path, json ? "names no program" : "is not JSON", path);
}

static bool hooks_is_file(const char *name)
{
	const char *end = strrchr(name, '.');

	return name[0] != '.' && end && streq(end, ".json");
}

/* A file of the same name in a later directory counts instead. */
static bool hooks_is_replaced(const struct strv *directories, size_t number, const char *name)
{
	for (size_t i = number + 1; i < directories->count; i++) {
		_cleanup_free_ char *path = NULL;

		if (str_format(&path, "%s/%s", directories->items[i], name) == 0 && file_exists(path))
			return true;
	}
	return false;
}

/* A directory that has our file, but that the engine does not read; NULL. */
static const char *hooks_find_unread(const struct strv *directories)
{
	for (const char *const *place = engine_hook_directories; *place; place++) {
		_cleanup_free_ char *path = NULL;

		if (!strv_contains(directories, *place) && str_format(&path, "%s/" ENGINE_HOOK_FILE, *place) == 0 &&
		    file_exists(path))
			return *place;
	}
	return NULL;
}

static void hooks_break_method(struct engine_check *check)
{
	const struct strv *directories = &check->config.hook_directories;
	const char *unread = hooks_find_unread(directories);
	_cleanup_free_ char *names = NULL;

	(void)strv_join(directories, " and ", &names);
	if (unread)
		engine_check_add(check, "hooks.unread", SEVERITY_PROBLEM, METHOD(HOOK),
				 "the hook is registered in %s, and only %s is read\n"
				 "Copy %s/" ENGINE_HOOK_FILE " to " ENGINE_HOOKS_USR ", or name that directory in "
				 "hooks_dir.",
				 unread, names && *names ? names : "no directory", unread);
	else
		engine_check_add(check, "hooks.none", SEVERITY_NOTE, METHOD(HOOK),
				 ENGINE_HOOK_FILE
				 " is not in %s\n"
				 "Install ctr-gpu completely: make install, or its package; or sudo ctr-gpu setup %s",
				 names && *names ? names : "a hooks directory", check->engine->name);
}

void engine_check_method_hooks(struct engine_check *check)
{
	const struct strv *directories = &check->config.hook_directories;
	struct hooks hooks = {.look = check};

	for (size_t i = 0; i < directories->count; i++) {
		_cleanup_strv_ struct strv names = {0};

		(void)fd_list_names(AT_FDCWD, directories->items[i], hooks_is_file, HOOK_FILES_MAX, &names);
		for (size_t j = 0; j < names.count; j++)
			if (!hooks_is_replaced(directories, i, names.items[j]))
				hooks_look(&hooks, directories->items[i], names.items[j]);
	}
	if (hooks.ours && hooks.theirs.count > 0)
		engine_check_add(check, "hooks.duplicate", SEVERITY_WARNING, 0,
				 "%s and ctr-gpu's hook are both active: each container gets the GPUs twice\n"
				 "Remove oci-nvidia-hook.json from the hooks directory, with NVIDIA's toolkit.",
				 hooks.theirs.items[0]);
	else if (hooks.theirs.count > 0)
		engine_check_add(check, "hooks.other-toolkit", SEVERITY_NOTE, 0, "%s is another toolkit's hook",
				 hooks.theirs.items[0]);
	else if (!hooks.ours)
		hooks_break_method(check);
	strv_clear(&hooks.theirs);
}

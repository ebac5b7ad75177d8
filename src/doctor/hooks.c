/* SPDX-License-Identifier: Apache-2.0 */

/* The JSON files by which Podman and CRI-O find hooks (oci-hooks(5)). One that names a program that is not there stops every container. */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/json.h"
#include "doctor/engine.h"
#include "doctor/file.h"
#include "engine/program.h"

enum {
	HOOK_FILE_MAX = 64 * 1024,
	HOOK_FILES_MAX = 256, /* of a directory */
};

/* Schema 1.0.0 has an object, 0.1.0 a path. */
static const char *program_of(const json_t *json)
{
	const json_t *hook = json_object_get(json, "hook");

	return json_is_string(hook) ? json_string_value(hook) : json_string_value(json_object_get(hook, "path"));
}

/* Whether the program is one of those that act on NVIDIA_VISIBLE_DEVICES. */
static bool is_gpu_hook(const char *path)
{
	const char *name = strrchr(path, '/');

	return name && (str_has_prefix(name, "/nvidia-container-") || str_has_prefix(name, "/ctr-gpu"));
}

static void look(struct examination *examination, const char *directory, const char *name, struct hooks *hooks)
{
	_cleanup_free_ char *path = NULL, *data = NULL;
	_cleanup_program_ struct program program = {0};
	_cleanup_rootfs_ struct rootfs root = ROOTFS_CLOSED;
	_cleanup_json_ json_t *json = NULL;
	const char *file;
	size_t size;

	if (str_format(&path, "%s/%s", directory, name) < 0 || fd_read_file_at(AT_FDCWD, path, HOOK_FILE_MAX, &data, &size) < 0)
		return;
	if (json_parse(data, size, &json, NULL) < 0) {
		findings_add(&examination->findings, "hooks.unreadable", SEVERITY_WARNING, "%s is not JSON: engines that read it start no container", path);
		findings_advise(&examination->findings, "Correct or remove it.");
		return;
	}
	file = program_of(json);
	if (!file || !is_gpu_hook(file) || rootfs_open(AT_FDCWD, "/", &root) < 0)
		return;
	if (!program_look(&root, file, &program)) {
		findings_add(&examination->findings, "hooks.no-program", SEVERITY_WARNING, "%s runs %s, which is not there: no container starts", path, file);
		findings_advise(&examination->findings, "Install what it belongs to again, or remove the file.");
	} else if (program.ours) {
		hooks->ours = true;
	} else {
		hooks->theirs = true;
	}
}

static bool is_hook_file(const char *name)
{
	size_t length = strlen(name);

	return name[0] != '.' && length > strlen(".json") && streq(name + length - strlen(".json"), ".json");
}

static void list(const char *path, struct strv *ret)
{
	DIR *directory = opendir(path);
	const struct dirent *entry;

	while (directory && ret->count < HOOK_FILES_MAX && (entry = readdir(directory)))
		if (is_hook_file(entry->d_name))
			(void)strv_add(ret, entry->d_name);
	if (directory)
		(void)closedir(directory);
}

/* A file of the same name in a later directory counts instead. */
static bool is_replaced(const struct strv *directories, size_t number, const char *name)
{
	for (size_t i = number + 1; i < directories->count; i++) {
		_cleanup_free_ char *path = NULL;

		if (str_format(&path, "%s/%s", directories->items[i], name) == 0 && file_exists(path))
			return true;
	}
	return false;
}

void hooks_look(struct examination *examination, const struct strv *directories, struct hooks *ret)
{
	for (size_t i = 0; i < directories->count; i++) {
		_cleanup_strv_ struct strv names = {0};

		list(directories->items[i], &names);
		for (size_t j = 0; j < names.count; j++)
			if (!is_replaced(directories, i, names.items[j]))
				look(examination, directories->items[i], names.items[j], ret);
	}
	if (!ret->ours || !ret->theirs)
		return;
	findings_add(&examination->findings, "hooks.duplicate", SEVERITY_WARNING, "NVIDIA's hook and ctr-gpu's are both active: each container gets the GPUs twice");
	findings_advise(&examination->findings, "Remove oci-nvidia-hook.json from the hooks directory, with NVIDIA's toolkit.");
}

/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/setup/cdi.h"

#include <errno.h>
#include <glob.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "cli/cdi.h"
#include "cli/output.h"
#include "cli/session.h"

static int no_memory(void)
{
	return output_complain("out of memory");
}

/* ---- what is there ---- */

static bool mentions(const char *path, const char *kind)
{
	__attribute__((cleanup(config_file_close))) struct config_file file = {0};

	return config_file_read(path, &file) == 0 && file.text.size && memmem(file.text.data, file.text.size, kind, strlen(kind));
}

/* Devices of the same name in two files are nobody's. Return: the file that has the kind; NULL: none, or no memory. */
static char *find_spec(const char *kind)
{
	static const char *const patterns[] = {"/etc/cdi/*.json", "/etc/cdi/*.yaml", "/var/run/cdi/*.json", "/var/run/cdi/*.yaml"};
	char *found = NULL;

	for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]) && !found; i++) {
		glob_t paths;

		if (glob(patterns[i], 0, NULL, &paths) != 0)
			continue;
		for (size_t j = 0; j < paths.gl_pathc && !found; j++)
			if (mentions(paths.gl_pathv[j], kind))
				found = strdup(paths.gl_pathv[j]);
		globfree(&paths);
	}
	return found;
}

/* ---- for whom ---- */

static bool has_user(const json_t *entry, const char *engine, size_t *ret_index)
{
	const json_t *users = json_object_get(entry, "engines");

	for (size_t i = 0; i < json_array_size(users); i++) {
		const char *user = json_string_value(json_array_get(users, i));

		if (user && strcmp(user, engine) == 0) {
			*ret_index = i;
			return true;
		}
	}
	return false;
}

static int remember(const struct setup *setup, struct journal *journal, const char *path, json_t *directories)
{
	json_t *there = json_object_get(journal->entries, path);
	_cleanup_json_ json_t *entry = NULL;
	size_t index;

	if (has_user(there, setup->engine->name, &index))
		return 0;
	entry = there ? json_deep_copy(there) : json_pack("{s:b, s:O, s:[]}", "created", true, "directories", directories, "engines");
	if (!entry || json_array_append_new(json_object_get(entry, "engines"), json_string(setup->engine->name)) < 0)
		return no_memory();
	return journal_set(journal, path, entry);
}

/* ---- writing ---- */

/* Noted before it is written, since a spec that is not there is easily removed. What could not be written is not remembered. */
static int save(const struct setup *setup, struct journal *journal, struct session *session, const char *kind)
{
	_cleanup_free_ char *hook = setup_find_program("ctr-gpu-hook"), *path = NULL, *written = NULL, *output = text_format("%s/", cdi_directory());
	const struct config_file place = {.path = output};
	_cleanup_json_ json_t *directories = output ? config_file_missing_directories(&place) : NULL, *before = NULL;
	int result, status;

	if (!directories || !hook)
		return no_memory();
	result = ctr_gpu_cdi_path(session->context, kind, output, &path);
	if (result)
		return session_check(session, result);
	before = json_incref(json_object_get(journal->entries, path));
	status = remember(setup, journal, path, directories);
	if (status)
		return status;
	result = ctr_gpu_cdi_save(session->context, session->host, session->request, kind, hook, path, &written);
	if (!result) {
		setup_say(setup, "%s: CDI spec of %s written", path, kind);
		return 0;
	}
	status = session_check(session, result);
	(void)journal_set(journal, path, before);
	return status;
}

static int put_kind(const struct setup *setup, struct journal *journal, struct session *session, const char *kind)
{
	_cleanup_free_ char *there = find_spec(kind);
	_cleanup_json_ json_t *none = json_array();

	/* Ours is one engine's more; another's may go when it likes. */
	if (there && json_object_get(journal->entries, there))
		return setup->dry_run ? 0 : remember(setup, journal, there, none);
	if (there)
		return 0;
	if (setup->rootless)
		setup_say(setup, "the CDI spec of %s, for --device %s=all, is missing; root writes it: sudo ctr-gpu cdi generate", kind, kind);
	else if (setup->dry_run)
		setup_say(setup, "a CDI spec of %s would be written below %s", kind, cdi_directory());
	else
		return save(setup, journal, session, kind);
	return 0;
}

static int look(struct session *session)
{
	int result;

	result = ctr_gpu_request_new(session->context, &session->request);
	if (!result)
		result = ctr_gpu_request_set_devices(session->request, "all");
	return result ? result : ctr_gpu_host_new(session->context, &session->host);
}

int setup_cdi_put(const struct setup *setup, struct journal *journal)
{
	_cleanup_session_ struct session session = {.mute = true};
	_cleanup_free_ char *kinds = NULL;
	char *rest, *kind;
	int result, status;

	status = session_open(&session, setup->globals);
	if (status)
		return status;
	result = look(&session);
	if (!result)
		result = ctr_gpu_cdi_kinds(session.host, &kinds);
	if (result || !*kinds) {
		const char *reason = result ? ctr_gpu_context_message(session.context) : "this host has no GPU that can be used";

		/* The file is right for the day on which there will be one. */
		setup_say(setup, "no CDI spec is written, for --device nvidia.com/gpu=all: %.*s", (int)strcspn(reason, "\n"), reason);
		return 0;
	}
	rest = kinds;
	while (!status && (kind = strsep(&rest, ",")))
		status = put_kind(setup, journal, &session, kind);
	return status;
}

/* ---- removing ---- */

static int remove_spec(const struct setup *setup, const char *path, const json_t *entry)
{
	__attribute__((cleanup(config_file_close))) struct config_file file = {0};
	int status;

	status = config_file_read(path, &file);
	if (!status && file.exists)
		status = config_file_unlink(&file);
	if (status)
		return status;
	config_file_remove_directories(json_object_get(entry, "directories"));
	setup_say(setup, "%s: removed", path);
	return 0;
}

static int forget(const struct setup *setup, struct journal *journal, const char *path, const json_t *there, size_t index)
{
	_cleanup_json_ json_t *entry = json_deep_copy(there);
	json_t *users = json_object_get(entry, "engines");
	int status;

	if (!entry)
		return no_memory();
	(void)json_array_remove(users, index);
	if (json_array_size(users))
		return journal_set(journal, path, entry);
	status = remove_spec(setup, path, entry);
	return status ? status : journal_set(journal, path, NULL);
}

int setup_cdi_remove(const struct setup *setup, struct journal *journal, const json_t *kept)
{
	_cleanup_json_ json_t *entries = json_copy(journal->entries);
	const char *path;
	json_t *entry;
	int status = 0;
	size_t index;

	if (!entries)
		return no_memory();
	json_object_foreach (entries, path, entry) {
		if (has_user(json_object_get(kept, path), setup->engine->name, &index) || !has_user(entry, setup->engine->name, &index))
			continue;
		if (setup->dry_run)
			setup_say(setup, "%s would be removed, unless another engine needs it", path);
		else
			status = forget(setup, journal, path, entry, index);
		if (status)
			break;
	}
	return status;
}

/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/setup/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "cli/output.h"
#include "cli/setup/json_text.h"

#define MACHINE_DIRECTORY "/var/lib/ctr-gpu"
#define FILE_NAME "setup.json"

/* Without an entry it is as if we had never been here. */
static void remove_directories(const struct journal *journal)
{
	_cleanup_free_ char *directory = journal->file.path ? strdup(journal->file.path) : NULL;

	if (directory && journal->lock >= 0) {
		*strrchr(directory, '/') = '\0';
		(void)rmdir(directory); /* unless it holds a journal */
	}
	config_file_remove_directories(journal->made);
}

void journal_close(struct journal *journal)
{
	remove_directories(journal);
	config_file_close(&journal->file);
	json_decref(journal->entries);
	json_decref(journal->found);
	json_decref(journal->made);
	if (journal->lock >= 0)
		(void)close(journal->lock);
	*journal = (struct journal){.lock = -1};
}

static char *find_directory(bool user)
{
	const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");

	if (!user)
		return strdup(MACHINE_DIRECTORY);
	if (state && state[0] == '/')
		return text_format("%s/ctr-gpu", state);
	return text_format("%s/.local/state/ctr-gpu", home ? home : "");
}

/* Who held the lock may have removed the directory. */
static bool is_there(int fd, const char *directory)
{
	struct stat held, named;

	return fstat(fd, &held) == 0 && stat(directory, &named) == 0 && held.st_dev == named.st_dev && held.st_ino == named.st_ino;
}

static int lock(struct journal *journal, char *path, const char *directory)
{
	const struct config_file place = {.path = path};
	int status;

	do {
		if (journal->lock >= 0)
			(void)close(journal->lock);
		json_decref(journal->made);
		journal->made = config_file_missing_directories(&place);
		status = config_file_make_directories(journal->made);
		if (status)
			return status;
		journal->lock = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (journal->lock < 0 || flock(journal->lock, LOCK_EX) < 0)
			return output_complain("cannot lock %s: %m", directory);
	} while (!is_there(journal->lock, directory));
	return 0;
}

static int complain_damaged(const struct journal *journal)
{
	return output_complain("%s is damaged\n    Restore it, or remove it and see to what \"ctr-gpu setup\" wrote yourself.", journal->file.path);
}

static int parse(struct journal *journal)
{
	_cleanup_json_ json_t *document = NULL;
	struct text_error error;
	int version;

	if (!journal->file.text.size) {
		journal->entries = json_object();
		return journal->entries ? 0 : output_complain("out of memory");
	}
	if (json_text_check(&journal->file.text, &error) < 0 || json_text_get(&journal->file.text, "", &document) < 0)
		return complain_damaged(journal);
	/* Numbers are read as reals, which no one is to mind. */
	version = (int)json_number_value(json_object_get(document, "version"));
	journal->entries = json_incref(json_object_get(document, "files"));
	return version == 1 && json_is_object(journal->entries) ? 0 : complain_damaged(journal);
}

int journal_open(struct journal *journal, bool user, bool change)
{
	_cleanup_free_ char *directory = find_directory(user), *path = directory ? text_format("%s/" FILE_NAME, directory) : NULL;
	int status;

	if (!path)
		return output_complain("out of memory");
	if (change) {
		status = lock(journal, path, directory);
		if (status)
			return status;
	}
	status = config_file_read(path, &journal->file);
	if (!status)
		status = parse(journal);
	if (status)
		return status;
	journal->found = json_copy(journal->entries);
	return journal->found ? 0 : output_complain("out of memory");
}

static int save(struct journal *journal)
{
	_cleanup_json_ json_t *document = json_pack("{s:i, s:O}", "version", 1, "files", journal->entries);
	_cleanup_free_ char *text = document ? json_dumps(document, JSON_INDENT(1)) : NULL, *path = NULL;
	_cleanup_text_ struct text bytes = {0};
	int status;

	if (!text || text_append(&bytes, "%s\n", text) < 0)
		return output_complain("out of memory");
	status = config_file_write(&journal->file, &bytes, 0600);
	if (status)
		return status;
	path = strdup(journal->file.path);
	config_file_close(&journal->file);
	return path ? config_file_read(path, &journal->file) : output_complain("out of memory");
}

int journal_set(struct journal *journal, const char *path, json_t *entry)
{
	if (!entry)
		(void)json_object_del(journal->entries, path);
	else if (json_object_set(journal->entries, path, entry) < 0)
		return output_complain("out of memory");
	if (json_object_size(journal->entries))
		return save(journal);
	return journal->file.exists ? config_file_unlink(&journal->file) : 0;
}

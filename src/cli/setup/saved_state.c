/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/setup/setup.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/lock_file.h"
#include "base/paths.h"
#include "cli/output.h"

enum { WAIT_S = 60 };

#define LOCK "lock"

void saved_state_close(struct saved_state *state)
{
	/* Without an entry nothing was written. */
	if (state->lock >= 0) {
		lock_file_release(state->home, LOCK, state->lock);
		(void)rmdir(state->directory);
	}
	config_file_close(&state->file);
	json_decref(state->entries);
	free(state->directory);
	cleanup_closep(&state->home);
	*state = SAVED_STATE_CLOSED;
}

static char *saved_state_find_directory(void)
{
	const char *base = getenv("XDG_STATE_HOME"), *home = getenv("HOME");

	if (geteuid() == 0)
		return strdup(PATH_STATE);
	if (base && base[0] == '/')
		return text_buffer_format("%s/ctr-gpu", base);
	return text_buffer_format("%s/.local/state/ctr-gpu", home ? home : "");
}

/* Takes the lock; prints what it waits for. Return: 0; -ENOENT if the directory was removed; or the exit status. */
static int saved_state_take_lock(struct saved_state *state)
{
	pid_t holder = 0;

	cleanup_closep(&state->home);
	state->home = lock_file_open_directory(state->directory);
	errno = -state->home;
	if (state->home < 0)
		return output_print("cannot lock %s: %m", state->directory);
	state->lock = lock_file_take(state->home, LOCK, 0, &holder);
	if (state->lock == -ETIMEDOUT) {
		(void)output_print("waiting for another \"ctr-gpu setup\" to end (process %d)", (int)holder);
		state->lock = lock_file_take(state->home, LOCK, WAIT_S * 1000, &holder);
	}
	if (state->lock >= 0)
		return 0;
	state->held = state->lock == -ETIMEDOUT || state->lock == -EINTR;
	if (state->lock == -ENOENT)
		return -ENOENT;
	errno = -state->lock;
	if (errno != ETIMEDOUT)
		return output_print("cannot lock %s: %m", state->directory);
	return output_print_advised(
		("another \"ctr-gpu setup\" (process %d) has not ended in %d s", (int)holder, WAIT_S),
		("Nothing was changed. See what it waits for, or end it, and try again."));
}

static int saved_state_lock(struct saved_state *state, const char *path)
{
	int r;

	do {
		r = config_file_make_directories(path);
		if (!r)
			r = saved_state_take_lock(state);
	} while (r == -ENOENT);
	/* The directory goes if it is new: others' has a file in it. */
	if (r)
		(void)rmdir(state->directory);
	return r;
}

/* Whether all entries are in the form that setup writes: with another, --remove might delete a foreign file. */
static bool saved_state_has_entries(json_t *entries)
{
	const char *path, *text;
	json_t *entry;

	json_object_foreach (entries, path, entry)
		if (path[0] != '/' ||
		    json_unpack(entry, "{s?s, s?s, s?s}", "engine", &text, "before", &text, "after", &text) < 0)
			return false;
	return json_is_object(entries);
}

static int saved_state_parse(struct saved_state *state)
{
	const struct text_buffer *text = &state->file.text;
	_cleanup_json_ json_t *document = NULL;

	if (!text->size)
		return (state->entries = json_object()) ? 0 : output_no_memory();
	if (json_parse(text->data, text->size, &document, NULL) == 0 &&
	    json_integer_value(json_object_get(document, "version")) == 1)
		state->entries = json_incref(json_object_get(document, "files"));
	if (saved_state_has_entries(state->entries))
		return 0;
	json_decref(steal_ptr(state->entries));
	return output_print_advised(("%s is damaged", state->file.path),
				    ("Restore it, or remove it and see to what \"ctr-gpu setup\" wrote yourself."));
}

int saved_state_open(struct saved_state *state, bool change)
{
	_cleanup_free_ char *path = NULL;
	int r = 0;

	state->directory = saved_state_find_directory();
	path = state->directory ? text_buffer_format("%s/setup.json", state->directory) : NULL;
	if (!path)
		return output_no_memory();
	if (change)
		r = saved_state_lock(state, path);
	if (!r)
		r = config_file_read(path, &state->file);
	return r ? r : saved_state_parse(state);
}

int saved_state_set(struct saved_state *state, const char *path, json_t *entry)
{
	_cleanup_json_ json_t *document = NULL, *name = json_string(path);
	_cleanup_free_ char *text = NULL;

	/* JSON takes no other text. */
	if (!name)
		return output_print_advised(("the name of %s is not UTF-8, so --remove could not find it again", path),
					    ("Give it another name, or move it to a directory that has one."));
	if (!entry)
		(void)json_object_del(state->entries, path);
	else if (json_object_set(state->entries, path, entry) < 0)
		return output_no_memory();
	if (!json_object_size(state->entries))
		return state->file.exists ? config_file_unlink(&state->file) : 0;
	document = json_pack("{s:i, s:O}", "version", 1, "files", state->entries);
	if (!document || json_print(document, JSON_INDENT(1), &text) < 0)
		return output_no_memory();
	return config_file_write(&state->file, &(struct text_buffer){text, strlen(text)}, 0600);
}

/* SPDX-License-Identifier: Apache-2.0 */

#include "engines/toml_text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "engines/toml_scan.h"

int toml_text_check(const struct text *text, struct text_error *ret_error)
{
	_cleanup_toml_ struct toml toml = {0};

	return toml_scan(text, &toml, ret_error);
}

int toml_text_get(const struct text *text, const char *path, char **ret)
{
	_cleanup_toml_ struct toml toml = {0};
	const struct toml_entry *entry;
	struct text_error error;
	int r;

	r = toml_scan(text, &toml, &error);
	if (r < 0)
		return r;
	entry = toml_find(&toml, TOML_KEY, path);
	if (!entry)
		return -ENOENT;
	*ret = strndup(text->data + entry->value, entry->end - entry->value);
	return *ret ? 0 : -ENOMEM;
}

/* A string without its quotes; NULL if it is none. Those that are written in the same way as JSON's, which is all that engines write. */
static json_t *toml_text_unquote(const char *value, size_t length)
{
	json_t *json;

	if (length >= 2 && value[0] == '\'' && value[1] != '\'')
		return json_stringn(value + 1, length - 2);
	json = json_loadb(value, length, JSON_DECODE_ANY, NULL);
	if (json_is_string(json))
		return json;
	json_decref(json);
	return NULL;
}

int toml_text_get_string(const struct text *text, const char *path, char **ret)
{
	_cleanup_free_ char *value = NULL;
	_cleanup_json_ json_t *json = NULL;
	int r;

	r = toml_text_get(text, path, &value);
	if (r < 0)
		return r;
	json = toml_text_unquote(value, strlen(value));
	if (!json)
		return -ENOENT;
	*ret = strdup(json_string_value(json));
	return *ret ? 0 : -ENOMEM;
}

/* The length of a string that begins here, quotes and all. */
static size_t toml_text_quoted_length(const char *value)
{
	const char *end = value + 1;

	while (*end && *end != *value)
		end += *end == '\\' && *value == '"' && end[1] ? 2 : 1;
	return (size_t)(end - value) + (*end != '\0');
}

int toml_text_get_list(const struct text *text, const char *path, json_t **ret)
{
	_cleanup_json_ json_t *list = json_array();
	_cleanup_free_ char *value = NULL;
	int r;

	r = toml_text_get(text, path, &value);
	if (r < 0 || !list)
		return r < 0 ? r : -ENOMEM;
	if (value[0] != '[')
		return -ENOENT;
	for (const char *at = value + 1; *at;) {
		size_t length = *at == '#' ? strcspn(at, "\n") : *at == '"' || *at == '\'' ? toml_text_quoted_length(at) : 1;

		if (*at == '"' || *at == '\'')
			(void)json_array_append_new(list, toml_text_unquote(at, length));
		at += length;
	}
	*ret = steal_ptr(list);
	return 0;
}

static bool toml_text_has(const struct text *text, const char *path, bool itself)
{
	_cleanup_toml_ struct toml toml = {0};
	struct text_error error;

	if (toml_scan(text, &toml, &error) < 0)
		return false;
	for (size_t i = 0; i < toml.count; i++)
		if (toml_is_below(toml.entries[i].path, path, itself))
			return true;
	return false;
}

bool toml_text_mentions(const struct text *text, const char *path)
{
	return toml_text_has(text, path, true);
}

bool toml_text_is_empty(const struct text *text, const char *path)
{
	return !toml_text_has(text, path, false);
}

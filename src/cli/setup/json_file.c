/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/setup/json_file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/str.h"

#define BLANKS " \t\r\n"

static int json_file_refuse(const struct text *text, size_t at, const char *reason, struct text_error *error)
{
	text_locate(text, at, error);
	(void)snprintf(error->reason, sizeof(error->reason), "%s", reason);
	return -EINVAL;
}

/* The parser says where, but takes no large numbers then, so they are rounded. */
static int json_file_locate(const struct text *text, size_t start, const char *reason, struct text_error *error)
{
	json_error_t where;
	json_t *json = json_loadb(text->data + start, text->size - start,
				  JSON_REJECT_DUPLICATES | JSON_DECODE_INT_AS_REAL, &where);

	json_decref(json);
	(void)json_file_refuse(text, start, reason, error);
	if (!json && where.line > 0 && where.column > 0) {
		error->line = (size_t)where.line;
		error->column = (size_t)where.column;
	}
	return -EINVAL;
}

static int json_file_read(const struct text *text, json_t **ret, struct text_error *error)
{
	size_t bom = text_bom(text), start = text->size ? bom + strspn(text->data + bom, BLANKS) : 0,
	       length = text->size ? strlen(text->data) : 0;
	char reason[JSON_ERROR_TEXT_LENGTH];
	_cleanup_json_ json_t *json = NULL;
	int r;

	/* The parser takes some of these for blanks. */
	if (length < text->size)
		return json_file_refuse(text, length, "a NUL character", error);
	if (start == text->size) {
		*ret = json_object();
		return *ret ? 0 : -ENOMEM;
	}
	r = json_parse(text->data + bom, text->size - bom, &json, reason);
	if (r == -EINVAL)
		return json_file_locate(text, bom, reason, error);
	if (r == 0 && !json_is_object(json))
		return json_file_refuse(text, start, "an object is expected, {...}", error);
	*ret = steal_ptr(json);
	return r;
}

int json_file_check(const struct text *text, struct text_error *ret_error)
{
	_cleanup_json_ json_t *root = NULL;

	return json_file_read(text, &root, ret_error);
}

/* Return: the object that the member belongs into, or NULL. */
static json_t *json_file_parent(json_t *root, const char *path, const char *slash, bool make)
{
	_cleanup_free_ char *name = slash ? strndup(path, (size_t)(slash - path)) : NULL;
	json_t *parent = slash ? json_object_get(root, name) : root;

	if (make && slash && (!parent || json_is_null(parent)) && json_object_set_new(root, name, json_object()) == 0)
		parent = json_object_get(root, name);
	return json_is_object(parent) ? parent : NULL;
}

int json_file_find(const struct text *text, const char *path, json_t **ret)
{
	const char *slash = strchr(path, '/');
	_cleanup_json_ json_t *root = NULL;
	struct text_error error;
	json_t *found;
	int r;

	r = json_file_read(text, &root, &error);
	if (r < 0)
		return r;
	found = json_object_get(json_file_parent(root, path, slash, false), slash ? slash + 1 : path);
	*ret = json_incref(found);
	return found ? 0 : -ENOENT;
}

int json_file_get(const struct text *text, const char *path, char **ret)
{
	_cleanup_json_ json_t *found = NULL;
	int r;

	r = json_file_find(text, path, &found);
	return r < 0 ? r : json_print(found, JSON_ENCODE_ANY, ret);
}

/* What its first indented member is indented by. */
static const char *json_file_indent(const struct text *text, size_t *ret_size)
{
	for (const char *at = text->data; at && (at = strchr(at, '\n')); at++) {
		*ret_size = strspn(at + 1, " \t");
		if (*ret_size && at[1 + *ret_size] == '"')
			return at + 1;
	}
	*ret_size = 4;
	return "    ";
}

/* In the layout of @text: members on lines unless they are all on one; what is around the object as it is. */
static int json_file_write(const struct text *text, const json_t *root, struct text *ret)
{
	const char *open = text->size ? strchr(text->data, '{') : NULL, *close = open ? strrchr(open, '}') : NULL,
		   *newline = text_newline(text);
	bool lines = !open || memchr(open, '\n', (size_t)(close - open)) ||
		     strspn(open + 1, BLANKS) == (size_t)(close - open - 1),
	     failed;
	size_t unit, size, before = open ? (size_t)(open - text->data) : text_bom(text);
	const char *indent = json_file_indent(text, &unit);
	_cleanup_free_ char *dump = NULL;
	char *data = NULL;
	FILE *out;

	if (json_print(root, lines ? JSON_INDENT(1) : strstr(open, ": ") ? 0 : JSON_COMPACT, &dump) < 0)
		return -ENOMEM;
	out = open_memstream(&data, &size);
	if (!out)
		return -ENOMEM;
	(void)fwrite(text->data, before, before > 0, out);
	for (const char *at = dump; *at; at++) {
		if (*at != '\n') {
			(void)fputc(*at, out);
			continue;
		}
		(void)fputs(newline, out);
		for (; at[1] == ' '; at++)
			(void)fwrite(indent, unit, 1, out);
	}
	(void)fputs(close ? close + 1 : newline, out);
	failed = ferror(out);
	if (fclose(out) != 0 || failed) {
		free(data);
		return -ENOMEM;
	}
	*ret = (struct text){data, size};
	return 0;
}

int json_file_put(struct text *text, const char *path, json_t *value)
{
	const char *slash = strchr(path, '/'), *name = slash ? slash + 1 : path;
	_cleanup_json_ json_t *root = NULL, *put = value;
	struct text_error error;
	struct text to = {0};
	json_t *parent;
	int r;

	r = json_file_read(text, &root, &error);
	if (r < 0)
		return r;
	parent = json_file_parent(root, path, slash, value);
	if (!parent)
		return value ? -ENOTDIR : 0;
	if (value ? json_object_set(parent, name, value) < 0 : json_object_del(parent, name) < 0)
		return value ? -ENOMEM : 0;
	if (!value && slash && !json_object_size(parent)) {
		_cleanup_free_ char *above = strndup(path, (size_t)(slash - path));

		(void)json_object_del(root, above);
	}
	r = json_file_write(text, root, &to);
	if (r < 0)
		return r;
	text_clear(text);
	*text = to;
	return 0;
}

int json_file_set(struct text *text, const char *path, const char *value)
{
	json_t *json = value ? json_loads(value, JSON_DECODE_ANY, NULL) : NULL;

	return value && !json ? -ENOMEM : json_file_put(text, path, json);
}

/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/setup/json_text.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"

#define BLANKS " \t\r\n"

/* A member of an object, or the document, whose start is its value's. */
struct member {
	size_t start, value, end; /* @start is the quote before the name */
	size_t previous_end;      /* behind the member before it, or behind the brace that opens the object */
	size_t colon;             /* behind it */
};

/* How the text around a new member is laid out. */
struct style {
	const char *newline;
	const char *indent; /* of the line that the member is on */
	const char *unit;   /* one step further in */
	bool lines;         /* a member per line */
	bool spaced;        /* a space behind the colon */
};

static bool is_blank(char c)
{
	return c && strchr(BLANKS, c);
}

static char byte_at(const struct text *text, size_t at)
{
	return at < text->size ? text->data[at] : '\0';
}

static size_t skip_blanks(const struct text *text, size_t at)
{
	while (is_blank(byte_at(text, at)))
		at++;
	return at;
}

static size_t skip_string(const struct text *text, size_t at)
{
	for (at++; at < text->size && text->data[at] != '"'; at++)
		if (text->data[at] == '\\')
			at++;
	return at < text->size ? at + 1 : text->size;
}

static size_t skip_nested(const struct text *text, size_t at)
{
	size_t depth = 0;

	while (at < text->size) {
		char c = text->data[at];

		at = c == '"' ? skip_string(text, at) : at + 1;
		depth += c == '{' || c == '[';
		if ((c == '}' || c == ']') && --depth == 0)
			break;
	}
	return at;
}

static size_t skip_value(const struct text *text, size_t at)
{
	char c = byte_at(text, at);

	if (c == '"')
		return skip_string(text, at);
	if (c == '{' || c == '[')
		return skip_nested(text, at);
	while ((c = byte_at(text, at)) && !is_blank(c) && !strchr(",]}", c))
		at++;
	return at;
}

/* The member behind @at, which is behind a brace or a member. */
static bool next_member(const struct text *text, size_t at, struct member *ret)
{
	size_t name_end;

	ret->previous_end = at;
	at = skip_blanks(text, at);
	if (byte_at(text, at) == ',')
		at = skip_blanks(text, at + 1);
	if (byte_at(text, at) != '"')
		return false;
	ret->start = at;
	name_end = skip_string(text, at);
	at = skip_blanks(text, name_end);
	if (byte_at(text, at) != ':')
		return false;
	ret->colon = at + 1;
	ret->value = skip_blanks(text, at + 1);
	ret->end = skip_value(text, ret->value);
	return ret->end > ret->value;
}

static json_t *parse(const char *data, size_t size)
{
	return json_loadb(data, size, JSON_DECODE_ANY | JSON_DECODE_INT_AS_REAL | JSON_ALLOW_NUL, NULL);
}

/* A name may be written with escapes. */
static bool has_name(const struct text *text, const struct member *member, const char *name, size_t length)
{
	const char *quoted = text->data + member->start;
	size_t size = skip_string(text, member->start) - member->start;
	_cleanup_json_ json_t *decoded = NULL;

	if (!memchr(quoted, '\\', size))
		return size == length + 2 && memcmp(quoted + 1, name, length) == 0;
	decoded = parse(quoted, size);
	return json_string_length(decoded) == length && memcmp(json_string_value(decoded), name, length) == 0;
}

static bool find_root(const struct text *text, struct member *ret)
{
	size_t start = skip_blanks(text, text_bom(text));

	*ret = (struct member){.start = start, .value = start, .end = skip_value(text, start), .colon = start};
	return ret->end > start;
}

static bool find_in(const struct text *text, const struct member *object, const char *name, size_t length, struct member *ret)
{
	struct member member;

	if (byte_at(text, object->value) != '{')
		return false;
	for (size_t at = object->value + 1; next_member(text, at, &member); at = member.end) {
		if (has_name(text, &member, name, length)) {
			*ret = member;
			return true;
		}
	}
	return false;
}

/* As far as the path exists. Return: what is left of it, "" for nothing; NULL if there is no document. */
static const char *find_deepest(const struct text *text, const char *path, struct member *ret)
{
	size_t length;

	if (!find_root(text, ret))
		return NULL;
	while (*path) {
		length = strcspn(path, "/");
		if (!find_in(text, ret, path, length, ret))
			break;
		path += length + (path[length] == '/');
	}
	return path;
}

static bool find(const struct text *text, const char *path, struct member *ret)
{
	const char *rest = find_deepest(text, path, ret);

	return rest && !*rest;
}

bool json_text_find(const struct text *text, const char *path, size_t *ret_at)
{
	struct member member;

	if (!find(text, path, &member))
		return false;
	*ret_at = member.value;
	return true;
}

int json_text_get(const struct text *text, const char *path, json_t **ret)
{
	struct member member;

	if (!find(text, path, &member))
		return -ENOENT;
	*ret = parse(text->data + member.value, member.end - member.value);
	return *ret ? 0 : -ENOMEM;
}

/* The parser quotes what it read, which may be anything; a terminal gets to see text only. */
static void tell(struct text_error *error, const json_error_t *reason)
{
	size_t length = strlen(reason->text);

	error->line = reason->line > 0 ? (size_t)reason->line : 1;
	error->column = reason->column > 0 ? (size_t)reason->column : 1;
	if (length >= sizeof(error->reason))
		length = sizeof(error->reason) - 1;
	for (size_t i = 0; i < length; i++)
		error->reason[i] = (unsigned char)reason->text[i] < ' ' || reason->text[i] == '\177' ? '?' : reason->text[i];
	error->reason[length] = '\0';
}

static int refuse(const struct text *text, size_t at, const char *reason, struct text_error *error)
{
	text_locate(text, at, error);
	(void)snprintf(error->reason, sizeof(error->reason), "%s", reason);
	return -EINVAL;
}

int json_text_check(const struct text *text, struct text_error *ret_error)
{
	_cleanup_json_ json_t *document = NULL;
	size_t bom = text_bom(text);
	json_error_t reason;
	const char *nul;

	/* The parser takes some of these for blanks. */
	if (text->size && (nul = memchr(text->data, '\0', text->size)))
		return refuse(text, (size_t)(nul - text->data), "a NUL character", ret_error);
	if (skip_blanks(text, bom) == text->size)
		return 0;
	document = json_loadb(text->data + bom, text->size - bom, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL,
			      &reason);
	if (!document && json_error_code(&reason) == json_error_out_of_memory)
		return -ENOMEM;
	if (!document) {
		tell(ret_error, &reason);
		return -EINVAL;
	}
	if (json_is_object(document))
		return 0;
	return refuse(text, skip_blanks(text, bom), "an object is expected, {...}", ret_error);
}

/* ---- layout ---- */

/* The blanks before @at. Return: whether a line begins there. */
static bool blanks_before(const struct text *text, size_t at, size_t *ret_start, size_t *ret_indent)
{
	size_t start = at, indent = at;

	while (start > 0 && is_blank(text->data[start - 1]))
		start--;
	while (indent > start && text->data[indent - 1] != '\n')
		indent--;
	*ret_start = start;
	*ret_indent = indent;
	return indent > start;
}

/* The document's own step: how far its first member is in, if that has a line of its own. */
static char *find_unit(const struct text *text)
{
	struct member root, first;
	size_t start, indent;

	if (find_root(text, &root) && next_member(text, root.value + 1, &first) && blanks_before(text, first.start, &start, &indent) &&
	    first.start > indent)
		return strndup(text->data + indent, first.start - indent);
	return strdup("    ");
}

static int indent_by(struct text *out, const struct style *style, size_t depth)
{
	int r;

	r = text_append(out, "%s%s", style->newline, style->indent);
	for (size_t i = 0; i < depth && r == 0; i++)
		r = text_append(out, "%s", style->unit);
	return r;
}

static int render(struct text *out, const json_t *value, const struct style *style, size_t depth);

static int render_member(struct text *out, const char *name, const json_t *value, const struct style *style, size_t depth)
{
	int r;

	r = text_append(out, "\"%s\":%s", name, style->spaced ? " " : "");
	return r < 0 ? r : render(out, value, style, depth);
}

static int render_object(struct text *out, const json_t *object, const struct style *style, size_t depth)
{
	const char *between = "", *name;
	const json_t *value;
	int r;

	r = text_append(out, "{");
	for (void *i = json_object_iter((json_t *)object); i && r == 0; i = json_object_iter_next((json_t *)object, i)) {
		name = json_object_iter_key(i);
		value = json_object_iter_value(i);
		r = text_append(out, "%s", between);
		between = style->lines || !style->spaced ? "," : ", ";
		if (r == 0 && style->lines)
			r = indent_by(out, style, depth + 1);
		if (r == 0)
			r = render_member(out, name, value, style, depth + 1);
	}
	if (r == 0 && style->lines)
		r = indent_by(out, style, depth);
	return r < 0 ? r : text_append(out, "}");
}

static int render(struct text *out, const json_t *value, const struct style *style, size_t depth)
{
	_cleanup_free_ char *scalar = NULL;

	if (json_is_object(value))
		return render_object(out, value, style, depth);
	scalar = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
	return scalar ? text_append(out, "%s", scalar) : -ENOMEM;
}

/* ---- putting in ---- */

/* {"a": {"b": value}} for "a/b". */
static json_t *wrap(const char *path, const json_t *value)
{
	_cleanup_free_ char *name = strndup(path, strcspn(path, "/"));
	const char *rest = strchr(path, '/');

	if (!*path)
		return json_deep_copy(value);
	return name ? json_pack("{s:o}", name, wrap(rest ? rest + 1 : "", value)) : NULL;
}

static int note(json_t *journal, json_t *edit)
{
	return edit && json_array_append_new(journal, edit) == 0 ? 0 : -ENOMEM;
}

static json_t *insert_edit(const char *path, const char *rest, const json_t *value, const struct text *chunk)
{
	size_t top = rest ? (size_t)(rest - path) + strcspn(rest, "/") : 0;

	return json_pack("{s:s, s:s%, s:s, s:O, s:s%}", "do", "insert", "path", path, top, "leaf", path, "value", value, "new",
			 chunk->data, chunk->size);
}

static int splice_noted(struct text *text, size_t at, size_t remove, const struct text *chunk, json_t *journal, json_t *edit)
{
	int r;

	r = note(journal, edit);
	return r < 0 ? r : text_splice(text, at, remove, chunk->data, chunk->size);
}

static int put_document(struct text *text, const char *path, const json_t *value, json_t *journal)
{
	const struct style style = {.newline = text_newline(text), .indent = "", .unit = "    ", .lines = true, .spaced = true};
	_cleanup_json_ json_t *document = wrap(path, value);
	_cleanup_text_ struct text chunk = {0};
	size_t at = text_bom(text);
	int r;

	if (!document)
		return -ENOMEM;
	r = render(&chunk, document, &style, 0);
	if (r == 0 && at == text->size)
		r = text_append(&chunk, "%s", style.newline);
	return r < 0 ? r : splice_noted(text, at, 0, &chunk, journal, insert_edit(path, NULL, value, &chunk));
}

/* The new member as it stands behind @before and in front of @behind. */
static int make_chunk(struct text *ret, const char *rest, const json_t *value, const struct style *style, const char *before)
{
	_cleanup_json_ json_t *wrapped = wrap(rest + strcspn(rest, "/") + (strchr(rest, '/') != NULL), value);
	_cleanup_free_ char *name = strndup(rest, strcspn(rest, "/"));
	int r;

	if (!wrapped || !name)
		return -ENOMEM;
	r = text_append(ret, "%s", before);
	return r < 0 ? r : render_member(ret, name, wrapped, style, 0);
}

/* Behind the last member, laid out like it. */
static int put_behind(struct text *text, const char *path, const char *rest, const struct member *last, size_t count, const json_t *value,
		      json_t *journal)
{
	_cleanup_text_ struct text chunk = {0};
	_cleanup_free_ char *before = NULL, *unit = find_unit(text), *indent = NULL;
	struct style style = {.newline = text_newline(text), .unit = unit, .spaced = last->value > last->colon};
	size_t blanks, line;
	int r;

	style.lines = blanks_before(text, last->start, &blanks, &line);
	style.indent = indent = strndup(text->data + line, last->start - line);
	if (style.lines || count > 1)
		before = text_format(",%.*s", (int)(last->start - blanks), text->data + blanks);
	else
		before = strdup(style.spaced ? ", " : ",");
	if (!before || !unit || !indent)
		return -ENOMEM;
	r = make_chunk(&chunk, rest, value, &style, before);
	return r < 0 ? r : splice_noted(text, last->end, 0, &chunk, journal, insert_edit(path, rest, value, &chunk));
}

/* Between the braces of an empty object, whose blanks stay behind the new member. */
static int put_first(struct text *text, const char *path, const char *rest, const struct member *object, const json_t *value, json_t *journal)
{
	_cleanup_text_ struct text chunk = {0};
	_cleanup_free_ char *outer = NULL, *before = NULL, *indent = NULL, *unit = find_unit(text);
	size_t start, line, inside = object->value + 1, blanks = skip_blanks(text, inside) - inside;
	bool root = object->start == object->value, own_line = blanks_before(text, object->start, &start, &line);
	bool line_in_it = memchr(text->data + inside, '\n', blanks) != NULL;
	struct style style = {
		.newline = text_newline(text),
		.unit = unit,
		.spaced = root || object->value > object->colon,
		.lines = line_in_it || (!blanks && (root || own_line)),
	};
	int r;

	outer = root || !own_line ? strdup("") : strndup(text->data + line, object->start - line);
	style.indent = indent = outer && unit ? text_format("%s%s", outer, unit) : NULL;
	if (!indent)
		return -ENOMEM;
	before = style.lines ? text_format("%s%s", style.newline, indent) : strdup(blanks ? " " : "");
	if (!before)
		return -ENOMEM;
	r = make_chunk(&chunk, rest, value, &style, before);
	if (r == 0 && style.lines && !line_in_it)
		r = text_append(&chunk, "%s%s", style.newline, outer);
	return r < 0 ? r : splice_noted(text, inside, 0, &chunk, journal, insert_edit(path, rest, value, &chunk));
}

/* A value that is there, and becomes another. */
static int put_over(struct text *text, const char *path, const char *rest, const struct member *member, const json_t *value, json_t *journal)
{
	const struct style style = {.newline = "", .indent = "", .unit = "", .spaced = member->value > member->colon};
	_cleanup_json_ json_t *wrapped = wrap(rest, value);
	_cleanup_text_ struct text chunk = {0};
	json_t *edit;
	int r;

	if (!wrapped)
		return -ENOMEM;
	r = render(&chunk, wrapped, &style, 0);
	if (r < 0)
		return r;
	edit = json_pack("{s:s, s:s%, s:s, s:s%, s:s%}", "do", "value", "path", path, strlen(path) - strlen(rest) - (*rest ? 1 : 0), "leaf",
			 path, "new", chunk.data, chunk.size, "old", text->data + member->value, member->end - member->value);
	return splice_noted(text, member->value, member->end - member->value, &chunk, journal, edit);
}

static bool value_is(const struct text *text, const struct member *member, const json_t *value)
{
	_cleanup_json_ json_t *there = parse(text->data + member->value, member->end - member->value);

	return there && json_equal(there, value);
}

int json_text_put(struct text *text, const char *path, const json_t *value, json_t *journal)
{
	struct member member, last = {0}, next;
	size_t count = 0;
	const char *rest;

	rest = find_deepest(text, path, &member);
	if (!rest)
		return put_document(text, path, value, journal);
	if (!*rest && value_is(text, &member, value))
		return 0;
	/* An engine takes null for a member that is not there. */
	if (!*rest || text_is_at(text, member.value, "null", 4))
		return put_over(text, path, rest, &member, value, journal);
	if (byte_at(text, member.value) != '{')
		return -ENOTDIR;
	for (size_t at = member.value + 1; next_member(text, at, &next); at = next.end, count++)
		last = next;
	if (count)
		return put_behind(text, path, rest, &last, count, value, journal);
	return put_first(text, path, rest, &member, value, journal);
}

/* ---- taking out ---- */

int json_text_remove(struct text *text, const char *path)
{
	struct member member, next;
	size_t brace;

	if (!find(text, path, &member))
		return 0;
	if (!*path)
		return text_splice(text, member.start, member.end - member.start, NULL, 0);
	if (next_member(text, member.end, &next))
		return text_splice(text, member.start, next.start - member.start, NULL, 0);
	if (byte_at(text, skip_blanks(text, member.previous_end)) == ',')
		return text_splice(text, member.previous_end, member.end - member.previous_end, NULL, 0);
	brace = skip_blanks(text, member.end);
	return text_splice(text, member.previous_end, brace - member.previous_end, NULL, 0);
}

static bool is_empty_object(const struct text *text, const char *path)
{
	struct member member;

	return find(text, path, &member) && byte_at(text, member.value) == '{' &&
	       byte_at(text, skip_blanks(text, member.value + 1)) == '}';
}

/* The member at @leaf, then what is empty without it, up to @top. */
static int remove_upwards(struct text *text, const char *leaf, const char *top)
{
	_cleanup_free_ char *path = strdup(leaf);
	char *slash;
	int r;

	if (!path)
		return -ENOMEM;
	for (;;) {
		r = json_text_remove(text, path);
		if (r < 0 || strlen(path) <= strlen(top))
			return r;
		slash = strrchr(path, '/');
		*(slash ? slash : path) = '\0';
		if (strlen(path) < strlen(top) || !is_empty_object(text, path))
			return 0;
	}
}

/* The piece as it was put in. A member that somebody has put behind the only one has made its comma necessary. */
static bool is_untouched(const struct text *text, const char *path, const char *chunk, size_t size, size_t *ret_at)
{
	size_t lead = strspn(chunk, BLANKS ",");
	struct member member;

	if (!find(text, path, &member) || member.start < lead || !text_is_at(text, member.start - lead, chunk, size))
		return false;
	*ret_at = member.start - lead;
	return memchr(chunk, ',', lead) || byte_at(text, skip_blanks(text, *ret_at + size)) != ',';
}

static int undo_insert(struct text *text, const char *path, const char *leaf, const json_t *value, const char *chunk, size_t size)
{
	struct member member;
	size_t at;

	if (is_untouched(text, path, chunk, size, &at))
		return text_splice(text, at, size, NULL, 0);
	if (!find(text, leaf, &member))
		return 0;
	return value_is(text, &member, value) ? remove_upwards(text, leaf, path) : 1;
}

static int undo_value(struct text *text, const char *path, const char *leaf, const char *now, size_t now_size, const char *old, size_t old_size)
{
	_cleanup_json_ json_t *value = parse(now, now_size);
	struct member member;

	if (!find(text, path, &member))
		return 0;
	if (!value || !value_is(text, &member, value))
		return find(text, leaf, &member);
	return text_splice(text, member.value, member.end - member.value, old, old_size);
}

int json_text_undo(struct text *text, const json_t *edit)
{
	const char *what, *path, *leaf, *now, *old = NULL;
	const json_t *value = NULL;
	size_t now_size, old_size = 0;

	if (json_unpack((json_t *)edit, "{s:s, s:s, s:s, s?o, s:s%, s?s%}", "do", &what, "path", &path, "leaf", &leaf, "value", &value,
			"new", &now, &now_size, "old", &old, &old_size) < 0)
		return -EINVAL;
	if (strcmp(what, "insert") == 0 && value)
		return undo_insert(text, path, leaf, value, now, now_size);
	if (strcmp(what, "value") == 0 && old)
		return undo_value(text, path, leaf, now, now_size, old, old_size);
	return -EINVAL;
}

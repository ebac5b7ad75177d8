/* SPDX-License-Identifier: Apache-2.0 */

/*
 * YAML as the JSON to which engines convert it (sigs.k8s.io/yaml): of several documents the first, and plain scalars as
 * go-yaml reads them. libyaml finds the structure. Aliases that make a small file large are bounded here.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <yaml.h>

#include "cdi/spec.h"

enum { YAML_NODES_MAX = 200000 }; /* those behind aliases counted again; nvidia-ctk's specs have some hundreds */

struct cdi_yaml {
	yaml_parser_t parser;
	json_t *anchors; /* each name's value, and how many nodes it has */
	size_t nodes;
	char *reason;
};

static int cdi_yaml_refuse(struct cdi_yaml *yaml, const yaml_mark_t *where, const char *what)
{
	(void)snprintf(yaml->reason, JSON_ERROR_TEXT_LENGTH, "%s in line %zu", what, where->line + 1);
	return -EINVAL;
}

/* The next thing in the file; released with yaml_event_delete(). */
static int cdi_yaml_next(struct cdi_yaml *yaml, yaml_event_t *ret)
{
	if (yaml_parser_parse(&yaml->parser, ret))
		return 0;
	if (yaml->parser.error == YAML_MEMORY_ERROR)
		return -ENOMEM;
	return cdi_yaml_refuse(yaml, &yaml->parser.problem_mark,
			       yaml->parser.problem ? yaml->parser.problem : "something odd");
}

/* What go-yaml takes for null, a truth value or a number (resolve.go). No field is a fraction, so these stay text. */
static json_t *cdi_yaml_plain(const char *text)
{
	static const char *const words[3][5] = {
		{"", "~", "null"}, {"y", "yes", "true", "on"}, {"n", "no", "false", "off"}};
	const char *digits = text + (*text == '-' || *text == '+');
	bool octal = str_has_prefix(digits, "0o");
	long long number;
	char *end;

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		for (const char *const *word = words[i]; *word; word++)
			if (strcasecmp(text, *word) == 0)
				return i == 0 ? json_null() : json_boolean(i == 1);
	errno = 0;
	number = strtoll(octal ? digits + 2 : text, &end, octal ? 8 : 0);
	return *digits >= '0' && *digits <= '9' && !*end && errno == 0 ? json_integer(number) : json_string(text);
}

static int cdi_yaml_scalar(struct cdi_yaml *yaml, const yaml_event_t *event, json_t **ret)
{
	const char *text = (const char *)event->data.scalar.value, *tag = (const char *)event->data.scalar.tag;
	size_t length = event->data.scalar.length;

	if (memchr(text, '\0', length))
		return cdi_yaml_refuse(yaml, &event->start_mark, "a NUL character");
	if (tag && !streq(tag, "!") && !streq(tag, YAML_STR_TAG))
		return cdi_yaml_refuse(yaml, &event->start_mark, "a tag (not supported)");
	*ret = !tag && event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE ? cdi_yaml_plain(text)
									   : json_stringn(text, length);
	return *ret ? 0 : -ENOMEM;
}

static int cdi_yaml_node(struct cdi_yaml *yaml, const yaml_event_t *event, unsigned depth, json_t **ret);

static int cdi_yaml_member(struct cdi_yaml *yaml, const yaml_event_t *key, unsigned depth, json_t *object)
{
	const char *name = (const char *)key->data.scalar.value;
	json_t *value = NULL;
	yaml_event_t event;
	int r;

	if (key->type != YAML_SCALAR_EVENT || memchr(name, '\0', key->data.scalar.length))
		return cdi_yaml_refuse(yaml, &key->start_mark, "a key that is not text");
	if (key->data.scalar.style == YAML_PLAIN_SCALAR_STYLE && streq(name, "<<"))
		return cdi_yaml_refuse(yaml, &key->start_mark, "a merge key (not supported)");
	if (json_object_get(object, name))
		return cdi_yaml_refuse(yaml, &key->start_mark, "a key for the second time");
	r = cdi_yaml_next(yaml, &event);
	if (r < 0)
		return r;
	r = cdi_yaml_node(yaml, &event, depth, &value);
	if (r == 0 && json_object_set_new(object, name, value) < 0)
		r = -ENOMEM;
	yaml_event_delete(&event);
	return r;
}

/* What is in an array or object, up to its end. */
static int cdi_yaml_children(struct cdi_yaml *yaml, unsigned depth, json_t *parent)
{
	int r = 0;

	for (bool end = false; r == 0 && !end;) {
		json_t *item = NULL;
		yaml_event_t event;

		r = cdi_yaml_next(yaml, &event);
		if (r < 0)
			return r;
		end = event.type == YAML_SEQUENCE_END_EVENT || event.type == YAML_MAPPING_END_EVENT;
		if (!end && json_is_object(parent))
			r = cdi_yaml_member(yaml, &event, depth, parent);
		else if (!end)
			r = cdi_yaml_node(yaml, &event, depth, &item);
		if (item && json_array_append_new(parent, item) < 0)
			r = -ENOMEM;
		yaml_event_delete(&event);
	}
	return r;
}

static const char *cdi_yaml_anchor(const yaml_event_t *event)
{
	switch (event->type) {
	case YAML_SCALAR_EVENT:
		return (const char *)event->data.scalar.anchor;
	case YAML_SEQUENCE_START_EVENT:
		return (const char *)event->data.sequence_start.anchor;
	case YAML_MAPPING_START_EVENT:
		return (const char *)event->data.mapping_start.anchor;
	default:
		return NULL;
	}
}

/* The value that begins with @event. */
static int cdi_yaml_node(struct cdi_yaml *yaml, const yaml_event_t *event, unsigned depth, json_t **ret)
{
	_cleanup_json_ json_t *json = NULL;
	const char *anchor = cdi_yaml_anchor(event);
	const json_t *known = event->type == YAML_ALIAS_EVENT
				      ? json_object_get(yaml->anchors, (const char *)event->data.alias.anchor)
				      : NULL;
	size_t before = yaml->nodes++;
	int r = -ENOMEM;

	if (depth > JSON_MAX_DEPTH)
		return cdi_yaml_refuse(yaml, &event->start_mark, "something nested too deeply");
	if (event->type == YAML_ALIAS_EVENT && !known)
		return cdi_yaml_refuse(yaml, &event->start_mark, "an alias of nothing");
	/*
	 * An anchor is known when its node has ended, so none is in itself. The value is shared, and counts as often as
	 * it is used.
	 */
	if (known) {
		yaml->nodes += (size_t)json_integer_value(json_array_get(known, 1));
		json = json_incref(json_array_get(known, 0));
		r = 0;
	} else if (event->type == YAML_SCALAR_EVENT)
		r = cdi_yaml_scalar(yaml, event, &json);
	else if ((json = event->type == YAML_SEQUENCE_START_EVENT ? json_array() : json_object()))
		r = cdi_yaml_children(yaml, depth + 1, json);
	if (r == 0 && yaml->nodes > YAML_NODES_MAX)
		return cdi_yaml_refuse(yaml, &event->start_mark, "more than any real spec has");
	if (r == 0 && anchor &&
	    json_object_set_new(yaml->anchors, anchor, json_pack("[O, I]", json, (json_int_t)(yaml->nodes - before))) <
		    0)
		r = -ENOMEM;
	if (r == 0)
		*ret = steal_ptr(json);
	return r;
}

/* The first document's value; of an empty file null. */
static int cdi_yaml_document(struct cdi_yaml *yaml, json_t **ret)
{
	_cleanup_json_ json_t *json = NULL;
	int r = 0;

	for (bool end = false; r == 0 && !end;) {
		yaml_event_t event;

		r = cdi_yaml_next(yaml, &event);
		if (r < 0)
			return r;
		end = event.type == YAML_DOCUMENT_END_EVENT || event.type == YAML_STREAM_END_EVENT;
		if (!end && event.type != YAML_STREAM_START_EVENT && event.type != YAML_DOCUMENT_START_EVENT)
			r = cdi_yaml_node(yaml, &event, 1, &json);
		yaml_event_delete(&event);
	}
	if (r == 0)
		*ret = json ? steal_ptr(json) : json_null();
	return r;
}

int cdi_yaml_parse(const char *data, size_t size, json_t **ret, char reason[JSON_ERROR_TEXT_LENGTH])
{
	struct cdi_yaml yaml = {.anchors = json_object(), .reason = reason};
	int r;

	if (!yaml.anchors || !yaml_parser_initialize(&yaml.parser)) {
		json_decref(yaml.anchors);
		return -ENOMEM;
	}
	yaml_parser_set_input_string(&yaml.parser, (const unsigned char *)data, size);
	r = cdi_yaml_document(&yaml, ret);
	yaml_parser_delete(&yaml.parser);
	json_decref(yaml.anchors);
	return r;
}

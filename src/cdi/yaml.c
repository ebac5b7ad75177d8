/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Lines of a spec in YAML, as generators write it: block style, a key or an item a line. Keys of flow style, of anchors or
 * behind odd quoting stay unseen, which is why nothing is concluded from what is not found.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cdi/cdi.h"
#include "cdi/spec.h"

enum { LINES_MAX = 200000 };

enum section { SECTION_NONE, SECTION_NODES, SECTION_MOUNTS, SECTION_HOOKS, SECTION_OTHER };

struct line {
	size_t indent;     /* of the key; a dash before it is indentation */
	bool starts_item;  /* there is a dash */
	size_t key_length; /* 0: no key */
	const char *key;
	const char *value; /* without quotes */
	size_t value_length;
};

struct scan {
	struct cdi_spec *spec;
	bool in_devices;
	size_t device_indent; /* of the keys of a device; 0 before the first */
	enum section section;
};

static bool is_key(const struct line *line, const char *name)
{
	return line->key_length == strlen(name) && memcmp(line->key, name, line->key_length) == 0;
}

static void trim(const char **text, size_t *length)
{
	while (*length > 0 && (**text == ' ' || **text == '\t')) {
		(*text)++;
		(*length)--;
	}
	while (*length > 0 && strchr(" \t\r", (*text)[*length - 1]))
		(*length)--;
	if (*length >= 2 && ((*text)[0] == '"' || (*text)[0] == '\'') && (*text)[*length - 1] == (*text)[0]) {
		(*text)++;
		*length -= 2;
	}
}

static struct line split_line(const char *text, size_t length)
{
	struct line line = {0};
	size_t i = 0;

	while (i < length && (text[i] == ' ' || (text[i] == '-' && i + 1 < length && text[i + 1] == ' '))) {
		line.starts_item = line.starts_item || text[i] == '-';
		i++;
	}
	line.indent = i;
	line.key = text + i;
	while (i + line.key_length < length && strchr(":# \"'", line.key[line.key_length]) == NULL)
		line.key_length++;
	i += line.key_length;
	if (i >= length || text[i] != ':' || (i + 1 < length && text[i + 1] != ' ' && text[i + 1] != '\r')) {
		line.key_length = 0;
		return line;
	}
	line.value = text + i + 1;
	line.value_length = length - i - 1;
	trim(&line.value, &line.value_length);
	return line;
}

static int take(const struct line *line, char **ret)
{
	if (*ret || line->value_length == 0)
		return 0;
	*ret = strndup(line->value, line->value_length);
	return *ret ? 0 : -ENOMEM;
}

static struct cdi_edits *current_edits(const struct scan *scan)
{
	return scan->in_devices && scan->spec->device_count > 0 ? &scan->spec->devices[scan->spec->device_count - 1].edits :
								  &scan->spec->edits;
}

static int read_top_key(struct scan *scan, const struct line *line)
{
	scan->in_devices = is_key(line, "devices");
	scan->section = SECTION_NONE;
	scan->device_indent = 0;
	if (is_key(line, "cdiVersion"))
		return take(line, &scan->spec->version);
	return is_key(line, "kind") ? take(line, &scan->spec->kind) : 0;
}

/* The first item's keys say where those of devices stand. */
static int read_device_key(struct scan *scan, const struct line *line)
{
	scan->device_indent = line->indent;
	scan->section = SECTION_NONE;
	if (line->starts_item && !cdi_spec_add_device(scan->spec))
		return -ENOMEM;
	if (is_key(line, "name") && scan->spec->device_count > 0)
		return take(line, &scan->spec->devices[scan->spec->device_count - 1].name);
	return 0;
}

static int read_node_key(struct cdi_edits *edits, const struct line *line)
{
	struct cdi_node *node;

	if (line->starts_item && !cdi_edits_add_node(edits))
		return -ENOMEM;
	if (edits->node_count == 0)
		return 0;
	node = &edits->nodes[edits->node_count - 1];
	if (is_key(line, "hostPath")) {
		free(node->path);
		node->path = NULL;
	}
	return is_key(line, "path") || is_key(line, "hostPath") ? take(line, &node->path) : 0;
}

static int read_mount_key(struct cdi_edits *edits, const struct line *line)
{
	struct cdi_mount *mount;

	if (line->starts_item && !cdi_edits_add_mount(edits))
		return -ENOMEM;
	if (edits->mount_count == 0)
		return 0;
	mount = &edits->mounts[edits->mount_count - 1];
	if (is_key(line, "hostPath"))
		return take(line, &mount->source);
	return is_key(line, "containerPath") ? take(line, &mount->target) : 0;
}

static int read_hook_key(struct cdi_edits *edits, const struct line *line)
{
	struct cdi_hook *hook;

	if (line->starts_item && !cdi_edits_add_hook(edits))
		return -ENOMEM;
	if (edits->hook_count == 0)
		return 0;
	hook = &edits->hooks[edits->hook_count - 1];
	hook->has_environment = hook->has_environment || (is_key(line, "env") && line->value_length == 0);
	hook->has_timeout = hook->has_timeout || is_key(line, "timeout");
	if (is_key(line, "hookName"))
		return take(line, &hook->stage);
	return is_key(line, "path") ? take(line, &hook->path) : 0;
}

static int read_edits_key(struct scan *scan, const struct line *line)
{
	static const struct {
		const char *name;
		enum section section;
	} sections[] = {
		{"deviceNodes", SECTION_NODES}, {"mounts", SECTION_MOUNTS}, {"hooks", SECTION_HOOKS},
		{"intelRdt", SECTION_OTHER},    {"netDevices", SECTION_OTHER},
	};
	struct cdi_edits *edits = current_edits(scan);

	for (size_t i = 0; i < ARRAY_SIZE(sections); i++)
		if (is_key(line, sections[i].name)) {
			scan->section = sections[i].section;
			return is_key(line, "intelRdt") ? cdi_spec_need(scan->spec, 4, "intelRdt") :
			       is_key(line, "netDevices") ? cdi_spec_need(scan->spec, 7, "netDevices") : 0;
		}
	if (is_key(line, "additionalGids"))
		return cdi_spec_need(scan->spec, 4, "additionalGids");
	switch (scan->section) {
	case SECTION_NODES:
		return read_node_key(edits, line);
	case SECTION_MOUNTS:
		return read_mount_key(edits, line);
	case SECTION_HOOKS:
		return read_hook_key(edits, line);
	case SECTION_NONE:
	case SECTION_OTHER:
		break;
	}
	return 0;
}

static int read_line(struct scan *scan, const struct line *line)
{
	if (line->key_length == 0)
		return 0;
	if (line->indent == 0)
		return read_top_key(scan, line);
	if (scan->in_devices && (scan->device_indent == 0 || line->indent == scan->device_indent))
		return read_device_key(scan, line);
	return read_edits_key(scan, line);
}

int cdi_yaml_parse(const char *data, size_t size, struct cdi_spec *spec)
{
	struct scan scan = {.spec = spec};
	int r = 0;

	if (memchr(data, '\0', size))
		return cdi_spec_problem(spec, "it is not text");
	for (size_t i = 0, lines = 0; i < size && r == 0 && lines < LINES_MAX; lines++) {
		const char *end = memchr(data + i, '\n', size - i);
		size_t length = end ? (size_t)(end - data) - i : size - i;
		struct line line = split_line(data + i, length);

		r = read_line(&scan, &line);
		i += length + 1;
	}
	return r;
}

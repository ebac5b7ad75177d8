/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A line of mountinfo, as fs/proc_namespace.c writes it:
 *
 *	36 31 0:33 /root /mount/point rw,relatime shared:1 - cgroup source rw,devices
 *
 * with blank, tab, newline, backslash and # as octal escapes.
 */

#include "root/mountinfo.h"

#include <stdlib.h>
#include <sys/sysmacros.h>

/* ---- words ---- */

bool mountinfo_field_is(struct mountinfo_field field, const char *text)
{
	return field.size == strlen(text) && memcmp(field.text, text, field.size) == 0;
}

struct mountinfo_field mountinfo_field_take(struct mountinfo_field *rest, char separator)
{
	const char *end = rest->size ? memchr(rest->text, separator, rest->size) : NULL;
	struct mountinfo_field field = {rest->text, end ? (size_t)(end - rest->text) : rest->size};
	size_t taken = end ? field.size + 1 : field.size;

	rest->text += taken;
	rest->size -= taken;
	return field;
}

bool mountinfo_field_list_has(struct mountinfo_field list, const char *item)
{
	while (list.size)
		if (mountinfo_field_is(mountinfo_field_take(&list, ','), item))
			return true;
	return false;
}

static bool mountinfo_field_number(struct mountinfo_field field, unsigned *ret)
{
	unsigned value = 0;

	if (!field.size || field.size > 9)
		return false;
	for (size_t i = 0; i < field.size; i++) {
		if (field.text[i] < '0' || field.text[i] > '9')
			return false;
		value = value * 10 + (unsigned)(field.text[i] - '0');
	}
	*ret = value;
	return true;
}

/* ---- lines ---- */

static bool mountinfo_read_line(struct mountinfo_field line, struct mountinfo_line *ret)
{
	struct mountinfo_field field;

	ret->shared = false;
	ret->id = mountinfo_field_take(&line, ' ');
	(void)mountinfo_field_take(&line, ' ');
	ret->dev = mountinfo_field_take(&line, ' ');
	ret->root = mountinfo_field_take(&line, ' ');
	ret->point = mountinfo_field_take(&line, ' ');
	(void)mountinfo_field_take(&line, ' ');
	do {
		if (!line.size)
			return false;
		field = mountinfo_field_take(&line, ' ');
		if (field.size > 7 && memcmp(field.text, "shared:", 7) == 0)
			ret->shared = true;
	} while (!mountinfo_field_is(field, "-"));
	ret->type = mountinfo_field_take(&line, ' ');
	(void)mountinfo_field_take(&line, ' ');
	ret->options = line;
	return ret->root.size && ret->root.text[0] == '/' && ret->point.size && ret->point.text[0] == '/';
}

bool mountinfo_next(struct mountinfo_field *text, struct mountinfo_line *ret)
{
	while (text->size)
		if (mountinfo_read_line(mountinfo_field_take(text, '\n'), ret))
			return true;
	return false;
}

bool mountinfo_id(const struct mountinfo_line *line, uint64_t *ret)
{
	unsigned id;

	if (!mountinfo_field_number(line->id, &id))
		return false;
	*ret = id;
	return true;
}

bool mountinfo_dev(const struct mountinfo_line *line, dev_t *ret)
{
	struct mountinfo_field minor_number = line->dev, major_number = mountinfo_field_take(&minor_number, ':');
	unsigned first, second;

	if (!mountinfo_field_number(major_number, &first) || !mountinfo_field_number(minor_number, &second))
		return false;
	*ret = makedev(first, second);
	return true;
}

static int mountinfo_octal(const char *text)
{
	int value = 0;

	for (int i = 0; i < 3; i++) {
		if (text[i] < '0' || text[i] > '7')
			return -1;
		value = value * 8 + (text[i] - '0');
	}
	return value;
}

char *mountinfo_unescape(struct mountinfo_field field)
{
	char *text = malloc(field.size + 1);
	size_t size = 0;

	if (!text)
		return NULL;
	for (size_t i = 0; i < field.size; i++) {
		int value = field.text[i] == '\\' && field.size - i > 3 ? mountinfo_octal(field.text + i + 1) : -1;

		if (value > 0 && value < 256) {
			text[size++] = (char)value;
			i += 3;
		} else {
			text[size++] = field.text[i];
		}
	}
	text[size] = '\0';
	return text;
}

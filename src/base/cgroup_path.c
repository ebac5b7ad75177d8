/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A line of mountinfo, as fs/proc_namespace.c writes it:
 *
 *	36 31 0:33 /root /mount/point rw,relatime shared:1 - cgroup source rw,devices
 *
 * with blank, tab, newline, backslash and # as octal escapes; of /proc/PID/cgroup: `5:devices:/path`, or `0::/path`
 * for version 2, without escapes (a cgroup's name cannot hold a newline). Root and path are both told relative to the
 * reader's cgroup namespace, with `/..` in front where they lie outside of it.
 */

#include "base/cgroup_path.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "base/str.h"

/* Part of a text that is not NUL-terminated. */
struct word {
	const char *text;
	size_t size;
};

struct mount_line {
	struct word dev, root, point, type, options;
};

void cgroup_places_clear(struct cgroup_places *places)
{
	for (size_t i = 0; i < places->count; i++) {
		free(places->items[i].point);
		free(places->items[i].below);
	}
	*places = (struct cgroup_places){0};
}

static bool word_is(struct word word, const char *text)
{
	return word.size == strlen(text) && memcmp(word.text, text, word.size) == 0;
}

/* Takes what stands before @separator from the front of @rest; all of it if there is none. */
static struct word take_until(struct word *rest, char separator)
{
	const char *end = rest->size ? memchr(rest->text, separator, rest->size) : NULL;
	struct word word = {rest->text, end ? (size_t)(end - rest->text) : rest->size};
	size_t taken = end ? word.size + 1 : word.size;

	rest->text += taken;
	rest->size -= taken;
	return word;
}

static bool list_has(struct word list, const char *item)
{
	while (list.size)
		if (word_is(take_until(&list, ','), item))
			return true;
	return false;
}

static bool read_mount_line(struct word line, struct mount_line *ret)
{
	struct word field;

	(void)take_until(&line, ' ');
	(void)take_until(&line, ' ');
	ret->dev = take_until(&line, ' ');
	ret->root = take_until(&line, ' ');
	ret->point = take_until(&line, ' ');
	(void)take_until(&line, ' ');
	do {
		if (!line.size)
			return false;
		field = take_until(&line, ' ');
	} while (!word_is(field, "-"));
	ret->type = take_until(&line, ' ');
	(void)take_until(&line, ' ');
	ret->options = line;
	return ret->root.size && ret->root.text[0] == '/' && ret->point.size && ret->point.text[0] == '/';
}

static int octal(const char *text)
{
	int value = 0;

	for (int i = 0; i < 3; i++) {
		if (text[i] < '0' || text[i] > '7')
			return -1;
		value = value * 8 + (text[i] - '0');
	}
	return value;
}

/* Undoes the octal escapes. Return: new string; NULL without memory. */
static char *unescape(struct word word)
{
	char *text = malloc(word.size + 1);
	size_t size = 0;

	if (!text)
		return NULL;
	for (size_t i = 0; i < word.size; i++) {
		int value = word.text[i] == '\\' && word.size - i > 3 ? octal(word.text + i + 1) : -1;

		if (value > 0 && value < 256) {
			text[size++] = (char)value;
			i += 3;
		} else {
			text[size++] = word.text[i];
		}
	}
	text[size] = '\0';
	return text;
}

static bool read_number(struct word word, unsigned *ret)
{
	unsigned value = 0;

	if (!word.size || word.size > 9)
		return false;
	for (size_t i = 0; i < word.size; i++) {
		if (word.text[i] < '0' || word.text[i] > '9')
			return false;
		value = value * 10 + (unsigned)(word.text[i] - '0');
	}
	*ret = value;
	return true;
}

static bool read_dev(struct word word, dev_t *ret)
{
	struct word first = take_until(&word, ':');
	unsigned major, minor;

	if (!read_number(first, &major) || !read_number(word, &minor))
		return false;
	*ret = makedev(major, minor);
	return true;
}

/* Takes the next name off a path; an empty one at its end. */
static struct word take_name(struct word *path)
{
	struct word name = {path->text, 0};

	while (path->size && !name.size)
		name = take_until(path, '/');
	return name;
}

/*
 * The part of @path below @root. Where @path goes down into a place above which @root lies, the names between are not
 * known, and where it goes up from @root it is outside: no answer for either.
 */
static bool path_below(struct word path, struct word root, struct word *ret)
{
	for (;;) {
		struct word name = take_name(&root), other;

		if (!name.size)
			break;
		other = take_name(&path);
		if (other.size != name.size || memcmp(other.text, name.text, name.size) != 0)
			return false;
	}
	while (path.size && path.text[0] == '/')
		path = (struct word){path.text + 1, path.size - 1};
	*ret = path;
	for (struct word name = take_name(&path); name.size; name = take_name(&path))
		if (word_is(name, "..") || word_is(name, "."))
			return false;
	return true;
}

/* The path in the line of /proc/PID/cgroup that belongs to @version. */
static bool membership_path(const char *membership, int version, struct word *ret)
{
	struct word text = {membership, strlen(membership)};

	while (text.size) {
		struct word line = take_until(&text, '\n');
		struct word hierarchy = take_until(&line, ':');
		struct word controllers = take_until(&line, ':');
		bool found = version == 1 ? list_has(controllers, "devices") : word_is(hierarchy, "0") && !controllers.size;

		if (found && line.size && line.text[0] == '/') {
			*ret = line;
			return true;
		}
	}
	return false;
}

static int add_place(struct cgroup_places *places, int version, const struct mount_line *line, struct word path)
{
	struct cgroup_place place = {.version = version};
	_cleanup_free_ char *root = unescape(line->root), *point = NULL, *below = NULL;
	struct word rest;

	if (!root)
		return -ENOMEM;
	if (!read_dev(line->dev, &place.dev) || !path_below(path, (struct word){root, strlen(root)}, &rest))
		return 0;
	point = unescape(line->point);
	below = strndup(rest.text, rest.size);
	if (!point || !below)
		return -ENOMEM;
	if (places->count == CGROUP_PLACES_MAX)
		return 0;
	memmove(places->items + 1, places->items, places->count * sizeof(place));
	place.point = steal_ptr(point);
	place.below = steal_ptr(below);
	places->items[0] = place;
	places->count++;
	return 0;
}

static int find_version(const char *mountinfo, const char *membership, int version, struct cgroup_places *places)
{
	struct word text = {mountinfo, strlen(mountinfo)}, path;
	struct mount_line line;
	int r;

	if (!membership_path(membership, version, &path))
		return 0;
	while (text.size) {
		if (!read_mount_line(take_until(&text, '\n'), &line))
			continue;
		if (!word_is(line.type, version == 1 ? "cgroup" : "cgroup2"))
			continue;
		if (version == 1 && !list_has(line.options, "devices"))
			continue;
		r = add_place(places, version, &line, path);
		if (r < 0)
			return r;
	}
	return 0;
}

int cgroup_places_find(const char *mountinfo, const char *membership, struct cgroup_places *ret)
{
	_cleanup_cgroup_places_ struct cgroup_places places = {0};
	int r = find_version(mountinfo, membership, 2, &places);

	if (r >= 0)
		r = find_version(mountinfo, membership, 1, &places);
	if (r < 0)
		return r;
	*ret = steal_struct(&places);
	return 0;
}

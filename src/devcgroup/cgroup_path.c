/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The lines of /proc/PID/cgroup are `5:devices:/path`, or `0::/path` for version 2, without escapes (a cgroup's name
 * cannot hold a newline). Root and path are both relative to the reader's cgroup namespace, with `/..` in front
 * where they lie outside of it.
 */

#include "devcgroup/cgroup_path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"
#include "devcgroup/devcgroup.h"
#include "root/mountinfo.h"

enum { UID_MAP_MAX = 4096 };

void cgroup_places_clear(struct cgroup_places *places)
{
	for (size_t i = 0; i < places->count; i++) {
		free(places->items[i].point);
		free(places->items[i].below);
	}
	*places = (struct cgroup_places){0};
}

/* Takes the next name off a path; an empty one at its end. */
static struct mountinfo_field cgroup_take_name(struct mountinfo_field *path)
{
	struct mountinfo_field name = {path->text, 0};

	while (path->size && !name.size)
		name = mountinfo_field_take(path, '/');
	return name;
}

/*
 * The part of @path below @root. No answer where @root is above the reader's cgroup namespace and the names between are
 * not known, nor where @path is outside @root.
 */
static bool cgroup_path_below(struct mountinfo_field path, struct mountinfo_field root, struct mountinfo_field *ret)
{
	for (;;) {
		struct mountinfo_field name = cgroup_take_name(&root), other;

		if (!name.size)
			break;
		other = cgroup_take_name(&path);
		if (other.size != name.size || memcmp(other.text, name.text, name.size) != 0)
			return false;
	}
	while (path.size && path.text[0] == '/')
		path = (struct mountinfo_field){path.text + 1, path.size - 1};
	*ret = path;
	for (struct mountinfo_field name = cgroup_take_name(&path); name.size; name = cgroup_take_name(&path))
		if (mountinfo_field_is(name, "..") || mountinfo_field_is(name, "."))
			return false;
	return true;
}

/* The path in the line of /proc/PID/cgroup that belongs to @version. */
static bool cgroup_membership_path(const char *membership, int version, struct mountinfo_field *ret)
{
	struct mountinfo_field text = {membership, strlen(membership)};

	while (text.size) {
		struct mountinfo_field line = mountinfo_field_take(&text, '\n');
		struct mountinfo_field hierarchy = mountinfo_field_take(&line, ':');
		struct mountinfo_field controllers = mountinfo_field_take(&line, ':');
		bool found = version == 1 ? mountinfo_field_list_has(controllers, "devices")
					  : mountinfo_field_is(hierarchy, "0") && !controllers.size;

		if (found && line.size && line.text[0] == '/') {
			*ret = line;
			return true;
		}
	}
	return false;
}

char *cgroup_membership(const char *membership, int version)
{
	struct mountinfo_field path;

	return cgroup_membership_path(membership, version, &path) ? strndup(path.text, path.size) : NULL;
}

static int cgroup_add_place(struct cgroup_places *places, int version, const struct mountinfo_line *line,
			    struct mountinfo_field path)
{
	struct cgroup_place place = {.version = version};
	_cleanup_free_ char *root = mountinfo_unescape(line->root), *point = NULL, *below = NULL;
	struct mountinfo_field rest;

	if (!root)
		return -ENOMEM;
	if (!mountinfo_dev(line, &place.dev) ||
	    !cgroup_path_below(path, (struct mountinfo_field){root, strlen(root)}, &rest))
		return 0;
	point = mountinfo_unescape(line->point);
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

static int cgroup_find_version(const char *mountinfo, const char *membership, int version, struct cgroup_places *places)
{
	struct mountinfo_field text = {mountinfo, strlen(mountinfo)}, path;
	struct mountinfo_line line;
	int r;

	if (!cgroup_membership_path(membership, version, &path))
		return 0;
	while (mountinfo_next(&text, &line)) {
		if (!mountinfo_field_is(line.type, version == 1 ? "cgroup" : "cgroup2"))
			continue;
		if (version == 1 && !mountinfo_field_list_has(line.options, "devices"))
			continue;
		r = cgroup_add_place(places, version, &line, path);
		if (r < 0)
			return r;
	}
	return 0;
}

int cgroup_places_find(const char *mountinfo, const char *membership, struct cgroup_places *ret)
{
	_cleanup_cgroup_places_ struct cgroup_places places = {0};
	int r = cgroup_find_version(mountinfo, membership, 2, &places);

	if (r >= 0)
		r = cgroup_find_version(mountinfo, membership, 1, &places);
	if (r < 0)
		return r;
	*ret = steal_struct(&places);
	return 0;
}

/* In the first user namespace the map is the identity over all 32 bits (user_namespaces(7)). */
bool devcgroup_is_privileged(void)
{
	_cleanup_free_ char *map = NULL;
	unsigned long inside, outside, count;

	if (geteuid() != 0)
		return false;
	if (fd_read_file_at(AT_FDCWD, "/proc/self/uid_map", UID_MAP_MAX, &map, NULL) < 0)
		return true;
	return sscanf(map, "%lu %lu %lu", &inside, &outside, &count) == 3 && inside == 0 && outside == 0 &&
	       count == UINT32_MAX;
}

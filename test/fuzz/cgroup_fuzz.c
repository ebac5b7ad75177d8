/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The texts of /proc/self/mountinfo and /proc/PID/cgroup, with a NUL between them: whatever they hold, a place that is
 * found never leads out of its mount.
 */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "devcgroup/cgroup_path.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);

/* Random bytes hardly ever make a line, so inputs grow from these. */
static const char seed_text[] = "36 31 0:33 /../a\\040b /c rw,relatime shared:1 master:2 - cgroup cgroup rw,devices\n"
				"30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
				"\0"
				"5:cpu,devices:/../a b/c\n0::/x/y.scope\n";

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
	if (seed % 64 == 0 && max_size >= sizeof(seed_text)) {
		memcpy(data, seed_text, sizeof(seed_text));
		size = sizeof(seed_text);
	}
	return LLVMFuzzerMutate(data, size, max_size);
}

static void check(const struct cgroup_place *place)
{
	_cleanup_free_ char *path = NULL;

	if (asprintf(&path, "/%s/", place->below) < 0)
		abort();
	if (place->point[0] != '/' || place->below[0] == '/' || strstr(path, "/../") || strchr(path, '\n'))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_cgroup_places_ struct cgroup_places places = {0};
	const char *split = memchr(data, '\0', size);
	_cleanup_free_ char *mountinfo = NULL, *membership = NULL;

	if (!split)
		return 0;
	mountinfo = strdup((const char *)data);
	membership = strndup(split + 1, size - 1 - (size_t)(split - (const char *)data));
	if (!mountinfo || !membership || cgroup_places_find(mountinfo, membership, &places) < 0)
		return 0;
	for (size_t i = 0; i < places.count; i++)
		check(&places.items[i]);
	return 0;
}

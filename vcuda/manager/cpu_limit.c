/* SPDX-License-Identifier: Apache-2.0 */

#include "vcuda/manager/manager.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>

#include "base/fd.h"
#include "base/str.h"

/* A container that may make groups may be as deep in them as it likes: so many levels are looked at. */
enum { MAX_SIZE = 64, LEVELS_MAX = 32 };

double cpu_limit_count(struct cpu_limit processor)
{
	return processor.time ? (double)processor.time / (double)processor.of : 0;
}

static void cpu_limit_watch(int hierarchy, const char *file, int watch)
{
	_cleanup_free_ char *path = NULL;

	if (str_format(&path, "/proc/self/fd/%d/%s", hierarchy, file) == 0)
		(void)inotify_add_watch(watch, path, IN_MODIFY);
}

/* "max 100000" of one that has no limit. The topmost group has no such file. */
static struct cpu_limit cpu_limit_read_one(int hierarchy, const char *group, int watch)
{
	_cleanup_free_ char *path = NULL, *text = NULL;
	struct cpu_limit found = {0};

	if (str_format(&path, "%s/cpu.max", group + 1) < 0)
		return found;
	/* Before it is read, so that no change goes unseen. */
	cpu_limit_watch(hierarchy, path, watch);
	if (fd_read_kernel_file(hierarchy, path, MAX_SIZE, &text) < 0 ||
	    sscanf(text, "%" SCNu64 " %" SCNu64, &found.time, &found.of) != 2 || found.of == 0)
		return (struct cpu_limit){0};
	return found;
}

/* What a container makes for itself, below that, gives it no more. */
static void cpu_limit_cut(char *group)
{
	for (int level = 0; *group; group++)
		if (*group == '/' && level++ == LEVELS_MAX) {
			*group = '\0';
			return;
		}
}

struct cpu_limit cpu_limit_read(int hierarchy, const char *group, int watch)
{
	_cleanup_free_ char *above = strdup(group);
	struct cpu_limit least = {0};
	char *last;

	/* Where this process sees less than the whole hierarchy, groups beside it begin so. */
	if (!above || str_has_prefix(above, "/.."))
		return least;
	cpu_limit_cut(above);
	while ((last = strrchr(above, '/')) && last[1]) {
		struct cpu_limit one = cpu_limit_read_one(hierarchy, above, watch);

		if (one.time && (!least.time || cpu_limit_count(one) < cpu_limit_count(least)))
			least = one;
		*(last == above ? last + 1 : last) = '\0';
	}
	return least;
}

void cpu_limit_print(struct cpu_limit processor, char ret[static CPU_LIMIT_TEXT_SIZE])
{
	if (processor.time)
		(void)snprintf(ret, CPU_LIMIT_TEXT_SIZE, "%" PRIu64 " %" PRIu64, processor.time, processor.of);
	else
		(void)strcpy(ret, "max");
}

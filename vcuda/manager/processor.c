/* SPDX-License-Identifier: Apache-2.0 */

#include "vcuda/manager/processor.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>

#include "base/fd.h"
#include "base/str.h"

enum { MAX_SIZE = 64 };

double processor_count(struct processor processor)
{
	return processor.time ? (double)processor.time / (double)processor.of : 0;
}

static void processor_watch(int hierarchy, const char *file, int watch)
{
	_cleanup_free_ char *path = NULL;

	if (str_format(&path, "/proc/self/fd/%d/%s", hierarchy, file) == 0)
		(void)inotify_add_watch(watch, path, IN_MODIFY);
}

/* "max 100000" of one that has no limit. The topmost group has no such file. */
static struct processor processor_read_one(int hierarchy, const char *group, int watch)
{
	_cleanup_free_ char *path = NULL, *text = NULL;
	struct processor found = {0};

	if (str_format(&path, "%s/cpu.max", group + 1) < 0)
		return found;
	/* Before it is read, so that no change goes unseen. */
	processor_watch(hierarchy, path, watch);
	if (fd_read_kernels(hierarchy, path, MAX_SIZE, &text) < 0 ||
	    sscanf(text, "%" SCNu64 " %" SCNu64, &found.time, &found.of) != 2 || found.of == 0)
		return (struct processor){0};
	return found;
}

struct processor processor_read(int hierarchy, const char *group, int watch)
{
	_cleanup_free_ char *above = strdup(group);
	struct processor least = {0};
	char *last;

	/* Where this process sees less than the whole hierarchy, groups beside it begin so. */
	if (!above || str_has_prefix(above, "/.."))
		return least;
	while ((last = strrchr(above, '/')) && last[1]) {
		struct processor one = processor_read_one(hierarchy, above, watch);

		if (one.time && (!least.time || processor_count(one) < processor_count(least)))
			least = one;
		*(last == above ? last + 1 : last) = '\0';
	}
	return least;
}

void processor_print(struct processor processor, char ret[static PROCESSOR_TEXT_SIZE])
{
	if (processor.time)
		(void)snprintf(ret, PROCESSOR_TEXT_SIZE, "%" PRIu64 " %" PRIu64, processor.time, processor.of);
	else
		(void)strcpy(ret, "max");
}

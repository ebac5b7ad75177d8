/* SPDX-License-Identifier: Apache-2.0 */

/*
 * musl has no cache but a search path: directories separated by colons or newlines. It skips empty ones (path_open() in
 * musl's ldso/dynlink.c). The format has no comments, so an empty directory at the end of our first line and at the
 * start of our last one, "::", separates ours from the image's at the next start.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "ldcache/ldcache.h"

static const char default_path[] = "/lib:/usr/local/lib:/usr/lib";
static const char mark[] = "::";

static bool musl_ends_with(const char *text, size_t length, const char *end)
{
	return length >= strlen(end) && strncmp(text + length - strlen(end), end, strlen(end)) == 0;
}

/*
 * The image's part of a file: without first lines that end in the mark and last ones that begin with it. All of them,
 * since an image's own lines of that form would be taken for ours at the next start.
 */
static char *musl_image_part(const char *old)
{
	const char *end, *line;
	size_t first;

	while (first = strcspn(old, "\n"), old[0] == '/' && musl_ends_with(old, first, mark))
		old += first + (old[first] == '\n');
	end = old + strlen(old);
	for (;;) {
		while (end > old && end[-1] == '\n')
			end--;
		line = memrchr(old, '\n', (size_t)(end - old));
		if (!line || strncmp(line + 1, "::/", 3) != 0)
			return strndup(old, (size_t)(end - old));
		end = line;
	}
}

static int musl_join(const struct strv *directories, const struct strv *without, char **ret)
{
	_cleanup_free_ char *text = strdup("");

	if (!text)
		return -ENOMEM;
	for (size_t i = 0; directories && i < directories->count; i++) {
		const char *directory = directories->items[i];

		/* The format has no quoting. */
		if (directory[0] != '/' || strpbrk(directory, ":\n") || (without && strv_contains(without, directory)))
			continue;
		if (str_append(&text, "%s%s", *text ? ":" : "", directory) < 0)
			return -ENOMEM;
	}
	*ret = steal_ptr(text);
	return 0;
}

int ldcache_musl_path(const char *old, const struct strv *front, const struct strv *behind, char **ret)
{
	_cleanup_free_ char *image = NULL, *first = NULL, *last = NULL;
	_cleanup_strv_ struct strv listed = {0};
	int r;

	image = musl_image_part(old ? old : default_path);
	if (!image)
		return -ENOMEM;
	r = strv_split(image, ":\n", &listed);
	if (r == 0)
		r = musl_join(front, NULL, &first);
	if (r == 0)
		r = musl_join(behind, &listed, &last);
	if (r != 0)
		return r;
	return str_format(ret, "%s%s%s%s%s%s\n", first, *first ? "::\n" : "", image, *last ? "\n" : "",
			  *last ? mark : "", last);
}

/* SPDX-License-Identifier: Apache-2.0 */

#include "ldcache/loader.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "ldcache/ldcache.h"

/* More were never written; what an image puts there must not make a start slow. */
enum { MAX_DIRECTORIES = 64 };

const char loader_conf_empty[] =
	"# Directories of the host's GPU driver. Written by ctr-gpu when the container starts.\n";
#define SHARED_MARK "# Shared with the image:"

bool loader_conf_is_ours(const struct plan *plan, const struct plan_library_dir *dir)
{
	for (size_t i = 0; i < plan->mount_count; i++)
		if (plan->mounts[i].directory && str_is_below(dir->path, plan->mounts[i].target))
			return true;
	return false;
}

/* ldconfig cuts lines at '#', older ones at '=' too, and knows no quotes (glibc's elf/ldconfig.c, parse_conf()). */
static bool loader_conf_can_be_listed(const char *path)
{
	return path[0] == '/' && !strpbrk(path, "#=\n \t");
}

static int loader_conf_append_directories(const struct plan *plan, bool first, bool ours, const char *mark, char **text)
{
	for (size_t i = 0; i < plan->library_dir_count; i++) {
		const struct plan_library_dir *dir = &plan->library_dirs[i];
		bool is_ours = loader_conf_is_ours(plan, dir);

		if (is_ours != ours || (is_ours && dir->overrides_image) != first ||
		    !loader_conf_can_be_listed(dir->path))
			continue;
		if (str_append(text, "%s%s\n", mark, dir->path) < 0)
			return -ENOMEM;
		mark = "";
	}
	return 0;
}

int loader_conf_text(const struct plan *plan, bool first, char **ret)
{
	_cleanup_free_ char *text = strdup(loader_conf_empty);

	if (!text)
		return -ENOMEM;
	if (loader_conf_append_directories(plan, first, true, "", &text) < 0 ||
	    loader_conf_append_directories(plan, first, false, SHARED_MARK "\n", &text) < 0)
		return -ENOMEM;
	*ret = streq(text, loader_conf_empty) ? NULL : steal_ptr(text);
	return 0;
}

int loader_conf_parse(const char *text, struct strv *ret)
{
	for (size_t i = 0; i < MAX_DIRECTORIES && *text && !str_has_prefix(text, SHARED_MARK); i++) {
		size_t length = strcspn(text, "\n");

		if (*text == '/' && strv_take(ret, strndup(text, length)) < 0)
			return -ENOMEM;
		text += length;
		text += *text ? 1 : 0;
	}
	return 0;
}

/* Relative patterns count from the file's directory (glibc's elf/ldconfig.c, parse_conf_include()). */
static bool loader_conf_line_includes(const char *line, size_t length, const char *path)
{
	const char *word = line + strlen("include");
	char pattern[256] = "/etc/";
	size_t size;

	if (length <= strlen("include") || strncmp(line, "include", strlen("include")) != 0 || !strchr(" \t", *word))
		return false;
	/* Several patterns may stand in a line. */
	for (const char *end = line + length; word < end; word += size) {
		word += strspn(word, " \t");
		size = word < end ? strcspn(word, " \t\r\n#") : 0;
		if (size == 0 || word + size > end)
			return false;
		(void)snprintf(pattern, sizeof(pattern), "%s%.*s", *word == '/' ? "" : "/etc/", (int)size, word);
		if (fnmatch(pattern, path, FNM_PATHNAME) == 0)
			return true;
	}
	return false;
}

static bool loader_conf_includes(const char *text, const char *path)
{
	while (*text) {
		size_t blank = strspn(text, " \t"), length = strcspn(text += blank, "\n");

		if (loader_conf_line_includes(text, length, path))
			return true;
		text += length + (text[length] == '\n');
	}
	return false;
}

int loader_conf_include(const char *old, char **ret)
{
	bool first = old && loader_conf_includes(old, LOADER_CONF_FIRST);
	bool last = old && loader_conf_includes(old, LOADER_CONF_LAST);
	const char *text = old ? old : "";

	*ret = NULL;
	if (first && last)
		return 0;
	return str_format(ret, "%s%s%s%s", first ? "" : "include " LOADER_CONF_FIRST "\n", text,
			  *text && text[strlen(text) - 1] != '\n' ? "\n" : "",
			  last ? "" : "include " LOADER_CONF_LAST "\n");
}

/* ---- musl's path file ---- */

/*
 * musl has no cache but a search path: directories separated by colons or newlines. It skips empty ones (path_open() in
 * musl's ldso/dynlink.c). The format has no comments, so an empty directory at the end of our first line and at the
 * start of our last one, "::", separates ours from the image's at the next start.
 */

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

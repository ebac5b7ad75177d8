/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What is in the image decides what is written: a glibc loader reads /etc/ld.so.cache, a musl one its path file. An
 * image with neither (a static program, a loader in an unusual place) gets a cache, too: it does no harm.
 */

#include "ldcache/loader.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "ldcache/ldcache.h"

/* ---- directories in files ---- */

/* More were never written; what an image puts there must not make a start slow. */
enum { MAX_DIRECTORIES = 64 };

/* A file that lists nothing. */
static const char loader_conf_empty[] =
	"# Directories of the host's GPU driver. Written by ctr-gpu when the container starts.\n";
#define SHARED_MARK "# Shared with the image:"

/* Whether a directory shows nothing of the image: it is, or is in, a directory that is mounted whole. */
static bool loader_conf_is_ours(const struct plan *plan, const struct plan_library_dir *dir)
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

/*
 * What to write into one of the files
 * @first: LOADER_CONF_FIRST, else LOADER_CONF_LAST
 * @ret:   text; NULL if no directory belongs there
 *
 * Return: 0 or -ENOMEM.
 */
static int loader_conf_text(const struct plan *plan, bool first, char **ret)
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

/* ---- the image's loaders ---- */

#define MAIN_CONF_PATH "/etc/ld.so.conf"

#if defined(__x86_64__)
#define GLIBC_LOADER "/lib64/ld-linux-x86-64.so.2"
#define MUSL_ARCH "x86_64"
#elif defined(__aarch64__)
#define GLIBC_LOADER "/lib/ld-linux-aarch64.so.1"
#define MUSL_ARCH "aarch64"
#else
#error "the loaders of this architecture are not known"
#endif
#define MUSL_LOADER "/lib/ld-musl-" MUSL_ARCH ".so.1"
#define MUSL_PATH "/etc/ld-musl-" MUSL_ARCH ".path"

enum { MUSL_PATH_MAX_SIZE = 64 * 1024 };

/* The work, and the files so far. */
struct loader_work {
	const struct rootfs *rootfs;
	const struct plan *plan;
	struct err *err;
	struct loader_file *files;
	size_t count;
	struct strv former; /* directories an ldconfig run in the container may have found through our files */
	bool was_here;      /* our files are in the image */
};

/* A file of the image, resolved once, and its content. */
struct content {
	int handle; /* O_PATH; -1: it is missing */
	char *data; /* NULL: none that a loader could read */
	size_t size;
};

#define CONTENT_NONE ((struct content){.handle = -1})

static void loader_content_clear(struct content *content)
{
	free(content->data);
	cleanup_closep(&content->handle);
}
#define _cleanup_content_ _cleanup_(loader_content_clear)

static void loader_file_clear(struct loader_file *file)
{
	for (size_t i = 0; i < ARRAY_SIZE(file->owned); i++)
		free(file->owned[i]);
	cleanup_closep(&file->handle);
}
#define _cleanup_file_ _cleanup_(loader_file_clear)

struct loader_file *loader_files_free(struct loader_file *files, size_t count)
{
	for (size_t i = 0; files && i < count; i++)
		loader_file_clear(&files[i]);
	free(files);
	return NULL;
}

/*
 * We may read what the container's user may not: files in its volumes, and the kernel's in /proc and /sys, some of
 * which are empty once they were read. What we read gets into a file that every user may read. So a link of the image
 * must not choose what we read: a link that leads out of the root filesystem counts as dangling.
 *
 * Return: 0; -ENOENT also for such a link; as rootfs_read_file(). There is a handle if something is there.
 */
static int loader_open_content(const struct rootfs *rootfs, const char *path, size_t max, struct content *ret)
{
	bool linked;

	ret->handle = rootfs_open_unlinked(rootfs, path, O_PATH);
	linked = ret->handle == -ELOOP;
	if (linked)
		ret->handle = rootfs_open_path(rootfs, path, O_PATH);
	if (ret->handle < 0)
		return ret->handle;
	if (linked && !mount_class_is_root(rootfs, ret->handle))
		return -ENOENT;
	return rootfs_read_handle(rootfs, ret->handle, max, &ret->data, &ret->size);
}

int loader_read_cache(const struct rootfs *rootfs, char **ret_data, size_t *ret_size)
{
	_cleanup_content_ struct content content = CONTENT_NONE;
	int r = loader_open_content(rootfs, LOADER_CACHE, LDCACHE_MAX_SIZE, &content);

	if (r < 0)
		return r;
	*ret_data = steal_ptr(content.data);
	*ret_size = content.size;
	return 0;
}

/* A link to nowhere, a loop, a pipe or a directory in place of a file is for the loader as if there were none. */
static int loader_read_file(const struct loader_work *loader, const char *path, size_t max, struct content *ret)
{
	int r = loader_open_content(loader->rootfs, path, max, ret);

	switch (r) {
	case -ENOENT:
	case -ENOTDIR:
	case -ELOOP:
	case -EINVAL:
	case -EISDIR:
	case -ENXIO:
		return 0;
	case -EFBIG:
		return err_set_advised(
			loader->err, r,
			("%s of the image has more than %zu KiB, which no real one has", path, max / 1024),
			("%s", streq(path, LOADER_CACHE)
				       ? "Remove it from the image, or write it again with the image's ldconfig."
				       : "Remove it from the image."));
	default:
		return r < 0 ? err_set(loader->err, r, "cannot read %s of the image: %m", path) : 0;
	}
}

/* Adds @file, unless the image has the same. Takes what it and @old own. */
static int loader_add_file(struct loader_work *loader, struct loader_file *file, struct content *old)
{
	struct span left = {(const unsigned char *)old->data, old->size};
	struct loader_file *files;
	bool same = old->data;

	for (size_t i = 0; i < ARRAY_SIZE(file->parts) && same; i++) {
		const struct span *part = &file->parts[i];

		same = part->size <= left.size && (part->size == 0 || memcmp(left.data, part->data, part->size) == 0);
		if (same)
			left = (struct span){left.data + part->size, left.size - part->size};
	}
	if (same && left.size == 0)
		return 0;
	files = array_grow(loader->files, loader->count, sizeof(*files));
	if (!files)
		return -ENOMEM;
	loader->files = files;
	file->handle = steal_fd(&old->handle);
	file->owned[1] = steal_ptr(old->data);
	files[loader->count++] = *file;
	*file = (struct loader_file){.handle = -1};
	return 0;
}

/* Takes @text, also when it fails. */
static int loader_add_text(struct loader_work *loader, const char *path, char *text, bool optional, struct content *old)
{
	_cleanup_file_ struct loader_file file = {
		.path = path,
		.parts = {span_text(text)},
		.owned = {text},
		.optional = optional,
		.handle = -1,
	};

	return loader_add_file(loader, &file, old);
}

static int loader_add_conf(struct loader_work *loader, bool first)
{
	const char *path = first ? LOADER_CONF_FIRST : LOADER_CONF_LAST;
	_cleanup_content_ struct content old = CONTENT_NONE;
	_cleanup_free_ char *text = NULL;
	int r;

	/* One of unlikely size is written again like any that differs; its contents are not worth an error. */
	r = loader_open_content(loader->rootfs, path, LOADER_CONF_MAX_SIZE, &old);
	if (r == -ENOMEM)
		return r;
	if (old.data) {
		loader->was_here = true;
		r = loader_conf_parse(old.data, &loader->former);
		if (r < 0)
			return r;
	}
	r = loader_conf_text(loader->plan, first, &text);
	if (r < 0 || (!text && !old.data))
		return r;
	if (!text)
		text = strdup(loader_conf_empty);
	if (!text)
		return -ENOMEM;
	return loader_add_text(loader, path, steal_ptr(text), true, &old);
}

/*
 * Without it an ldconfig run in the container would read none of our files. The image's own file is covered and stays
 * as it is, since the image's author may maintain it. If it cannot be read, it is left to ldconfig to complain.
 */
static int loader_add_main_conf(struct loader_work *loader)
{
	_cleanup_content_ struct content old = CONTENT_NONE;
	_cleanup_file_ struct loader_file file = {
		.path = MAIN_CONF_PATH, .covered = true, .optional = true, .handle = -1};
	char *text;
	int r;

	r = loader_open_content(loader->rootfs, MAIN_CONF_PATH, LOADER_CONF_MAX_SIZE, &old);
	if (r < 0 && (r != -ENOENT || old.handle >= 0))
		return r == -ENOMEM ? r : 0;
	r = loader_conf_include(old.data, &text);
	if (!text)
		rootfs_leave_open(loader->rootfs, &old.handle);
	if (r < 0 || !text)
		return r;
	file.parts[0] = span_text(text);
	file.owned[0] = text;
	return loader_add_file(loader, &file, &old);
}

static int loader_add_musl_path(struct loader_work *loader, bool only_loader)
{
	_cleanup_strv_ struct strv front = {0}, behind = {0};
	_cleanup_content_ struct content old = CONTENT_NONE;
	_cleanup_free_ char *text = NULL;
	int r;

	for (size_t i = 0; i < loader->plan->library_dir_count; i++) {
		const struct plan_library_dir *dir = &loader->plan->library_dirs[i];
		bool first = dir->overrides_image && loader_conf_is_ours(loader->plan, dir);

		r = strv_add(first ? &front : &behind, dir->path);
		if (r < 0)
			return r;
	}
	r = loader_read_file(loader, MUSL_PATH, MUSL_PATH_MAX_SIZE, &old);
	if (r < 0)
		return r;
	if (loader->plan->library_dir_count == 0 && (!old.data || !strstr(old.data, "::")))
		return 0;
	r = ldcache_musl_path(old.data, &front, &behind, &text);
	if (r != 0)
		return r;
	return loader_add_text(loader, MUSL_PATH, steal_ptr(text), !only_loader, &old);
}

/* Our libraries, as the cache wants them. */
struct libraries {
	struct ldcache_library *items;
	size_t count;
	struct strv paths;
};

static void loader_libraries_clear(struct libraries *libraries)
{
	free(libraries->items);
	strv_clear(&libraries->paths);
}

static int loader_add_libraries(struct libraries *libraries, const struct plan_library_dir *dir)
{
	for (size_t i = 0; i < dir->libraries.count; i++) {
		const char *name = dir->libraries.items[i];
		struct ldcache_library *items = array_grow(libraries->items, libraries->count, sizeof(*items));

		if (!items)
			return -ENOMEM;
		libraries->items = items;
		if (strv_format(&libraries->paths, "%s/%s", dir->path,
				i < dir->files.count ? dir->files.items[i] : name) < 0)
			return -ENOMEM;
		items[libraries->count++] = (struct ldcache_library){
			.name = name,
			.path = libraries->paths.items[libraries->paths.count - 1],
			.overrides = dir->overrides_image,
		};
	}
	return 0;
}

static int loader_add_cache(struct loader_work *loader)
{
	_cleanup_(loader_libraries_clear) struct libraries libraries = {0};
	_cleanup_file_ struct loader_file file = {.path = LOADER_CACHE, .handle = -1};
	_cleanup_content_ struct content old = CONTENT_NONE;
	struct ldcache_merged merged;
	struct span span;
	int r;

	r = loader_read_file(loader, LOADER_CACHE, LDCACHE_MAX_SIZE, &old);
	if (r < 0)
		return r;
	for (size_t i = 0; i < loader->plan->library_dir_count && r == 0; i++) {
		const struct plan_library_dir *dir = &loader->plan->library_dirs[i];

		r = loader_add_libraries(&libraries, dir);
		if (r == 0 && loader_conf_is_ours(loader->plan, dir))
			r = strv_add(&loader->former, dir->path);
	}
	if (r < 0)
		return r;
	if (!old.data && libraries.count == 0)
		return 0;
	span = (struct span){(const unsigned char *)old.data, old.size};
	r = ldcache_merge(&span, loader->was_here ? &loader->former : NULL, libraries.items, libraries.count, &merged);
	if (r == -E2BIG)
		return err_set(loader->err, r, "%s of the image leaves no room for the driver's libraries",
			       LOADER_CACHE);
	if (r < 0)
		return r;
	file.owned[0] = merged.owned;
	memcpy(file.parts, merged.parts, sizeof(file.parts));
	return loader_add_file(loader, &file, &old);
}

static bool loader_image_has(const struct rootfs *rootfs, const char *path)
{
	_cleanup_close_ int fd = rootfs_open_path(rootfs, path, O_PATH);

	return fd >= 0;
}

const char *loader_with_own_cache(const struct rootfs *rootfs)
{
	/* Their C libraries are made to look below their own prefix, where nothing can be written. */
	static const struct {
		const char *directory, *name;
	} stores[] = {{"/nix/store", "Nix"}, {"/gnu/store", "Guix"}};

	for (size_t i = 0; i < ARRAY_SIZE(stores); i++)
		if (loader_image_has(rootfs, stores[i].directory))
			return stores[i].name;
	return NULL;
}

int loader_files(const struct rootfs *rootfs, const struct plan *plan, struct loader_file **ret, size_t *ret_count,
		 struct err *err)
{
	bool musl = loader_image_has(rootfs, MUSL_LOADER), glibc = !musl || loader_image_has(rootfs, GLIBC_LOADER);
	struct loader_work loader = {.rootfs = rootfs, .plan = plan, .err = err};
	int r = 0;

	if (musl)
		r = loader_add_musl_path(&loader, !glibc);
	if (r == 0 && glibc)
		r = loader_add_conf(&loader, true);
	if (r == 0 && glibc)
		r = loader_add_conf(&loader, false);
	if (r == 0 && glibc && plan->library_dir_count > 0)
		r = loader_add_main_conf(&loader);
	if (r == 0 && glibc && (plan->library_dir_count > 0 || loader.was_here))
		r = loader_add_cache(&loader);
	strv_clear(&loader.former);
	if (r < 0) {
		loader_files_free(loader.files, loader.count);
		return r;
	}
	*ret = loader.files;
	*ret_count = loader.count;
	return 0;
}

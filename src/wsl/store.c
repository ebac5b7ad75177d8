/* SPDX-License-Identifier: Apache-2.0 */

#include "wsl/internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/paths.h"
#include "base/str.h"
#include "system/noexec.h"

static bool store_is_separator(char c)
{
	return c == '\\' || c == '/';
}

/* What follows "\FileRepository\"; what precedes it differs between host and container. NULL if it is missing. */
static const char *store_after_repository(const char *told)
{
	static const char name[] = "FileRepository";
	const size_t length = sizeof(name) - 1;

	for (const char *c = told; *c; c++)
		if (store_is_separator(*c) && strncasecmp(c + 1, name, length) == 0 &&
		    store_is_separator(c[length + 1]))
			return c + length + 2;
	return NULL;
}

static const char *store_name(const char *told)
{
	if (str_has_prefix(told, PATH_WSL_DRIVERS "/"))
		return told + sizeof(PATH_WSL_DRIVERS);
	return store_after_repository(told);
}

/* What the path is made of goes into mounts, a loader cache, lists with colons, and onto terminals. */
static bool store_is_component(const char *text, size_t length)
{
	if (length == 0 || (length <= 2 && strncmp(text, "..", length) == 0))
		return false;
	for (size_t i = 0; i < length; i += printable_length(text + i))
		if (printable_length(text + i) == 0 || strchr(":*?\"<>|", text[i]))
			return false;
	return true;
}

int store_directory(const char *told, char **ret)
{
	const char *name = store_name(told);
	_cleanup_free_ char *path = NULL;
	char *component;

	if (!name || str_format(&path, PATH_WSL_DRIVERS "/%s", name) < 0)
		return name ? -ENOMEM : -EINVAL;
	component = path + sizeof(PATH_WSL_DRIVERS);
	do {
		size_t length = strcspn(component, "\\/");

		if (!store_is_component(component, length))
			return -EINVAL;
		component += length;
		/* A separator at the end says nothing. */
		if (*component && !component[1])
			*component = '\0';
		if (*component)
			*component++ = '/';
	} while (*component);
	*ret = steal_ptr(path);
	return 0;
}

/* Whether a file in a store is called like a shared library: "libcuda.so.1.1". */
static bool store_is_library(const char *name)
{
	const char *suffix = strstr(name, ".so");

	for (; suffix; suffix = strstr(suffix + 1, ".so"))
		if (suffix != name && (suffix[3] == '\0' || suffix[3] == '.'))
			return true;
	return false;
}

/* AMD's libraries are a directory down; no vendor's are deeper. */
enum { STORE_DEPTH = 1 };

static bool store_has_library(int directory, int depth)
{
	_cleanup_strv_ struct strv below = {0};
	const struct dirent *entry;
	struct fd_entries entries;
	bool found = false;

	fd_entries_begin(&entries, directory);
	while (!found && (entry = fd_entries_next(&entries))) {
		/* DT_UNKNOWN: a file system that does not tell. */
		bool may_be_directory = entry->d_type == DT_DIR || entry->d_type == DT_UNKNOWN;

		found = entry->d_type != DT_DIR && store_is_library(entry->d_name);
		if (depth > 0 && may_be_directory && entry->d_name[0] != '.' && strv_add(&below, entry->d_name) < 0)
			found = true;
	}
	for (size_t i = 0; i < below.count && !found; i++) {
		_cleanup_close_ int inner =
			openat(directory, below.items[i], O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

		found = inner >= 0 && store_has_library(inner, depth - 1);
	}
	return found;
}

/* Looks at the list of files, then a directory down. */
static enum store_content store_classify(const struct driver_store *store)
{
	if (store->libraries.count > 0)
		return STORE_HAS_LIBRARY;
	return lseek(store->fd, 0, SEEK_SET) == 0 && store_has_library(store->fd, STORE_DEPTH) ? STORE_HAS_LIBRARY
											       : STORE_WITHOUT_LIBRARY;
}

enum store_content store_look(const char *path, struct adapter_store *ret)
{
	_cleanup_listing_ struct driver_store store = {.fd = -1};
	int r = driver_store_read(path, &store);
	enum store_content content;

	if (store.fd < 0)
		return r == -EACCES || r == -EPERM ? STORE_HAS_LIBRARY : STORE_MISSING;
	content = store_classify(&store);
	if (r == 0)
		*ret = (struct adapter_store){
			.is_read = true,
			.libraries = steal_struct(&store.libraries),
			.device = store.st.st_dev,
			.inode = store.st.st_ino,
			.has_smi = store.has_smi,
			.has_outside_link = store.has_outside_link,
			.noexec = store.noexec,
		};
	return content;
}

/* ---- what is in a store ---- */

void driver_store_clear(struct driver_store *store)
{
	cleanup_closep(&store->fd);
	strv_clear(&store->libraries);
}

static bool driver_store_has_outside_link(int directory, const char *path, const char *name)
{
	char points_to[512];
	ssize_t length = readlinkat(directory, name, points_to, sizeof(points_to) - 1);

	if (length < 0)
		return false;
	points_to[length] = '\0';
	if (strstr(points_to, "..") || length == sizeof(points_to) - 1)
		return true;
	return points_to[0] == '/' && !str_is_below(points_to, path) && !str_is_below(points_to, PATH_WSL_LIB);
}

static int driver_store_take(struct driver_store *store, const char *path, const struct dirent *entry)
{
	/* DT_UNKNOWN: a file system that does not tell; the name must do. */
	bool may_be_link = entry->d_type == DT_LNK || entry->d_type == DT_UNKNOWN;

	if (!may_be_link && entry->d_type != DT_REG)
		return 0;
	if (may_be_link && driver_store_has_outside_link(store->fd, path, entry->d_name))
		store->has_outside_link = true;
	if (streq(entry->d_name, DRIVER_STORE_SMI))
		store->has_smi = true;
	return store_is_library(entry->d_name) ? strv_add(&store->libraries, entry->d_name) : 0;
}

int driver_store_read(const char *path, struct driver_store *ret)
{
	const struct dirent *entry;
	struct fd_entries entries;
	int r = 0;

	ret->fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (ret->fd < 0 || fstat(ret->fd, &ret->st) < 0)
		return -errno;
	fd_entries_begin(&entries, ret->fd);
	while (r == 0 && (entry = fd_entries_next(&entries)))
		r = driver_store_take(ret, path, entry);
	if (r == 0 && errno != 0)
		return -errno;
	/* The order of a directory is the file system's; plans are compared. */
	strv_sort(&ret->libraries);
	ret->noexec = noexec_is_set(ret->fd);
	return r;
}

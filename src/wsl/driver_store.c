/* SPDX-License-Identifier: Apache-2.0 */

#include "wsl/driver_store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/paths.h"
#include "wsl/store.h"

void driver_store_clear(struct driver_store *listing)
{
	cleanup_closep(&listing->fd);
	strv_clear(&listing->libraries);
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

static int driver_store_take(struct driver_store *listing, const char *path, const struct dirent *entry)
{
	/* DT_UNKNOWN: a file system that does not tell; the name must do. */
	bool may_be_link = entry->d_type == DT_LNK || entry->d_type == DT_UNKNOWN;

	if (!may_be_link && entry->d_type != DT_REG)
		return 0;
	if (may_be_link && driver_store_has_outside_link(listing->fd, path, entry->d_name))
		listing->has_outside_link = true;
	if (streq(entry->d_name, DRIVER_STORE_SMI))
		listing->has_smi = true;
	return store_is_library(entry->d_name) ? strv_add(&listing->libraries, entry->d_name) : 0;
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
	return r;
}

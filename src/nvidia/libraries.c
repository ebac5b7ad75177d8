/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The libraries of a driver. Its directories are read once each; a name that ends in the driver's version decides,
 * together with the table, and only libraries that the table does not know are opened, for their SONAME.
 */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/fd.h"
#include "base/str.h"
#include "nvidia/internal.h"
#include "system/elf_file.h"

static void libraries_clear_one(struct driver_files_library *library)
{
	free(library->path);
	free(library->soname);
}

void driver_files_libraries_clear(struct driver_files_libraries *libraries)
{
	for (size_t i = 0; i < libraries->count; i++)
		libraries_clear_one(&libraries->items[i]);
	free(libraries->items);
	*libraries = (struct driver_files_libraries){0};
}

/* The file itself: in a driver root a symlink may lead anywhere, so it is followed inside the root. */
static int libraries_locate(const struct driver_files *files, const struct driver_files_dir *dir, const char *name,
			    struct driver_files_library *library)
{
	_cleanup_free_ char *path = NULL;
	struct driver_files_file file;
	const char *inside;
	int r;

	if (str_format(&path, "%s/%s", dir->path, name) < 0)
		return -ENOMEM;
	if (fstatat(dir->fd, name, &library->st, AT_SYMLINK_NOFOLLOW) < 0)
		return -ENOENT;
	if (S_ISREG(library->st.st_mode)) {
		library->path = steal_ptr(path);
		return 0;
	}
	inside = driver_files_path_inside(files, path);
	r = inside ? driver_files_find(files, inside, &file) : -ENOENT;
	if (r < 0)
		return r == -ENOMEM ? r : -ENOENT;
	library->path = file.path;
	library->st = file.st;
	return S_ISREG(file.st.st_mode) ? 0 : -ENOENT;
}

/* What is not a library with a usable SONAME is left out. */
static int libraries_append(const struct driver_files *files, const struct driver_files_dir *dir, const char *name,
			    const struct driver_library *known, struct driver_files_libraries *libraries)
{
	struct driver_files_library library = {.known = known, .is_32 = dir->is_32}, *items = NULL;
	int r = libraries_locate(files, dir, name, &library);

	if (r == 0 && known && known->soversion) {
		r = str_format(&library.soname, "%s.so.%s", known->stem, known->soversion);
	} else if (r == 0 && known) {
		library.soname = strdup(name);
	} else if (r == 0) {
		_cleanup_close_ int fd = open(library.path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

		r = fd < 0 ? -ENOENT : elf_file_read_soname(fd, &library.soname);
		if (r == 0 && !str_has_prefix(library.soname, "lib"))
			r = -ENOENT;
	}
	/* They are written into a container's config.json, and into plans. */
	if (r == 0 && library.soname && (!printable_is_all(library.path) || !printable_is_all(library.soname)))
		r = -ENOENT;
	if (r == 0 && library.soname)
		items = array_grow(libraries->items, libraries->count, sizeof(*items));
	if (!items) {
		libraries_clear_one(&library);
		return r == 0 || r == -ENOMEM ? -ENOMEM : 0;
	}
	libraries->items = items;
	items[libraries->count++] = library;
	return 0;
}

static bool libraries_is_wanted(const struct driver_library *library, uint32_t capabilities)
{
	return (library ? library->capabilities : CAPABILITY_COMPUTE) & capabilities;
}

/* The length of a library's stem; 0 for other files. docker commit leaves an empty file where a library was mounted. */
static size_t libraries_stem_length(const struct driver_files *files, const struct driver_files_dir *dir,
				    const char *name)
{
	const char *end;
	struct stat st;

	if (!dir->is_ours)
		return driver_files_stem_length(files, name);
	end = strstr(name, ".so.");
	if (!end || fstatat(dir->fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode) || st.st_size == 0)
		return 0;
	return (size_t)(end - name);
}

static int libraries_list(struct driver_files *files, struct driver_files_dir *dir)
{
	const struct dirent *entry;
	struct fd_entries entries;
	int r = 0;

	if (dir->is_listed)
		return 0;
	fd_entries_begin(&entries, dir->fd);
	while (r == 0 && dir->names.count < NVIDIA_CACHE_NAMES_MAX && (entry = fd_entries_next(&entries)))
		if (libraries_stem_length(files, dir, entry->d_name) > 0)
			r = strv_add(&dir->names, entry->d_name);
	/* Part of a list would be believed until the directory changes. */
	if (r == 0 && dir->names.count < NVIDIA_CACHE_NAMES_MAX)
		r = -errno;
	if (r < 0) {
		strv_clear(&dir->names);
		return r;
	}
	strv_sort(&dir->names);
	dir->is_listed = files->is_new = true;
	return 0;
}

static int libraries_add_versioned(struct driver_files *files, struct driver_files_dir *dir, uint32_t capabilities,
				   struct driver_files_libraries *libraries)
{
	int r = libraries_list(files, dir);

	for (size_t i = 0; i < dir->names.count && r == 0; i++) {
		const char *name = dir->names.items[i];
		size_t stem = libraries_stem_length(files, dir, name);
		const struct driver_library *library = driver_library_find(name, stem);

		if (libraries_is_wanted(library, capabilities))
			r = libraries_append(files, dir, name, library, libraries);
	}
	return r;
}

int driver_files_libraries(struct driver_files *files, uint32_t capabilities, struct driver_files_libraries *ret)
{
	_cleanup_libraries_ struct driver_files_libraries libraries = {0};
	int r = 0;

	for (size_t i = 0; i < files->dir_count && r == 0; i++) {
		struct driver_files_dir *dir = &files->dirs[i];

		if (dir->is_32 && !(capabilities & CAPABILITY_COMPAT32))
			continue;
		r = libraries_add_versioned(files, dir, capabilities, &libraries);
		for (size_t j = 0; j < driver_library_count && r == 0; j++) {
			const struct driver_library *library = &driver_libraries[j];
			_cleanup_free_ char *name = NULL;

			if (!library->own_version || !libraries_is_wanted(library, capabilities))
				continue;
			if (str_format(&name, "%s.so.%s", library->stem, library->soversion) < 0)
				return -ENOMEM;
			r = libraries_append(files, dir, name, library, &libraries);
		}
	}
	if (r < 0)
		return r;
	*ret = steal_struct(&libraries);
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */

#include "engines/daemon.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"

void path_lookup_clear(struct program *program)
{
	free(program->path);
	*program = (struct program){0};
}

/* The file that a descriptor is of is called ctr-gpu, ctr-gpu-hook or ctr-gpu-runtime. */
static bool path_lookup_is_ours(int fd)
{
	_cleanup_free_ char *real = NULL;
	const char *name;
	char link[32];

	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	if (fd_read_link_at(AT_FDCWD, link, &real) < 0)
		return false;
	name = strrchr(real, '/');
	return name && (streq(name, "/ctr-gpu") || str_has_prefix(name, "/ctr-gpu-"));
}

bool path_lookup_look(const struct rootfs *root, const char *path, struct program *ret)
{
	_cleanup_close_ int fd = rootfs_open_path(root, path, O_PATH), entry = -1;
	struct program program = {0};
	struct stat st;

	/* Root may execute a file if any of its x bits is set. */
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || !(st.st_mode & (S_IXUSR | S_IXGRP | S_IXOTH)))
		return false;
	program.st = st;
	program.ours = path_lookup_is_ours(fd);
	/* The time of the link, if the name is one: a daemon may have looked for the name before it was made. */
	entry = rootfs_open_path(root, path, O_PATH | O_NOFOLLOW);
	if (entry >= 0)
		(void)fstat(entry, &program.st);
	program.path = strdup(path);
	if (!program.path)
		return false;
	*ret = program;
	return true;
}

bool path_lookup_find(const struct rootfs *root, const char *path, const char *name, struct program *ret)
{
	_cleanup_strv_ struct strv directories = {0};

	if (strv_split(path, ":", &directories) < 0)
		return false;
	for (size_t i = 0; i < directories.count; i++) {
		_cleanup_free_ char *file = NULL;

		if (directories.items[i][0] == '/' && str_format(&file, "%s/%s", directories.items[i], name) == 0 &&
		    path_lookup_look(root, file, ret))
			return true;
	}
	return false;
}

bool path_lookup_is_here(const char *name)
{
	_cleanup_rootfs_ struct rootfs root = ROOTFS_CLOSED;
	_cleanup_program_ struct program program = {0};
	const char *path = getenv("PATH");

	if (rootfs_open(AT_FDCWD, "/", &root) < 0)
		return false;
	return path_lookup_find(&root, PATH_LOOKUP_PATH ":/snap/bin", name, &program) ||
	       (path && path_lookup_find(&root, path, name, &program));
}

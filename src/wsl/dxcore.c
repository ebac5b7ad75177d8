/* SPDX-License-Identifier: Apache-2.0 */

#include "wsl/dxcore.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"
#include "ldcache/ldcache.h"
#include "wsl/paths.h"

#define LIBRARY "libdxcore.so"

/* The loader's own directories (glibc elf/dl-load.c, with the subdirectories of the distributions). */
static const char *const directories[] = {
#if defined(__x86_64__)
	"/lib/x86_64-linux-gnu",
	"/usr/lib/x86_64-linux-gnu",
#elif defined(__aarch64__)
	"/lib/aarch64-linux-gnu",
	"/usr/lib/aarch64-linux-gnu",
#endif
	"/lib64",
	"/usr/lib64",
	"/lib",
	"/usr/lib",
	WSL_LIB,
};

/* Return: 1 with @ret set, 0 if it is not there, or -ENOMEM. */
static int dxcore_try_path(const char *path, char **ret)
{
	if (access(path, F_OK) < 0)
		return 0;
	*ret = strdup(path);
	return *ret ? 1 : -ENOMEM;
}

static int dxcore_try_directory(const char *directory, char **ret)
{
	_cleanup_free_ char *path = NULL;
	int r;

	r = str_format(&path, "%s/" LIBRARY, directory);
	return r < 0 ? r : dxcore_try_path(path, ret);
}

/* A cache that is missing or broken is like one without the library. */
static int dxcore_try_cache(char **ret)
{
	_cleanup_free_ char *data = NULL;
	const char *path;
	size_t size;
	int r;

	r = fd_read_file_at(AT_FDCWD, "/etc/ld.so.cache", LDCACHE_MAX_SIZE, &data, &size);
	if (r < 0)
		return r == -ENOMEM ? r : 0;
	path = ldcache_find(&(struct span){(const unsigned char *)data, size}, LIBRARY);
	return path && path[0] == '/' ? dxcore_try_path(path, ret) : 0;
}

int dxcore_find(const struct settings *settings, char **ret)
{
	char *path = NULL;
	int r;

	r = dxcore_try_cache(&path);
	for (size_t i = 0; i < ARRAY_SIZE(directories) && r == 0; i++)
		r = dxcore_try_directory(directories[i], &path);
	for (size_t i = 0; i < settings->library_dirs.count && r == 0; i++)
		r = dxcore_try_directory(settings->library_dirs.items[i], &path);
	if (r < 0)
		return r;
	*ret = path;
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */

#include "wsl/dxcore.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/paths.h"
#include "base/str.h"
#include "ldcache/ldcache.h"

#define LIBRARY "libdxcore.so"

const char *const dxcore_directories[] = {
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
	PATH_WSL_LIB,
	NULL,
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

int dxcore_find(const struct settings *settings, char **ret)
{
	_cleanup_free_ char *cached = NULL;
	char *path = NULL;
	int r;

	/* A cache that is missing or broken is like one without the library. */
	r = ldcache_find_here(LIBRARY, &cached);
	if (r == 0 && cached)
		r = dxcore_try_path(cached, &path);
	for (const char *const *directory = dxcore_directories; *directory && r == 0; directory++)
		r = dxcore_try_directory(*directory, &path);
	for (size_t i = 0; i < settings->library_dirs.count && r == 0; i++)
		r = dxcore_try_directory(settings->library_dirs.items[i], &path);
	if (r < 0)
		return r;
	*ret = path;
	return 0;
}

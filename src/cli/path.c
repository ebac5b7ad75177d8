/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/path.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

char *path_absolute(const char *path)
{
	char *directory, *absolute = NULL;

	if (path[0] == '/')
		return strdup(path);
	directory = get_current_dir_name();
	if (directory && asprintf(&absolute, "%s/%s", directory, path) < 0)
		absolute = NULL;
	free(directory);
	return absolute;
}

char *path_of_program(const char *name)
{
	_cleanup_free_ char *self = realpath("/proc/self/exe", NULL);
	char *path;

	/* Packages are also removed from trees without a mounted /proc. */
	return asprintf(&path, "%.*s/%s", self ? (int)(strrchr(self, '/') - self) : INT_MAX, self ? self : "/usr/bin",
			name) < 0
		       ? NULL
		       : path;
}

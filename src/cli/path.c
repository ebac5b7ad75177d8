/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/path.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "system/own_programs.h"

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
	char *path = own_programs_beside(name);

	/* Packages are also removed from trees without a mounted /proc. */
	if (!path && asprintf(&path, "/usr/bin/%s", name) < 0)
		return NULL;
	return path;
}

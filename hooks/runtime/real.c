/* SPDX-License-Identifier: Apache-2.0 */

#include "real.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "search.h"

int real_find(const struct ctr_gpu_context *context, char **ret_path)
{
	char path[SEARCH_PATH_MAX];
	const char *name;

	for (size_t i = 0; (name = ctr_gpu_context_runtime(context, i)); i++) {
		if (!search_program(name, getenv("PATH"), path))
			continue;
		*ret_path = strdup(path);
		return *ret_path ? 0 : -ENOMEM;
	}
	return -ENOENT;
}

char *real_beside(const char *name)
{
	char self[4096], *path;
	ssize_t length;

	length = readlink("/proc/self/exe", self, sizeof(self));
	if (length <= 0 || length == (ssize_t)sizeof(self))
		return NULL;
	while (length > 0 && self[length - 1] != '/')
		length--;
	if (asprintf(&path, "%.*s%s", (int)length, self, name) < 0)
		return NULL;
	if (access(path, X_OK) == 0)
		return path;
	free(path);
	return NULL;
}

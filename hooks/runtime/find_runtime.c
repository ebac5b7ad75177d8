/* SPDX-License-Identifier: Apache-2.0 */

#include "runtime.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Where distributions and administrators install runtimes. An engine's own PATH may lack some of these. */
static const char usual_places[] = "/usr/bin:/usr/sbin:/usr/local/bin:/usr/local/sbin";

/* A link to us, such as nvidia-container-runtime or an administrator's runc, would have us start ourselves for ever. */
static bool find_runtime_is_self(const struct stat *st)
{
	struct stat self;

	return stat("/proc/self/exe", &self) == 0 && self.st_dev == st->st_dev && self.st_ino == st->st_ino;
}

static bool find_runtime_is_usable(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0 && !find_runtime_is_self(&st);
}

static bool find_runtime_try(const char *place, size_t place_length, const char *name, char ret[FIND_RUNTIME_PATH_MAX])
{
	const int length = snprintf(ret, FIND_RUNTIME_PATH_MAX, "%.*s/%s", (int)place_length, place, name);

	return length < FIND_RUNTIME_PATH_MAX && find_runtime_is_usable(ret);
}

static bool find_runtime_in_places(const char *places, const char *name, char ret[FIND_RUNTIME_PATH_MAX])
{
	while (places) {
		const size_t size = strcspn(places, ":");

		/* A relative path counts from the working directory, which may be anybody's. */
		if (places[0] == '/' && find_runtime_try(places, size, name, ret))
			return true;
		places = places[size] ? places + size + 1 : NULL;
	}
	return false;
}

/*
 * find_runtime_program() - find a program that can be executed and is not this one under another name
 * @name:   an absolute path, or what is looked for in directories
 * @places: the value of PATH, or NULL; where nothing is found there, the usual directories are searched
 * @ret:    its path
 *
 * Return: whether there is one.
 */
static bool find_runtime_program(const char *name, const char *places, char ret[FIND_RUNTIME_PATH_MAX])
{
	if (name[0] == '/')
		return strlen(name) < FIND_RUNTIME_PATH_MAX && find_runtime_is_usable(strcpy(ret, name));
	return find_runtime_in_places(places, name, ret) || find_runtime_in_places(usual_places, name, ret);
}

int find_runtime(const struct ctr_gpu_context *context, char **ret_path)
{
	char path[FIND_RUNTIME_PATH_MAX];
	const char *name;

	for (size_t i = 0; (name = ctr_gpu_context_runtime(context, i)); i++) {
		if (!find_runtime_program(name, getenv("PATH"), path))
			continue;
		*ret_path = strdup(path);
		return *ret_path ? 0 : -ENOMEM;
	}
	return -ENOENT;
}

char *find_runtime_beside(const char *name)
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

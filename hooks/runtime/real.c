/* SPDX-License-Identifier: Apache-2.0 */

#include "real.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Where distributions and administrators install runtimes. An engine's own PATH may lack some of these. */
static const char usual_places[] = "/usr/bin:/usr/sbin:/usr/local/bin:/usr/local/sbin";

/* A link to us, such as nvidia-container-runtime or an administrator's runc, would have us start ourselves for ever. */
static bool real_is_self(const struct stat *st)
{
	struct stat self;

	return stat("/proc/self/exe", &self) == 0 && self.st_dev == st->st_dev && self.st_ino == st->st_ino;
}

static bool real_is_usable(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0 && !real_is_self(&st);
}

/* Takes over @path; NULL counts as -ENOMEM. Return: 0; -ENOENT; -ENOMEM. */
static int real_try(char *path, char **ret_path)
{
	if (!path)
		return -ENOMEM;
	if (real_is_usable(path)) {
		*ret_path = path;
		return 0;
	}
	free(path);
	return -ENOENT;
}

static int real_search(const char *places, const char *name, char **ret_path)
{
	int r = -ENOENT;

	while (places && r == -ENOENT) {
		int length = (int)strcspn(places, ":");
		char *path;

		/* A relative path counts from the working directory, which may be anybody's. */
		if (places[0] == '/')
			r = real_try(asprintf(&path, "%.*s/%s", length, places, name) < 0 ? NULL : path, ret_path);
		places = places[length] ? places + length + 1 : NULL;
	}
	return r;
}

static int real_find_one(const char *name, char **ret_path)
{
	int r;

	if (name[0] == '/')
		return real_try(strdup(name), ret_path);
	r = real_search(getenv("PATH"), name, ret_path);
	return r == -ENOENT ? real_search(usual_places, name, ret_path) : r;
}

int real_find(const struct ctr_gpu_context *context, char **ret_path)
{
	const char *name;
	int r = -ENOENT;

	for (size_t i = 0; r == -ENOENT && (name = ctr_gpu_context_runtime(context, i)); i++)
		r = real_find_one(name, ret_path);
	return r;
}

char *real_sibling(const char *name)
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

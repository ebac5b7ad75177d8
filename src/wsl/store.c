/* SPDX-License-Identifier: Apache-2.0 */

#include "wsl/store.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <strings.h>

#include "base/str.h"
#include "wsl/paths.h"

static bool store_is_separator(char c)
{
	return c == '\\' || c == '/';
}

/* Behind "\FileRepository\", before which the host's and a container's names differ. NULL if it is not there. */
static const char *store_after_repository(const char *told)
{
	static const char name[] = "FileRepository";
	const size_t length = sizeof(name) - 1;

	for (const char *c = told; *c; c++)
		if (store_is_separator(*c) && strncasecmp(c + 1, name, length) == 0 &&
		    store_is_separator(c[length + 1]))
			return c + length + 2;
	return NULL;
}

static const char *store_name(const char *told)
{
	if (str_has_prefix(told, WSL_DRIVERS "/"))
		return told + sizeof(WSL_DRIVERS);
	return store_after_repository(told);
}

/* What the path is made of goes into mounts, a loader cache and lists with colons. */
static bool store_is_component(const char *text, size_t length)
{
	if (length == 0 || (length <= 2 && strncmp(text, "..", length) == 0))
		return false;
	for (size_t i = 0; i < length; i++)
		if ((unsigned char)text[i] < ' ' || text[i] == 0x7f || strchr(":*?\"<>|", text[i]))
			return false;
	return true;
}

int store_directory(const char *told, char **ret)
{
	const char *name = store_name(told);
	_cleanup_free_ char *path = NULL;
	char *component;

	if (!name || str_format(&path, WSL_DRIVERS "/%s", name) < 0)
		return name ? -ENOMEM : -EINVAL;
	component = path + sizeof(WSL_DRIVERS);
	do {
		size_t length = strcspn(component, "\\/");

		if (!store_is_component(component, length))
			return -EINVAL;
		component += length;
		/* A separator at the end says nothing. */
		if (*component && !component[1])
			*component = '\0';
		if (*component)
			*component++ = '/';
	} while (*component);
	*ret = steal_ptr(path);
	return 0;
}

/* O_PATH: the directory need not be readable by us, and nothing in it is touched. */
bool store_exists(const char *path)
{
	_cleanup_close_ int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);

	return fd >= 0;
}

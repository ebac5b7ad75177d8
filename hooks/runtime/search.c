/* SPDX-License-Identifier: Apache-2.0 */

#include "search.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Where distributions and administrators install runtimes. An engine's own PATH may lack some of these. */
static const char usual_places[] = "/usr/bin:/usr/sbin:/usr/local/bin:/usr/local/sbin";

/* A link to us, such as nvidia-container-runtime or an administrator's runc, would have us start ourselves for ever. */
static bool search_is_self(const struct stat *st)
{
	struct stat self;

	return stat("/proc/self/exe", &self) == 0 && self.st_dev == st->st_dev && self.st_ino == st->st_ino;
}

static bool search_is_usable(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0 && !search_is_self(&st);
}

static bool search_try(const char *place, size_t place_length, const char *name, char ret[SEARCH_PATH_MAX])
{
	const int length = snprintf(ret, SEARCH_PATH_MAX, "%.*s/%s", (int)place_length, place, name);

	return length < SEARCH_PATH_MAX && search_is_usable(ret);
}

static bool search_places(const char *places, const char *name, char ret[SEARCH_PATH_MAX])
{
	while (places) {
		const size_t size = strcspn(places, ":");

		/* A relative path counts from the working directory, which may be anybody's. */
		if (places[0] == '/' && search_try(places, size, name, ret))
			return true;
		places = places[size] ? places + size + 1 : NULL;
	}
	return false;
}

bool search_program(const char *name, const char *places, char ret[SEARCH_PATH_MAX])
{
	if (name[0] == '/')
		return strlen(name) < SEARCH_PATH_MAX && search_is_usable(strcpy(ret, name));
	return search_places(places, name, ret) || search_places(usual_places, name, ret);
}

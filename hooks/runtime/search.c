/* SPDX-License-Identifier: Apache-2.0 */

#include "search.h"

#include <unistd.h>

#include "plain.h"

/* Where distributions and administrators install runtimes. An engine's own PATH may lack some of these. */
static const char usual_places[] = "/usr/bin:/usr/sbin:/usr/local/bin:/usr/local/sbin";

/* A link to us, such as nvidia-container-runtime or an administrator's runc, would have us start ourselves for ever. */
static bool search_is_self(const struct stat *st)
{
	struct stat self;

	return plain_stat(AT_FDCWD, "/proc/self/exe", 0, &self) && self.st_dev == st->st_dev &&
	       self.st_ino == st->st_ino;
}

static bool search_is_usable(const char *path)
{
	struct stat st;

	return plain_stat(AT_FDCWD, path, 0, &st) && S_ISREG(st.st_mode) && plain_access(path, X_OK) == 0 &&
	       !search_is_self(&st);
}

/* Return: @at, behind what was added; SEARCH_PATH_MAX if there is no room. */
static size_t search_add(char path[SEARCH_PATH_MAX], size_t at, const char *text, size_t length)
{
	if (length >= SEARCH_PATH_MAX - at)
		return SEARCH_PATH_MAX;
	for (size_t i = 0; i < length; i++)
		path[at + i] = text[i];
	path[at + length] = '\0';
	return at + length;
}

static bool search_try(const char *place, size_t place_length, const char *name, size_t length,
		       char ret[SEARCH_PATH_MAX])
{
	size_t at = search_add(ret, 0, place, place_length);

	if (at < SEARCH_PATH_MAX && place_length > 0)
		at = search_add(ret, at, "/", 1);
	if (at < SEARCH_PATH_MAX)
		at = search_add(ret, at, name, length);
	return at < SEARCH_PATH_MAX && search_is_usable(ret);
}

static bool search_places(const char *places, const char *name, size_t length, char ret[SEARCH_PATH_MAX])
{
	while (places) {
		size_t size = 0;

		while (places[size] && places[size] != ':')
			size++;
		/* A relative path counts from the working directory, which may be anybody's. */
		if (places[0] == '/' && search_try(places, size, name, length, ret))
			return true;
		places = places[size] ? places + size + 1 : NULL;
	}
	return false;
}

bool search_program(const char *name, size_t length, const char *places, char ret[SEARCH_PATH_MAX])
{
	if (length > 0 && name[0] == '/')
		return search_try("", 0, name, length, ret);
	return search_places(places, name, length, ret) || search_places(usual_places, name, length, ret);
}

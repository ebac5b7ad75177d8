/* SPDX-License-Identifier: Apache-2.0 */

#include "system/machine.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/str.h"

enum {
	DATABASE_MAX = 64 * 1024 * 1024,
	FILE_LISTS_MAX = 8192,
};

/* Paragraphs of lines `key value`, an empty line behind each. */
struct package_database {
	const char *path;
	const char *name, *version;     /* how lines begin */
	const char *status, *installed; /* a line that must be there, and its end; NULL: none */
};

static const struct package_database databases[] = {
	{"/var/lib/dpkg/status", "Package: ", "Version: ", "Status: ", " ok installed"},
	{"/lib/apk/db/installed", "P:", "V:", NULL, NULL},
};

/* The rest of the line in a paragraph that begins with @key. */
static const char *package_line_value(const char *paragraph, const char *end, const char *key, size_t *ret_length)
{
	size_t key_length = strlen(key);

	for (const char *line = paragraph; line < end; line += strcspn(line, "\n") + 1) {
		if (strncmp(line, key, key_length) != 0)
			continue;
		*ret_length = strcspn(line + key_length, "\n");
		return line + key_length;
	}
	return NULL;
}

static bool package_has_name(const char *value, size_t length, const char *const *names)
{
	for (; *names; names++)
		if (strlen(*names) == length && strncmp(*names, value, length) == 0)
			return true;
	return false;
}

/* The first word is what is wanted of a package: "install", or "hold" for one that is kept as it is. */
static bool package_is_installed(const struct package_database *database, const char *paragraph, const char *end)
{
	const char *value;
	size_t length, end_length;

	if (!database->status)
		return true;
	value = package_line_value(paragraph, end, database->status, &length);
	end_length = strlen(database->installed);
	return value && length > end_length &&
	       strncmp(value + length - end_length, database->installed, end_length) == 0;
}

/* "5:20.10.24+dfsg1-1" is version 20.10.24 outside the distribution. */
static char *package_upstream_version(const char *value, size_t length)
{
	const char *colon = memchr(value, ':', length);
	const char *start = colon ? colon + 1 : value;

	return strndup(start, strspn(start, "0123456789."));
}

static char *package_search(const struct package_database *database, const char *text, const char *const *names)
{
	const char *end, *value;
	size_t length;

	for (const char *paragraph = text; *paragraph; paragraph = end + strspn(end, "\n")) {
		end = strstr(paragraph, "\n\n");
		if (!end)
			end = paragraph + strlen(paragraph);
		value = package_line_value(paragraph, end, database->name, &length);
		if (!value || !package_has_name(value, length, names))
			continue;
		if (!package_is_installed(database, paragraph, end))
			continue;
		value = package_line_value(paragraph, end, database->version, &length);
		if (value)
			return package_upstream_version(value, length);
	}
	return NULL;
}

char *package_version(const char *const *names)
{
	for (size_t i = 0; i < ARRAY_SIZE(databases); i++) {
		_cleanup_free_ char *text = NULL;

		if (fd_read_file_at(AT_FDCWD, databases[i].path, DATABASE_MAX, &text, NULL) == 0)
			return package_search(&databases[i], text, names);
	}
	return NULL;
}

/* ---- files ---- */

#define LISTS "/var/lib/dpkg/info"

static bool package_lists_file(const char *list, const char *path)
{
	_cleanup_free_ char *file = NULL, *text = NULL, *line = NULL;

	if (str_format(&file, LISTS "/%s", list) < 0 ||
	    fd_read_file_at(AT_FDCWD, file, DATABASE_MAX, &text, NULL) < 0 || str_format(&line, "%s\n", path) < 0)
		return false;
	for (const char *found = text; (found = strstr(found, line)); found++)
		if (found == text || found[-1] == '\n')
			return true;
	return false;
}

/* Only lists of packages with NVIDIA or CUDA in their names: the others, thousands, are not asked for. */
static bool package_is_candidate(const char *name)
{
	size_t length = strlen(name);

	return length > strlen(".list") && streq(name + length - strlen(".list"), ".list") &&
	       (strstr(name, "nvidia") || strstr(name, "cuda"));
}

char *package_of_file(const char *path)
{
	DIR *directory = opendir(LISTS);
	const struct dirent *entry;
	char *package = NULL;

	for (int i = 0; directory && !package && i < FILE_LISTS_MAX && (entry = readdir(directory)); i++)
		if (package_is_candidate(entry->d_name) && package_lists_file(entry->d_name, path))
			package = strndup(entry->d_name, strcspn(entry->d_name, ":"));
	if (directory)
		(void)closedir(directory);
	/* "libcuda1:amd64.list", "ctr-gpu.list" */
	if (package && strlen(package) > strlen(".list") && streq(package + strlen(package) - strlen(".list"), ".list"))
		package[strlen(package) - strlen(".list")] = '\0';
	return package;
}

/* SPDX-License-Identifier: Apache-2.0 */

#include "system/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"

char *file_text(const char *path)
{
	char *text;

	return fd_read_file_at(AT_FDCWD, path, FILE_TEXT_MAX, &text, NULL) == 0 ? text : NULL;
}

long file_number(const char *path, long otherwise)
{
	_cleanup_free_ char *text = file_text(path);
	char *end;
	long number;

	if (!text)
		return otherwise;
	errno = 0;
	number = strtol(text, &end, 10);
	return end == text || errno ? otherwise : number;
}

bool file_exists(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0;
}

bool file_is_device(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISCHR(st.st_mode);
}

bool file_may_open(const char *path)
{
	return faccessat(AT_FDCWD, path, R_OK | W_OK, AT_EACCESS) == 0;
}

/* SPDX-License-Identifier: Apache-2.0 */

#include "base/libcuda.h"

#include <errno.h>
#include <stdio.h>

#include "base/elf_file.h"
#include "base/json.h"

static int parse_version(const char *json, size_t size, int *ret_major, int *ret_minor)
{
	_cleanup_json_ json_t *note = NULL;
	int major, minor, length = 0, r;
	const char *version;

	/* The note is padded with NUL characters. */
	while (size > 0 && json[size - 1] == '\0')
		size--;
	r = json_parse(json, size, &note, NULL);
	if (r < 0)
		return r;
	version = json_string_value(json_object_get(note, "CUDA version"));
	if (!version || sscanf(version, "%3d.%3d%n", &major, &minor, &length) != 2 || version[length] || major <= 0 || minor < 0)
		return -EINVAL;
	*ret_major = major;
	*ret_minor = minor;
	return 0;
}

int libcuda_read_version(int fd, int *ret_major, int *ret_minor)
{
	_cleanup_free_ char *note = NULL;
	size_t size;
	int r;

	r = elf_file_read_note(fd, ".note.cuda.fwd_compatibility", "NVIDIA Corporation", &note, &size);
	return r < 0 ? r : parse_version(note, size, ret_major, ret_minor);
}

/* SPDX-License-Identifier: Apache-2.0 */

#include "system/libcuda.h"

#include <errno.h>
#include <string.h>

#include "base/json.h"
#include "model/version.h"
#include "system/elf_file.h"

enum { MAJOR_MAX = 999 };

static int libcuda_parse_version(const char *json, size_t size, int *ret_major, int *ret_minor)
{
	_cleanup_json_ json_t *note = NULL;
	const char *text;
	struct version version;
	int r;

	/* The note is padded with NUL characters. */
	while (size > 0 && json[size - 1] == '\0')
		size--;
	r = json_parse(json, size, &note, NULL);
	if (r < 0)
		return r;
	text = json_string_value(json_object_get(note, "CUDA version"));
	if (!text || !version_read(text, strlen(text), &version) || version.count != 2 || version.parts[0] == 0 ||
	    version.parts[0] > MAJOR_MAX || version.parts[1] > MAJOR_MAX)
		return -EINVAL;
	*ret_major = (int)version.parts[0];
	*ret_minor = (int)version.parts[1];
	return 0;
}

int libcuda_read_version(int fd, int *ret_major, int *ret_minor)
{
	_cleanup_free_ char *note = NULL;
	size_t size;
	int r;

	r = elf_file_read_note(fd, ".note.cuda.fwd_compatibility", "NVIDIA Corporation", &note, &size);
	return r < 0 ? r : libcuda_parse_version(note, size, ret_major, ret_minor);
}

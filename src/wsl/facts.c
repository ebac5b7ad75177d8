/* SPDX-License-Identifier: Apache-2.0 */

/*
 * NVIDIA's libcuda carries the CUDA version in a note, which is there to be read without loading it: the section
 * .note.cuda.fwd_compatibility, owner "NVIDIA Corporation", JSON with a member "CUDA version". Drivers before 2022 have
 * none; then nothing is known.
 */

#include "wsl/facts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "base/elf_file.h"
#include "base/json.h"

static int parse_version(const char *json, size_t size, struct driver_facts *facts)
{
	_cleanup_json_ json_t *note = NULL;
	int major, minor, length = 0, r;
	const char *version;

	/* The note is padded with NUL characters. */
	while (size > 0 && json[size - 1] == '\0')
		size--;
	r = json_parse(json, size, &note, NULL);
	if (r < 0)
		return r == -ENOMEM ? r : 0;
	version = json_string_value(json_object_get(note, "CUDA version"));
	if (!version || sscanf(version, "%3d.%3d%n", &major, &minor, &length) != 2 || version[length] || major <= 0 || minor < 0)
		return 0;
	facts->cuda_major = major;
	facts->cuda_minor = minor;
	return 0;
}

static int read_libcuda(const char *store, struct driver_facts *facts)
{
	_cleanup_free_ char *path = NULL, *note = NULL;
	_cleanup_close_ int fd = -1;
	size_t size;
	int r;

	if (str_format(&path, "%s/libcuda.so.1.1", store) < 0)
		return -ENOMEM;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0)
		return 0;
	r = elf_file_read_note(fd, ".note.cuda.fwd_compatibility", "NVIDIA Corporation", &note, &size);
	if (r < 0)
		return r == -ENOMEM ? r : 0;
	return parse_version(note, size, facts);
}

int gpu_pv_facts(const struct settings *settings, const struct adapter *const *selected, size_t count,
		 struct driver_facts *ret)
{
	struct driver_facts facts = {0};
	int r = 0;

	(void)settings;
	for (size_t i = 0; i < count && r == 0 && facts.cuda_major == 0; i++)
		if (selected[i]->vendor_id == PCI_VENDOR_NVIDIA && selected[i]->driver_store)
			r = read_libcuda(selected[i]->driver_store, &facts);
	if (r == 0)
		*ret = facts;
	return r;
}

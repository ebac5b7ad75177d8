/* SPDX-License-Identifier: Apache-2.0 */

#include "base/elf_file.h"

#include <errno.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/str.h"

enum {
	NOTE_SECTION_MAX = 64 * 1024,
	DYNAMIC_SECTION_MAX = 64 * 1024,
};

DEFINE_CLEANUP(Elf *, elf_end)
#define _cleanup_elf_ _cleanup_(elf_endp)

static int open_elf(int fd, Elf **ret)
{
	struct stat st;
	Elf *elf;

	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || elf_version(EV_CURRENT) == EV_NONE)
		return -EINVAL;
	elf = elf_begin(fd, ELF_C_READ, NULL);
	if (!elf)
		return -EINVAL;
	if (elf_kind(elf) != ELF_K_ELF) {
		(void)elf_end(elf);
		return -EINVAL;
	}
	*ret = elf;
	return 0;
}

/* Return: the section; NULL if there is none of that name and of a size that a note may have. */
static Elf_Scn *find_section(Elf *elf, const char *wanted)
{
	Elf_Scn *section = NULL;
	size_t names;

	if (elf_getshdrstrndx(elf, &names) < 0)
		return NULL;
	while ((section = elf_nextscn(elf, section))) {
		const char *name;
		GElf_Shdr header;

		if (!gelf_getshdr(section, &header) || header.sh_type != SHT_NOTE || header.sh_size > NOTE_SECTION_MAX)
			continue;
		name = elf_strptr(elf, names, header.sh_name);
		if (name && streq(name, wanted))
			return section;
	}
	return NULL;
}

static int copy_descriptor(const Elf_Data *data, size_t offset, size_t size, char **ret_data, size_t *ret_size)
{
	char *copy = malloc(size + 1);

	if (!copy)
		return -ENOMEM;
	memcpy(copy, (const char *)data->d_buf + offset, size);
	copy[size] = '\0';
	*ret_data = copy;
	*ret_size = size;
	return 0;
}

int elf_file_read_note(int fd, const char *section, const char *owner, char **ret_data, size_t *ret_size)
{
	size_t next = 0, name, descriptor, owner_size = strlen(owner) + 1;
	_cleanup_elf_ Elf *elf = NULL;
	Elf_Data *data;
	Elf_Scn *found;
	GElf_Nhdr note;
	int r;

	r = open_elf(fd, &elf);
	if (r < 0)
		return r;
	found = find_section(elf, section);
	if (!found)
		return -ENOENT;
	data = elf_getdata(found, NULL);
	if (!data || !data->d_buf)
		return -EINVAL;
	/* libelf checks that name and descriptor lie inside the section. */
	while ((next = gelf_getnote(data, next, &note, &name, &descriptor)) > 0)
		if (note.n_namesz == owner_size && memcmp((const char *)data->d_buf + name, owner, owner_size) == 0)
			return copy_descriptor(data, descriptor, note.n_descsz, ret_data, ret_size);
	return -ENOENT;
}

/* The string that the dynamic section's DT_SONAME points to. */
static const char *find_soname(Elf *elf, Elf_Scn *dynamic, const GElf_Shdr *header)
{
	Elf_Data *data = header->sh_size <= DYNAMIC_SECTION_MAX ? elf_getdata(dynamic, NULL) : NULL;
	GElf_Dyn entry;

	if (!data)
		return NULL;
	for (int i = 0; gelf_getdyn(data, i, &entry) && entry.d_tag != DT_NULL; i++)
		if (entry.d_tag == DT_SONAME)
			return elf_strptr(elf, header->sh_link, entry.d_un.d_val);
	return NULL;
}

int elf_file_read_soname(int fd, char **ret)
{
	_cleanup_elf_ Elf *elf = NULL;
	Elf_Scn *section = NULL;
	GElf_Shdr header;
	int r;

	r = open_elf(fd, &elf);
	if (r < 0)
		return r;
	while ((section = elf_nextscn(elf, section))) {
		const char *soname;

		if (!gelf_getshdr(section, &header) || header.sh_type != SHT_DYNAMIC)
			continue;
		soname = find_soname(elf, section, &header);
		if (!soname)
			return -ENOENT;
		*ret = strdup(soname);
		return *ret ? 0 : -ENOMEM;
	}
	return -ENOENT;
}

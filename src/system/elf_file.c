/* SPDX-License-Identifier: Apache-2.0 */

#include "system/elf_file.h"

#include <elf.h>
#include <endian.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/span.h"
#include "base/str.h"
#include "model/version.h"

enum {
	SECTION_SIZE_MAX = 64 * 1024,
	SONAME_SIZE_MAX = 256,
	OWN_BYTE_ORDER = BYTE_ORDER == LITTLE_ENDIAN ? ELFDATA2LSB : ELFDATA2MSB,
};

/* A file and its table of section headers, of 32 or 64 bits. */
struct elf_file {
	int fd;
	bool wide;
	char *memory;
	struct span table;
	size_t count, names;
};

static void elf_file_clear(struct elf_file *file)
{
	free(file->memory);
}
#define _cleanup_elf_ _cleanup_(elf_file_clear)

/* Return: 0 and @size bytes, owned by the caller; -EINVAL if the file does not have them; -ENOMEM. */
static int elf_file_read_bytes(int fd, uint64_t offset, size_t size, char **ret)
{
	_cleanup_free_ char *bytes = NULL;
	ssize_t n = 1;

	if (offset > INT64_MAX - size)
		return -EINVAL;
	bytes = malloc(size > 0 ? size : 1);
	if (!bytes)
		return -ENOMEM;
	for (size_t done = 0; done < size; done += (size_t)n) {
		n = pread(fd, bytes + done, size - done, (off_t)(offset + done));
		if (n <= 0)
			return -EINVAL;
	}
	*ret = steal_ptr(bytes);
	return 0;
}

/* Both widths of header as the wider one. Return: false if it is invalid, or its table of sections is. */
static bool elf_file_parse_header(const struct span *bytes, Elf64_Ehdr *ret)
{
	Elf32_Ehdr narrow;

	if (!span_read(bytes, 0, &narrow, sizeof(narrow)) || memcmp(narrow.e_ident, ELFMAG, SELFMAG) != 0 ||
	    narrow.e_ident[EI_DATA] != OWN_BYTE_ORDER || narrow.e_ident[EI_VERSION] != EV_CURRENT)
		return false;
	if (narrow.e_ident[EI_CLASS] == ELFCLASS64)
		return span_read(bytes, 0, ret, sizeof(*ret)) &&
		       (ret->e_shnum == 0 || ret->e_shentsize == sizeof(Elf64_Shdr));
	if (narrow.e_ident[EI_CLASS] != ELFCLASS32 || (narrow.e_shnum > 0 && narrow.e_shentsize != sizeof(Elf32_Shdr)))
		return false;
	*ret = (Elf64_Ehdr){
		.e_shoff = narrow.e_shoff,
		.e_shnum = narrow.e_shnum,
		.e_shentsize = narrow.e_shentsize,
		.e_shstrndx = narrow.e_shstrndx,
	};
	return true;
}

static int elf_file_open(int fd, struct elf_file *ret)
{
	Elf64_Ehdr header = {0};
	char bytes[sizeof(header)];
	struct stat st;
	ssize_t n;
	int r;

	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return -EINVAL;
	n = pread(fd, bytes, sizeof(bytes), 0);
	if (n < 0 || !elf_file_parse_header(&(struct span){(const unsigned char *)bytes, (size_t)n}, &header))
		return -EINVAL;
	ret->fd = fd;
	ret->wide = header.e_shentsize == sizeof(Elf64_Shdr);
	ret->count = header.e_shnum;
	ret->names = header.e_shstrndx;
	ret->table.size = (size_t)header.e_shnum * header.e_shentsize;
	r = elf_file_read_bytes(fd, header.e_shoff, ret->table.size, &ret->memory);
	ret->table.data = (const unsigned char *)ret->memory;
	return r;
}

/* Both widths of section header as the wider one. */
static bool elf_file_section(const struct elf_file *file, size_t index, Elf64_Shdr *ret)
{
	Elf32_Shdr narrow;

	if (file->wide)
		return span_read(&file->table, index * sizeof(*ret), ret, sizeof(*ret));
	if (!span_read(&file->table, index * sizeof(narrow), &narrow, sizeof(narrow)))
		return false;
	*ret = (Elf64_Shdr){
		.sh_name = narrow.sh_name,
		.sh_type = narrow.sh_type,
		.sh_offset = narrow.sh_offset,
		.sh_size = narrow.sh_size,
		.sh_link = narrow.sh_link,
		.sh_addralign = narrow.sh_addralign,
	};
	return true;
}

static int elf_file_read_section(const struct elf_file *file, const Elf64_Shdr *section, char **ret_memory,
				 struct span *ret)
{
	int r;

	if (section->sh_size > SECTION_SIZE_MAX || section->sh_type == SHT_NOBITS)
		return -EINVAL;
	r = elf_file_read_bytes(file->fd, section->sh_offset, section->sh_size, ret_memory);
	if (r == 0)
		*ret = (struct span){(const unsigned char *)*ret_memory, section->sh_size};
	return r;
}

/* Return: 0; -ENOENT if no note section has that name; -EINVAL; -ENOMEM. */
static int elf_file_find_notes(const struct elf_file *file, const char *wanted, Elf64_Shdr *ret)
{
	_cleanup_free_ char *memory = NULL;
	struct span names = {0};
	const char *name;
	Elf64_Shdr section;
	int r;

	if (!elf_file_section(file, file->names, &section))
		return file->count == 0 ? -ENOENT : -EINVAL;
	r = elf_file_read_section(file, &section, &memory, &names);
	if (r < 0)
		return r;
	for (size_t i = 0; elf_file_section(file, i, &section); i++) {
		name = section.sh_type == SHT_NOTE ? span_string(&names, section.sh_name) : NULL;
		if (name && streq(name, wanted)) {
			*ret = section;
			return 0;
		}
	}
	return -ENOENT;
}

/* A note: three numbers, the owner, and the descriptor, both padded. */
static int elf_file_find_note(const struct span *notes, size_t align, const char *owner, struct span *ret)
{
	size_t owner_size = strlen(owner) + 1, offset = 0;
	struct span name, descriptor;
	Elf64_Nhdr note;

	while (span_read(notes, offset, &note, sizeof(note))) {
		size_t behind = (sizeof(note) + note.n_namesz + align - 1) & ~(align - 1);

		if (!span_slice(notes, offset + sizeof(note), note.n_namesz, &name) ||
		    !span_slice(notes, offset + behind, note.n_descsz, &descriptor))
			return -ENOENT;
		if (name.size == owner_size && memcmp(name.data, owner, owner_size) == 0) {
			*ret = descriptor;
			return 0;
		}
		offset += behind + ((note.n_descsz + align - 1) & ~(align - 1));
	}
	return -ENOENT;
}

int elf_file_read_note(int fd, const char *section, const char *owner, char **ret_data, size_t *ret_size)
{
	_cleanup_elf_ struct elf_file file = {0};
	_cleanup_free_ char *memory = NULL;
	struct span notes = {0}, descriptor = {0};
	Elf64_Shdr header;
	char *copy;
	int r;

	r = elf_file_open(fd, &file);
	if (r == 0)
		r = elf_file_find_notes(&file, section, &header);
	if (r == 0)
		r = elf_file_read_section(&file, &header, &memory, &notes);
	if (r == 0)
		r = elf_file_find_note(&notes, header.sh_addralign == 8 ? 8 : 4, owner, &descriptor);
	if (r != 0)
		return r;
	copy = calloc(1, descriptor.size + 1);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, descriptor.data, descriptor.size);
	*ret_data = copy;
	*ret_size = descriptor.size;
	return 0;
}

/* The entry of a dynamic section that has the place of the SONAME in its table of strings. */
static bool elf_file_find_soname(const struct elf_file *file, const struct span *dynamic, uint64_t *ret)
{
	const size_t size = file->wide ? sizeof(Elf64_Dyn) : sizeof(Elf32_Dyn);
	Elf64_Dyn entry = {0};
	Elf32_Dyn narrow;

	for (size_t offset = 0;; offset += size) {
		if (!span_read(dynamic, offset, file->wide ? (void *)&entry : (void *)&narrow, size))
			return false;
		if (!file->wide)
			entry = (Elf64_Dyn){.d_tag = narrow.d_tag, .d_un.d_val = narrow.d_un.d_val};
		if (entry.d_tag == DT_SONAME)
			*ret = entry.d_un.d_val;
		if (entry.d_tag == DT_SONAME || entry.d_tag == DT_NULL)
			return entry.d_tag == DT_SONAME;
	}
}

/* A name of a file, as it is looked for by it in directories. */
static bool elf_file_is_name(const char *text)
{
	return *text && !strchr(text, '/') && !streq(text, ".") && !streq(text, "..");
}

/* A table of strings may be large, so only as much is read as a SONAME may have. */
static int elf_file_read_string(const struct elf_file *file, size_t table, uint64_t offset, char **ret)
{
	_cleanup_free_ char *bytes = NULL;
	Elf64_Shdr section;
	size_t size;
	int r;

	if (!elf_file_section(file, table, &section) || section.sh_type != SHT_STRTAB || offset >= section.sh_size ||
	    section.sh_offset > INT64_MAX - offset)
		return -ENOENT;
	size = section.sh_size - offset < SONAME_SIZE_MAX ? section.sh_size - offset : SONAME_SIZE_MAX;
	r = elf_file_read_bytes(file->fd, section.sh_offset + offset, size, &bytes);
	if (r < 0)
		return r;
	if (!memchr(bytes, '\0', size) || !elf_file_is_name(bytes))
		return -ENOENT;
	*ret = steal_ptr(bytes);
	return 0;
}

int elf_file_read_soname(int fd, char **ret)
{
	_cleanup_elf_ struct elf_file file = {0};
	_cleanup_free_ char *memory = NULL;
	struct span dynamic = {0};
	Elf64_Shdr section;
	uint64_t offset;
	int r;

	r = elf_file_open(fd, &file);
	if (r < 0)
		return r;
	for (size_t i = 0; elf_file_section(&file, i, &section); i++) {
		if (section.sh_type != SHT_DYNAMIC)
			continue;
		r = elf_file_read_section(&file, &section, &memory, &dynamic);
		if (r < 0)
			return r;
		if (!elf_file_find_soname(&file, &dynamic, &offset))
			return -ENOENT;
		return elf_file_read_string(&file, section.sh_link, offset, ret);
	}
	return -ENOENT;
}

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
	size_t size = 0;
	int r;

	r = elf_file_read_note(fd, ".note.cuda.fwd_compatibility", "NVIDIA Corporation", &note, &size);
	return r < 0 ? r : libcuda_parse_version(note, size, ret_major, ret_minor);
}

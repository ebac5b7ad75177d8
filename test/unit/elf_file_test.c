/* SPDX-License-Identifier: Apache-2.0 */

/* Notes of ELF files, whole, cut off and lying. */

#include "unit.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/elf_file.h"
#include "base/fd.h"

/* A file with a section of two notes: one of somebody else's, and "N" with five bytes. */
struct image {
	Elf64_Ehdr header;
	char names[32];
	struct {
		Elf64_Nhdr header;
		char name[4], descriptor[4];
	} other;
	struct {
		Elf64_Nhdr header;
		char name[4], descriptor[8];
	} ours;
	Elf64_Shdr sections[4];
};

static const struct image image = {
	.header = {
		.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
		.e_type = ET_DYN,
		.e_machine = EM_X86_64,
		.e_version = EV_CURRENT,
		.e_shoff = offsetof(struct image, sections),
		.e_ehsize = sizeof(Elf64_Ehdr),
		.e_shentsize = sizeof(Elf64_Shdr),
		.e_shnum = 4,
		.e_shstrndx = 1,
	},
	.names = "\0.shstrtab\0.note.x\0.note.y",
	.other = {{4, 4, 0}, "GNU", "abcd"},
	.ours = {{2, 5, 0}, "N", "12345"},
	.sections = {
		{0},
		{.sh_name = 1, .sh_type = SHT_STRTAB, .sh_offset = offsetof(struct image, names), .sh_size = 32},
		{.sh_name = 19, .sh_type = SHT_NOTE, .sh_offset = offsetof(struct image, other), .sh_size = 20, .sh_addralign = 4},
		{.sh_name = 11, .sh_type = SHT_NOTE, .sh_offset = offsetof(struct image, other), .sh_size = 44, .sh_addralign = 4},
	},
};

static int read_note(const void *data, size_t size, const char *section, const char *owner, char **ret, size_t *ret_size)
{
	_cleanup_close_ int fd = memfd_create("test", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, data, size), 0);
	return elf_file_read_note(fd, section, owner, ret, ret_size);
}

static void finds_a_note(void **state)
{
	_cleanup_free_ char *note = NULL;
	size_t size = 0;

	(void)state;
	assert_int_equal(read_note(&image, sizeof(image), ".note.x", "N", &note, &size), 0);
	assert_int_equal(size, 5);
	assert_string_equal(note, "12345");
}

static void wants_section_and_owner(void **state)
{
	char *note = NULL;
	size_t size = 0;

	(void)state;
	assert_int_equal(read_note(&image, sizeof(image), ".note.z", "N", &note, &size), -ENOENT);
	assert_int_equal(read_note(&image, sizeof(image), ".note.y", "N", &note, &size), -ENOENT);
	assert_int_equal(read_note(&image, sizeof(image), ".shstrtab", "N", &note, &size), -ENOENT);
	assert_int_equal(read_note(&image, sizeof(image), ".note.x", "NV", &note, &size), -ENOENT);
	assert_null(note);
}

static void takes_no_other_file(void **state)
{
	char *note = NULL;
	size_t size = 0;
	int directory = open("/", O_RDONLY | O_CLOEXEC);

	(void)state;
	assert_int_equal(read_note("", 0, ".note.x", "N", &note, &size), -EINVAL);
	assert_int_equal(read_note("!<arch>\n", 8, ".note.x", "N", &note, &size), -EINVAL);
	assert_int_equal(read_note("#!/bin/sh\n", 10, ".note.x", "N", &note, &size), -EINVAL);
	assert_int_equal(elf_file_read_note(directory, ".note.x", "N", &note, &size), -EINVAL);
	(void)close(directory);
}

static void survives_every_cut(void **state)
{
	(void)state;
	for (size_t size = 0; size < sizeof(image); size++) {
		_cleanup_free_ char *note = NULL;
		size_t note_size;

		assert_true(read_note(&image, size, ".note.x", "N", &note, &note_size) < 0);
	}
}

static void survives_every_lie(void **state)
{
	static const unsigned char values[] = {0x00, 0x01, 0x7f, 0x80, 0xff};

	(void)state;
	for (size_t offset = 0; offset < sizeof(image); offset++) {
		for (size_t i = 0; i < sizeof(values); i++) {
			_cleanup_free_ char *note = NULL;
			struct image lie = image;
			size_t size = 0;

			((unsigned char *)&lie)[offset] = values[i];
			if (read_note(&lie, sizeof(lie), ".note.x", "N", &note, &size) == 0)
				assert_in_range(size, 0, sizeof(image));
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_a_note),
		cmocka_unit_test(wants_section_and_owner),
		cmocka_unit_test(takes_no_other_file),
		cmocka_unit_test(survives_every_cut),
		cmocka_unit_test(survives_every_lie),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

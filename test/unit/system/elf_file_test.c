/* SPDX-License-Identifier: Apache-2.0 */

/* Notes and SONAMEs of ELF files, whole, cut off and lying. */

#include "unit.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"
#include "system/elf_file.h"

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
	.header =
		{
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
	.other = {{4, 4, 0}, "GNU", {'a', 'b', 'c', 'd'}},
	.ours = {{2, 5, 0}, "N", "12345"},
	.sections =
		{
			{0},
			{.sh_name = 1,
			 .sh_type = SHT_STRTAB,
			 .sh_offset = offsetof(struct image, names),
			 .sh_size = 32},
			{.sh_name = 19,
			 .sh_type = SHT_NOTE,
			 .sh_offset = offsetof(struct image, other),
			 .sh_size = 20,
			 .sh_addralign = 4},
			{.sh_name = 11,
			 .sh_type = SHT_NOTE,
			 .sh_offset = offsetof(struct image, other),
			 .sh_size = 44,
			 .sh_addralign = 4},
		},
};

static int read_note(const void *data, size_t size, const char *section, const char *owner, char **ret,
		     size_t *ret_size)
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
				assert_true(size <= sizeof(image));
		}
	}
}

/* Libraries of both widths: a dynamic section, and a table of strings of which the second is the SONAME. */
#define LIBRARY(bits, class)                                                                                     \
	struct library##bits {                                                                                   \
		Elf##bits##_Ehdr header;                                                                         \
		Elf##bits##_Dyn dynamic[3];                                                                      \
		char strings[16];                                                                                \
		Elf##bits##_Shdr sections[3];                                                                    \
	};                                                                                                       \
	static const struct library##bits library##bits = {                                                      \
		.header =                                                                                        \
			{                                                                                        \
				.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, class, ELFDATA2LSB, EV_CURRENT}, \
				.e_shoff = offsetof(struct library##bits, sections),                             \
				.e_shentsize = sizeof(Elf##bits##_Shdr),                                         \
				.e_shnum = 3,                                                                    \
			},                                                                                       \
		.dynamic = {{.d_tag = DT_NEEDED, .d_un.d_val = 0}, {.d_tag = DT_SONAME, .d_un.d_val = 3}, {0}},  \
		.strings = "-a\0libfoo.so.1",                                                                    \
		.sections =                                                                                      \
			{                                                                                        \
				{0},                                                                             \
				{.sh_type = SHT_DYNAMIC,                                                         \
				 .sh_offset = offsetof(struct library##bits, dynamic),                           \
				 .sh_size = 3 * sizeof(Elf##bits##_Dyn),                                         \
				 .sh_link = 2},                                                                  \
				{.sh_type = SHT_STRTAB,                                                          \
				 .sh_offset = offsetof(struct library##bits, strings),                           \
				 .sh_size = 16},                                                                 \
			},                                                                                       \
	}
LIBRARY(64, ELFCLASS64);
LIBRARY(32, ELFCLASS32);

static int read_soname(const void *data, size_t size, char **ret)
{
	_cleanup_close_ int fd = memfd_create("test", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, data, size), 0);
	return elf_file_read_soname(fd, ret);
}

static void finds_a_soname(void **state)
{
	_cleanup_free_ char *wide = NULL, *narrow = NULL, *none = NULL;

	(void)state;
	assert_int_equal(read_soname(&library64, sizeof(library64), &wide), 0);
	assert_string_equal(wide, "libfoo.so.1");
	assert_int_equal(read_soname(&library32, sizeof(library32), &narrow), 0);
	assert_string_equal(narrow, "libfoo.so.1");
	assert_int_equal(read_soname(&image, sizeof(image), &none), -ENOENT);
	assert_null(none);
}

static void expect_short_or_no_soname(const void *data, size_t size)
{
	_cleanup_free_ char *soname = NULL;

	if (read_soname(data, size, &soname) == 0)
		assert_true(strlen(soname) <= 16);
}

static void survives_bad_libraries(void **state)
{
	(void)state;
	for (size_t size = 0; size < sizeof(library64); size++)
		expect_short_or_no_soname(&library64, size);
	for (size_t offset = 0; offset < sizeof(library64); offset++) {
		struct library64 wide = library64;
		struct library32 narrow = library32;

		((unsigned char *)&wide)[offset] ^= 0xff;
		expect_short_or_no_soname(&wide, sizeof(wide));
		((unsigned char *)&narrow)[offset % sizeof(narrow)] ^= 0xff;
		expect_short_or_no_soname(&narrow, sizeof(narrow));
	}
}

/* A link of that name is made, or it is looked for by it. */
static void a_soname_is_a_name(void **state)
{
	static const char *const names[] = {"", ".", "..", "/x", "x/", "../x", "a/b"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		struct library64 library = library64;
		char *soname = NULL;

		(void)strcpy(library.strings + 3, names[i]);
		assert_int_equal(read_soname(&library, sizeof(library), &soname), -ENOENT);
		assert_null(soname);
	}
}

/* Behind the last section, of more than may be read, and with numbers that overflow. */
static void refuses_what_lies_outside(void **state)
{
	struct library64 library = library64;
	char *soname = NULL;

	(void)state;
	library.sections[1].sh_size = UINT64_MAX;
	assert_int_equal(read_soname(&library, sizeof(library), &soname), -EINVAL);
	library = library64;
	library.sections[1].sh_offset = UINT64_MAX - 8;
	assert_int_equal(read_soname(&library, sizeof(library), &soname), -EINVAL);
	library = library64;
	library.sections[1].sh_link = 3;
	assert_int_equal(read_soname(&library, sizeof(library), &soname), -ENOENT);
	library = library64;
	library.dynamic[1].d_un.d_val = UINT64_MAX;
	assert_int_equal(read_soname(&library, sizeof(library), &soname), -ENOENT);
	library = library64;
	memset(library.strings, 'x', sizeof(library.strings));
	assert_int_equal(read_soname(&library, sizeof(library), &soname), -ENOENT);
	library = library64;
	library.header.e_shnum = UINT16_MAX;
	assert_int_equal(read_soname(&library, sizeof(library), &soname), -EINVAL);
	assert_null(soname);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_a_note),           cmocka_unit_test(wants_section_and_owner),
		cmocka_unit_test(takes_no_other_file),    cmocka_unit_test(survives_every_cut),
		cmocka_unit_test(survives_every_lie),     cmocka_unit_test(finds_a_soname),
		cmocka_unit_test(survives_bad_libraries), cmocka_unit_test(refuses_what_lies_outside),
		cmocka_unit_test(a_soname_is_a_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */

/* Images of code that say more of themselves than there is. */

#include "unit.h"

#include <ar.h>
#include <elf.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "vcuda/server/code.h"

enum { SECTIONS = 3, PARTS = 2 };

/* An ELF file with a segment, names and symbols. */
struct file {
	Elf64_Ehdr header;
	Elf64_Phdr segment;
	Elf64_Shdr section[SECTIONS];
	Elf64_Sym symbol;
	char text[8];
};

static struct file make_file(void)
{
	struct file file = {
		.header = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB},
			   .e_phoff = offsetof(struct file, segment),
			   .e_phentsize = sizeof(Elf64_Phdr),
			   .e_phnum = 1,
			   .e_shoff = offsetof(struct file, section),
			   .e_shentsize = sizeof(Elf64_Shdr),
			   .e_shnum = SECTIONS,
			   .e_shstrndx = 1},
		.segment = {.p_offset = 0, .p_filesz = sizeof(struct file)},
		.text = "\0.text",
	};

	file.section[1] = (Elf64_Shdr){
		.sh_type = SHT_STRTAB, .sh_offset = offsetof(struct file, text), .sh_size = sizeof(file.text)};
	file.section[2] = (Elf64_Shdr){.sh_type = SHT_SYMTAB,
				       .sh_offset = offsetof(struct file, symbol),
				       .sh_size = sizeof(Elf64_Sym),
				       .sh_entsize = sizeof(Elf64_Sym),
				       .sh_link = 1};
	return file;
}

static bool is_whole(const struct file *file)
{
	return image_is_whole((const uint8_t *)file, sizeof(*file));
}

static void a_file_within_its_bounds_is_whole(void **state)
{
	const struct file file = make_file();

	(void)state;
	assert_true(is_whole(&file));
	for (size_t i = 1; i < sizeof(file); i++)
		assert_false(image_is_whole((const uint8_t *)&file, i));
}

static void a_number_may_be_in_the_first_section(void **state)
{
	struct file file = make_file();

	(void)state;
	file.header.e_shnum = 0;
	file.section[0].sh_size = SECTIONS;
	file.header.e_shstrndx = SHN_XINDEX;
	file.section[0].sh_link = 1;
	assert_true(is_whole(&file));
}

#define REFUSED(change)                         \
	do {                                    \
		struct file file = make_file(); \
		change;                         \
		assert_false(is_whole(&file));  \
	} while (0)

static void a_file_that_reaches_beyond_is_not(void **state)
{
	(void)state;
	REFUSED(file.header.e_shoff = UINT64_MAX - 8);
	REFUSED(file.header.e_shnum = 100);
	REFUSED(file.header.e_shentsize = 8);
	REFUSED(file.header.e_shstrndx = SECTIONS);
	REFUSED(file.header.e_phoff = sizeof(file));
	REFUSED(file.header.e_phentsize = 1);
	REFUSED(file.header.e_ident[EI_CLASS] = ELFCLASS32);
	REFUSED(file.header.e_ident[EI_DATA] = ELFDATA2MSB);
	REFUSED(file.segment.p_filesz = sizeof(file) + 1);
	REFUSED(file.segment.p_offset = UINT64_MAX);
	REFUSED(file.section[1].sh_size = sizeof(file));
	REFUSED(file.section[1].sh_offset = UINT64_MAX);
	REFUSED(file.section[2].sh_link = SECTIONS);
	REFUSED(file.section[2].sh_link = 2);
	REFUSED(file.section[2].sh_entsize = 1);
	REFUSED(file.section[2].sh_size = 23);
	/* What is compressed begins with how long it becomes. */
	REFUSED((file.section[1].sh_flags = SHF_COMPRESSED));
	REFUSED((file.section[2].sh_flags = SHF_COMPRESSED, ((Elf64_Chdr *)&file.symbol)->ch_size = (1 << 30) + 1));
	/* The numbers are in the first section. */
	REFUSED((file.header.e_shnum = 0, file.section[0].sh_size = 100));
	REFUSED((file.header.e_shnum = 0, file.section[0].sh_size = UINT64_MAX / 32));
	REFUSED((file.header.e_shnum = 0, file.section[0].sh_size = SECTIONS, file.text[7] = 'x'));
	REFUSED((file.header.e_shstrndx = SHN_XINDEX, file.section[0].sh_link = SECTIONS));
	REFUSED(file.header.e_phnum = PN_XNUM);
	/* A name without an end. */
	REFUSED(file.text[7] = 'x');
}

static size_t make_fat(uint8_t *to, uint32_t length)
{
	const uint32_t magic = 0xba55ed50;
	const uint16_t begin = 16;
	const uint32_t header = 64;
	const uint64_t rest = PARTS * (header + 64);

	memset(to, 0, begin + rest);
	memcpy(to, &magic, 4);
	memcpy(to + 6, &begin, 2);
	memcpy(to + 8, &rest, 8);
	for (int i = 0; i < PARTS; i++) {
		uint8_t *part = to + begin + (size_t)i * (header + 64);
		const uint32_t its = i ? length : 64;

		memcpy(part + 4, &header, 4);
		memcpy(part + 8, &its, 4);
	}
	return begin + rest;
}

static void the_parts_of_a_fat_binary_are_within_it(void **state)
{
	uint8_t fat[512], *last = fat + 16 + 128;
	const uint32_t none = 0;
	size_t bytes = make_fat(fat, 64);

	(void)state;
	assert_true(image_is_whole(fat, bytes));
	assert_false(image_is_whole(fat, bytes - 1));
	assert_false(image_is_whole(fat, 15));
	(void)make_fat(fat, 65);
	assert_false(image_is_whole(fat, bytes));
	(void)make_fat(fat, UINT32_MAX);
	assert_false(image_is_whole(fat, bytes));
	/* The upper half of a length that is right below it. */
	(void)make_fat(fat, 64);
	last[15] = 1;
	assert_false(image_is_whole(fat, bytes));
	/* A part without a header would be followed by itself for ever. */
	(void)make_fat(fat, 0);
	memcpy(last + 4, &none, 4);
	assert_false(image_is_whole(fat, bytes));
	/* An ELF file in it is looked at, too. */
	(void)make_fat(fat, 64);
	memcpy(last + 64, ELFMAG, SELFMAG);
	assert_false(image_is_whole(fat, bytes));
}

/* Of the last part, a number of a long header. */
static bool is_whole_with(size_t at, uint64_t value, size_t size)
{
	uint8_t fat[512];
	const size_t bytes = make_fat(fat, 64);

	memcpy(fat + 16 + 128 + at, &value, size);
	return image_is_whole(fat, bytes);
}

enum { MEMBERS = 2 };

struct archive {
	char magic[SARMAG];
	struct {
		struct ar_hdr header;
		struct file file;
	} __attribute__((packed)) member[MEMBERS];
};

static void set_size(struct ar_hdr *header, const char *size)
{
	memset(header, ' ', sizeof(*header));
	memcpy(header->ar_size, size, strlen(size));
	memcpy(header->ar_fmag, ARFMAG, sizeof(header->ar_fmag));
}

static struct archive make_archive(void)
{
	struct archive archive = {.magic = "!<arch>"};
	char size[16];

	archive.magic[SARMAG - 1] = '\n';
	(void)snprintf(size, sizeof(size), "%zu", sizeof(struct file));
	for (int i = 0; i < MEMBERS; i++) {
		set_size(&archive.member[i].header, size);
		archive.member[i].file = make_file();
	}
	return archive;
}

/* Linkers take these. */
static void the_members_of_an_archive_are_within_it(void **state)
{
	static const char *const wrong[] = {"", " 8", "-8", "0x8", "9999999999", "8\n"};
	const size_t first = SARMAG + sizeof(struct ar_hdr) + sizeof(struct file);
	struct archive archive = make_archive();
	const uint8_t *image = (const uint8_t *)&archive;

	(void)state;
	_Static_assert(sizeof(struct file) % 2 == 0, "a member begins where the one before ends");
	assert_true(image_is_whole(image, SARMAG));
	assert_true(image_is_whole(image, first));
	assert_true(image_is_whole(image, sizeof(archive)));
	for (size_t i = first + 1; i < sizeof(archive); i++)
		assert_false(image_is_whole(image, i));
	/* A file among them says more than there is. */
	archive.member[1].file.section[1].sh_size = UINT64_MAX;
	assert_false(image_is_whole(image, sizeof(archive)));
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		archive = make_archive();
		set_size(&archive.member[1].header, wrong[i]);
		assert_false(image_is_whole(image, sizeof(archive)));
	}
	/* In BSD's form the file begins behind its name, so that another file could stand where it is looked for. */
	archive = make_archive();
	memcpy(archive.member[1].header.ar_name, "a.o/", 4);
	assert_true(image_is_whole(image, sizeof(archive)));
	memcpy(archive.member[1].header.ar_name, "#1/8", 4);
	assert_false(image_is_whole(image, sizeof(archive)));
	/* One that has no files in it. */
	archive = make_archive();
	memcpy(archive.magic, "!<thin>\n", SARMAG);
	assert_false(image_is_whole(image, sizeof(archive)));
}

static void what_is_compressed_says_how_long_it_becomes(void **state)
{
	enum { COMPRESSED = 16, NAME = 32, NAME_BYTES = 36, BECOMES = 56 };

	(void)state;
	assert_true(is_whole_with(COMPRESSED, 64, 4));
	assert_false(is_whole_with(COMPRESSED, 65, 4));
	assert_true(is_whole_with(BECOMES, 1 << 30, 8));
	assert_false(is_whole_with(BECOMES, (1 << 30) + 1, 8));
	assert_false(is_whole_with(BECOMES, UINT64_MAX, 8));
	/* Where the name is counts if it has any bytes. */
	assert_true(is_whole_with(NAME, UINT32_MAX, 4));
	assert_true(is_whole_with(NAME_BYTES, 128, 4));
	assert_false(is_whole_with(NAME_BYTES, 129, 4));
	assert_false(is_whole_with(NAME, (uint64_t)8 << 32 | 121, 8));
}

static void code_that_may_print_is_known(void **state)
{
	enum { COMPRESSED = 16 };
	static const char plain[] = "call.uni other;", prints[] = "call.uni (r), vprintf, (a, b);",
			  claims[] = "call.uni __assertfail, (a);";
	const uint32_t some = 8;
	uint8_t fat[512];
	const size_t bytes = make_fat(fat, 64);

	(void)state;
	assert_false(image_may_print((const uint8_t *)plain, sizeof(plain)));
	assert_true(image_may_print((const uint8_t *)prints, sizeof(prints)));
	assert_true(image_may_print((const uint8_t *)claims, sizeof(claims)));
	assert_false(image_may_print((const uint8_t *)"vprint", 6));
	/* Of a fat binary, in any part; and what is compressed may. */
	assert_false(image_may_print(fat, bytes));
	memcpy(fat + 16 + 128 + COMPRESSED, &some, sizeof(some));
	assert_true(image_may_print(fat, bytes));
	(void)make_fat(fat, 64);
	memcpy(fat + bytes - 8, "vprintf", 7);
	assert_true(image_may_print(fat, bytes));
}

static void texts_are_whole_and_addresses_are_not(void **state)
{
	static const uint8_t wrapper[24] = {0xb1, 0x43, 0x62, 0x46, 1};

	(void)state;
	assert_true(image_is_whole((const uint8_t *)".version 8.0", 12));
	assert_false(image_is_whole(wrapper, sizeof(wrapper)));
	assert_false(image_is_whole(wrapper, 3));
}

static void a_text_declares_global_arrays(void **state)
{
	static const struct {
		const char *text;
		uint64_t bytes;
	} cases[] = {
		{"", 0},
		{".version 8.0\n.target sm_80\n.visible .entry k() { ld.global.u32 %r1, [x]; ret; }", 0},
		{".global .align 4 .b8 table[4096];", 4096},
		{".visible .global .align 16 .v2 .f32 a[0x10][4], b;\n.global .u64 c = 5;", 8 * 64 + 8 + 8},
		{".global .u32 a[4] = {1, 2, 3, 4}, b[2];", 24},
		{".extern .global .u32 a[4], c;.global .u16 b[3];", 6},
		{".global .b8 /* ; */ a // [2]\n[1024 * 1024];", 1 << 20},
		{".file 1 \"; .global .b8 a[9];\"\n.global .b8 b[7];", 7},
		{".global .b8 a[4294967296][4294967296];", UINT64_MAX},
		{".global .b8 a[18446744073709551615];.global .b8 b[2];", UINT64_MAX},
		{".weak .global .attribute(.managed) .f64 x[3];", 24},
		{".visible .entry k(.param .u64 .ptr .global .align 1 p, .param .u64 .ptr .global .align 1 q, .param .u32 n)\n"
		 "{ ret; }\n.global .v4 .f32 a, b; .global .f32 c;",
		 16 + 16 + 4},
		{".extern .func (.param .b32 r) f(.param .b64 .ptr .global p);.global .u16 a;", 2},
		{".global .b8 a[", 0},
		{".global .align", 0},
		{".global .b8 a = {1, 2", 0},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_int_equal(image_count_globals((const uint8_t *)cases[i].text, strlen(cases[i].text)),
				 cases[i].bytes);
}

static void a_file_has_global_arrays_in_sections(void **state)
{
	struct {
		uint8_t begin[16];
		uint8_t part[16];
		struct file file;
		uint8_t text[16];
		char ptx[24];
	} fat = {.ptx = ".global .b64 a[1024];"};
	struct {
		struct file file;
		char names[16];
	} file = {.file = make_file(), .names = "\0.nv.global.in\0"};
	const uint64_t rest = sizeof(fat) - 16, first = sizeof(fat.file), second = sizeof(fat.ptx);
	const uint32_t magic = 0xba55ed50, begin = 16 << 16 | 1, header = 16;

	(void)state;
	assert_int_equal(image_count_globals((const uint8_t *)&file, sizeof(file)), 0);
	file.file.section[1].sh_offset = offsetof(__typeof__(file), names);
	file.file.section[1].sh_size = sizeof(file.names);
	file.file.section[2] = (Elf64_Shdr){.sh_name = 1, .sh_type = SHT_NOBITS, .sh_size = 1ULL << 40};
	assert_true(image_is_whole((const uint8_t *)&file, sizeof(file)));
	assert_int_equal(image_count_globals((const uint8_t *)&file, sizeof(file)), 1ULL << 40);
	file.file.section[2].sh_name = 16;
	assert_int_equal(image_count_globals((const uint8_t *)&file, sizeof(file)), 0);
	/* Of the parts of a fat binary, the largest. */
	memcpy(fat.begin, &magic, 4);
	memcpy(fat.begin + 4, &begin, 4);
	memcpy(fat.begin + 8, &rest, 8);
	memcpy(fat.part + 4, &header, 4);
	memcpy(fat.part + 8, &first, 8);
	memcpy(fat.text + 4, &header, 4);
	memcpy(fat.text + 8, &second, 8);
	fat.file = make_file();
	assert_true(image_is_whole((const uint8_t *)&fat, sizeof(fat)));
	assert_int_equal(image_count_globals((const uint8_t *)&fat, sizeof(fat)), 8192);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_within_its_bounds_is_whole),
		cmocka_unit_test(a_number_may_be_in_the_first_section),
		cmocka_unit_test(a_file_that_reaches_beyond_is_not),
		cmocka_unit_test(the_parts_of_a_fat_binary_are_within_it),
		cmocka_unit_test(the_members_of_an_archive_are_within_it),
		cmocka_unit_test(what_is_compressed_says_how_long_it_becomes),
		cmocka_unit_test(code_that_may_print_is_known),
		cmocka_unit_test(texts_are_whole_and_addresses_are_not),
		cmocka_unit_test(a_text_declares_global_arrays),
		cmocka_unit_test(a_file_has_global_arrays_in_sections),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

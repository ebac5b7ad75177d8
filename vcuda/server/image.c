/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What is looked at is what every reader of such a file has to believe before it understands any of it: the tables of
 * an ELF file, its texts, which have to end, and the chain of parts in a fat binary. What a compressed part becomes,
 * the driver alone knows, but how long it says that will be is memory that the driver takes for it.
 */

#include "vcuda/server/code.h"

#include <ar.h>
#include <ctype.h>
#include <elf.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "vcuda/protocol/wire.h"

/* ---- what a text in PTX declares ---- */

/*
 * ".visible .global .align 4 .v2 .f32 name[16][4] = {...}, other;" is read, as NVIDIA documents it in "Parallel Thread
 * Execution ISA". Of everything else only words, comments and strings are told apart.
 */

struct image_text {
	const char *at, *end;
	const char *word; /* or one character */
	size_t length;
};

static bool image_ptx_is(const struct image_text *text, const char *word)
{
	return text->length == strlen(word) && memcmp(text->word, word, text->length) == 0;
}

static bool image_ptx_begins(const struct image_text *text, const char *with)
{
	const size_t length = strlen(with);

	return (size_t)(text->end - text->at) >= length && memcmp(text->at, with, length) == 0;
}

/* To behind @what, or the end. */
static void image_ptx_skip_to(struct image_text *text, const char *what)
{
	while (text->at < text->end && !image_ptx_begins(text, what))
		text->at++;
	if (text->at < text->end)
		text->at += strlen(what);
}

static void image_ptx_skip_blanks(struct image_text *text)
{
	while (text->at < text->end) {
		if (isspace((unsigned char)*text->at)) {
			text->at++;
		} else if (image_ptx_begins(text, "//")) {
			image_ptx_skip_to(text, "\n");
		} else if (image_ptx_begins(text, "/*")) {
			text->at += 2;
			image_ptx_skip_to(text, "*/");
		} else if (*text->at == '"') {
			text->at++;
			image_ptx_skip_to(text, "\"");
		} else {
			return;
		}
	}
}

static bool image_ptx_is_of_word(char c)
{
	return isalnum((unsigned char)c) || (c && strchr("._$%", c));
}

/* Return: whether there is another word. */
static bool image_ptx_next(struct image_text *text)
{
	image_ptx_skip_blanks(text);
	if (text->at == text->end || !*text->at)
		return false;
	text->word = text->at++;
	while (image_ptx_is_of_word(*text->word) && text->at < text->end && image_ptx_is_of_word(*text->at))
		text->at++;
	text->length = (size_t)(text->at - text->word);
	return true;
}

static uint64_t image_ptx_multiply(uint64_t a, uint64_t b)
{
	return __builtin_mul_overflow(a, b, &a) ? UINT64_MAX : a;
}

/* Of a type. Return: 0 if it is none. */
static uint64_t image_ptx_element(const struct image_text *text)
{
	static const struct {
		const char *type;
		uint64_t bytes;
	} types[] = {
		{".b8", 1},   {".u8", 1},  {".s8", 1},    {".b16", 2},   {".u16", 2},    {".s16", 2}, {".f16", 2},
		{".bf16", 2}, {".b32", 4}, {".u32", 4},   {".s32", 4},   {".f32", 4},    {".b64", 8}, {".u64", 8},
		{".s64", 8},  {".f64", 8}, {".b128", 16}, {".f16x2", 4}, {".bf16x2", 4},
	};

	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		if (image_ptx_is(text, types[i].type))
			return types[i].bytes;
	return 0;
}

static uint64_t image_ptx_number(const struct image_text *text)
{
	char digits[24] = "";

	if (text->length < sizeof(digits))
		memcpy(digits, text->word, text->length);
	return strtoull(digits, NULL, 0);
}

/* Behind "[", to "]". */
static uint64_t image_ptx_dimension(struct image_text *text)
{
	uint64_t product = 1;

	while (image_ptx_next(text) && !image_ptx_is(text, "]"))
		if (!image_ptx_is(text, "*"))
			product = image_ptx_multiply(product, image_ptx_number(text));
	return product;
}

/* Behind "=", to what comes behind the values. Return: whether there is another word. */
static bool image_ptx_skip_values(struct image_text *text)
{
	int depth = 0;

	while (image_ptx_next(text)) {
		depth += image_ptx_is(text, "{") - image_ptx_is(text, "}");
		if (depth <= 0 && (image_ptx_is(text, ",") || image_ptx_is(text, ";")))
			return true;
	}
	return false;
}

/* Behind ".global". */
static uint64_t image_ptx_count(struct image_text *text)
{
	uint64_t width = 1, element = 0, bytes = 0, sum = 0;

	while (image_ptx_next(text)) {
		if (image_ptx_is(text, ".align")) {
			if (!image_ptx_next(text))
				break;
		} else if (image_ptx_is(text, ".v2") || image_ptx_is(text, ".v4")) {
			width = text->word[2] == '2' ? 2 : 4;
		} else if (image_ptx_element(text)) {
			element = image_ptx_element(text) * width;
			bytes = element;
		} else if (image_ptx_is(text, "[")) {
			bytes = image_ptx_multiply(bytes, image_ptx_dimension(text));
		}
		if (image_ptx_is(text, "=") && !image_ptx_skip_values(text))
			break;
		if (!image_ptx_is(text, ",") && !image_ptx_is(text, ";"))
			continue;
		if (__builtin_add_overflow(sum, bytes, &sum))
			return UINT64_MAX;
		bytes = element;
		if (image_ptx_is(text, ";"))
			break;
	}
	return sum;
}

/* In parentheses are parameters: there ".ptr .global" says where a pointer leads. */
static uint64_t image_ptx_count_globals(const uint8_t *image, uint64_t bytes)
{
	struct image_text text = {.at = (const char *)image, .end = (const char *)image + bytes};
	uint64_t sum = 0;
	bool is_extern = false;
	int depth = 0;

	while (image_ptx_next(&text)) {
		depth += image_ptx_is(&text, "(") - image_ptx_is(&text, ")");
		/* The variable of another module. */
		if (image_ptx_is(&text, ".extern"))
			is_extern = true;
		else if (image_ptx_is(&text, ";") || image_ptx_is(&text, ")"))
			is_extern = false;
		if (!image_ptx_is(&text, ".global") || depth > 0)
			continue;
		const uint64_t counted = image_ptx_count(&text);

		if (!is_extern && __builtin_add_overflow(sum, counted, &sum))
			return UINT64_MAX;
		is_extern = false;
	}
	return sum;
}

/* ---- ELF files and fat binaries ---- */

/* A part of a fat binary begins with its kind, its version, how long this header is, and the part behind it. */
enum { FAT_HEADER = 16, PART_HEADER = 16 };

/* A longer header also says where in it a name is, and how long a compressed part is and becomes. */
enum { PART_LONG_HEADER = 64, PART_COMPRESSED = 16, PART_NAME = 32, PART_NAME_BYTES = 36, PART_BECOMES = 56 };

static bool image_reaches(uint64_t offset, uint64_t count, uint64_t size, uint64_t bytes)
{
	return offset <= bytes && (count == 0 || (size <= bytes && count <= (bytes - offset) / (size ? size : 1)));
}

static Elf64_Shdr image_section(const Elf64_Ehdr *header, const uint8_t *image, uint64_t number)
{
	Elf64_Shdr section;

	memcpy(&section, image + header->e_shoff + number * sizeof(section), sizeof(section));
	return section;
}

static bool image_segments_are_whole(const Elf64_Ehdr *header, const uint8_t *image, uint64_t bytes)
{
	if (header->e_phnum == PN_XNUM || (header->e_phnum && header->e_phentsize != sizeof(Elf64_Phdr)))
		return false;
	if (!image_reaches(header->e_phoff, header->e_phnum, sizeof(Elf64_Phdr), bytes))
		return false;
	for (unsigned i = 0; i < header->e_phnum; i++) {
		Elf64_Phdr segment;

		memcpy(&segment, image + header->e_phoff + i * sizeof(segment), sizeof(segment));
		if (!image_reaches(segment.p_offset, segment.p_filesz, 1, bytes))
			return false;
	}
	return true;
}

/* No longer than what is sent as it is. */
static bool image_fits_uncompressed(const uint8_t *section, uint64_t bytes)
{
	Elf64_Chdr header;

	if (bytes < sizeof(header))
		return false;
	memcpy(&header, section, sizeof(header));
	return header.ch_size <= WIRE_UPLOAD_MAX;
}

/* A text ends before its table does. Symbols have the size that is known, and name a table of texts. */
static bool image_section_is_whole(const Elf64_Ehdr *header, const uint8_t *image, uint64_t bytes, uint64_t count,
				   uint64_t i)
{
	const Elf64_Shdr section = image_section(header, image, i);

	if (section.sh_type == SHT_NOBITS)
		return true;
	if (!image_reaches(section.sh_offset, section.sh_size, 1, bytes) || section.sh_link >= count)
		return false;
	if (section.sh_flags & SHF_COMPRESSED && !image_fits_uncompressed(image + section.sh_offset, section.sh_size))
		return false;
	if (section.sh_type == SHT_STRTAB && section.sh_size > 0)
		return image[section.sh_offset + section.sh_size - 1] == '\0';
	if (section.sh_type == SHT_SYMTAB)
		return section.sh_entsize == sizeof(Elf64_Sym) && section.sh_size % sizeof(Elf64_Sym) == 0 &&
		       image_section(header, image, section.sh_link).sh_type == SHT_STRTAB;
	return true;
}

/* How many sections there are, and which one has their names: numbers above a field are in the first section. */
static bool image_sections_are_whole(const Elf64_Ehdr *header, const uint8_t *image, uint64_t bytes)
{
	uint64_t count = header->e_shnum, names = header->e_shstrndx;

	if (header->e_shoff == 0 && count == 0)
		return true;
	if (!image_reaches(header->e_shoff, 1, sizeof(Elf64_Shdr), bytes))
		return false;
	if (count == 0)
		count = image_section(header, image, 0).sh_size;
	if (count && header->e_shentsize != sizeof(Elf64_Shdr))
		return false;
	if (names == SHN_XINDEX)
		names = image_section(header, image, 0).sh_link;
	if (!image_reaches(header->e_shoff, count, sizeof(Elf64_Shdr), bytes) || (count && names >= count))
		return false;
	for (uint64_t i = 0; i < count; i++)
		if (!image_section_is_whole(header, image, bytes, count, i))
			return false;
	return true;
}

static bool image_elf_is_whole(const uint8_t *image, uint64_t bytes)
{
	Elf64_Ehdr header;

	if (bytes < sizeof(header) || image[EI_CLASS] != ELFCLASS64 || image[EI_DATA] != ELFDATA2LSB)
		return false;
	memcpy(&header, image, sizeof(header));
	return image_segments_are_whole(&header, image, bytes) && image_sections_are_whole(&header, image, bytes);
}

/* The part of @bytes behind a header of @header bytes. */
static bool image_part_is_whole(const uint8_t *part, uint32_t header, uint64_t bytes)
{
	uint32_t compressed, name, name_bytes;
	uint64_t becomes;

	if (bytes >= SELFMAG && memcmp(part + header, ELFMAG, SELFMAG) == 0 &&
	    !image_elf_is_whole(part + header, bytes))
		return false;
	if (header < PART_LONG_HEADER)
		return true;
	memcpy(&compressed, part + PART_COMPRESSED, sizeof(compressed));
	memcpy(&name, part + PART_NAME, sizeof(name));
	memcpy(&name_bytes, part + PART_NAME_BYTES, sizeof(name_bytes));
	memcpy(&becomes, part + PART_BECOMES, sizeof(becomes));
	return compressed <= bytes && becomes <= WIRE_UPLOAD_MAX &&
	       (name_bytes == 0 || image_reaches(name, name_bytes, 1, header + bytes));
}

static bool image_parts_are_whole(const uint8_t *part, uint64_t bytes)
{
	while (bytes >= PART_HEADER) {
		uint32_t header;
		uint64_t length;

		memcpy(&header, part + 4, sizeof(header));
		memcpy(&length, part + 8, sizeof(length));
		if (header < PART_HEADER || header > bytes || length > bytes - header)
			return false;
		if (!image_part_is_whole(part, header, length))
			return false;
		part += (uint64_t)header + length;
		bytes -= (uint64_t)header + length;
	}
	return true;
}

static bool image_fat_is_whole(const uint8_t *image, uint64_t bytes)
{
	uint16_t begin;
	uint64_t rest;

	if (bytes < FAT_HEADER)
		return false;
	memcpy(&begin, image + 6, sizeof(begin));
	memcpy(&rest, image + 8, sizeof(rest));
	return begin >= FAT_HEADER && begin <= bytes && rest == bytes - begin &&
	       image_parts_are_whole(image + begin, rest);
}

static const uint8_t fat[] = {0x50, 0xed, 0x55, 0xba};

/* A wrapper has an address in it, and an honest client sends what it wraps. */
static bool image_file_is_whole(const uint8_t *image, uint64_t bytes)
{
	static const uint8_t wrapper[] = {0xb1, 0x43, 0x62, 0x46};
	const size_t known = bytes < sizeof(fat) ? (size_t)bytes : sizeof(fat);

	if (memcmp(image, wrapper, known) == 0)
		return false;
	if (memcmp(image, fat, known) == 0)
		return image_fat_is_whole(image, bytes);
	return memcmp(image, ELFMAG, known) != 0 || image_elf_is_whole(image, bytes);
}

/* How long a member is, in decimal digits with blanks behind them. In BSD's form, its name comes before the file. */
static bool image_read_member(const struct ar_hdr *header, uint64_t *ret)
{
	static const char bsd[] = "#1/";
	const size_t blanks = sizeof(header->ar_size);
	size_t i = 0;

	if (memcmp(header->ar_fmag, ARFMAG, sizeof(header->ar_fmag)) != 0 ||
	    memcmp(header->ar_name, bsd, strlen(bsd)) == 0)
		return false;
	for (*ret = 0; i < blanks && isdigit((unsigned char)header->ar_size[i]); i++)
		*ret = *ret * 10 + (uint64_t)(header->ar_size[i] - '0');
	return i > 0 && (i == blanks || header->ar_size[i] == ' ');
}

/*
 * Of members, each of which is a file, or a table of the archive's own. Objects of the host are looked at as other ELF
 * files: what the section .nv_fatbin of one has in it is not.
 */
static bool image_archive_is_whole(const uint8_t *image, uint64_t bytes)
{
	for (uint64_t at = SARMAG; at < bytes;) {
		struct ar_hdr header;
		uint64_t length;

		if (bytes - at < sizeof(header))
			return false;
		memcpy(&header, image + at, sizeof(header));
		at += sizeof(header);
		if (!image_read_member(&header, &length) || length > bytes - at ||
		    (length > 0 && !image_file_is_whole(image + at, length)))
			return false;
		at += length + length % 2;
	}
	return true;
}

/* Text ends where the upload does. An archive may be thin: then it has names of files in place of them. */
bool image_is_whole(const uint8_t *image, uint64_t bytes)
{
	static const char thin[] = "!<thin>\n";

	if (bytes < SARMAG || image[0] != (uint8_t)ARMAG[0])
		return image_file_is_whole(image, bytes);
	if (memcmp(image, thin, SARMAG) == 0)
		return false;
	return memcmp(image, ARMAG, SARMAG) != 0 || image_archive_is_whole(image, bytes);
}

/* ---- global arrays ---- */

/* Of a file that is whole, so that names end. */
static bool image_is_of_globals(const Elf64_Shdr *names, const Elf64_Shdr *section, const uint8_t *image)
{
	static const char globals[] = ".nv.global";

	return names->sh_type == SHT_STRTAB && section->sh_name < names->sh_size &&
	       strncmp((const char *)image + names->sh_offset + section->sh_name, globals, strlen(globals)) == 0;
}

static uint64_t image_count_of_elf(const uint8_t *image)
{
	uint64_t count, place, sum = 0;
	Elf64_Ehdr header;
	Elf64_Shdr names;

	memcpy(&header, image, sizeof(header));
	if (header.e_shoff == 0)
		return 0;
	count = header.e_shnum ? header.e_shnum : image_section(&header, image, 0).sh_size;
	place = header.e_shstrndx == SHN_XINDEX ? image_section(&header, image, 0).sh_link : header.e_shstrndx;
	if (count == 0)
		return 0;
	names = image_section(&header, image, place);
	for (uint64_t i = 0; i < count; i++) {
		const Elf64_Shdr section = image_section(&header, image, i);

		if (image_is_of_globals(&names, &section, image) && __builtin_add_overflow(sum, section.sh_size, &sum))
			return UINT64_MAX;
	}
	return sum;
}

/* Of an ELF file or a text. */
static uint64_t image_count_of_code(const uint8_t *image, uint64_t bytes)
{
	return bytes >= SELFMAG && memcmp(image, ELFMAG, SELFMAG) == 0 ? image_count_of_elf(image)
								       : image_ptx_count_globals(image, bytes);
}

static uint64_t image_count_of_parts(const uint8_t *part, uint64_t bytes)
{
	uint64_t most = 0;

	while (bytes >= PART_HEADER) {
		uint32_t header, compressed = 0;
		uint64_t length, count;

		memcpy(&header, part + 4, sizeof(header));
		memcpy(&length, part + 8, sizeof(length));
		if (header >= PART_LONG_HEADER)
			memcpy(&compressed, part + PART_COMPRESSED, sizeof(compressed));
		count = compressed ? 0 : image_count_of_code(part + header, length);
		most = count > most ? count : most;
		part += (uint64_t)header + length;
		bytes -= (uint64_t)header + length;
	}
	return most;
}

static bool image_has_compressed(const uint8_t *part, uint64_t bytes)
{
	while (bytes >= PART_HEADER) {
		uint32_t header, compressed = 0;
		uint64_t length;

		memcpy(&header, part + 4, sizeof(header));
		memcpy(&length, part + 8, sizeof(length));
		if (header >= PART_LONG_HEADER)
			memcpy(&compressed, part + PART_COMPRESSED, sizeof(compressed));
		if (compressed)
			return true;
		part += (uint64_t)header + length;
		bytes -= (uint64_t)header + length;
	}
	return false;
}

/* Both are called by these names, in texts and in the names of ELF files. */
bool image_may_print(const uint8_t *image, uint64_t bytes)
{
	static const char print[] = "vprintf", assertion[] = "__assertfail";
	uint16_t begin;

	if (memmem(image, bytes, print, sizeof(print) - 1) || memmem(image, bytes, assertion, sizeof(assertion) - 1))
		return true;
	if (bytes < FAT_HEADER || memcmp(image, fat, sizeof(fat)) != 0)
		return false;
	memcpy(&begin, image + 6, sizeof(begin));
	return image_has_compressed(image + begin, bytes - begin);
}

uint64_t image_count_globals(const uint8_t *image, uint64_t bytes)
{
	uint16_t begin;

	if (bytes < FAT_HEADER || memcmp(image, fat, sizeof(fat)) != 0)
		return image_count_of_code(image, bytes);
	memcpy(&begin, image + 6, sizeof(begin));
	return image_count_of_parts(image + begin, bytes - begin);
}

/* SPDX-License-Identifier: Apache-2.0 */

/* The parts of a fat binary, and how each is packed. */

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "question.h"

enum { FAT_HEADER = 16, FAT_MAGIC = 0xba55ed50U, PART_HEADER = 64 };

static uint32_t word(const unsigned char *at)
{
	uint32_t value;

	memcpy(&value, at, sizeof(value));
	return value;
}

static unsigned long long long_word(const unsigned char *at)
{
	unsigned long long value;

	memcpy(&value, at, sizeof(value));
	return value;
}

static void show_part(const unsigned char *part, const char *path)
{
	const uint32_t header = word(part + 4);

	remark("%s: part of kind %u, header %u, behind it %llu bytes; compressed %u, GPU %u, flags %#llx, becomes %llu; begins with "
	       "%#x %#x",
	       path, word(part) & 0xffff, header, long_word(part + 8), word(part + 16), word(part + 28),
	       long_word(part + 40), long_word(part + 56), word(part + header), word(part + header + 4));
}

static void show_image(const char *path)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	const unsigned char *image;
	struct stat status = {0};
	size_t bytes, at = FAT_HEADER;

	if (fd < 0 || fstat(fd, &status) < 0 || status.st_size < FAT_HEADER + PART_HEADER) {
		remark("%s: not to be had, or short", path);
		return;
	}
	bytes = (size_t)status.st_size;
	image = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, fd, 0);
	remark("%s: %zu bytes, begins with %#x", path, bytes, word(image));
	while (word(image) == FAT_MAGIC && at + PART_HEADER + 8 <= bytes) {
		show_part(image + at, path);
		at += word(image + at + 4) + long_word(image + at + 8);
	}
}

void ask_images(int argc, char **argv)
{
	for (int i = 0; i < argc; i++)
		show_image(argv[i]);
}

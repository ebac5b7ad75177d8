/* SPDX-License-Identifier: Apache-2.0 */

/* Any bytes as an ELF file. They are laid behind a header of a 64-bit file, for most random ones have none. */

#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"
#include "system/elf_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_file(const void *header, size_t header_size, const uint8_t *data, size_t size)
{
	_cleanup_close_ int fd = memfd_create("fuzz", MFD_CLOEXEC);
	_cleanup_free_ char *note = NULL, *soname = NULL;
	size_t note_size = 0;

	if (fd < 0 || fd_write_all(fd, header, header_size) < 0 || fd_write_all(fd, data, size) < 0)
		abort();
	if (elf_file_read_note(fd, ".note.x", "N", &note, &note_size) == 0 && note[note_size] != '\0')
		abort();
	(void)elf_file_read_soname(fd, &soname);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct {
		Elf64_Ehdr header;
		char names[16];
	} start = {
		.header =
			{
				.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
				.e_type = ET_DYN,
				.e_machine = EM_X86_64,
				.e_version = EV_CURRENT,
				.e_shoff = sizeof(start),
				.e_ehsize = sizeof(Elf64_Ehdr),
				.e_shentsize = sizeof(Elf64_Shdr),
				.e_shnum = 3,
				.e_shstrndx = 1,
			},
		.names = "\0.note.x",
	};

	read_file(NULL, 0, data, size);
	read_file(&start, sizeof(start), data, size);
	return 0;
}

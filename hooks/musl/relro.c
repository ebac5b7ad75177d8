/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What only relocations write becomes read-only, as glibc does it before main(). musl leaves it out for programs that
 * are linked statically.
 */

#include <elf.h>
#include <link.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* The linker's, where the program begins in memory. */
extern const ElfW(Ehdr) __ehdr_start __attribute__((visibility("hidden")));

__attribute__((constructor)) static void relro_protect(void)
{
	uintptr_t base = (uintptr_t)&__ehdr_start, page = (uintptr_t)getpagesize();
	const ElfW(Phdr) *header = (const ElfW(Phdr) *)(base + __ehdr_start.e_phoff);

	for (unsigned i = 0; i < __ehdr_start.e_phnum; i++, header++) {
		uintptr_t start = (base + header->p_vaddr) & -page;
		uintptr_t end = (base + header->p_vaddr + header->p_memsz) & -page;

		if (header->p_type != PT_GNU_RELRO || start == end)
			continue;
		if (mprotect((void *)start, end - start, PROT_READ) < 0)
			abort();
	}
}

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Each program has its version in an ELF note, so that the installation can be checked without running it.
 * VERSION_NOTE() stands once in a program.
 */

#include <elf.h>

#define VERSION_NOTE_SECTION ".note.ctr-gpu"
#define VERSION_NOTE_OWNER "ctr-gpu"

#define VERSION_NOTE()                                                                                                \
	static const struct {                                                                                         \
		Elf64_Nhdr header; /* the same in both ELF classes */                                                 \
		char owner[sizeof(VERSION_NOTE_OWNER)];                                                               \
		char version[sizeof(CTR_GPU_VERSION)] __attribute__((aligned(4)));                                    \
	} version_note __attribute__((section(VERSION_NOTE_SECTION), aligned(4), used)) = {                           \
		.header = {.n_namesz = sizeof(VERSION_NOTE_OWNER), .n_descsz = sizeof(CTR_GPU_VERSION), .n_type = 1}, \
		.owner = VERSION_NOTE_OWNER,                                                                          \
		.version = CTR_GPU_VERSION,                                                                           \
	}

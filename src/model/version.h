/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Version numbers of drivers, of CUDA and of what images require: "12.4", "570.86.10". */

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { VERSION_PARTS_MAX = 4 };

struct version {
	uint32_t parts[VERSION_PARTS_MAX]; /* those that are not written are 0 */
	size_t count;
};

/**
 * version_read() - the only reader of version numbers that come from images and drivers
 * @length: how much of @text to read; the rest is not looked at
 *
 * One to four decimal numbers below 2^32 with single dots between them. Like semantic versions it may begin with a "v",
 * and after three numbers go on with a "-" or "+" and what does not count.
 *
 * Return: whether it is one.
 */
bool version_read(const char *text, size_t length, struct version *ret);

/** Return: <0, 0 or >0, as strcmp(3); "470" equals "470.0". */
int version_compare(const struct version *a, const struct version *b);

/*
 * Each program has its version in an ELF note, so that the installation can be checked without running it.
 * VERSION_NOTE() stands once in a program.
 */

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

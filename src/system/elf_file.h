/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Foreign ELF files, read from a descriptor. They are never mapped, since they may shrink meanwhile. */

#include <stddef.h>

/**
 * elf_file_read_note() - the descriptor of the first note of an owner in a section
 * @fd:       a regular file, borrowed
 * @ret_data: the bytes and a NUL behind them, owned by the caller
 *
 * Return: 0; -ENOENT if the note is missing; -EINVAL if it is not a regular ELF file or the section is invalid;
 * -ENOMEM.
 */
int elf_file_read_note(int fd, const char *section, const char *owner, char **ret_data, size_t *ret_size);

/**
 * elf_file_read_soname() - what the loader calls a library
 * @fd: a regular file, borrowed
 *
 * Return: 0; -ENOENT if it has no SONAME that can be a file's name; -EINVAL if it is not a regular ELF file or its
 * sections are invalid; -ENOMEM.
 */
int elf_file_read_soname(int fd, char **ret);

/*
 * What can be known of a libcuda without loading it. It carries the CUDA version in a note that is there to be read:
 * the section .note.cuda.fwd_compatibility, owner "NVIDIA Corporation", JSON with a member "CUDA version". Drivers
 * before 2022 have none.
 */

/**
 * libcuda_read_version() - the newest CUDA that a libcuda offers
 * @fd: the library, borrowed; hostile
 *
 * Return: 0; -ENOENT without a note; -EINVAL if it is not a library or its note is invalid; -ENOMEM.
 */
int libcuda_read_version(int fd, int *ret_major, int *ret_minor);

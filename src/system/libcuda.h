/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

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

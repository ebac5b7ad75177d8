/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Text that is printed into memory. Where memory ends, open_memstream(3) of glibc and of musl answers as if all
 * had been printed.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct memstream {
	FILE *file;
	char *text;
	size_t size, room;
	bool failed;
};

/** Begins a text, until memstream_close(). Return: where to print it; NULL without memory. */
FILE *memstream_open(struct memstream *stream);

/**
 * Ends it. @ret: all that was printed and a null behind it, which the caller frees. @ret_size: without the null, or
 * NULL. Return: 0 or -ENOMEM, with nothing in @ret.
 */
int memstream_close(struct memstream *stream, char **ret, size_t *ret_size);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Foreign bytes (a loader cache, an ELF file, an ioctl reply), with their length. Every read goes through an accessor
 * that checks offset and size, so that a parser cannot forget to.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct span {
	const unsigned char *data;
	size_t size;
};

/** The bytes of a string, without its NUL. */
static inline struct span span_text(const char *text)
{
	return (struct span){.data = (const unsigned char *)text, .size = strlen(text)};
}

static inline bool span_holds(const struct span *span, size_t offset, size_t size)
{
	return offset <= span->size && span->size - offset >= size;
}

/** Copies @size bytes at @offset to @ret. Return: false, with @ret untouched, if they are not all inside. */
static inline bool span_read(const struct span *span, size_t offset, void *ret, size_t size)
{
	if (!span_holds(span, offset, size))
		return false;
	memcpy(ret, span->data + offset, size);
	return true;
}

/** Return: the NUL-terminated string at @offset; NULL if it starts or ends outside. */
static inline const char *span_string(const struct span *span, size_t offset)
{
	if (offset >= span->size || !memchr(span->data + offset, '\0', span->size - offset))
		return NULL;
	return (const char *)span->data + offset;
}

/** Narrows to @size bytes at @offset. Return: false if they are not all inside. */
static inline bool span_slice(const struct span *span, size_t offset, size_t size, struct span *ret)
{
	if (!span_holds(span, offset, size))
		return false;
	*ret = (struct span){.data = span->data + offset, .size = size};
	return true;
}

/* SPDX-License-Identifier: Apache-2.0 */

#include "base/memstream.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

/* A null stands behind what is written. */
static bool memstream_grow(struct memstream *stream, size_t size)
{
	enum { ROOM_MIN = 1024 };
	size_t room = stream->room ? stream->room : ROOM_MIN;
	char *text;

	while (room - stream->size <= size)
		if (__builtin_mul_overflow(room, 2, &room))
			return false;
	text = room > stream->room ? realloc(stream->text, room) : stream->text;
	if (!text)
		return false;
	stream->text = text;
	stream->room = room;
	return true;
}

/* As fopencookie(3) wants it: 0 is an error. */
static ssize_t memstream_write(void *cookie, const char *data, size_t size)
{
	struct memstream *stream = cookie;

	if (stream->failed || !memstream_grow(stream, size)) {
		stream->failed = true;
		return 0;
	}
	memcpy(stream->text + stream->size, data, size);
	stream->size += size;
	return (ssize_t)size;
}

FILE *memstream_open(struct memstream *stream)
{
	*stream = (struct memstream){0};
	if (memstream_grow(stream, 0))
		stream->file = fopencookie(stream, "w", (cookie_io_functions_t){.write = memstream_write});
	if (!stream->file)
		free(stream->text);
	return stream->file;
}

int memstream_close(struct memstream *stream, char **ret, size_t *ret_size)
{
	/* Not every libc remembers that a write failed. */
	if (fclose(stream->file) != 0 || stream->failed) {
		free(stream->text);
		return -ENOMEM;
	}
	stream->text[stream->size] = '\0';
	*ret = stream->text;
	if (ret_size)
		*ret_size = stream->size;
	return 0;
}

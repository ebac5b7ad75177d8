/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The lines of /proc/PID/mountinfo, and the words they are made of. Names in them were chosen by whoever may mount. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>

enum { MOUNTINFO_MAX = 16 << 20 }; /* bytes of such a file that are read */

/** Part of a text that is not NUL-terminated. */
struct word {
	const char *text;
	size_t size;
};

static inline struct word mountinfo_word_of(const char *text)
{
	return (struct word){text, strlen(text)};
}

bool mountinfo_word_is(struct word word, const char *text);

/** Takes what stands before @separator from the front of @rest; all of it if there is none. */
struct word mountinfo_word_take(struct word *rest, char separator);

/** Whether an item of a list with commas is @item. */
bool mountinfo_word_list_has(struct word list, const char *item);

struct mountinfo_line {
	struct word id, dev, root, point, type, options;
	bool shared; /* what is mounted on it appears on its peers, too */
};

/** Takes the next line off @text, and skips those that the kernel would not write. Return: false at the end. */
bool mountinfo_next(struct word *text, struct mountinfo_line *ret);

bool mountinfo_id(const struct mountinfo_line *line, uint64_t *ret);
bool mountinfo_dev(const struct mountinfo_line *line, dev_t *ret);

/** Undoes the octal escapes. Return: new string; NULL without memory. */
char *mountinfo_unescape(struct word word);

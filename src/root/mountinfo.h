/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The lines of /proc/PID/mountinfo, and their words. The names are foreign: a process that may mount chooses them. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>

enum { MOUNTINFO_MAX = 16 << 20 }; /* bytes of such a file that are read */

/** Part of a text that is not NUL-terminated. */
struct mountinfo_field {
	const char *text;
	size_t size;
};

static inline struct mountinfo_field mountinfo_field_of(const char *text)
{
	return (struct mountinfo_field){text, strlen(text)};
}

bool mountinfo_field_is(struct mountinfo_field field, const char *text);

/** Takes what stands before @separator from the front of @rest; all of it if there is none. */
struct mountinfo_field mountinfo_field_take(struct mountinfo_field *rest, char separator);

/** Whether an item of a list with commas is @item. */
bool mountinfo_field_list_has(struct mountinfo_field list, const char *item);

struct mountinfo_line {
	struct mountinfo_field id, dev, root, point, type, options;
	bool shared; /* what is mounted on it appears on its peers, too */
};

/** Takes the next line off @text, and skips those that the kernel would not write. Return: false at the end. */
bool mountinfo_next(struct mountinfo_field *text, struct mountinfo_line *ret);

bool mountinfo_id(const struct mountinfo_line *line, uint64_t *ret);
bool mountinfo_dev(const struct mountinfo_line *line, dev_t *ret);

/** Undoes the octal escapes. Return: new string; NULL without memory. */
char *mountinfo_unescape(struct mountinfo_field field);

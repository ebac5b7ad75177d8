/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Strings and lists of strings. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/cleanup.h"

static inline bool streq(const char *a, const char *b)
{
	return __builtin_strcmp(a, b) == 0;
}

/** What is left of a text that begins so; NULL if it does not. */
const char *str_after_prefix(const char *text, const char *prefix);

static inline bool str_has_prefix(const char *text, const char *prefix)
{
	return str_after_prefix(text, prefix) != NULL;
}

/** Replaces each byte that is not printable ASCII by a question mark. */
void str_make_printable(char *text);
/** Whether an absolute path is @directory, or below it. */
bool str_is_below(const char *path, const char *directory);

/** Return: 0 and a new string in @ret, or -ENOMEM. */
int str_format(char **ret, const char *format, ...) __attribute__((format(printf, 2, 3)));

/** Puts what is formatted behind an owned string, which may be NULL. Return: 0 or -ENOMEM. */
int str_append(char **text, const char *format, ...) __attribute__((format(printf, 2, 3)));

/** A hash (FNV-1a), for names of files. Foreign texts may collide on purpose: nothing may depend on a unique hash. */
uint64_t str_hash(const char *text);

/** The same for bytes. */
uint64_t str_hash_of(const void *bytes, size_t size);

/** Puts a copy of @copied in the place of an owned string. Return: 0 or -ENOMEM. */
int str_replace(char **text, const char *copied);

/** A list of owned strings; {0} is the empty one. */
struct strv {
	char **items;
	size_t count;
};

void strv_clear(struct strv *list);
#define _cleanup_strv_ _cleanup_(strv_clear)

/** Appends a copy. Return: 0 or -ENOMEM. */
int strv_add(struct strv *list, const char *text);
/** Appends @text itself. The list owns it from then on, and frees it if this fails; NULL counts as -ENOMEM. */
int strv_take(struct strv *list, char *text);
int strv_format(struct strv *list, const char *format, ...) __attribute__((format(printf, 2, 3)));
bool strv_contains(const struct strv *list, const char *text);
/** Has a NULL behind the last item, as execve(2) wants arrays. Return: 0 or -ENOMEM. */
int strv_terminate(struct strv *list);
void strv_sort(struct strv *list);
/** Of a list of "NAME=value", the value of the last that is called @name; NULL if there is none. */
const char *strv_variable(const struct strv *list, const char *name);

/*
 * The longest variable that a program can be started with, 128 KiB (MAX_ARG_STRLEN of execve(2)), has no more. An image
 * may have longer ones, in which each character would take a hundred bytes.
 */
enum { STRV_SPLIT_MAX = 64 * 1024 };

/**
 * strv_split() - the items of a list such as "0, 1,all"
 * @text:       what to split
 * @separators: any of these characters ends an item
 * @ret:        list to append to; blanks and line ends around items, and empty items, are dropped
 *
 * Return: 0; -E2BIG if @ret would have more than STRV_SPLIT_MAX; -ENOMEM.
 */
int strv_split(const char *text, const char *separators, struct strv *ret);

/** The items with @separator between them. Return: 0 and a new string in @ret, or -ENOMEM. */
int strv_join(const struct strv *list, const char *separator, char **ret);

/**
 * array_grow() - room for one more element in an array whose capacity is the next power of two
 *
 * Return: the array, moved perhaps; NULL, with the old one untouched, without memory.
 */
void *array_grow(void *array, size_t count, size_t element_size);

/* Amounts of memory as people write them: "8G", "512M", "1073741824". */

enum { BYTES_TEXT_SIZE = 32 };

/** Reads a whole number above 0 with K, M, G or T (or Ki, KiB …) behind it, or nothing. Return: whether it is one. */
bool str_parse_size(const char *text, uint64_t *ret);

/** Writes "8.0 GiB", "512.0 MiB". */
void str_format_size(uint64_t bytes, char ret[static BYTES_TEXT_SIZE]);

/*
 * An amount of something whose size is known elsewhere: bytes below STR_SHARE_SHIFT, and above it a percentage of the
 * whole. If it has both, the smaller one counts; 0 is all of it.
 */
enum { STR_SHARE_SHIFT = 56 };
#define STR_SHARE(percent) ((uint64_t)(percent) << STR_SHARE_SHIFT)
#define STR_SHARE_BYTES(amount) ((amount) & (STR_SHARE(1) - 1))
#define STR_SHARE_PERCENT(amount) ((unsigned)((amount) >> STR_SHARE_SHIFT))

/** Reads what str_parse_size() does, "1%" to "100%", and "all". Return: whether it is one. */
bool str_parse_share(const char *text, uint64_t *ret);

/** Writes "8.0 GiB", "50%", or "4.0 GiB, at most 50%"; nothing for all of it. */
void str_format_share(uint64_t amount, char ret[static BYTES_TEXT_SIZE]);

/** Return: how much it is of @whole; UINT64_MAX: all of it. */
uint64_t str_share_of(uint64_t amount, uint64_t whole);

/*
 * What others wrote, on a terminal or in a log: text and nothing else. An escape sequence begins with a control
 * character, of which UTF-8 has a second set; and some characters turn the order in which others are shown.
 */

/** The character at @text, shown or not. Return: how many bytes it has; 0: its UTF-8 is wrong. */
size_t printable_read(const char *text, uint32_t *ret);

/** How many bytes at @text are one character that is shown as it is; 0: there is none, or its UTF-8 is wrong. */
size_t printable_length(const char *text);

/** Whether all of it is shown as it is. JSON takes nothing whose UTF-8 is wrong. */
bool printable_is_all(const char *text);

/** Replaces every byte of all else by a question mark. */
void printable_only(char *text);

/*
 * What a user may have meant by a name that does not exist: the only place that decides it. A name is near if it begins
 * a known one, or if a letter or two make it one.
 */

enum { SUGGESTION_SIZE = 96 };

/** Return: the one of some names that comes nearest, borrowed; NULL. */
const char *str_nearest(const char *const *names, size_t count, const char *name);

/** Writes "; did you mean 'info'?" behind a sentence, or nothing if none is near. Return: @ret. */
const char *str_suggest(const char *const *names, size_t count, const char *name, char ret[static SUGGESTION_SIZE]);

/*
 * Text that is printed into memory. Where memory ends, open_memstream(3) of glibc and of musl answers as if all
 * had been printed.
 */

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

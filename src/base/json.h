/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Foreign JSON, without duplicate keys and NUL, of bounded depth and with a bounded number of values. Each value takes
 * 100 to 300 bytes of memory, however short it is. The caller bounds the size of the text.
 */

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

static inline void json_unrefp(json_t **json)
{
	json_decref(*json);
}
#define _cleanup_json_ _cleanup_(json_unrefp)

enum {
	JSON_MAX_DEPTH = 64,
	JSON_MAX_VALUES = 128 * 1024,
};
#define JSON_LINE " in line "

/**
 * json_parse() - parse bytes
 * @ret:    new reference
 * @reason: of a failure, in the parser's words, and behind the first line JSON_LINE and the line; may be NULL
 *
 * An integer too large for json_int_t is a real number.
 *
 * Return: 0; -EINVAL; -ENOMEM.
 */
int json_parse(const char *data, size_t size, json_t **ret, char reason[JSON_ERROR_TEXT_LENGTH]);

/** The same for what json_print() is to write again: such an integer reads as a string, and is itself again then. */
int json_parse_to_print(const char *data, size_t size, json_t **ret, char reason[JSON_ERROR_TEXT_LENGTH]);

/**
 * json_print() - write what json_parse_to_print() made
 * @flags: of json_dumps(3)
 * @ret:   text, owned by the caller
 *
 * Return: 0 or -ENOMEM.
 */
int json_print(const json_t *json, size_t flags, char **ret);

/** Return: what is at a path, names of members with '/' between them, borrowed; NULL. */
json_t *json_at(const json_t *json, const char *path);

/** Return: an amount with a share (base/str.h) for programs to read: bytes, "50%", null for all; a new reference. */
json_t *json_share(uint64_t amount);

/*
 * The mark at the beginning of a string that stands for something else while jansson has it: a control character, which
 * JSON can write in one way only, and a random number of this process. No other process can write such a string.
 */

/* The quote, the character and the number. */
enum { JSON_MARK_SIZE = sizeof("\"\\u0001") - 1 + 16 };

/**
 * json_bigint_mark_write() - its first bytes, as JSON text
 * @kind: a digit from 1; each kind is of one file
 *
 * Return: 0; -EAGAIN without a random number.
 */
int json_bigint_mark_write(char kind, char ret[JSON_MARK_SIZE + 1]);

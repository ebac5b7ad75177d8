/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Small helpers for what is written for people and programs. */

#include <jansson.h>
#include <stdio.h>

#include "base/str.h"

/** A JSON string, or null for NULL. What is not UTF-8, as names of files may be, has question marks in its place. */
json_t *print_string(const char *text);

/** An array of them; NULL without memory, which json_pack(3) refuses in turn. */
json_t *print_strings(const struct strv *list);

/** An array of @item, an expression, for each @number below @count; NULL without memory, as above. */
#define print_array(number, count, item)                                      \
	({                                                                    \
		json_t *array_ = json_array();                                \
		for (size_t number = 0; array_ && number < (count); number++) \
			if (json_array_append_new(array_, (item)) < 0)        \
				array_ = (json_decref(array_), NULL);         \
		array_;                                                       \
	})

/**
 * Writes @json, indented, with a newline behind it, and releases it; what a terminal would act on is escaped.
 * Return: 0; -ENOMEM, also if @json is NULL; -EIO.
 */
int print_write_json(json_t *json, FILE *file);

/** Writes a CSV field, quoted where it must be; NULL is empty. */
void print_write_csv_field(const char *text, FILE *file);

/** Writes text; what a terminal would act on becomes "?", since drivers and images choose some names that we print. */
void print_write_text(const char *text, FILE *file);

/** The same for what is formatted: at most PRINT_LINE_MAX bytes, and no line break but one at the end of @format. */
enum { PRINT_LINE_MAX = 16 * 1024 }; /* three paths, as long as the kernel takes them */
void print_safe(FILE *file, const char *format, ...) __attribute__((format(printf, 2, 3)));

/** Return: -EIO if writing failed so far or what is buffered cannot be written, else 0. */
int print_finish(FILE *file);

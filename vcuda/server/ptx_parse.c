/* SPDX-License-Identifier: Apache-2.0 */

/*
 * ".visible .global .align 4 .v2 .f32 name[16][4] = {...}, other;" is read, as NVIDIA documents it in "Parallel Thread
 * Execution ISA". Of everything else only words, comments and strings are told apart.
 */

#include "vcuda/server/code.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

struct ptx_reader {
	const char *at, *end;
	const char *word; /* or one character */
	size_t length;
};

static bool ptx_parse_is(const struct ptx_reader *text, const char *word)
{
	return text->length == strlen(word) && memcmp(text->word, word, text->length) == 0;
}

static bool ptx_parse_begins(const struct ptx_reader *text, const char *with)
{
	const size_t length = strlen(with);

	return (size_t)(text->end - text->at) >= length && memcmp(text->at, with, length) == 0;
}

/* To behind @what, or the end. */
static void ptx_parse_skip_to(struct ptx_reader *text, const char *what)
{
	while (text->at < text->end && !ptx_parse_begins(text, what))
		text->at++;
	if (text->at < text->end)
		text->at += strlen(what);
}

static void ptx_parse_skip_blanks(struct ptx_reader *text)
{
	while (text->at < text->end) {
		if (isspace((unsigned char)*text->at)) {
			text->at++;
		} else if (ptx_parse_begins(text, "//")) {
			ptx_parse_skip_to(text, "\n");
		} else if (ptx_parse_begins(text, "/*")) {
			text->at += 2;
			ptx_parse_skip_to(text, "*/");
		} else if (*text->at == '"') {
			text->at++;
			ptx_parse_skip_to(text, "\"");
		} else {
			return;
		}
	}
}

static bool ptx_parse_is_of_word(char c)
{
	return isalnum((unsigned char)c) || (c && strchr("._$%", c));
}

/* Return: whether there is another word. */
static bool ptx_parse_next(struct ptx_reader *text)
{
	ptx_parse_skip_blanks(text);
	if (text->at == text->end || !*text->at)
		return false;
	text->word = text->at++;
	while (ptx_parse_is_of_word(*text->word) && text->at < text->end && ptx_parse_is_of_word(*text->at))
		text->at++;
	text->length = (size_t)(text->at - text->word);
	return true;
}

static uint64_t ptx_parse_multiply(uint64_t a, uint64_t b)
{
	return __builtin_mul_overflow(a, b, &a) ? UINT64_MAX : a;
}

/* Of a type. Return: 0 if it is none. */
static uint64_t ptx_parse_element(const struct ptx_reader *text)
{
	static const struct {
		const char *type;
		uint64_t bytes;
	} types[] = {
		{".b8", 1},   {".u8", 1},  {".s8", 1},    {".b16", 2},   {".u16", 2},    {".s16", 2}, {".f16", 2},
		{".bf16", 2}, {".b32", 4}, {".u32", 4},   {".s32", 4},   {".f32", 4},    {".b64", 8}, {".u64", 8},
		{".s64", 8},  {".f64", 8}, {".b128", 16}, {".f16x2", 4}, {".bf16x2", 4},
	};

	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		if (ptx_parse_is(text, types[i].type))
			return types[i].bytes;
	return 0;
}

static uint64_t ptx_parse_number(const struct ptx_reader *text)
{
	char digits[24] = "";

	if (text->length < sizeof(digits))
		memcpy(digits, text->word, text->length);
	return strtoull(digits, NULL, 0);
}

/* Behind "[", to "]". */
static uint64_t ptx_parse_dimension(struct ptx_reader *text)
{
	uint64_t product = 1;

	while (ptx_parse_next(text) && !ptx_parse_is(text, "]"))
		if (!ptx_parse_is(text, "*"))
			product = ptx_parse_multiply(product, ptx_parse_number(text));
	return product;
}

/* Behind "=", to what comes behind the values. Return: whether there is another word. */
static bool ptx_parse_skip_values(struct ptx_reader *text)
{
	int depth = 0;

	while (ptx_parse_next(text)) {
		depth += ptx_parse_is(text, "{") - ptx_parse_is(text, "}");
		if (depth <= 0 && (ptx_parse_is(text, ",") || ptx_parse_is(text, ";")))
			return true;
	}
	return false;
}

/* Behind ".global". */
static uint64_t ptx_parse_count(struct ptx_reader *text)
{
	uint64_t width = 1, element = 0, bytes = 0, sum = 0;

	while (ptx_parse_next(text)) {
		if (ptx_parse_is(text, ".align")) {
			if (!ptx_parse_next(text))
				break;
		} else if (ptx_parse_is(text, ".v2") || ptx_parse_is(text, ".v4")) {
			width = text->word[2] == '2' ? 2 : 4;
		} else if (ptx_parse_element(text)) {
			element = ptx_parse_element(text) * width;
			bytes = element;
		} else if (ptx_parse_is(text, "[")) {
			bytes = ptx_parse_multiply(bytes, ptx_parse_dimension(text));
		}
		if (ptx_parse_is(text, "=") && !ptx_parse_skip_values(text))
			break;
		if (!ptx_parse_is(text, ",") && !ptx_parse_is(text, ";"))
			continue;
		if (__builtin_add_overflow(sum, bytes, &sum))
			return UINT64_MAX;
		bytes = element;
		if (ptx_parse_is(text, ";"))
			break;
	}
	return sum;
}

/* In parentheses are parameters: there ".ptr .global" says where a pointer leads. */
uint64_t ptx_parse_count_globals(const uint8_t *image, uint64_t bytes)
{
	struct ptx_reader text = {.at = (const char *)image, .end = (const char *)image + bytes};
	uint64_t sum = 0;
	bool is_extern = false;
	int depth = 0;

	while (ptx_parse_next(&text)) {
		depth += ptx_parse_is(&text, "(") - ptx_parse_is(&text, ")");
		/* The variable of another module. */
		if (ptx_parse_is(&text, ".extern"))
			is_extern = true;
		else if (ptx_parse_is(&text, ";") || ptx_parse_is(&text, ")"))
			is_extern = false;
		if (!ptx_parse_is(&text, ".global") || depth > 0)
			continue;
		const uint64_t counted = ptx_parse_count(&text);

		if (!is_extern && __builtin_add_overflow(sum, counted, &sum))
			return UINT64_MAX;
		is_extern = false;
	}
	return sum;
}

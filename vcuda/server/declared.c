/* SPDX-License-Identifier: Apache-2.0 */

/*
 * ".visible .global .align 4 .v2 .f32 name[16][4] = {...}, other;" is read, as NVIDIA documents it in "Parallel Thread
 * Execution ISA". Of everything else only words, comments and strings are told apart.
 */

#include "vcuda/server/declared.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

struct declared {
	const char *at, *end;
	const char *word; /* or one character */
	size_t length;
};

static bool declared_is(const struct declared *text, const char *word)
{
	return text->length == strlen(word) && memcmp(text->word, word, text->length) == 0;
}

static bool declared_begins(const struct declared *text, const char *with)
{
	const size_t length = strlen(with);

	return (size_t)(text->end - text->at) >= length && memcmp(text->at, with, length) == 0;
}

/* To behind @what, or the end. */
static void declared_skip_to(struct declared *text, const char *what)
{
	while (text->at < text->end && !declared_begins(text, what))
		text->at++;
	if (text->at < text->end)
		text->at += strlen(what);
}

static void declared_skip_blanks(struct declared *text)
{
	while (text->at < text->end) {
		if (isspace((unsigned char)*text->at)) {
			text->at++;
		} else if (declared_begins(text, "//")) {
			declared_skip_to(text, "\n");
		} else if (declared_begins(text, "/*")) {
			text->at += 2;
			declared_skip_to(text, "*/");
		} else if (*text->at == '"') {
			text->at++;
			declared_skip_to(text, "\"");
		} else {
			return;
		}
	}
}

static bool declared_is_of_word(char c)
{
	return isalnum((unsigned char)c) || (c && strchr("._$%", c));
}

/* Return: whether there is another word. */
static bool declared_next(struct declared *text)
{
	declared_skip_blanks(text);
	if (text->at == text->end || !*text->at)
		return false;
	text->word = text->at++;
	while (declared_is_of_word(*text->word) && text->at < text->end && declared_is_of_word(*text->at))
		text->at++;
	text->length = (size_t)(text->at - text->word);
	return true;
}

static uint64_t declared_multiply(uint64_t a, uint64_t b)
{
	return __builtin_mul_overflow(a, b, &a) ? UINT64_MAX : a;
}

/* Of a type. Return: 0 if it is none. */
static uint64_t declared_element(const struct declared *text)
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
		if (declared_is(text, types[i].type))
			return types[i].bytes;
	return 0;
}

static uint64_t declared_number(const struct declared *text)
{
	char digits[24] = "";

	if (text->length < sizeof(digits))
		memcpy(digits, text->word, text->length);
	return strtoull(digits, NULL, 0);
}

/* Behind "[", to "]". */
static uint64_t declared_dimension(struct declared *text)
{
	uint64_t product = 1;

	while (declared_next(text) && !declared_is(text, "]"))
		if (!declared_is(text, "*"))
			product = declared_multiply(product, declared_number(text));
	return product;
}

/* Behind "=", to what comes behind the values. Return: whether there is another word. */
static bool declared_skip_values(struct declared *text)
{
	int depth = 0;

	while (declared_next(text)) {
		depth += declared_is(text, "{") - declared_is(text, "}");
		if (depth <= 0 && (declared_is(text, ",") || declared_is(text, ";")))
			return true;
	}
	return false;
}

/* Behind ".global". */
static uint64_t declared_count(struct declared *text)
{
	uint64_t element = 0, bytes = 0, sum = 0;

	while (declared_next(text)) {
		if (declared_is(text, ".align")) {
			if (!declared_next(text))
				break;
		} else if (declared_is(text, ".v2") || declared_is(text, ".v4")) {
			bytes = text->word[2] == '2' ? 2 : 4;
		} else if (declared_element(text)) {
			element = declared_multiply(declared_element(text), bytes ? bytes : 1);
			bytes = element;
		} else if (declared_is(text, "[")) {
			bytes = declared_multiply(bytes, declared_dimension(text));
		}
		if (declared_is(text, "=") && !declared_skip_values(text))
			break;
		if (!declared_is(text, ",") && !declared_is(text, ";"))
			continue;
		if (__builtin_add_overflow(sum, bytes, &sum))
			return UINT64_MAX;
		bytes = element;
		if (declared_is(text, ";"))
			break;
	}
	return sum;
}

uint64_t declared_count_globals(const uint8_t *image, uint64_t bytes)
{
	struct declared text = {.at = (const char *)image, .end = (const char *)image + bytes};
	uint64_t sum = 0;
	bool elsewhere = false;

	while (declared_next(&text)) {
		/* The variable of another module. */
		if (declared_is(&text, ".extern"))
			elsewhere = true;
		else if (declared_is(&text, ";") || declared_is(&text, ")"))
			elsewhere = false;
		if (!declared_is(&text, ".global"))
			continue;
		const uint64_t of = declared_count(&text);

		if (!elsewhere && __builtin_add_overflow(sum, of, &sum))
			return UINT64_MAX;
		elsewhere = false;
	}
	return sum;
}

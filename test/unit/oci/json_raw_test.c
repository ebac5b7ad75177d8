/* SPDX-License-Identifier: Apache-2.0 */

/* What is not looked at is not parsed, and comes out as it went in. */

#include "unit.h"

#include <errno.h>

#include "base/json.h"
#include "base/str.h"
#include "oci/json_raw.h"

static const struct json_raw inner[] = {{"calls", NULL}, {"none", NULL}, {NULL, NULL}};
static const struct json_raw raws[] = {{"notes", NULL}, {"part", inner}, {NULL, NULL}};

/* Long enough to be left out. */
#define LONG "\"0123456789012345678901234567890123456789012345678901234567890123456789\""

static char *round_trip(const char *text, const char *member)
{
	_cleanup_json_ json_t *json = NULL;
	char *result = NULL;

	assert_int_equal(json_parse_skipping(text, strlen(text), raws, &json, NULL), 0);
	assert_true(json_is_string(json_at(json, member)));
	assert_int_equal(json_print_restoring(json, JSON_COMPACT, text, &result), 0);
	return result;
}

static void test_stays_text(void **unused)
{
	static const char *const texts[] = {
		"{\"part\":{\"calls\":{\"names\":[" LONG ",{\"a\":[[]]}]}}}",
		"{\"a\":1,\"part\":{\"b\":[1,{\"calls\":2}],\"calls\":[" LONG "],\"c\":null},\"notes\":[" LONG
		"],\"d\":true}",
		"{\"part\":{\"calls\":[\"}]\\\"\\\\\",{\"large\":18446744073709551615}," LONG
		"]},\"e\":18446744073709551615}",
		"{\"part\":{\"calls\":[ 1 , 1e999,\n\t2.50 , \"\\u0041\", " LONG "]}}",
		"{\"part\":{\"calls\":[\"\\u00020123456789abcdef1+2\"," LONG "]},\"f\":\"\\u00020123456789abcdef1+2\"}",
	};

	(void)unused;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		_cleanup_free_ char *text = round_trip(texts[i], "part/calls");

		assert_string_equal(text, texts[i]);
	}
}

static void test_blanks(void **unused)
{
	_cleanup_free_ char *text = NULL;

	(void)unused;
	text = round_trip(" {\n\t\"part\" : { \"calls\" : [ " LONG " ] , \"b\" : 1 } ,\r\"a\" : [ 2 ] } \n",
			  "part/calls");
	assert_string_equal(text, "{\"part\":{\"calls\":[ " LONG " ],\"b\":1},\"a\":[2]}");
}

static void test_other_types(void **unused)
{
	static const char *const texts[] = {
		"{}",
		"{\"part\":[{\"calls\":[1,2]}]}",
		"{\"part\":null,\"notes\":1}",
		"{\"part\":{},\"notes\":\"short\"}",
		"{\"a\":{\"part\":{\"calls\":[3]}},\"calls\":[4],\"partly\":{\"calls\":[5]}}",
	};

	(void)unused;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		_cleanup_json_ json_t *partly = NULL, *whole = NULL;

		assert_int_equal(json_parse_skipping(texts[i], strlen(texts[i]), raws, &partly, NULL), 0);
		assert_int_equal(json_parse(texts[i], strlen(texts[i]), &whole, NULL), 0);
		assert_true(json_equal(partly, whole));
	}
}

/* A name written in another way is parsed, and twice the same name is refused whatever is left out. */
static void test_names(void **unused)
{
	static const char escaped[] = "{\"part\":{\"\\u0063alls\":[" LONG "]}}";
	static const char *const twice[] = {
		"{\"notes\":[" LONG "],\"notes\":[" LONG "]}",
		"{\"part\":{\"calls\":[" LONG "],\"\\u0063alls\":1}}",
		"{\"part\":{},\"part\":{\"calls\":[" LONG "]}}",
	};
	_cleanup_json_ json_t *json = NULL;

	(void)unused;
	assert_int_equal(json_parse_skipping(escaped, strlen(escaped), raws, &json, NULL), 0);
	assert_true(json_is_array(json_at(json, "part/calls")));
	for (size_t i = 0; i < ARRAY_SIZE(twice); i++) {
		json_t *none = NULL;

		assert_int_equal(json_parse_skipping(twice[i], strlen(twice[i]), raws, &none, NULL), -EINVAL);
	}
}

/* The parser's words are of the whole text. Each text is also cut at every byte. */
static void test_refused(void **unused)
{
	static const char *const texts[] = {
		"{\"part\":{\"calls\":[" LONG "]}} {",
		"{\"part\":{\"calls\":[" LONG "]},}",
		"{\"part\":{\"calls\":[" LONG "],\"a\":[1,]}}",
		"{\"part\":{\"calls\":\"" LONG "\"}}",
		"{\"part\":{\"calls\":[" LONG "}",
		"{\"part\":{\"calls\" [" LONG "]}}",
		"{part:{\"calls\":[" LONG "]}}",
		"",
	};
	static const char with_nul[] = "{\"part\":{\"calls\":[" LONG "\0]}}";
	static const char good[] =
		"{\"part\":{\"calls\":{\"a\\\"\":[" LONG ",1.5,{}],\"b\":[]},\"c\":true},\"notes\":[-1]}";

	json_t *none = NULL;

	(void)unused;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		char partly[JSON_ERROR_TEXT_LENGTH] = "", whole[JSON_ERROR_TEXT_LENGTH] = "";
		json_t *json = NULL;

		assert_int_equal(json_parse_skipping(texts[i], strlen(texts[i]), raws, &json, partly), -EINVAL);
		assert_int_equal(json_parse(texts[i], strlen(texts[i]), &json, whole), -EINVAL);
		assert_string_equal(partly, whole);
	}
	assert_int_equal(json_parse_skipping(with_nul, sizeof(with_nul) - 1, raws, &none, NULL), -EINVAL);
	for (size_t length = 0; length < strlen(good); length++) {
		_cleanup_free_ char *exact = malloc(length + 1); /* a sanitizer sees what is read behind it */
		json_t *json = NULL;

		memcpy(exact, good, length);
		exact = realloc(exact, length ? length : 1);
		assert_int_equal(json_parse_skipping(exact, length, raws, &json, NULL), -EINVAL);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stays_text), cmocka_unit_test(test_blanks),  cmocka_unit_test(test_other_types),
		cmocka_unit_test(test_names),      cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

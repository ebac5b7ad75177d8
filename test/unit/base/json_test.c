/* SPDX-License-Identifier: Apache-2.0 */

/* JSON of others: what is refused, and what must come out as it went in. */

#include "unit.h"

#include <errno.h>

#include "base/json.h"
#include "base/str.h"

static char *round_trip(const char *text)
{
	_cleanup_json_ json_t *json = NULL;
	char *result = NULL;

	assert_int_equal(json_parse_to_print(text, strlen(text), &json, NULL), 0);
	assert_int_equal(json_print(json, JSON_COMPACT | JSON_ENCODE_ANY, &result), 0);
	return result;
}

static void test_round_trips(void **unused)
{
	static const char *const texts[] = {
		"{\"hard\":18446744073709551615}",
		"{\"hard\":18446744073709551615,\"soft\":18446744073709551615,\"type\":\"RLIMIT_CORE\"}",
		"[9223372036854775807,9223372036854775808,-9223372036854775808,-9223372036854775809]",
		"[123456789012345678901234567890123456789012345678901234567890]",
		"{\"18446744073709551615\":18446744073709551615,\"text\":\"18446744073709551616 \\\"18446744073709551617\\\" \\\\\"}",
		"{\"z\":1,\"a\":[true,null,{\"large\":[[18446744073709551615]]}]}",
		"[\"\\u00011234567890abcdef18446744073709551615\",18446744073709551615]",
	};

	(void)unused;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		_cleanup_free_ char *text = round_trip(texts[i]);

		assert_string_equal(text, texts[i]);
	}
}

static void test_large_is_no_integer(void **unused)
{
	static const char text[] = " { \"a\" : 18446744073709551615 , \"b\" : 2 } ";
	_cleanup_json_ json_t *json = NULL;

	(void)unused;
	assert_int_equal(json_parse(text, strlen(text), &json, NULL), 0);
	assert_true(json_is_real(json_object_get(json, "a")));
	assert_int_equal(json_integer_value(json_object_get(json, "b")), 2);
}

static void test_refused(void **unused)
{
	static const char *const bad[] = {
		"",
		"{",
		"[1,]",
		"[18446744073709551615,]",
		"[18446744073709551615",
		"{18446744073709551615:1}",
		"{\"a\":1,18446744073709551615 :1,\"b\":18446744073709551615}",
		"[018446744073709551615]",
		"[-]",
		"[--18446744073709551615]",
		"[18446744073709551615 1]",
		"[1844674407370955161518446744073709551615e999999]",
		"[1e999]",
		"[18446744073709551615,\"a]",
		"[18446744073709551615,\"\\",
		"{\"a\":18446744073709551615,\"a\":1}",
		"[\"\\u0000\"]",
		"[18446744073709551615,\"\\u0000\"]",
		"{\"a\":\"\xff\"}",
	};

	(void)unused;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		char reason[JSON_ERROR_TEXT_LENGTH] = "";
		json_t *json = NULL;

		assert_int_equal(json_parse(bad[i], strlen(bad[i]), &json, reason), -EINVAL);
		assert_null(json);
		assert_true(reason[0] != '\0');
	}
}

/* A value takes a hundred times the memory of its text. What looks like values in a string is one. */
static void test_number_of_values(void **unused)
{
	static char text[2 * JSON_MAX_VALUES + 16];
	char reason[JSON_ERROR_TEXT_LENGTH] = "";
	const size_t most = JSON_MAX_VALUES - 2; /* commas, besides the array and its first value */
	json_t *json = NULL;

	(void)unused;
	text[0] = '[';
	for (size_t i = 0; i <= most; i++)
		memcpy(text + 1 + 2 * i, i < most ? "0," : "0]", 2);
	assert_int_equal(json_parse(text, 2 * most + 3, &json, reason), 0);
	assert_int_equal(json_array_size(json), most + 1);
	json_decref(json);
	memcpy(text + 2 * most + 2, ",0]", 3);
	assert_int_equal(json_parse(text, 2 * most + 5, &json, reason), -EINVAL);
	assert_string_equal(reason, "more than 131072 values");
	memset(text + 1, ',', sizeof(text) - 2);
	text[1] = text[sizeof(text) - 2] = '"';
	text[sizeof(text) - 1] = ']';
	assert_int_equal(json_parse(text, sizeof(text), &json, reason), 0);
	json_decref(json);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trips),
		cmocka_unit_test(test_large_is_no_integer),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_number_of_values),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

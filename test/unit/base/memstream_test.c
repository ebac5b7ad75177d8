/* SPDX-License-Identifier: Apache-2.0 */

#include "unit.h"

#include <errno.h>

#include "base/str.h"

static int reallocs_left = -1; /* below zero: any number */

void *__real_realloc(void *memory, size_t size);
void *__wrap_realloc(void *memory, size_t size);

void *__wrap_realloc(void *memory, size_t size)
{
	if (reallocs_left == 0) {
		/* The next may have memory again: what was lost in between is lost. */
		reallocs_left = -1;
		return NULL;
	}
	reallocs_left -= reallocs_left > 0;
	return __real_realloc(memory, size);
}

static void all_that_is_printed_is_there(void **state)
{
	static const size_t lengths[] = {0, 1, 1022, 1023, 1024, 1025, 4095, 4096, 100000};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
		struct memstream stream;
		size_t size = 1;
		char *text;

		assert_non_null(memstream_open(&stream));
		for (size_t written = 0; written < lengths[i]; written++)
			(void)fputc('a' + (int)(written % 26), stream.file);
		assert_int_equal(memstream_close(&stream, &text, &size), 0);
		assert_int_equal(size, lengths[i]);
		assert_int_equal(strlen(text), lengths[i]);
		for (size_t at = 0; at < size; at++)
			assert_int_equal(text[at], 'a' + (int)(at % 26));
		free(text);
	}
}

static void the_end_of_memory_is_told(void **state)
{
	struct memstream stream;
	char *text = NULL;

	(void)state;
	for (int left = 0; left < 5; left++) {
		assert_non_null(memstream_open(&stream));
		reallocs_left = left;
		for (int i = 0; i < 1000; i++)
			(void)fprintf(stream.file, "%0256d", i);
		assert_int_equal(memstream_close(&stream, &text, NULL), -ENOMEM);
		assert_null(text);
	}
	reallocs_left = -1;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_that_is_printed_is_there),
		cmocka_unit_test(the_end_of_memory_is_told),
	};

	return cmocka_run_group_tests_name("memstream", tests, NULL, NULL);
}

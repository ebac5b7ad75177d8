/* SPDX-License-Identifier: Apache-2.0 */

#include "unit.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Beside the C library's, which the test itself is linked with. */
#define malloc memory_malloc
#define free memory_free
#define calloc memory_calloc
#define realloc memory_realloc
void *malloc(size_t size);
void free(void *data);
void *calloc(size_t count, size_t size);
void *realloc(void *old, size_t size);
#include "hooks/bump_allocator.c"

static bool is_zero(const unsigned char *data, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (data[i])
			return false;
	return true;
}

static void blocks_are_apart_and_aligned(void **state)
{
	unsigned char *blocks[64];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(blocks); i++) {
		blocks[i] = malloc(i * 7);
		assert_non_null(blocks[i]);
		assert_int_equal((uintptr_t)blocks[i] % 16, 0);
		memset(blocks[i], (int)i + 1, i * 7);
	}
	for (size_t i = 0; i < ARRAY_SIZE(blocks); i++)
		for (size_t j = 0; j < i * 7; j++)
			assert_int_equal(blocks[i][j], i + 1);
}

static void only_the_newest_is_taken_back(void **state)
{
	unsigned char *first_block = malloc(100), *second = malloc(100), *third;

	(void)state;
	memset(second, 0xff, 100);
	free(first_block);
	free(second);
	third = calloc(10, 10);
	assert_ptr_equal(third, second);
	assert_true(is_zero(third, 100));
	assert_ptr_not_equal(malloc(100), first_block);
	free(NULL);
}

static void growing_keeps_the_content(void **state)
{
	unsigned char *newest = realloc(NULL, 10), *grown, *moved;

	(void)state;
	memset(newest, 7, 10);
	grown = realloc(newest, 1000);
	assert_ptr_equal(grown, newest);
	assert_int_equal(grown[9], 7);
	assert_true(is_zero(grown + 16, 1000 - 16));
	assert_non_null(malloc(1));
	moved = realloc(grown, 2000);
	assert_ptr_not_equal(moved, grown);
	assert_int_equal(moved[9], 7);
	assert_ptr_equal(realloc(moved, 5), moved);
}

/* Beyond what the program brings along, and more than one area has. */
static void much_is_given(void **state)
{
	static const size_t sizes[] = {FIRST_SIZE, AREA_SIZE - 64, AREA_SIZE, 3 * (size_t)AREA_SIZE};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		unsigned char *data = malloc(sizes[i]), *behind = malloc(1);

		assert_non_null(data);
		assert_true(is_zero(data, sizes[i]));
		memset(data, 1, sizes[i]);
		*behind = 2;
		free(data);
		assert_int_equal(data[sizes[i] - 1], 1);
		assert_int_equal(*behind, 2);
	}
}

static void too_much_is_refused(void **state)
{
	volatile size_t most = SIZE_MAX;
	unsigned char *data = malloc(1);

	(void)state;
	assert_null(malloc(most));
	assert_null(malloc(most / 2));
	assert_null(malloc(most / 4));
	assert_int_equal(errno, ENOMEM);
	assert_null(calloc(most / 2, 4));
	assert_null(realloc(data, most));
	assert_non_null(realloc(data, 2));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(blocks_are_apart_and_aligned), cmocka_unit_test(only_the_newest_is_taken_back),
		cmocka_unit_test(growing_keeps_the_content),    cmocka_unit_test(much_is_given),
		cmocka_unit_test(too_much_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

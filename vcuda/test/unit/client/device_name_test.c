/* SPDX-License-Identifier: Apache-2.0 */

/* What CUDA_VISIBLE_DEVICES says. */

#include "unit.h"

#include <string.h>

#include "vcuda/client/device_name.h"

enum { DEVICES = 3 };
static struct wire_device devices[DEVICES];

/* UUIDs that begin with GPU-a0000000, GPU-a1000000 and GPU-b0000000. */
static void make_devices(void)
{
	static const uint8_t first[DEVICES] = {0xa0, 0xa1, 0xb0};

	for (int i = 0; i < DEVICES; i++)
		devices[i].uuid[0] = first[i];
}

/* The numbers as a text: "2 0", or "twice". */
static const char *chosen(const char *text)
{
	static char numbers[64];
	uint8_t list[START_GPUS];
	unsigned count;
	CUresult r;

	make_devices();
	r = device_name_choose(text, devices, DEVICES, list, &count);
	numbers[0] = '\0';
	if (r == CUDA_ERROR_INVALID_DEVICE)
		return "twice";
	assert_int_equal(r, count ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE);
	for (unsigned i = 0; i < count; i++)
		(void)snprintf(numbers + strlen(numbers), sizeof(numbers) - strlen(numbers), "%s%u", i ? " " : "",
			       list[i]);
	return numbers;
}

static void numbers_and_their_order_are_kept(void **state)
{
	(void)state;
	assert_string_equal(chosen("0"), "0");
	assert_string_equal(chosen("2,0"), "2 0");
	assert_string_equal(chosen("0,1,2"), "0 1 2");
}

static void what_is_no_gpu_ends_the_list(void **state)
{
	(void)state;
	assert_string_equal(chosen("1,3,0"), "1");
	assert_string_equal(chosen("1,-1,0"), "1");
	assert_string_equal(chosen("1,none"), "1");
	assert_string_equal(chosen("1,"), "1");
	assert_string_equal(chosen("-1"), "");
	assert_string_equal(chosen(""), "");
	assert_string_equal(chosen("NoDevFiles"), "");
	assert_string_equal(chosen(",1"), "");
	assert_string_equal(chosen("1,,0"), "1");
}

static void uuids_may_be_cut_short(void **state)
{
	(void)state;
	assert_string_equal(chosen("GPU-b0000000-0000-0000-0000-000000000000"), "2");
	assert_string_equal(chosen("GPU-b,GPU-a0"), "2 0");
	/* Two begin like this. */
	assert_string_equal(chosen("GPU-b,GPU-a"), "2");
	assert_string_equal(chosen("GPU-b0000000-0000-0000-0000-0000000000000"), "");
	assert_string_equal(chosen("GPU-c"), "");
	assert_string_equal(chosen("GPU-"), "");
	assert_string_equal(chosen("gpu-b0000000"), "");
	assert_string_equal(chosen("MIG-b0000000"), "");
}

/* As an H100's driver 580 took them. */
static void numbers_are_read_as_the_driver_does(void **state)
{
	(void)state;
	assert_string_equal(chosen(" 1"), "1");
	assert_string_equal(chosen("1 , 2"), "1 2");
	assert_string_equal(chosen("+1"), "1");
	assert_string_equal(chosen("01"), "1");
	assert_string_equal(chosen("1a"), "1");
	assert_string_equal(chosen("1;2"), "1");
	assert_string_equal(chosen("1.9"), "1");
	assert_string_equal(chosen("0x1"), "0");
	assert_string_equal(chosen("4294967297"), "1");
}

static void what_is_named_twice_is_an_error(void **state)
{
	(void)state;
	assert_string_equal(chosen("0,0"), "twice");
	assert_string_equal(chosen("GPU-b,GPU-b0"), "twice");
	assert_string_equal(chosen("0,7,0"), "0");
}

static void numbers_and_uuids_are_not_mixed(void **state)
{
	(void)state;
	assert_string_equal(chosen("1,GPU-a1"), "1");
	assert_string_equal(chosen("GPU-a1,1,0"), "1");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_and_their_order_are_kept),
		cmocka_unit_test(what_is_no_gpu_ends_the_list),
		cmocka_unit_test(uuids_may_be_cut_short),
		cmocka_unit_test(numbers_are_read_as_the_driver_does),
		cmocka_unit_test(what_is_named_twice_is_an_error),
		cmocka_unit_test(numbers_and_uuids_are_not_mixed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

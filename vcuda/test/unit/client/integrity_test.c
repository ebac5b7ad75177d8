/* SPDX-License-Identifier: Apache-2.0 */

/* The check value: its hash as RFC 1319 has it, and that it is of all that it has to be of. */

#include "unit.h"

#include "vcuda/client/integrity.c"

struct client client;
static int version = 13000, gpus = 1, bus = 2;
static struct table_addresses addresses = {&version, &gpus, &bus};

void table_tell_addresses(struct table_addresses *ret)
{
	*ret = addresses;
}

CUresult cuDriverGetVersion(int *ret)
{
	*ret = version;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int *count)
{
	*count = gpus;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device)
{
	memset(uuid->bytes, device + 1, sizeof(uuid->bytes));
	return device < 2 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
	*value = attribute == PCI_BUS ? bus : device;
	return CUDA_SUCCESS;
}

static void test_hash(void **state)
{
	/* Of the RFC's appendix. */
	static const struct {
		const char *text, *digest;
	} cases[] = {
		{"", "8350e5a3e24c153df2275c9f80692773"},
		{"a", "32ec01ec4a6dac72c0ab96fb34c0b5d1"},
		{"abc", "da853b0d3f88d99b30283a69e6ded6bb"},
		{"message digest", "ab4f496bfb2a530b219ff33031fe06b0"},
		{"abcdefghijklmnopqrstuvwxyz", "4e8ddff3650292ab5a4108c3aa47940b"},
		{"12345678901234567890123456789012345678901234567890123456789012345678901234567890",
		 "d5976f79d83d3a0dc9806c3c66f3efd8"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct md2 md2 = {0};
		uint8_t digest[MD2_BLOCK];
		char text[2 * MD2_BLOCK + 1];

		integrity_add(&md2, cases[i].text, strlen(cases[i].text));
		integrity_end(&md2, digest);
		for (int k = 0; k < MD2_BLOCK; k++)
			(void)snprintf(text + (size_t)(2 * k), 3, "%02x", digest[k]);
		assert_string_equal(text, cases[i].digest);
	}
}

static bool changes(const uint64_t before[2], uint32_t asked, uint64_t seconds)
{
	uint64_t after[2];

	assert_int_equal(table_integrity(asked, seconds, after), CUDA_SUCCESS);
	return memcmp(before, after, sizeof(after)) != 0;
}

static void test_of_everything(void **state)
{
	uint64_t value[2];

	(void)state;
	assert_int_equal(table_integrity(13002, 1000, value), CUDA_SUCCESS);
	assert_false(changes(value, 13002, 1000));
	assert_true(changes(value, 13003, 1000));
	assert_true(changes(value, 13002, 1001));
	version++;
	assert_true(changes(value, 13002, 1000));
	version--;
	bus++;
	assert_true(changes(value, 13002, 1000));
	bus--;
	gpus++;
	assert_true(changes(value, 13002, 1000));
	gpus--;
	addresses.runtime = NULL;
	assert_true(changes(value, 13002, 1000));
	addresses.runtime = &version;
	assert_false(changes(value, 13002, 1000));
}

static void test_refusals(void **state)
{
	uint64_t value[2] = {1, 2};

	(void)state;
	assert_int_equal(table_integrity(13002, 1000, NULL), CUDA_ERROR_INVALID_VALUE);
	gpus = 3;
	assert_int_equal(table_integrity(13002, 1000, value), CUDA_ERROR_INVALID_DEVICE);
	gpus = 1;
	assert_int_equal(value[0], 1);
	/* Without an answer of the driver's. */
	assert_int_equal(table_integrity(13000, 1000, value), CUDA_SUCCESS);
	assert_int_equal(table_integrity(13001, 1000, value), CUDA_SUCCESS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hash),
		cmocka_unit_test(test_of_everything),
		cmocka_unit_test(test_refusals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

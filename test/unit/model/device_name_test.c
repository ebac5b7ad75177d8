/* SPDX-License-Identifier: Apache-2.0 */

#include "unit.h"

#include <errno.h>

#include "model/device_name.h"

static void each_kind_of_word_has_its_values(void **state)
{
	static const struct {
		const char *text, *name;
		enum device_name_type type;
		long number, part;
		const char *domain, *vendor;
		bool npu;
	} cases[] = {
		{"0", "0", DEVICE_NAME_NUMBER, 0, 0, NULL, NULL, false},
		{"4090", "4090", DEVICE_NAME_NUMBER, 4090, 0, NULL, NULL, false},
		{"NPU:1", "NPU:1", DEVICE_NAME_NUMBER, 1, 0, NULL, NULL, true},
		{"amd.com/npu=1", "1", DEVICE_NAME_NUMBER, 1, 0, "amd.com", NULL, true},
		{"nvidia.com/gpu=3:2", "3:2", DEVICE_NAME_PART, 3, 2, "nvidia.com", NULL, false},
		{"npu:3:2", "npu:3:2", DEVICE_NAME_OTHER, 0, 0, NULL, NULL, true},
		{"3:", "3:", DEVICE_NAME_OTHER, 0, 0, NULL, NULL, false},
		{"3:2:1", "3:2:1", DEVICE_NAME_OTHER, 0, 0, NULL, NULL, false},
		{"+1", "+1", DEVICE_NAME_OTHER, 0, 0, NULL, NULL, false},
		{"99999999999999999999", "99999999999999999999", DEVICE_NAME_OTHER, 0, 0, NULL, NULL, false},
		{"Vendor:Intel", "Vendor:Intel", DEVICE_NAME_VENDOR, 0, 0, NULL, "Intel", false},
		{"vendor:amd:7", "vendor:amd:7", DEVICE_NAME_VENDOR_NUMBER, 7, 0, NULL, "amd", false},
		{"vendor:amd:x", "vendor:amd:x", DEVICE_NAME_OTHER, 0, 0, NULL, "amd", false},
		{"ALL", "ALL", DEVICE_NAME_ALL, 0, 0, NULL, NULL, false},
		{"npu:all", "npu:all", DEVICE_NAME_ALL, 0, 0, NULL, NULL, true},
		{"npu:none", "npu:none", DEVICE_NAME_OTHER, 0, 0, NULL, NULL, true},
		{"example.com/gpu=all", "all", DEVICE_NAME_ALL, 0, 0, NULL, NULL, false},
		{"nvidia.com/gpu=none", "none", DEVICE_NAME_NONE, 0, 0, "nvidia.com", NULL, false},
		{"void", "void", DEVICE_NAME_VOID, 0, 0, NULL, NULL, false},
		{"", "", DEVICE_NAME_OTHER, 0, 0, NULL, NULL, false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_device_name_ struct device_name name = {0};

		device_name_read(strdup(cases[i].text), &name);
		if (!streq(name.text, cases[i].text) || !streq(name.name, cases[i].name) ||
		    name.type != cases[i].type || name.is_npu != cases[i].npu || !name.domain != !cases[i].domain ||
		    (name.domain && !streq(name.domain, cases[i].domain)) || !name.vendor != !cases[i].vendor ||
		    (name.vendor && strncmp(name.vendor, cases[i].vendor, name.vendor_length) != 0))
			fail_msg("%s: type %d", cases[i].text, (int)name.type);
		if (name.type >= DEVICE_NAME_VENDOR_NUMBER)
			assert_int_equal(name.number, cases[i].number);
		if (name.type == DEVICE_NAME_PART)
			assert_int_equal(name.part, cases[i].part);
	}
}

static void what_other_words_may_be(void **state)
{
	static const struct {
		const char *text;
		bool uuid, part, address, luid, vcuda;
	} cases[] = {
		{"gpu-5a3f", true, false, false, false, false},
		{"nvidia.com/gpu=MIG-1", true, true, false, false, false},
		{"3:1", false, true, false, false, false},
		{"0000:01:00.0", false, false, true, false, false},
		{"1:0.0", false, false, true, false, false},
		{"luid-0000000100000002", false, false, false, true, false},
		{"LUID-000000010000000", false, false, false, false, false},
		{"LUID-00000001000000020", false, false, false, false, false},
		{"ctr-gpu.org/vcuda=0", false, false, false, false, true},
		{"ctr-gpu.org/vcuda0", false, false, false, false, false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_device_name_ struct device_name name = {0};

		device_name_read(strdup(cases[i].text), &name);
		if (name.is_uuid != cases[i].uuid || name.is_of_part != cases[i].part ||
		    name.has_address != cases[i].address || name.has_luid != cases[i].luid ||
		    name.is_vcuda != cases[i].vcuda)
			fail_msg("%s", cases[i].text);
		if (name.has_luid)
			assert_true(name.luid.high == 1 && name.luid.low == 2);
	}
}

static void a_slot_is_a_gpus_name_and_a_number(void **state)
{
	static const struct {
		const char *text, *name;
		long slot;
		bool is_slot;
	} cases[] = {
		{"ctr-gpu.org/vgpu=GPU-5a3f1c2b-0001:3", "GPU-5a3f1c2b-0001", 3, true},
		{"ctr-gpu.org/vgpu=0000:01:00.0:31", "0000:01:00.0", 31, true},
		{"ctr-gpu.org/vgpu=0:0", "0", 0, true},
		{"ctr-gpu.org/vgpu=GPU-5a3f1c2b-0001", "GPU-5a3f1c2b-0001", -1, true},
		{"ctr-gpu.org/vgpu=GPU-5a3f1c2b:", "GPU-5a3f1c2b:", -1, true},
		{"ctr-gpu.org/vgpu=GPU-5a3f1c2b:-1", "GPU-5a3f1c2b:-1", -1, true},
		{"ctr-gpu.org/vgpu=GPU-5a3f1c2b:3x", "GPU-5a3f1c2b:3x", -1, true},
		{"ctr-gpu.org/vgpu=:3", ":3", -1, true},
		{"ctr-gpu.org/vcuda=0:3", "0:3", -1, false},
		{"GPU-5a3f1c2b:3", "GPU-5a3f1c2b:3", -1, false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_device_name_ struct device_name name = {0};

		device_name_read(strdup(cases[i].text), &name);
		if (!streq(name.name, cases[i].name) || name.slot != cases[i].slot ||
		    name.is_slot != cases[i].is_slot || (name.is_slot && !name.is_vcuda))
			fail_msg("%s: %s, %ld", cases[i].text, name.name, name.slot);
	}
}

static void a_list_has_an_end(void **state)
{
	_cleanup_device_names_ struct device_names names = {0};

	(void)state;
	assert_int_equal(device_names_split(&names, " 0,\tall ,, npu:all"), 0);
	assert_int_equal(names.count, 3);
	assert_true(device_names_have(&names, DEVICE_NAME_ALL, true));
	device_names_clear(&names);
	assert_int_equal(device_names_split(&names, "npu:all,amd.com/gpu=all"), 0);
	assert_false(device_names_have(&names, DEVICE_NAME_ALL, true));
	assert_true(device_names_have(&names, DEVICE_NAME_ALL, false));
	while (names.count < STRV_SPLIT_MAX)
		assert_int_equal(device_names_add(&names, "0"), 0);
	assert_int_equal(device_names_add(&names, "0"), -E2BIG);
	assert_int_equal(device_names_add_vendor(&names, "AMD", 0, "X"), -E2BIG);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_kind_of_word_has_its_values),
		cmocka_unit_test(what_other_words_may_be),
		cmocka_unit_test(a_slot_is_a_gpus_name_and_a_number),
		cmocka_unit_test(a_list_has_an_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */

/* What the kernel module writes below /proc, as drivers of several ages write it, and near misses. */

#include "unit.h"

#include <errno.h>

#include "nvidia/internal.h"

static const struct {
	const char *text, *version; /* NULL: none */
} versions[] = {
	{"NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build  (builder@)  \nGCC version:  15.3.0\n",
	 "580.159.04"},
	{"NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.129.03  Thu Oct 19 18:56:32 UTC 2023\nGCC version: gcc 12.2.0\n",
	 "535.129.03"},
	{"NVRM version: NVIDIA UNIX x86_64 Kernel Module  390.157  Wed Oct 12 09:19:07 UTC 2022\n", "390.157"},
	{"NVRM version: NVIDIA UNIX Open Kernel Module for aarch64  570.86.10", "570.86.10"},
	{"", NULL},
	{"NVRM version:", NULL},
	{"NVRM version: \n580.159.04\n", NULL},
	{"NVRM version: NVIDIA UNIX x86_64 Kernel Module\nGCC version: 12.2.0\n", NULL},
	{"NVRM version: x 580.159.04/../../etc\n", NULL},
	{"NVRM version: x 580\n", NULL},
	{"NVRM version: x 580.\n", NULL},
	{"NVRM version: x .580.1\n", NULL},
	{"NVRM version: x 1.2.3.4\n", NULL},
	{"NVRM version: x 580..04\n", NULL},
	{"NVRM version: x 580.11111111111111111111111111111111111111\n", NULL},
	{" NVRM version: x 580.159.04\n", NULL},
};

static void driver_versions(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(versions); i++) {
		_cleanup_free_ char *version = NULL;
		int r = proc_driver_version(versions[i].text, &version);

		if (versions[i].version && (r != 0 || !streq(version, versions[i].version)))
			fail_msg("%s: %d %s", versions[i].text, r, version);
		if (!versions[i].version && (r != -ENOENT || version))
			fail_msg("%s: %d %s", versions[i].text, r, version);
	}
}

static const char devices[] = "Character devices:\n"
			      "  1 mem\n"
			      "195 nvidia\n"
			      "195 nvidiactl\n"
			      "508 nvidia-uvm\n"
			      "99999 nvidia-huge\n"
			      "x7 nvidia-letters\n"
			      "12nvidia-blank\n"
			      "\n"
			      "Block devices:\n"
			      "  9 nvidia-caps\n";

static void device_majors(void **state)
{
	static const char *const absent[] = {"nvidi",       "nvidia-uv",      "nvidia-uvm-tools", "nvidia-caps",
					     "nvidia-huge", "nvidia-letters", "nvidia-blank",     "",
					     "vidia",       "mem\n195 nvidia"};
	unsigned major = 7;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(absent); i++)
		if (proc_device_major(devices, absent[i], &major) != -ENOENT || major != 7)
			fail_msg("%s: %u", absent[i], major);
	assert_int_equal(proc_device_major("Block devices:\n195 nvidia\n", "nvidia", &major), -ENOENT);
	assert_int_equal(proc_device_major("Character devices:", "nvidia", &major), -ENOENT);
	assert_int_equal(proc_device_major("", "nvidia", &major), -ENOENT);
	assert_int_equal(proc_device_major(devices, "nvidia", &major), 0);
	assert_int_equal(major, 195);
	assert_int_equal(proc_device_major(devices, "mem", &major), 0);
	assert_int_equal(major, 1);
	assert_int_equal(proc_device_major("Character devices:\n195 nvidia", "nvidia", &major), 0);
}

static void fields(void **state)
{
	static const char text[] =
		"Model: \t\t NVIDIA H200 \r\nModelX: no\nEmpty:\nBlank: \t\nNumber: 12\nNegative: -1\nLarge: 4294967296\n"
		"Mixed: 12a\nLast: end";
	_cleanup_free_ char *value = NULL, *last = NULL;
	unsigned number = 7;

	(void)state;
	assert_int_equal(proc_field(text, "Model", &value), 0);
	assert_string_equal(value, "NVIDIA H200");
	assert_int_equal(proc_field(text, "Last", &last), 0);
	assert_string_equal(last, "end");
	assert_int_equal(proc_field(text, "Empty", &value), -ENOENT);
	assert_int_equal(proc_field(text, "Blank", &value), -ENOENT);
	assert_int_equal(proc_field(text, "Mode", &value), -ENOENT);
	assert_int_equal(proc_field(text, "odel", &value), -ENOENT);
	assert_int_equal(proc_field("", "Model", &value), -ENOENT);
	assert_int_equal(proc_number(text, "Negative", 255, &number), -EINVAL);
	assert_int_equal(proc_number(text, "Large", 255, &number), -EINVAL);
	assert_int_equal(proc_number(text, "Mixed", 255, &number), -EINVAL);
	assert_int_equal(proc_number(text, "Number", 11, &number), -EINVAL);
	assert_int_equal(number, 7);
	assert_int_equal(proc_number(text, "Number", 12, &number), 0);
	assert_int_equal(number, 12);
}

static void a_field_is_replaced(void **state)
{
	_cleanup_free_ char *first = NULL, *last = NULL, *none = NULL;

	(void)state;
	assert_int_equal(proc_set_field("A: 1\nModifyDeviceFiles: 1\nB: 2\n", "ModifyDeviceFiles", "0", &first), 0);
	assert_string_equal(first, "A: 1\nModifyDeviceFiles: 0\nB: 2\n");
	assert_int_equal(proc_set_field("ModifyDeviceFiles:1", "ModifyDeviceFiles", "0", &last), 0);
	assert_string_equal(last, "ModifyDeviceFiles:0");
	assert_int_equal(proc_set_field("ModifyDeviceFile: 1\n", "ModifyDeviceFiles", "0", &none), -ENOENT);
	assert_null(none);
}

static void gpu_information(void **state)
{
	struct adapter adapter = {.minor = -1};
	bool excluded = false;

	(void)state;
	assert_int_equal(
		gpu_parse_information(
			"Model: \t\t NVIDIA H200\nGPU UUID: \t GPU-b703df58\nDevice Minor: \t 3\nGPU Excluded:\t Yes\n",
			&adapter, &excluded),
		0);
	assert_string_equal(adapter.name, "NVIDIA H200");
	assert_string_equal(adapter.uuid, "GPU-b703df58");
	assert_int_equal(adapter.minor, 3);
	assert_true(excluded);
	adapter_clear(&adapter);
	assert_int_equal(gpu_parse_information("GPU UUID: GPU-????????\nDevice Minor: 0\n", &adapter, &excluded), 0);
	assert_null(adapter.uuid);
	assert_null(adapter.name);
	assert_false(excluded);
	adapter_clear(&adapter);
	/* 255 is nvidiactl's, and a GPU cannot have it. */
	assert_int_equal(gpu_parse_information("Device Minor: 255\n", &adapter, &excluded), -EINVAL);
	assert_int_equal(gpu_parse_information("Model: x\n", &adapter, &excluded), -EINVAL);
	adapter_clear(&adapter);
}

static void brands(void **state)
{
	static const struct {
		const char *model, *brand;
	} cases[] = {
		{"NVIDIA GeForce RTX 4090", "geforcertx"},
		{"GeForce GTX 1080 Ti", "geforce"},
		{"Tesla V100-SXM2-32GB", "tesla"},
		{"NVIDIA H200", "nvidia"},
		{"NVIDIA GH200 480GB", "nvidia"},
		{"NVIDIA GB10", "nvidia"},
		{"NVIDIA RTX A6000", "nvidiartx"},
		{"Quadro RTX 8000", "quadrortx"},
		{"NVIDIA TITAN RTX", "titanrtx"},
		{"NVIDIA Graphics Device", NULL},
		{"A100", NULL},
		{"", NULL},
		{NULL, NULL},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const char *brand = gpu_brand(cases[i].model);

		if (brand != cases[i].brand && (!brand || !cases[i].brand || !streq(brand, cases[i].brand)))
			fail_msg("%s: %s", cases[i].model, brand);
	}
	assert_string_equal(gpu_architecture(0x2335), "9.0");  /* H200 */
	assert_string_equal(gpu_architecture(0x1db6), "7.0");  /* V100 */
	assert_string_equal(gpu_architecture(0x1d01), "6.1");  /* GT 1030 */
	assert_string_equal(gpu_architecture(0x2684), "8.9");  /* RTX 4090 */
	assert_string_equal(gpu_architecture(0x2420), "8.6");  /* RTX 3080 Ti, mobile */
	assert_string_equal(gpu_architecture(0x2f04), "12.0"); /* RTX 5070 */
	assert_string_equal(gpu_architecture(0x2e12), "12.1"); /* GB10 */
	assert_string_equal(gpu_architecture(0x3182), "10.3"); /* B300 */
	assert_null(gpu_architecture(0));
	assert_null(gpu_architecture(0xffff));
}

/* Every library has a capability and a meaning, and none stands there twice. */
static void table(void **state)
{
	(void)state;
	assert_ptr_equal(driver_library_find("libcuda.so", 7)->stem, driver_library_find("libcuda", 7)->stem);
	assert_null(driver_library_find("libcud", 6));
	assert_null(driver_library_find("libcudadebugge", 14));
	assert_null(driver_library_find("libcuda-of-a-name-that-is-longer-than-any", 41));
	assert_null(driver_library_find("libcuda-of-a-name-that-is-longer-than-any", 32));
	assert_null(driver_library_find("libcudb", 7));
	assert_null(driver_library_find("libcuda", 0));
	for (size_t i = 0; i < driver_library_count; i++) {
		const struct driver_library *library = &driver_libraries[i];

		assert_true(str_has_prefix(library->stem, "lib"));
		assert_int_not_equal(library->capabilities, 0);
		assert_true(strlen(library->meaning) > 2);
		assert_true(!library->own_version || library->soversion);
		assert_true(!library->development || library->soversion);
		assert_ptr_equal(driver_library_find(library->stem, strlen(library->stem)), library);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(driver_versions), cmocka_unit_test(device_majors),       cmocka_unit_test(fields),
		cmocka_unit_test(gpu_information), cmocka_unit_test(a_field_is_replaced), cmocka_unit_test(brands),
		cmocka_unit_test(table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

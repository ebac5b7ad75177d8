/* SPDX-License-Identifier: Apache-2.0 */

#include "unit.h"

#include "model/adapter.h"

static void addresses(void **state)
{
	static const struct {
		const char *text;
		struct pci_address address;
		uint32_t number;
	} cases[] = {
		{"0000:01:00.0", {0, 1, 0, 0}, 0x100},
		{"00000000:01:00.0", {0, 1, 0, 0}, 0x100},
		{"01:00.0", {0, 1, 0, 0}, 0x100},
		{"1:0.0", {0, 1, 0, 0}, 0x100},
		{"00ab:cD:1f.7", {0xab, 0xcd, 0x1f, 7}, 0xabcdff},
		{"ffff:ff:1f.7", {0xffff, 0xff, 0x1f, 7}, 0xffffffff},
		{"10000:01:00.0", {0x10000, 1, 0, 0}, 0},
		{"ffffffff:ff:1f.7", {0xffffffff, 0xff, 0x1f, 7}, 0},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct pci_address address;

		if (!pci_address_read(cases[i].text, &address) || !pci_address_equal(&address, &cases[i].address) ||
		    pci_address_number(cases[i].text) != cases[i].number)
			fail_msg("\"%s\"", cases[i].text);
	}
}

static void near_misses(void **state)
{
	static const char *const cases[] = {
		"",
		":",
		"01",
		"01:00",
		"01:00.",
		"01:.0",
		":00.0",
		"0000:01:00",
		"0000:01:00.",
		"0000::00.0",
		":01:00.0",
		"0:0000:01:00.0",
		"01:00.0 ",
		" 01:00.0",
		"01:00.0.0",
		"01:00.0x",
		"01:00.00",
		"01:000.0",
		"001:00.0",
		"01:20.0",
		"01:00.8",
		"0x:01:00.0",
		"0000:0x:00.0",
		"0000:01:0x.0",
		"0x0:01:00.0",
		"+1:00.0",
		"0000:-1:0.0",
		"0000:01: 0.0",
		"000000000:01:00.0",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct pci_address address;

		if (pci_address_read(cases[i], &address) || pci_address_number(cases[i]) != 0)
			fail_msg("\"%s\"", cases[i]);
	}
}

static void each_part_counts(void **state)
{
	static const char *const others[] = {"0002:02:03.4", "0001:03:03.4", "0001:02:04.4", "0001:02:03.5"};
	struct pci_address one, other;

	(void)state;
	assert_true(pci_address_read("0001:02:03.4", &one));
	for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
		assert_true(pci_address_read(others[i], &other));
		assert_false(pci_address_equal(&one, &other));
	}
}

static void names_are_as_the_kernel_writes_them(void **state)
{
	static const char *const names[] = {"0000:00:06.0", "0001:AB:1f.7", "10000:01:00.0", "00000000:01:00.0"};
	static const char *const others[] = {"",
					     ".",
					     "..",
					     "0000:00:06",
					     "0000:00:06.8",
					     "000:00:06.0",
					     "000000000:00:06.0",
					     "0000:0g:06.0",
					     "0000:00:06.0x",
					     "0000:00/06.0",
					     "../00:06.0",
					     "00:06.0",
					     "0000:0:06.0"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		assert_true(pci_address_is_name(names[i]));
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		assert_false(pci_address_is_name(others[i]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(addresses),
		cmocka_unit_test(near_misses),
		cmocka_unit_test(each_part_counts),
		cmocka_unit_test(names_are_as_the_kernel_writes_them),
	};

	return cmocka_run_group_tests_name("pci_address", tests, NULL, NULL);
}

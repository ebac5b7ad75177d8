/* SPDX-License-Identifier: Apache-2.0 */

#include "unit.h"

#include "plan/plan.h"

static int asked;

static int identify(const struct settings *settings, struct adapter *list, size_t count, struct err *err)
{
	(void)settings;
	(void)list;
	(void)count;
	asked++;
	return err_set(err, CTR_GPU_E_DRIVER_LIBRARY, "it crashed");
}

static const struct backend gpu_pv = {.name = "gpu-pv", .identify = identify}, drm = {.name = "drm"};

/* Two of a name, of which the library tells no UUID; another vendor's, which is behind its own device; a part. */
static struct adapter adapters[] = {
	{.backend = &gpu_pv,
	 .index = 0,
	 .name = (char *)"NVIDIA GeForce RTX 4090",
	 .vendor_id = PCI_VENDOR_NVIDIA,
	 .pci_address = (char *)"0000:01:00.0",
	 .luid = {0x1, 0},
	 .has_luid = true,
	 .minor = -1},
	{.backend = &gpu_pv,
	 .index = 1,
	 .name = (char *)"NVIDIA GeForce RTX 4090",
	 .vendor_id = PCI_VENDOR_NVIDIA,
	 .pci_address = (char *)"0000:02:00.0",
	 .luid = {0x2, 0},
	 .has_luid = true,
	 .minor = -1},
	{.backend = &drm,
	 .index = 2,
	 .name = (char *)"Radeon",
	 .vendor_id = PCI_VENDOR_AMD,
	 .pci_address = (char *)"0000:03:00.0",
	 .minor = 128},
	{.backend = &drm,
	 .index = -1,
	 .name = (char *)"H100 part",
	 .vendor_id = PCI_VENDOR_NVIDIA,
	 .pci_address = (char *)"0000:04:00.0",
	 .uuid = (char *)"MIG-GPU-11112222-bbbb/3/0",
	 .minor = 0,
	 .is_part = true,
	 .whole = 3},
};

/* For a container that asks for each of them. */
static void make_plan(const char *first, const char *second, struct plan *ret)
{
	char *names[] = {(char *)(uintptr_t)first, (char *)(uintptr_t)second};
	const struct settings settings = {.exclusive = {.items = names, .count = second ? 2 : 1}};
	const struct ctr_gpu_host host = {.settings = &settings,
					  .inventory = {.adapters = adapters, .count = ARRAY_SIZE(adapters)},
					  .present = {&gpu_pv},
					  .present_count = 1};
	const struct adapter *all[ARRAY_SIZE(adapters)];
	const struct selection selection = {.adapters = all, .count = ARRAY_SIZE(adapters)};

	asked = 0;
	for (size_t i = 0; i < ARRAY_SIZE(adapters); i++)
		all[i] = &adapters[i];
	assert_int_equal(host_exclusive_plan(&host, &selection, ret), 0);
}

/* What it would have to be alone with: a letter for each adapter. */
static void look(const char *first, const char *second, char ret[static ARRAY_SIZE(adapters) + 1])
{
	struct plan plan = {0};

	memset(ret, '.', ARRAY_SIZE(adapters));
	ret[ARRAY_SIZE(adapters)] = '\0';
	make_plan(first, second, &plan);
	for (size_t i = 0; i < plan.claim_count; i++)
		for (size_t j = 0; j < ARRAY_SIZE(adapters); j++) {
			char key[HOST_EXCLUSIVE_KEY_SIZE];

			host_exclusive_key(&adapters[j], key);
			if (streq(key, plan.claims[i].gpu))
				ret[j] = strstr(plan.claims[i].reason, "it may be ") ? '?' : 'x';
		}
	plan_clear(&plan);
}

/* x: it is exclusive; ?: it may be, so no container gets it */
static void what_the_settings_may_mean_is_not_shared(void **state)
{
	static const struct {
		const char *first, *second, *expected;
		int asked;
	} cases[] = {
		{"0", NULL, "x...", 0},
		{"all", NULL, "xxx.", 0},
		{"vendor:amd", NULL, "..x.", 0},
		{"0000:02:00.0", NULL, ".x..", 0},
		/* A name of several means each, and one that is none's keeps no other from its meaning. */
		{"4090", NULL, "xx..", 0},
		{"0,9", NULL, "x...", 0},
		{"9,1", "2", ".xx.", 0},
		{"none", NULL, "....", 0},
		/* What the library has not told; it is asked once. */
		{"GPU-11111111-aaaa", NULL, "??..", 1},
		{"GPU-11111111-aaaa", "GPU-22222222-aaaa", "??..", 1},
		{"GPU-11111111-aaaa", "1", "?x..", 1},
		{"MIG-11111111-aaaa", NULL, "...?", 1},
		{"MIG-GPU-11112222-bbbb/3/0", NULL, "...x", 0},
		/* Of an earlier boot. */
		{"LUID-0000000000000077", NULL, "??..", 0},
		{"LUID-0000000000000002", NULL, ".x..", 0},
		/* All of it is known, and there is no such GPU. */
		{"0000:77:00.0", NULL, "....", 0},
		{"A2000", NULL, "....", 0},
		{"amd.com/gpu=GPU-11111111-aaaa", NULL, "....", 1},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char found[ARRAY_SIZE(adapters) + 1];

		look(cases[i].first, cases[i].second, found);
		if (!streq(found, cases[i].expected) || asked != cases[i].asked)
			fail_msg("%s %s: %s, asked %d times", cases[i].first, cases[i].second ? cases[i].second : "",
				 found, asked);
	}
}

/* Not one that means none, nor one that may mean another. */
static void the_name_that_a_gpu_may_have_is_told(void **state)
{
	static const struct {
		const char *first, *second, *expected[3];
	} cases[] = {
		{"0000:77:00.0", "GPU-11111111-aaaa", {"GPU-11111111-aaaa", "GPU-11111111-aaaa"}},
		{"A2000,GPU-11111111-aaaa", "GPU-22222222-aaaa", {"GPU-11111111-aaaa", "GPU-11111111-aaaa"}},
		{"MIG-11111111-aaaa",
		 "GPU-11111111-aaaa",
		 {"GPU-11111111-aaaa", "GPU-11111111-aaaa", "MIG-11111111-aaaa"}},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct plan plan = {0};

		make_plan(cases[i].first, cases[i].second, &plan);
		assert_int_equal(plan.claim_count, cases[i].expected[2] ? 3 : 2);
		for (size_t j = 0; j < plan.claim_count; j++)
			assert_string_equal(plan.claims[j].may_be, cases[i].expected[j]);
		plan_clear(&plan);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_the_settings_may_mean_is_not_shared),
		cmocka_unit_test(the_name_that_a_gpu_may_have_is_told),
	};

	return cmocka_run_group_tests_name("host_exclusive", tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */

#include "unit.h"

#include <stdlib.h>

#include "base/str.h"
#include "vcuda/grant/backend.h"

static int decide(enum vcuda_mode mode, enum request_mode asked, const char *devices, bool *ret, struct err *err)
{
	const struct settings settings = {.vcuda_mode = mode};
	struct request request = {.mode = asked};
	int r;

	assert_int_equal(request_set_devices(&request, devices), 0);
	r = vcuda_decide(&settings, &request, ret, err);
	request_clear(&request);
	return r;
}

static void settings_and_request_decide(void **state)
{
	static const struct {
		enum vcuda_mode mode;
		enum request_mode asked;
		const char *devices;
		bool vcuda;
	} cases[] = {
		{VCUDA_OFF, REQUEST_ANY_MODE, "all", false},
		{VCUDA_OFF, REQUEST_DEVICE, "0", false},
		{VCUDA_ALLOW, REQUEST_ANY_MODE, "all", false},
		{VCUDA_ALLOW, REQUEST_VCUDA, "all", true},
		{VCUDA_ALLOW, REQUEST_ANY_MODE, "ctr-gpu.org/vcuda=1", true},
		{VCUDA_ALLOW, REQUEST_DEVICE, "ctr-gpu.org/vcuda=1,ctr-gpu.org/vcuda=0", true},
		{VCUDA_ALLOW, REQUEST_ANY_MODE, "nvidia.com/gpu=0", false},
		{VCUDA_DEFAULT, REQUEST_ANY_MODE, "0", true},
		{VCUDA_DEFAULT, REQUEST_DEVICE, "0", false},
		{VCUDA_FORCE, REQUEST_ANY_MODE, "0", true},
		{VCUDA_FORCE, REQUEST_DEVICE, "all", true},
		{VCUDA_FORCE, REQUEST_ANY_MODE, "ctr-gpu.org/vcuda=all", true},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct err err = {0};
		bool vcuda = !cases[i].vcuda;

		if (decide(cases[i].mode, cases[i].asked, cases[i].devices, &vcuda, &err) != 0 ||
		    vcuda != cases[i].vcuda)
			fail_msg("case %zu: %s", i, err.text);
	}
}

static void what_the_settings_forbid_is_refused(void **state)
{
	struct err err = {0};
	bool vcuda;

	(void)state;
	assert_int_equal(decide(VCUDA_OFF, REQUEST_VCUDA, "all", &vcuda, &err), CTR_GPU_E_NO_PERMISSION);
	assert_int_equal(decide(VCUDA_OFF, REQUEST_ANY_MODE, "ctr-gpu.org/vcuda=0", &vcuda, &err),
			 CTR_GPU_E_NO_PERMISSION);
	assert_non_null(strstr(err.advice, "/etc/ctr-gpu/config.json: {\"vcuda\": {\"mode\": \"allow\"}}"));
	assert_int_equal(decide(VCUDA_FORCE, REQUEST_ANY_MODE, "nvidia.com/gpu=0", &vcuda, &err),
			 CTR_GPU_E_NO_PERMISSION);
	assert_int_equal(decide(VCUDA_ALLOW, REQUEST_ANY_MODE, "ctr-gpu.org/vcuda=0,nvidia.com/gpu=1", &vcuda, &err),
			 CTR_GPU_E_BAD_ARGUMENT);
}

/* Its specification has given the container the node, and this the client library. */
static void a_device_is_not_given_by_vcuda_besides(void **state)
{
	struct err err = {0};
	bool vcuda = false;

	(void)state;
	assert_int_equal(decide(VCUDA_ALLOW, REQUEST_VCUDA, "nvidia.com/gpu=0", &vcuda, &err), CTR_GPU_E_BAD_ARGUMENT);
	assert_non_null(strstr(err.advice, "--device ctr-gpu.org/vcuda=0"));
	assert_int_equal(decide(VCUDA_DEFAULT, REQUEST_VCUDA, "nvidia.com/gpu=0", &vcuda, &err), 0);
	assert_true(vcuda);
}

static void a_kind_that_is_mistyped_is_no_device(void **state)
{
	struct err err = {0};
	bool vcuda;

	(void)state;
	for (enum vcuda_mode mode = VCUDA_OFF; mode <= VCUDA_FORCE; mode++)
		assert_int_equal(decide(mode, REQUEST_ANY_MODE, "ctr-gpu.org/gpu=0", &vcuda, &err),
				 CTR_GPU_E_UNKNOWN_DEVICE);
	assert_non_null(strstr(err.advice, "ctr-gpu.org/vcuda=0"));
}

#define SLOT "ctr-gpu.org/vgpu=GPU-1:"

static void a_container_has_one_slot_and_nothing_beside_it(void **state)
{
	static const struct {
		const char *devices;
		enum vcuda_mode mode;
		unsigned slots;
		int r;
	} cases[] = {
		{SLOT "0", VCUDA_ALLOW, 4, 0},
		{SLOT "3", VCUDA_FORCE, 4, 0},
		{SLOT "3", VCUDA_OFF, 4, CTR_GPU_E_NO_PERMISSION},
		{SLOT "0", VCUDA_ALLOW, 0, CTR_GPU_E_UNKNOWN_DEVICE},
		{SLOT "4", VCUDA_ALLOW, 4, CTR_GPU_E_UNKNOWN_DEVICE},
		{SLOT "-1", VCUDA_ALLOW, 4, CTR_GPU_E_UNKNOWN_DEVICE},
		{SLOT "99999999999999999999", VCUDA_ALLOW, 4, CTR_GPU_E_UNKNOWN_DEVICE},
		{"ctr-gpu.org/vgpu=GPU-1", VCUDA_ALLOW, 4, CTR_GPU_E_UNKNOWN_DEVICE},
		{"ctr-gpu.org/vgpu=all", VCUDA_ALLOW, 4, CTR_GPU_E_UNKNOWN_DEVICE},
		{SLOT "0," SLOT "1", VCUDA_ALLOW, 4, CTR_GPU_E_BAD_ARGUMENT},
		{SLOT "0,ctr-gpu.org/vcuda=0", VCUDA_ALLOW, 4, CTR_GPU_E_BAD_ARGUMENT},
		{SLOT "0,nvidia.com/gpu=0", VCUDA_ALLOW, 4, CTR_GPU_E_BAD_ARGUMENT},
		{"all," SLOT "0", VCUDA_ALLOW, 4, CTR_GPU_E_BAD_ARGUMENT},
		{"none," SLOT "0", VCUDA_DEFAULT, 4, CTR_GPU_E_BAD_ARGUMENT},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		for (int asked = REQUEST_ANY_MODE; asked <= REQUEST_DEVICE; asked++) {
			const struct settings settings = {.vcuda_mode = cases[i].mode, .vcuda_slots = cases[i].slots};
			struct request request = {.mode = (enum request_mode)asked};
			struct err err = {0};
			bool vcuda = false;

			assert_int_equal(request_set_devices(&request, cases[i].devices), 0);
			if (vcuda_decide(&settings, &request, &vcuda, &err) != cases[i].r || vcuda != (cases[i].r == 0))
				fail_msg("case %zu: %s", i, err.text);
			request_clear(&request);
		}
}

static struct adapter first = {.vendor_id = PCI_VENDOR_NVIDIA, .uuid = (char *)"GPU-1", .name = (char *)"One"},
		      second = {.vendor_id = PCI_VENDOR_NVIDIA,
				.uuid = (char *)"GPU-2",
				.pci_address = (char *)"0:1:0.0"},
		      other = {.vendor_id = PCI_VENDOR_INTEL, .uuid = (char *)"GPU-3"},
		      part = {.vendor_id = PCI_VENDOR_NVIDIA, .uuid = (char *)"MIG-1", .is_part = true},
		      nameless = {.vendor_id = PCI_VENDOR_NVIDIA, .pci_address = (char *)"0:2:0.0"};

/* The second is not divided: the part is of the first. */
static struct adapter on_host[] = {
	{.vendor_id = PCI_VENDOR_NVIDIA, .uuid = (char *)"GPU-5", .minor = 0},
	{.vendor_id = PCI_VENDOR_NVIDIA, .uuid = (char *)"GPU-6", .minor = 1},
	{.vendor_id = PCI_VENDOR_NVIDIA, .uuid = (char *)"MIG-5", .minor = 0, .is_part = true},
};
static struct inventory host;
static bool exclusive[8]; /* by position in it */

/* nodes_only: the client library need not be there. */
static int make(const struct settings *settings, struct request request, const struct adapter *const *selected,
		size_t count, struct plan *plan, struct err *err)
{
	const struct plan native = {0};

	request.nodes_only = true;
	return vcuda_plan(settings, &request, &host, exclusive, selected, count, &native, plan, err);
}

static void others_of_a_model_are_spares_where_containers_may_be_moved(void **state)
{
	static struct adapter models[] = {
		{.vendor_id = PCI_VENDOR_NVIDIA, .uuid = (char *)"GPU-7", .name = (char *)"Two"},
		{.vendor_id = PCI_VENDOR_NVIDIA, .uuid = (char *)"GPU-8", .name = (char *)"One", .minor = 1},
		{.vendor_id = PCI_VENDOR_NVIDIA, .uuid = (char *)"GPU-9", .name = (char *)"One", .unusable = 1},
		{.vendor_id = PCI_VENDOR_INTEL, .uuid = (char *)"GPU-10", .name = (char *)"One"},
		{.vendor_id = PCI_VENDOR_NVIDIA, .uuid = (char *)"GPU-1", .name = (char *)"One", .minor = 2},
		{.vendor_id = PCI_VENDOR_NVIDIA, .uuid = (char *)"GPU-11", .name = (char *)"One", .minor = 3},
	};
	const struct inventory before = host;
	const struct adapter *const selected[] = {&first};

	(void)state;
	host = (struct inventory){.adapters = models, .count = ARRAY_SIZE(models)};
	exclusive[ARRAY_SIZE(models) - 1] = true;
	for (size_t move = 0; move < 2; move++) {
		const struct settings settings = {.vcuda_limits = {.max_clients = 3}, .vcuda_move = move > 0};
		struct plan plan = {0};
		struct err err = {0};

		assert_int_equal(make(&settings, (struct request){0}, selected, 1, &plan, &err), 0);
		assert_int_equal(plan.grant_count, 1 + move);
		assert_false(plan.grants[0].spare);
		if (move)
			assert_true(plan.grants[1].spare && streq(plan.grants[1].uuid, "GPU-8"));
		plan_clear(&plan);
	}
	host = before;
	exclusive[ARRAY_SIZE(models) - 1] = false;
}

static void gpus_of_other_vendors_are_left_out(void **state)
{
	const struct adapter *const some[] = {&other, &second, &first}, *const none[] = {&other};
	const struct settings settings = {.vcuda_limits = {.max_clients = 3, .host_memory = 5}};
	struct plan plan = {0};
	struct err err = {0};

	(void)state;
	assert_int_equal(make(&settings, (struct request){0}, some, ARRAY_SIZE(some), &plan, &err), 0);
	assert_int_equal(plan.grant_count, 2);
	assert_string_equal(plan.grants[0].uuid, "GPU-2");
	assert_string_equal(plan.grants[0].address, "0:1:0.0");
	assert_string_equal(plan.grants[1].name, "One");
	assert_int_equal(plan.grant_limits.max_clients, 3);
	assert_int_equal(plan.grant_limits.host_memory, 5);
	assert_int_equal(plan.warnings.count, 1);
	assert_int_equal(plan.device_count, 0);
	plan_clear(&plan);
	assert_int_equal(make(&settings, (struct request){0}, none, ARRAY_SIZE(none), &plan, &err),
			 CTR_GPU_E_NO_ADAPTER);
	plan_clear(&plan);
}

static void gpus_that_are_divided_are_left_out(void **state)
{
	const struct adapter *const both[] = {&on_host[0], &on_host[1]};
	const struct settings settings = {0};
	struct plan plan = {0};
	struct err err = {0};

	(void)state;
	host = (struct inventory){.adapters = on_host, .count = ARRAY_SIZE(on_host)};
	assert_int_equal(make(&settings, (struct request){0}, both, ARRAY_SIZE(both), &plan, &err), 0);
	assert_int_equal(plan.grant_count, 1);
	assert_string_equal(plan.grants[0].uuid, "GPU-6");
	assert_non_null(strstr(plan.warnings.items[0], "(MIG)"));
	plan_clear(&plan);
	assert_int_equal(make(&settings, (struct request){0}, both, 1, &plan, &err), CTR_GPU_E_NO_ADAPTER);
	assert_non_null(strstr(err.text, "(MIG)"));
	plan_clear(&plan);
	host = (struct inventory){0};
}

static void what_servers_cannot_find_is_refused(void **state)
{
	const struct adapter *const parts[] = {&part}, *const nameless_ones[] = {&nameless};
	const struct settings settings = {0};
	struct plan plan = {0};
	struct err err = {0};

	(void)state;
	assert_int_equal(make(&settings, (struct request){0}, parts, 1, &plan, &err), CTR_GPU_E_BAD_ARGUMENT);
	assert_int_equal(make(&settings, (struct request){0}, nameless_ones, 1, &plan, &err), CTR_GPU_E_UNKNOWN_DEVICE);
	plan_clear(&plan);
}

static void a_container_may_ask_for_less_memory_and_never_for_more(void **state)
{
	static const struct {
		uint64_t settings, asked, given;
		size_t warnings;
	} cases[] = {{0, 0, 0, 0},
		     {0, 5, 5, 0},
		     {8, 0, 8, 0},
		     {8, 5, 5, 0},
		     {8, 8, 8, 0},
		     {8, 9, 8, 1},
		     {STR_SHARE(50), 0, STR_SHARE(50), 0},
		     {STR_SHARE(50), 9, STR_SHARE(50) | 9, 0}};
	const struct adapter *const selected[] = {&first};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct settings settings = {.vcuda_limits = {.memory = cases[i].settings}};
		struct plan plan = {0};
		struct err err = {0};

		assert_int_equal(
			make(&settings, (struct request){.vcuda_memory = cases[i].asked}, selected, 1, &plan, &err), 0);
		if (plan.grant_limits.memory != cases[i].given || plan.warnings.count != cases[i].warnings)
			fail_msg("case %zu: %llu", i, (unsigned long long)plan.grant_limits.memory);
		plan_clear(&plan);
	}
}

static void a_container_may_ask_for_less_of_the_time_and_never_for_more(void **state)
{
	static const struct {
		unsigned settings, asked, given;
		size_t warnings;
	} cases[] = {{0, 0, 100, 0},   {0, 33, 33, 0},     {0, 101, 100, 1},
		     {300, 0, 300, 0}, {300, 300, 300, 0}, {50, 100, 50, 1}};
	const struct adapter *const selected[] = {&first};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct settings settings = {.vcuda_limits = {.share = cases[i].settings}};
		struct plan plan = {0};
		struct err err = {0};

		assert_int_equal(
			make(&settings, (struct request){.vcuda_share = cases[i].asked}, selected, 1, &plan, &err), 0);
		if (plan.grant_limits.share != cases[i].given || plan.warnings.count != cases[i].warnings)
			fail_msg("case %zu: %u", i, plan.grant_limits.share);
		plan_clear(&plan);
	}
}

static struct plan_mount *mounted(struct plan_mount *mount, const char *source, const char *target, bool directory)
{
	*mount = (struct plan_mount){.source = strdup(source), .target = strdup(target), .reason = strdup("")};
	mount->directory = directory;
	return mount;
}

static void the_drivers_library_is_where_a_plan_for_devices_has_it(void **state)
{
	static const struct {
		const char *source, *target;
		bool directory;
		const char *found;
	} cases[] = {
		{"/host/libcuda.so.580", "/lib/libcuda.so.1", false, "/host/libcuda.so.580"},
		{"/host/wsl", "/lib", true, "/host/wsl/libcuda.so.1"},
		{"/host/other", "/other", true, NULL},
	};
	const struct adapter *const selected[] = {&first};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct request request = {.nodes_only = true};
		struct plan native = {0}, plan = {0};
		struct plan_library_dir dir = {.path = strdup("/lib"), .reason = strdup("")};
		const struct settings settings = {0};
		struct plan_mount mount;
		struct err err = {0};

		assert_int_equal(strv_add(&dir.libraries, "libcuda.so.1"), 0);
		assert_int_equal(plan_add_library_dir(&native, &dir), 0);
		assert_int_equal(
			plan_add_mount(&native, mounted(&mount, cases[i].source, cases[i].target, cases[i].directory)),
			0);
		assert_int_equal(vcuda_plan(&settings, &request, &host, exclusive, selected, 1, &native, &plan, &err),
				 0);
		if (cases[i].found)
			assert_string_equal(plan.grant_library, cases[i].found);
		else
			assert_null(plan.grant_library);
		plan_clear(&native);
		plan_clear(&plan);
	}
}

/* Its part of the memory, whatever else a container may have; no other GPU, and the time that every container has. */
static void a_slot_is_a_part_of_one_gpu(void **state)
{
	static const struct {
		unsigned slots;
		uint64_t wanted, memory;
	} cases[] = {
		{1, 0, STR_SHARE(100)},
		{3, 0, STR_SHARE(33)},
		{4, 0, STR_SHARE(25)},
		{32, 0, STR_SHARE(3)},
		{4, 1 << 20, STR_SHARE(25) | 1 << 20},
	};
	const struct adapter *const selected[] = {&first}, *const both[] = {&first, &second};
	struct adapter like = {
		.vendor_id = PCI_VENDOR_NVIDIA, .uuid = (char *)"GPU-8", .name = (char *)"One", .minor = 1};
	const struct inventory before = host;
	struct settings settings = {.vcuda_limits = {.memory = 8 << 20}, .vcuda_move = true};
	struct plan plan = {0};
	struct err err = {0};

	(void)state;
	host = (struct inventory){.adapters = &like, .count = 1};
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct request request = {.has_slot = true, .vcuda_memory = cases[i].wanted, .vcuda_share = 1000};

		settings.vcuda_slots = cases[i].slots;
		assert_int_equal(make(&settings, request, selected, 1, &plan, &err), 0);
		assert_int_equal(plan.grant_count, 1);
		assert_true(plan.grant_limits.memory == cases[i].memory);
		assert_int_equal(plan.grant_limits.share, 100);
		plan_clear(&plan);
	}
	assert_int_equal(make(&settings, (struct request){.has_slot = true}, both, 2, &plan, &err),
			 CTR_GPU_E_BAD_ARGUMENT);
	plan_clear(&plan);
	host = before;
}

static void old_drivers_are_known_by_their_version(void **state)
{
	(void)state;
	assert_false(vcuda_knows_driver("535.54.03"));
	assert_false(vcuda_knows_driver("549.99"));
	assert_true(vcuda_knows_driver("550.54.14"));
	assert_true(vcuda_knows_driver("580.159.04"));
	assert_true(vcuda_knows_driver("next"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(settings_and_request_decide),
		cmocka_unit_test(what_the_settings_forbid_is_refused),
		cmocka_unit_test(a_device_is_not_given_by_vcuda_besides),
		cmocka_unit_test(a_kind_that_is_mistyped_is_no_device),
		cmocka_unit_test(a_container_has_one_slot_and_nothing_beside_it),
		cmocka_unit_test(a_slot_is_a_part_of_one_gpu),
		cmocka_unit_test(others_of_a_model_are_spares_where_containers_may_be_moved),
		cmocka_unit_test(gpus_of_other_vendors_are_left_out),
		cmocka_unit_test(gpus_that_are_divided_are_left_out),
		cmocka_unit_test(what_servers_cannot_find_is_refused),
		cmocka_unit_test(a_container_may_ask_for_less_memory_and_never_for_more),
		cmocka_unit_test(a_container_may_ask_for_less_of_the_time_and_never_for_more),
		cmocka_unit_test(old_drivers_are_known_by_their_version),
		cmocka_unit_test(the_drivers_library_is_where_a_plan_for_devices_has_it),
	};

	return cmocka_run_group_tests_name("vcuda", tests, NULL, NULL);
}

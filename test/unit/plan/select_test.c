/* SPDX-License-Identifier: Apache-2.0 */

#include "unit.h"

#include "plan/plan.h"

static const struct backend gpu_pv = {.name = "gpu-pv"};

/* Two usable adapters and one that is not, numbered as a host numbers them. */
static struct adapter adapters[] = {
	{.backend = &gpu_pv,
	 .index = 0,
	 .name = (char *)"Big",
	 .vendor_id = PCI_VENDOR_NVIDIA,
	 .pci_address = (char *)"0000:01:00.0",
	 .uuid = (char *)"GPU-11111111-aaaa",
	 .luid = {0xab12, 0},
	 .has_luid = true},
	{.backend = &gpu_pv,
	 .index = 1,
	 .name = (char *)"Small",
	 .vendor_id = PCI_VENDOR_AMD,
	 .pci_address = (char *)"0000:02:00.0",
	 .uuid = (char *)"GPU-11112222-bbbb",
	 .luid = {0xcd34, 1},
	 .has_luid = true},
	{.backend = &gpu_pv,
	 .index = -1,
	 .name = (char *)"Old",
	 .pci_address = (char *)"0000:03:00.0",
	 .luid = {0xef56, 0},
	 .has_luid = true,
	 .unusable = CTR_GPU_E_DRIVER_TOO_OLD,
	 .reason = (char *)"it is of WDDM 2.6",
	 .remedy = "Update it."},
	{.backend = &gpu_pv,
	 .index = -1,
	 .name = (char *)"Small part",
	 .pci_address = (char *)"0000:02:00.0",
	 .uuid = (char *)"MIG-GPU-11112222-bbbb/3/0",
	 .is_part = true,
	 .whole = 1,
	 .part = 2},
};

static const struct ctr_gpu_host host = {.inventory = {.adapters = adapters, .count = ARRAY_SIZE(adapters)}};

static int select_named(const char *names, struct selection *ret, struct err *err)
{
	struct request request = {.kind = REQUEST_SOME};
	int r;

	assert_int_equal(device_names_split(&request.devices, names), 0);
	r = selection_new(&host, &request, ret, err);
	device_names_clear(&request.devices);
	return r;
}

/* On this host another vendor's GPU answers to NVIDIA's words, and never to vCUDA's. */
static void numbers_of_vcuda_count_nvidia_alone(void **state)
{
	static const struct backend answering = {.name = "gpu-pv", .also_serves = DOMAIN_NVIDIA};
	struct adapter mixed[] = {adapters[1], adapters[0]};
	const struct ctr_gpu_host other = {.inventory = {.adapters = mixed, .count = ARRAY_SIZE(mixed)}};
	struct selection selection = {0};
	struct request request = {0};
	struct err err = {0};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(mixed); i++) {
		mixed[i].backend = &answering;
		mixed[i].index = (int)i;
	}
	assert_int_equal(request_set_devices(&request, "nvidia.com/gpu=0"), 0);
	assert_int_equal(selection_new(&other, &request, &selection, &err), 0);
	assert_string_equal(selection.adapters[0]->name, "Small");
	selection_clear(&selection);
	assert_int_equal(request_set_devices(&request, "ctr-gpu.org/vcuda=0"), 0);
	assert_int_equal(selection_new(&other, &request, &selection, &err), 0);
	assert_int_equal(selection.count, 1);
	assert_string_equal(selection.adapters[0]->name, "Big");
	selection_clear(&selection);
	assert_int_equal(request_set_devices(&request, "ctr-gpu.org/vcuda=1"), 0);
	assert_int_equal(selection_new(&other, &request, &selection, &err), CTR_GPU_E_UNKNOWN_DEVICE);
	request_clear(&request);
}

static void a_part_is_selected_by_its_own_names_alone(void **state)
{
	static const char *const parts[] = {"1:2", "MIG-GPU-11112222-bbbb/3/0", "MIG-GPU-1111"};
	static const char *const nothing[] = {"1:1", "0:2", "1:2x", "1:-2", ":2", "1:", "1:2:3"};
	static const char *const unknown[] = {"0:1", "MIG-nobody", "mig-0000", "nvidia.com/mig=0:7"};
	struct request all = {.kind = REQUEST_ALL};
	struct selection selection = {0};
	struct err err = {0};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		if (select_named(parts[i], &selection, &err) != 0)
			fail_msg("%s: %s", parts[i], err.text);
		assert_int_equal(selection.count, 1);
		assert_string_equal(selection.adapters[0]->name, "Small part");
		selection_clear(&selection);
	}
	for (size_t i = 0; i < ARRAY_SIZE(nothing); i++)
		if (select_named(nothing[i], &selection, &err) != CTR_GPU_E_UNKNOWN_DEVICE)
			fail_msg("%s", nothing[i]);
	for (size_t i = 0; i < ARRAY_SIZE(unknown); i++) {
		assert_int_equal(select_named(unknown[i], &selection, &err), CTR_GPU_E_UNKNOWN_DEVICE);
		assert_non_null(strstr(unit_message(&err), "It has: 1:2 Small part\n"));
	}
	assert_int_equal(select_named("1:2:3", &selection, &err), CTR_GPU_E_UNKNOWN_DEVICE);
	assert_non_null(strstr(unit_message(&err), "It has: 0 Big; 1 Small\n"));
	/* A GPU's own names mean the whole, and all of them are the wholes. */
	assert_int_equal(select_named("02:00.0", &selection, &err), 0);
	assert_string_equal(selection.adapters[0]->name, "Small");
	selection_clear(&selection);
	assert_int_equal(selection_new(&host, &all, &selection, &err), 0);
	assert_int_equal(selection.count, 2);
	selection_clear(&selection);
}

static void every_name_of_a_device_selects_it(void **state)
{
	static const char *const names[] = {
		"1",
		"0000:02:00.0",
		"00000000:02:00.0",
		"02:00.0",
		"LUID-000000010000cd34",
		"luid-000000010000CD34",
		"GPU-11112222-bbbb",
		"GPU-11112",
		"0:2:0.0",
		"0000:2:00.0",
		"2:0.0",
		"small",
		"mal",
		"vendor:amd",
		"VENDOR:AMD",
		"vendor:amd:0",
		"vendor:intel,1",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		struct selection selection = {0};
		struct err err = {0};

		if (select_named(names[i], &selection, &err) != 0)
			fail_msg("\"%s\": %s", names[i], err.text);
		assert_int_equal(selection.count, 1);
		assert_ptr_equal(selection.adapters[0], &adapters[1]);
		selection_clear(&selection);
	}
}

static void a_selection_is_in_order_and_without_doubles(void **state)
{
	struct selection selection = {0};
	struct err err = {0};

	(void)state;
	assert_int_equal(select_named("1,LUID-000000000000ab12,0,1", &selection, &err), 0);
	assert_int_equal(selection.count, 2);
	assert_ptr_equal(selection.adapters[0], &adapters[0]);
	assert_ptr_equal(selection.adapters[1], &adapters[1]);
	selection_clear(&selection);
}

static void unknown_devices_are_named_with_those_there_are(void **state)
{
	static const char *const names[] = {"2",
					    "3",
					    "-1",
					    "1x",
					    "GPU-1111",
					    "GPU-1",
					    "LUID-00",
					    "0000:02:00",
					    "0000:02:00.1",
					    "0001:02:00.0",
					    "0x0:02:00.0",
					    "000000000:02:00.0",
					    "02:00.0.0",
					    "99999999999999999999"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		struct selection selection = {0};
		struct err err = {0};

		if (select_named(names[i], &selection, &err) != CTR_GPU_E_UNKNOWN_DEVICE)
			fail_msg("\"%s\" was found", names[i]);
		assert_non_null(strstr(unit_message(&err), names[i]));
		assert_non_null(strstr(unit_message(&err), "0 Big; 1 Small"));
	}
}

/* Of several the message has all, and no others. */
static void a_name_of_several_is_refused(void **state)
{
	struct adapter several[] = {adapters[0], adapters[1], adapters[0]};
	const struct ctr_gpu_host twins = {.inventory = {.adapters = several, .count = ARRAY_SIZE(several)}};
	static const char *const names[] = {"0000:01:00.0", "GPU-11111111-aaaa", "GPU-11111", "big",
					    "LUID-000000000000ab12"};

	(void)state;
	several[2].index = 2;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		struct request request = {.kind = REQUEST_SOME};
		struct selection selection = {0};
		struct err err = {0};

		assert_int_equal(device_names_add(&request.devices, names[i]), 0);
		if (selection_new(&twins, &request, &selection, &err) != CTR_GPU_E_UNKNOWN_DEVICE)
			fail_msg("%s", names[i]);
		assert_non_null(strstr(unit_message(&err), "may be any of: 0 Big; 2 Big\n"));
		device_names_clear(&request.devices);
	}
}

static void a_host_without_parts_has_its_gpus_told(void **state)
{
	const struct ctr_gpu_host whole = {.inventory = {.adapters = adapters, .count = 2}};
	struct selection selection = {0};
	struct request request = {0};
	struct err err = {0};

	(void)state;
	assert_int_equal(request_set_devices(&request, "MIG-0000"), 0);
	assert_int_equal(selection_new(&whole, &request, &selection, &err), CTR_GPU_E_UNKNOWN_DEVICE);
	assert_non_null(strstr(unit_message(&err), "It has: 0 Big; 1 Small\n"));
	request_clear(&request);
}

static void npus_are_counted_apart_and_given_on_request(void **state)
{
	static const struct {
		const char *names;
		int result;
		const char *first;
		size_t count;
	} cases[] = {
		{"npu:0", 0, "Brain", 1},
		{"NPU:0", 0, "Brain", 1},
		{"npu:all", 0, "Brain", 1},
		{"amd.com/npu=all", 0, "Brain", 1},
		{"brain", 0, "Brain", 1},
		{"0,npu:0", 0, "Big", 2},
		{"vendor:amd", 0, "Small", 1},
		{"amd.com/gpu=all", 0, "Small", 1},
		{"1", 0, "Small", 1},
		{"example.com/gpu=all", 0, "Big", 2},
		{"example.com/npu=all", 0, "Brain", 1},
		{"npu:1", CTR_GPU_E_UNKNOWN_DEVICE, NULL, 0},
		{"intel.com/npu=all", CTR_GPU_E_NO_ADAPTER, NULL, 0},
		{"2", CTR_GPU_E_UNKNOWN_DEVICE, NULL, 0},
	};
	struct adapter own[] = {
		adapters[0],
		adapters[1],
		{.backend = &gpu_pv,
		 .index = 0,
		 .is_npu = true,
		 .name = (char *)"Brain",
		 .vendor_id = PCI_VENDOR_AMD_PROCESSOR},
	};
	const struct ctr_gpu_host with = {.inventory = {.adapters = own, .count = 3}};
	const struct ctr_gpu_host alone = {.inventory = {.adapters = &own[2], .count = 1}};
	const struct request all = {.kind = REQUEST_ALL};
	struct err err = {0};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_selection_ struct selection selection = {0};
		struct request request = {0};

		assert_int_equal(request_set_devices(&request, cases[i].names), 0);
		if (selection_new(&with, &request, &selection, &err) != cases[i].result ||
		    selection.count != cases[i].count)
			fail_msg("%s: %s", cases[i].names, err.text);
		if (cases[i].first)
			assert_string_equal(selection.adapters[0]->name, cases[i].first);
		else
			assert_non_null(strstr(unit_message(&err), "0 Big; 1 Small; npu:0 Brain"));
		request_clear(&request);
	}
	{
		_cleanup_selection_ struct selection selection = {0};

		assert_int_equal(selection_new(&with, &all, &selection, &err), 0);
		assert_int_equal(selection.count, 2);
		selection_clear(&selection);
		assert_int_equal(selection_new(&alone, &all, &selection, &err), CTR_GPU_E_NO_ADAPTER);
		assert_non_null(strstr(unit_message(&err), "npu:0"));
	}
}

static int asked;

static int identify(const struct settings *settings, struct adapter *list, size_t count, struct err *err)
{
	(void)settings;
	(void)count;
	asked++;
	list[1].alias = (char *)"GPU-99999999-cccc";
	return err_set(err, CTR_GPU_E_DRIVER_LIBRARY, "it crashed");
}

/* Also where one of several libraries fails: its error is that of a name which nobody else knows. */
static void a_library_is_asked_for_unknown_uuids_alone(void **state)
{
	static const struct backend knows = {.name = "test", .identify = identify};
	static const struct {
		const char *name;
		int result, asked;
	} cases[] = {
		{"0", 0, 0},
		{"GPU-11111111-aaaa", 0, 0},
		{"rtx", CTR_GPU_E_UNKNOWN_DEVICE, 0},
		{"gpu-99999999-cccc", 0, 1},
		{"GPU-88888888-dddd", CTR_GPU_E_DRIVER_LIBRARY, 1},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct adapter own[] = {adapters[0], adapters[1]};
		const struct ctr_gpu_host asking = {
			.inventory = {.adapters = own, .count = 2}, .present = {&knows}, .present_count = 1};
		struct request request = {.kind = REQUEST_SOME};
		_cleanup_selection_ struct selection selection = {0};
		struct err err = {0};

		asked = 0;
		assert_int_equal(device_names_add(&request.devices, cases[i].name), 0);
		assert_int_equal(selection_new(&asking, &request, &selection, &err), cases[i].result);
		assert_int_equal(asked, cases[i].asked);
		device_names_clear(&request.devices);
	}
}

static void an_unusable_device_answers_with_its_fault(void **state)
{
	struct selection selection = {0};
	struct err err = {0};

	(void)state;
	assert_int_equal(select_named("03:00.0", &selection, &err), CTR_GPU_E_DRIVER_TOO_OLD);
	assert_non_null(strstr(unit_message(&err), "it is of WDDM 2.6"));
}

static void all_means_all_that_can_be_used(void **state)
{
	const struct request all = {.kind = REQUEST_ALL}, none = {.kind = REQUEST_NONE};
	struct selection selection = {0};
	struct err err = {0};

	(void)state;
	assert_int_equal(selection_new(&host, &all, &selection, &err), 0);
	assert_int_equal(selection.count, 2);
	selection_clear(&selection);
	assert_int_equal(selection_new(&host, &none, &selection, &err), 0);
	assert_int_equal(selection.count, 0);
}

static void without_a_usable_adapter_the_reasons_are_told(void **state)
{
	const struct ctr_gpu_host old = {.inventory = {.adapters = &adapters[2], .count = 1}}, empty = {0};
	struct adapter both[] = {adapters[2], adapters[2]};
	const struct ctr_gpu_host two_old = {.inventory = {.adapters = both, .count = 2}};
	const struct request all = {.kind = REQUEST_ALL};
	struct selection selection = {0};
	struct err err = {0};

	(void)state;
	assert_int_equal(selection_new(&old, &all, &selection, &err), CTR_GPU_E_DRIVER_TOO_OLD);
	assert_string_equal(unit_message(&err), "Old: it is of WDDM 2.6\nUpdate it.");
	assert_int_equal(selection_new(&two_old, &all, &selection, &err), CTR_GPU_E_DRIVER_TOO_OLD);
	assert_string_equal(unit_message(&err),
			    "none of this host's 2 adapters can be used; ctr-gpu info shows them all\n"
			    "Old: it is of WDDM 2.6\nUpdate it.");
	assert_int_equal(selection_new(&empty, &all, &selection, &err), CTR_GPU_E_NO_ADAPTER);
	assert_non_null(strstr(unit_message(&err), "none behind it"));
}

/* An NVIDIA GPU, two partitions of one of AMD's, Intel's graphics and an NPU of AMD's, all on the machine itself. */
static const struct backend nvidia = {.name = "nvidia"}, drm = {.name = "drm"};
static struct adapter mixed[] = {
	{.backend = &nvidia, .index = 0, .name = (char *)"N", .vendor_id = PCI_VENDOR_NVIDIA},
	{.backend = &drm,
	 .index = 1,
	 .name = (char *)"A0",
	 .vendor_id = PCI_VENDOR_AMD,
	 .pci_address = (char *)"0000:05:00.0",
	 .uuid = (char *)"GPU-a000000000000001",
	 .alias = (char *)"0xa000000000000001",
	 .partitions = 2},
	{.backend = &drm,
	 .index = 2,
	 .name = (char *)"A1",
	 .vendor_id = PCI_VENDOR_AMD,
	 .pci_address = (char *)"0000:05:00.0",
	 .uuid = (char *)"GPU-a000000000000001",
	 .alias = (char *)"0xa000000000000001",
	 .partitions = 2},
	{.backend = &drm, .index = 3, .name = (char *)"I", .vendor_id = PCI_VENDOR_INTEL},
	{.backend = &drm, .index = 0, .name = (char *)"P", .vendor_id = PCI_VENDOR_AMD_PROCESSOR, .is_npu = true},
};
static const struct ctr_gpu_host mixed_host = {.inventory = {.adapters = mixed, .count = ARRAY_SIZE(mixed)}};
static const struct ctr_gpu_host without_nvidia = {
	.inventory = {.adapters = mixed + 1, .count = ARRAY_SIZE(mixed) - 1}};

static void words_are_about_their_vendors_gpus(void **state)
{
	static const struct {
		const struct ctr_gpu_host *host;
		const char *domain;
		bool by_engine;
		const char *devices, *selected; /* NULL: CTR_GPU_E_NO_ADAPTER; "": CTR_GPU_E_UNKNOWN_DEVICE */
	} cases[] = {
		{&mixed_host, NULL, false, "all", "N A0 A1 I"},
		{&mixed_host, NULL, false, "3", "I"},
		{&mixed_host, NULL, false, "amd.com/gpu=0", "A0"},
		{&mixed_host, NULL, false, "amd.com/gpu=all", "A0 A1"},
		{&mixed_host, NULL, false, "amd.com/npu=0", "P"},
		{&mixed_host, NULL, false, "intel.com/gpu=0", "I"},
		{&mixed_host, NULL, false, "intel.com/gpu=1", ""},
		{&mixed_host, NULL, false, "vendor:intel", "I"},
		/* What all partitions of a GPU are called means all of them. */
		{&mixed_host, NULL, false, "0xA000000000000001", "A0 A1"},
		{&mixed_host, NULL, false, "05:00.0", "A0 A1"},
		{&mixed_host, "nvidia.com", false, "all", "N"},
		{&mixed_host, "nvidia.com", true, "all", "N"},
		{&mixed_host, "nvidia.com", false, "1", ""},
		{&mixed_host, "nvidia.com", false, "vendor:intel", NULL},
		{&mixed_host, "nvidia.com", false, "nvidia.com/gpu=all", "N"},
		{&mixed_host, "nvidia.com", false, "runtime.nvidia.com/gpu=all", "N"},
		{&mixed_host, "nvidia.com", false, "05:00.0", ""},
		{&mixed_host, "amd.com", false, "all", "A0 A1"},
		{&mixed_host, "amd.com", false, "0", "A0"},
		{&mixed_host, "amd.com", false, "npu:0", "P"},
		{&mixed_host, "amd.com", false, "GPU-a000000000000001", "A0 A1"},
		/* An image's words get nothing of another vendor, but `docker run --gpus` has no others. */
		{&without_nvidia, "nvidia.com", false, "all", NULL},
		{&without_nvidia, "nvidia.com", true, "all", "A0 A1 I"},
		{&without_nvidia, "nvidia.com", true, "0", "A0"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct request request = {.domain = cases[i].domain, .by_engine = cases[i].by_engine};
		_cleanup_selection_ struct selection selection = {0};
		_cleanup_strv_ struct strv names = {0};
		_cleanup_free_ char *text = NULL;
		struct err err = {0};
		int r;

		assert_int_equal(request_set_devices(&request, cases[i].devices), 0);
		r = selection_new(cases[i].host, &request, &selection, &err);
		device_names_clear(&request.devices);
		if (!cases[i].selected || !*cases[i].selected) {
			if (r != (cases[i].selected ? CTR_GPU_E_UNKNOWN_DEVICE : CTR_GPU_E_NO_ADAPTER))
				fail_msg("case %zu: %d", i, r);
			continue;
		}
		if (r != 0)
			fail_msg("case %zu: %s", i, err.text);
		for (size_t j = 0; j < selection.count; j++)
			assert_int_equal(strv_add(&names, selection.adapters[j]->name), 0);
		assert_int_equal(strv_join(&names, " ", &text), 0);
		if (!streq(text, cases[i].selected))
			fail_msg("case %zu: %s", i, text);
	}
	assert_int_equal(selection_number_of(&mixed_host, "amd.com/gpu=", &mixed[2]), 1);
	assert_int_equal(selection_number_of(&mixed_host, "example.com/gpu=", &mixed[2]), 2);
}

static void all_of_a_kind_means_all_of_its_vendor(void **state)
{
	static const struct {
		const char *names;
		size_t count;
		const char *first;
	} cases[] = {
		{"nvidia.com/gpu=all", 1, "Big"},   {"amd.com/gpu=all", 1, "Small"},
		{"amd.com/gpu=all,0", 2, "Big"},    {"nvidia.com/gpu=all,amd.com/gpu=all", 2, "Big"},
		{"example.com/card=all", 2, "Big"},
	};
	struct err err = {0};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_selection_ struct selection selection = {0};

		assert_int_equal(select_named(cases[i].names, &selection, &err), 0);
		assert_int_equal(selection.count, cases[i].count);
		assert_string_equal(selection.adapters[0]->name, cases[i].first);
	}
	{
		_cleanup_selection_ struct selection selection = {0};

		assert_int_equal(select_named("intel.com/gpu=all", &selection, &err), CTR_GPU_E_NO_ADAPTER);
		assert_non_null(strstr(unit_message(&err), "intel.com/gpu=all"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_of_vcuda_count_nvidia_alone),
		cmocka_unit_test(a_part_is_selected_by_its_own_names_alone),
		cmocka_unit_test(every_name_of_a_device_selects_it),
		cmocka_unit_test(a_selection_is_in_order_and_without_doubles),
		cmocka_unit_test(unknown_devices_are_named_with_those_there_are),
		cmocka_unit_test(a_name_of_several_is_refused),
		cmocka_unit_test(a_host_without_parts_has_its_gpus_told),
		cmocka_unit_test(npus_are_counted_apart_and_given_on_request),
		cmocka_unit_test(a_library_is_asked_for_unknown_uuids_alone),
		cmocka_unit_test(an_unusable_device_answers_with_its_fault),
		cmocka_unit_test(all_means_all_that_can_be_used),
		cmocka_unit_test(words_are_about_their_vendors_gpus),
		cmocka_unit_test(all_of_a_kind_means_all_of_its_vendor),
		cmocka_unit_test(without_a_usable_adapter_the_reasons_are_told),
	};

	return cmocka_run_group_tests_name("select", tests, NULL, NULL);
}

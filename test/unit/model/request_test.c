/* SPDX-License-Identifier: Apache-2.0 */

#include "unit.h"

#include "model/request.h"

static void capabilities(void **state)
{
	static const struct {
		const char *value;
		uint32_t bits;
	} cases[] = {
		{"", CAPABILITY_UTILITY | CAPABILITY_COMPUTE},
		{"compute", CAPABILITY_COMPUTE},
		{" video , ngx", CAPABILITY_VIDEO | CAPABILITY_NGX},
		{"all", CAPABILITY_ALL},
		{"compute,utility,all", CAPABILITY_ALL},
		{"all,foo", CAPABILITY_ALL},
		{"foo, all", CAPABILITY_ALL},
		{" , ", CAPABILITY_UTILITY | CAPABILITY_COMPUTE},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct request request = {0};
		struct err err = {0};

		assert_int_equal(request_set_capabilities(&request, cases[i].value, &err), 0);
		assert_int_equal(request.capabilities, cases[i].bits);
	}
}

static void imex_channels(void **state)
{
	static const struct {
		const char *value;
		size_t count;
		const char *first;
	} cases[] = {
		{"0,2047", 2, "0"}, {" 3 ,", 1, "3"},  {"all", 1, "all"}, {"0,all", 1, "all"},
		{"none", 0, NULL},  {"void", 0, NULL}, {"", 0, NULL},     {"all,none", 0, NULL},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct request request = {0};

		assert_int_equal(request_set_imex_channels(&request, "7"), 0);
		assert_int_equal(request_set_imex_channels(&request, cases[i].value), 0);
		if (request.imex_channels.count != cases[i].count ||
		    (cases[i].first && !streq(request.imex_channels.items[0], cases[i].first)))
			fail_msg("\"%s\": %zu", cases[i].value, request.imex_channels.count);
		request_clear(&request);
	}
}

static void names_of_cdi_have_a_kind_in_front(void **state)
{
	static const struct {
		const char *asked, *name;
	} cases[] = {
		{"nvidia.com/gpu=0", "0"},
		{"nvidia.com/gpu=GPU-1", "GPU-1"},
		{"nvidia.com/mig=1:2", "1:2"},
		{"a-b.c_d/e.f=0000:01:00.0", "0000:01:00.0"},
		{"nvidia.com/gpu=all", "all"},
		{"MIG-GPU-1/2/3", "MIG-GPU-1/2/3"},
		{"/gpu=0", "/gpu=0"},
		{"nvidia.com/=0", "nvidia.com/=0"},
		{"nvidia.com=0", "nvidia.com=0"},
		{"a/b/c=0", "a/b/c=0"},
	};
	struct request request = {0};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_int_equal(request_set_devices(&request, cases[i].asked), 0);
		assert_int_equal(request.kind, REQUEST_SOME);
		assert_int_equal(request.devices.count, 1);
		assert_string_equal(request.devices.items[0].text, cases[i].asked);
		assert_string_equal(request.devices.items[0].name, cases[i].name);
	}
	assert_int_equal(request_set_devices(&request, "nvidia.com/gpu=0,all"), 0);
	assert_int_equal(request.kind, REQUEST_ALL);
	assert_int_equal(request_set_devices(&request, "nvidia.com/gpu=void"), 0);
	assert_int_equal(request.kind, REQUEST_VOID);
	assert_int_equal(request_set_devices(&request, "nvidia.com/gpu=none"), 0);
	assert_int_equal(request.kind, REQUEST_NONE);
	request_clear(&request);
}

static void words_outrank_names(void **state)
{
	static const struct {
		const char *devices;
		enum request_devices kind;
	} cases[] = {
		{"0,all", REQUEST_ALL},          {"all,none", REQUEST_NONE}, {"none,0", REQUEST_NONE},
		{"none,all,void", REQUEST_VOID}, {"ALL", REQUEST_ALL},       {"All,0", REQUEST_ALL},
		{"None", REQUEST_NONE},          {"0,VOID", REQUEST_VOID},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct request request = {0};

		assert_int_equal(request_set_devices(&request, cases[i].devices), 0);
		if (request.kind != cases[i].kind)
			fail_msg("%s", cases[i].devices);
		request_clear(&request);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(capabilities),
		cmocka_unit_test(imex_channels),
		cmocka_unit_test(names_of_cdi_have_a_kind_in_front),
		cmocka_unit_test(words_outrank_names),
	};

	return cmocka_run_group_tests_name("request", tests, NULL, NULL);
}

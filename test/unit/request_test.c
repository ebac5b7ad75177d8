/* SPDX-License-Identifier: Apache-2.0 */

#include "unit.h"

#include "lib/request.h"

#define ENV(...) ((const char *const[]){__VA_ARGS__, NULL})

static void devices_of_the_environment(void **state)
{
	const struct {
		const char *const *environment;
		enum request_devices kind;
		size_t count;
	} cases[] = {
		{ENV("PATH=/bin"), REQUEST_VOID, 0},
		{ENV("NVIDIA_VISIBLE_DEVICES="), REQUEST_VOID, 0},
		{ENV("NVIDIA_VISIBLE_DEVICES=void"), REQUEST_VOID, 0},
		{ENV("NVIDIA_VISIBLE_DEVICES=0,void"), REQUEST_VOID, 0},
		{ENV("NVIDIA_VISIBLE_DEVICES=none"), REQUEST_NONE, 0},
		{ENV("NVIDIA_VISIBLE_DEVICES=all"), REQUEST_ALL, 0},
		{ENV("NVIDIA_VISIBLE_DEVICES= 0 , 2,,"), REQUEST_SOME, 2},
		{ENV("NVIDIA_VISIBLE_DEVICES=all", "NVIDIA_VISIBLE_DEVICES=1"), REQUEST_SOME, 1},
		{ENV("NVIDIA_VISIBLE_DEVICESX=all"), REQUEST_VOID, 0},
		{ENV("CUDA_VERSION=11.2"), REQUEST_ALL, 0},
		{ENV("CUDA_VERSION=11.2", "NVIDIA_REQUIRE_CUDA=cuda>=11.2"), REQUEST_VOID, 0},
		{ENV("CUDA_VERSION=11.2", "NVIDIA_REQUIRE_CUDA="), REQUEST_ALL, 0},
		{ENV("CUDA_VERSION=11.2", "NVIDIA_VISIBLE_DEVICES=none"), REQUEST_NONE, 0},
		{ENV("CUDA_VERSION=12.2.0-1"), REQUEST_ALL, 0},
		/* Somebody else's variable of that name asks for nothing. */
		{ENV("CUDA_VERSION="), REQUEST_VOID, 0},
		{ENV("CUDA_VERSION=cu118"), REQUEST_VOID, 0},
		{ENV("CUDA_VERSION=9.0.116.50"), REQUEST_VOID, 0},
		{ENV("CUDA_VERSION=-9"), REQUEST_VOID, 0},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct request request = {0};
		struct err err = {0};

		assert_int_equal(request_read_environment(&request, cases[i].environment, &err), 0);
		if (request.kind != cases[i].kind)
			fail_msg("case %zu: kind %d", i, (int)request.kind);
		assert_int_equal(request.devices.count, cases[i].count);
		request_clear(&request);
	}
}

static void resources_of_a_swarm(void **state)
{
	const struct {
		const char *const *environment;
		enum request_devices kind;
		const char *first, *last;
	} cases[] = {
		{ENV("DOCKER_RESOURCE_NVIDIA-GPU=GPU-1,GPU-2"), REQUEST_SOME, "GPU-1", "GPU-2"},
		{ENV("DOCKER_RESOURCE_GPU=0000:01:00.0"), REQUEST_SOME, "0000:01:00.0", "0000:01:00.0"},
		{ENV("DOCKER_RESOURCE_H100=GPU-1"), REQUEST_SOME, "GPU-1", "GPU-1"},
		{ENV("DOCKER_RESOURCE_SLICE=MIG-1"), REQUEST_SOME, "MIG-1", "MIG-1"},
		{ENV("DOCKER_RESOURCE_A-GPU=GPU-1", "DOCKER_RESOURCE_B-GPU=GPU-2"), REQUEST_SOME, "GPU-1", "GPU-2"},
		{ENV("DOCKER_RESOURCE_GPU=GPU-1", "DOCKER_RESOURCE_GPU=GPU-2"), REQUEST_SOME, "GPU-2", "GPU-2"},
		{ENV("DOCKER_RESOURCE_GPU=GPU-1", "NVIDIA_VISIBLE_DEVICES=all"), REQUEST_SOME, "GPU-1", "GPU-1"},
		{ENV("DOCKER_RESOURCE_GPU=GPU-1", "CUDA_VERSION=11.2"), REQUEST_SOME, "GPU-1", "GPU-1"},
		/* What somebody chose stays chosen: an image can carry the variable. */
		{ENV("DOCKER_RESOURCE_GPU=all", "NVIDIA_VISIBLE_DEVICES=1"), REQUEST_SOME, "1", "1"},
		{ENV("DOCKER_RESOURCE_GPU=GPU-1", "NVIDIA_VISIBLE_DEVICES=all", "NVIDIA_VISIBLE_DEVICES=void"), REQUEST_VOID, NULL, NULL},
		{ENV("DOCKER_RESOURCE_GPU=GPU-1", "NVIDIA_VISIBLE_DEVICES="), REQUEST_VOID, NULL, NULL},
		{ENV("DOCKER_RESOURCE_GPU=GPU-1", "NVIDIA_VISIBLE_DEVICES=none"), REQUEST_NONE, NULL, NULL},
		/* How many, and not which; nothing; another resource. */
		{ENV("DOCKER_RESOURCE_GPU=2"), REQUEST_VOID, NULL, NULL},
		{ENV("DOCKER_RESOURCE_GPU=2", "NVIDIA_VISIBLE_DEVICES=all"), REQUEST_ALL, NULL, NULL},
		{ENV("DOCKER_RESOURCE_GPU="), REQUEST_VOID, NULL, NULL},
		{ENV("DOCKER_RESOURCE_GPU"), REQUEST_VOID, NULL, NULL},
		{ENV("DOCKER_RESOURCE_SSD=fast", "DOCKER_RESOURCE_FOR=aGPU"), REQUEST_VOID, NULL, NULL},
		{ENV("XDOCKER_RESOURCE_GPU=GPU-1"), REQUEST_VOID, NULL, NULL},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct request request = {0};
		struct err err = {0};

		assert_int_equal(request_read_environment(&request, cases[i].environment, &err), 0);
		if (request.kind != cases[i].kind)
			fail_msg("case %zu: kind %d", i, (int)request.kind);
		if (request.kind == REQUEST_SOME) {
			assert_string_equal(request.devices.items[0], cases[i].first);
			assert_string_equal(request.devices.items[request.devices.count - 1], cases[i].last);
		}
		request_clear(&request);
	}
}

static void capabilities_of_the_environment(void **state)
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

static void images_that_say_their_version_only(void **state)
{
	static const struct {
		const char *version, *requirement;
	} cases[] = {
		{"CUDA_VERSION=9.0.176", "cuda>=9.0"},
		{"CUDA_VERSION=8", "cuda>=8.0"},
		{"CUDA_VERSION=v11.6", "cuda>=11.6"},
		{"CUDA_VERSION=12.2.0-1", "cuda>=12.2"},
		{"CUDA_VERSION=4294967295.4294967295", "cuda>=4294967295.4294967295"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct request request = {0};
		struct err err = {0};

		assert_int_equal(request_read_environment(&request, ENV(cases[i].version), &err), 0);
		assert_int_equal(request.capabilities, CAPABILITY_ALL);
		assert_int_equal(request.requirements.count, 1);
		assert_string_equal(request.requirements.items[0], cases[i].requirement);
		request_clear(&request);
		/* Nothing is something else than no word. */
		assert_int_equal(request_read_environment(&request, ENV(cases[i].version, "NVIDIA_DRIVER_CAPABILITIES="), &err), 0);
		assert_int_equal(request.kind, REQUEST_ALL);
		assert_int_equal(request.capabilities, CAPABILITY_UTILITY | CAPABILITY_COMPUTE);
		request_clear(&request);
	}
}

static void versions_that_are_none_are_named(void **state)
{
	static const char *const cases[] = {
		"CUDA_VERSION=foo",
		"CUDA_VERSION=9..0",
		"CUDA_VERSION=+9",
		"CUDA_VERSION=-9",
		"CUDA_VERSION=9.",
		"CUDA_VERSION=9.0.116.50",
		"CUDA_VERSION=9.0.116foo",
		"CUDA_VERSION=9.4294967296",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct request request = {0};
		struct err err = {0};

		if (request_read_environment(&request, ENV(cases[i], "NVIDIA_VISIBLE_DEVICES=all"), &err) != CTR_GPU_E_BAD_REQUIREMENT ||
		    !str_has_prefix(err.text, "CUDA_VERSION: "))
			fail_msg("%s: %s", cases[i], err.text);
		request_clear(&request);
		assert_int_equal(request_read_environment(
					 &request, ENV(cases[i], "NVIDIA_VISIBLE_DEVICES=all", "NVIDIA_DISABLE_REQUIRE=1"), &err),
				 0);
		assert_int_equal(request.kind, REQUEST_ALL);
		request_clear(&request);
	}
}

static void imex_channels(void **state)
{
	static const struct {
		const char *value;
		size_t count;
		const char *first;
	} cases[] = {
		{"0,2047", 2, "0"}, {" 3 ,", 1, "3"}, {"all", 1, "all"},       {"0,all", 1, "all"},
		{"none", 0, NULL},  {"void", 0, NULL}, {"", 0, NULL},          {"0,none", 0, NULL},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct request request = {0};

		assert_int_equal(request_set_imex_channels(&request, "7"), 0);
		assert_int_equal(request_set_imex_channels(&request, cases[i].value), 0);
		if (request.imex_channels.count != cases[i].count || (cases[i].first && !streq(request.imex_channels.items[0], cases[i].first)))
			fail_msg("\"%s\": %zu", cases[i].value, request.imex_channels.count);
		request_clear(&request);
	}
}

static void unknown_capability_is_named(void **state)
{
	struct request request = {0};
	struct err err = {0};

	(void)state;
	assert_int_equal(request_read_environment(
				 &request, ENV("NVIDIA_VISIBLE_DEVICES=all", "NVIDIA_DRIVER_CAPABILITIES=compute,magic"), &err),
			 CTR_GPU_E_UNKNOWN_CAPABILITY);
	assert_non_null(strstr(err.text, "NVIDIA_DRIVER_CAPABILITIES: "));
	assert_non_null(strstr(err.text, "\"magic\""));
	request_clear(&request);
}

static void requirements_of_the_environment(void **state)
{
	struct request request = {0};
	struct err err = {0};

	(void)state;
	assert_int_equal(request_read_environment(&request,
						  ENV("NVIDIA_VISIBLE_DEVICES=all", "NVIDIA_REQUIRE_CUDA=cuda>=99",
						      "NVIDIA_REQUIRE_CUDA=cuda>=12.4", "NVIDIA_REQUIRE_DRIVER=driver>=470",
						      "NVIDIA_REQUIRE_JETPACK=csv-mounts=all", "NVIDIA_REQUIRE_EMPTY="),
						  &err),
			 0);
	assert_int_equal(request.requirements.count, 2);
	assert_string_equal(request.requirements.items[0], "cuda>=12.4");
	request_clear(&request);

	assert_int_equal(request_read_environment(&request,
						  ENV("NVIDIA_VISIBLE_DEVICES=all", "NVIDIA_DISABLE_REQUIRE=true",
						      "NVIDIA_REQUIRE_CUDA=cuda>=99"),
						  &err),
			 0);
	assert_int_equal(request.requirements.count, 0);
	request_clear(&request);

	assert_int_equal(request_read_environment(&request,
						  ENV("NVIDIA_VISIBLE_DEVICES=all", "NVIDIA_REQUIRE_CUDA=cuda~12"), &err),
			 CTR_GPU_E_BAD_REQUIREMENT);
	assert_non_null(strstr(err.text, "NVIDIA_REQUIRE_CUDA: "));
	request_clear(&request);
}

static void names_of_cdi_mean_the_same(void **state)
{
	static const struct {
		const char *asked, *taken;
	} cases[] = {
		{"nvidia.com/gpu=0", "0"},
		{"nvidia.com/gpu=GPU-1", "GPU-1"},
		{"nvidia.com/mig=1:2", "1:2"},
		{"a-b.c_d/e.f=0000:01:00.0", "0000:01:00.0"},
		{"nvidia.com/gpu=all", "nvidia.com/gpu=all"},
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
		assert_string_equal(request.devices.items[0], cases[i].taken);
	}
	assert_int_equal(request_set_devices(&request, "nvidia.com/gpu=0,all"), 0);
	assert_int_equal(request.kind, REQUEST_ALL);
	assert_int_equal(request_set_devices(&request, "nvidia.com/gpu=void"), 0);
	assert_int_equal(request.kind, REQUEST_VOID);
	request_clear(&request);
}

static void the_environment_leaves_given_devices_alone(void **state)
{
	struct request request = {0};
	struct err err = {0};

	(void)state;
	assert_int_equal(request_set_devices(&request, "1"), 0);
	assert_int_equal(request_read_properties(&request,
						 ENV("NVIDIA_VISIBLE_DEVICES=void", "NVIDIA_DRIVER_CAPABILITIES=video",
						     "NVIDIA_REQUIRE_CUDA=cuda>=12.4"),
						 &err),
			 0);
	assert_int_equal(request.kind, REQUEST_SOME);
	assert_string_equal(request.devices.items[0], "1");
	assert_int_equal(request.capabilities, CAPABILITY_VIDEO);
	assert_int_equal(request.requirements.count, 1);
	request_clear(&request);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(devices_of_the_environment),
		cmocka_unit_test(resources_of_a_swarm),
		cmocka_unit_test(capabilities_of_the_environment),
		cmocka_unit_test(images_that_say_their_version_only),
		cmocka_unit_test(versions_that_are_none_are_named),
		cmocka_unit_test(imex_channels),
		cmocka_unit_test(unknown_capability_is_named),
		cmocka_unit_test(requirements_of_the_environment),
		cmocka_unit_test(names_of_cdi_mean_the_same),
		cmocka_unit_test(the_environment_leaves_given_devices_alone),
	};

	return cmocka_run_group_tests_name("request", tests, NULL, NULL);
}

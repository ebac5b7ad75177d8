/* SPDX-License-Identifier: Apache-2.0 */

#include "unit.h"

#include "lib/context.h"
#include "oci/env_request.h"

#define ENV(...) ((const char *const[]){__VA_ARGS__, NULL})

static int read_environment(struct request *request, const char *const *environment, struct err *err)
{
	const struct env_request ask = {.environment = environment};
	struct settings settings;

	settings_init(&settings);
	return env_request_read(&ask, &settings, request, err);
}

static int read_properties(struct request *request, const char *const *environment, struct err *err)
{
	const struct env_request ask = {.environment = environment};
	struct settings settings;

	settings_init(&settings);
	return env_request_read_properties(&ask, &settings, request, err);
}

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
		/* A text of several lines in YAML ends with a line end. */
		{ENV("NVIDIA_VISIBLE_DEVICES=all\n"), REQUEST_ALL, 0},
		{ENV("NVIDIA_VISIBLE_DEVICES=none\r\n"), REQUEST_NONE, 0},
		{ENV("NVIDIA_VISIBLE_DEVICES=0,\n1,\n"), REQUEST_SOME, 2},
		{ENV("NVIDIA_VISIBLE_DEVICES= \n"), REQUEST_VOID, 0},
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

		assert_int_equal(read_environment(&request, cases[i].environment, &err), 0);
		if (request.kind != cases[i].kind)
			fail_msg("case %zu: kind %d", i, (int)request.kind);
		assert_int_equal(request.devices.count, cases[i].count);
		request_clear(&request);
	}
}

/* "AMD 1" is a number in AMD's own variable, "AMD all" all of AMD's GPUs. */
static void print_devices(const struct device_names *devices, char **ret)
{
	assert_int_equal(str_format(ret, "%s", ""), 0);
	for (size_t i = 0; i < devices->count; i++) {
		const struct device_name *name = &devices->items[i];

		assert_int_equal(!!name->variable, name->vendor && streq(name->vendor, "AMD"));
		if (name->type == DEVICE_NAME_VENDOR_NUMBER)
			assert_int_equal(strtol(name->text, NULL, 10), name->number);
		assert_int_equal(str_append(ret, "%s%s%s", i > 0 ? "," : "", name->variable ? "AMD " : "", name->text),
				 0);
	}
}

static void variables_of_other_names(void **state)
{
	const struct {
		const char *const *environment;
		enum request_devices kind;
		const char *devices;
	} cases[] = {
		{ENV("AMD_VISIBLE_DEVICES=all"), REQUEST_SOME, "AMD all"},
		{ENV("AMD_VISIBLE_DEVICES=1,3-5,0x1234"), REQUEST_SOME, "AMD 1,AMD 3,AMD 4,AMD 5,0x1234"},
		{ENV("AMD_VISIBLE_DEVICES=-1,5-3,1-,0-9999,1-2-3,-"), REQUEST_SOME, "-1,5-3,1-,0-9999,1-2-3,-"},
		/* An image of 16 MiB of ranges is to cost no more than one. */
		{ENV("AMD_VISIBLE_DEVICES=0-2,1,0-2,2-3"), REQUEST_SOME, "AMD 0,AMD 1,AMD 2,AMD 3"},
		{ENV("AMD_VISIBLE_DEVICES=255,256,255-256"), REQUEST_SOME, "AMD 255,256,255-256"},
		{ENV("AMD_VISIBLE_DEVICES=none"), REQUEST_VOID, ""},
		{ENV("AMD_VISIBLE_DEVICES="), REQUEST_VOID, ""},
		{ENV("NVIDIA_VISIBLE_DEVICES=all", "AMD_VISIBLE_DEVICES=all"), REQUEST_ALL, ""},
		{ENV("NVIDIA_VISIBLE_DEVICES=all", "AMD_VISIBLE_DEVICES=none"), REQUEST_ALL, ""},
		{ENV("NVIDIA_VISIBLE_DEVICES=all", "AMD_VISIBLE_DEVICES=0"), REQUEST_SOME, "vendor:nvidia,AMD 0"},
		{ENV("NVIDIA_VISIBLE_DEVICES=2", "AMD_VISIBLE_DEVICES=all"), REQUEST_SOME, "2,AMD all"},
		{ENV("NVIDIA_VISIBLE_DEVICES=void", "AMD_VISIBLE_DEVICES=all"), REQUEST_VOID, ""},
		{ENV("NVIDIA_VISIBLE_DEVICES=", "AMD_VISIBLE_DEVICES=all"), REQUEST_VOID, ""},
		{ENV("NVIDIA_VISIBLE_DEVICES=none", "AMD_VISIBLE_DEVICES=0"), REQUEST_NONE, ""},
		{ENV("CTR_GPU_VISIBLE_DEVICES=1", "AMD_VISIBLE_DEVICES=0"), REQUEST_SOME, "1"},
		{ENV("CTR_GPU_VISIBLE_DEVICES=1", "NVIDIA_VISIBLE_DEVICES=all"), REQUEST_SOME, "1"},
		{ENV("CTR_GPU_VISIBLE_DEVICES=1", "NVIDIA_VISIBLE_DEVICES= all\n"), REQUEST_SOME, "1"},
		{ENV("CTR_GPU_VISIBLE_DEVICES=1", "NVIDIA_VISIBLE_DEVICES=0,all"), REQUEST_ALL, ""},
		{ENV("NVIDIA_VISIBLE_DEVICES= ", "AMD_VISIBLE_DEVICES=all"), REQUEST_VOID, ""},
		{ENV("CTR_GPU_VISIBLE_DEVICES=all", "NVIDIA_VISIBLE_DEVICES=1"), REQUEST_SOME, "1"},
		{ENV("CTR_GPU_VISIBLE_DEVICES=all", "NVIDIA_VISIBLE_DEVICES=void"), REQUEST_VOID, ""},
		{ENV("CTR_GPU_VISIBLE_DEVICES=", "NVIDIA_VISIBLE_DEVICES=all"), REQUEST_VOID, ""},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_free_ char *devices = NULL;
		struct request request = {0};
		struct err err = {0};

		assert_int_equal(read_environment(&request, cases[i].environment, &err), 0);
		if (request.kind != cases[i].kind)
			fail_msg("case %zu: kind %d", i, (int)request.kind);
		print_devices(&request.devices, &devices);
		assert_string_equal(devices, cases[i].devices);
		request_clear(&request);
	}
	{
		const struct env_request told = {
			.environment = ENV("NVIDIA_VISIBLE_DEVICES=0", "AMD_VISIBLE_DEVICES=all",
					   "CTR_GPU_VISIBLE_DEVICES=all", "NVIDIA_DRIVER_CAPABILITIES=video",
					   "CTR_GPU_DRIVER_CAPABILITIES=all"),
			.by_engine = true,
		};
		struct request request = {0};
		struct settings settings;
		struct err err = {0};

		settings_init(&settings);
		assert_int_equal(env_request_read(&told, &settings, &request, &err), 0);
		assert_int_equal(request.devices.count, 1);
		assert_int_equal(request.capabilities, CAPABILITY_VIDEO);
		request_clear(&request);
		assert_int_equal(read_environment(&request, told.environment, &err), 0);
		assert_int_equal(request.capabilities, CAPABILITY_ALL);
		request_clear(&request);
	}
	assert_true(env_request_is_likely("\"AMD_VISIBLE_DEVICES=all\"", 25));
	assert_true(env_request_is_likely("\"CTR_GPU_VISIBLE_DEVICES=0\"", 27));
	assert_false(env_request_is_likely("\"AMD_VISIBLE_DEVICES=void\"", 26));
	/* The engine's is behind the image's. */
	assert_true(env_request_is_likely("\"AMD_VISIBLE_DEVICES=void\",\"AMD_VISIBLE_DEVICES=0\"", 50));
	assert_false(env_request_is_likely("\"AMD_VISIBLE_DEVICES=0\",\"AMD_VISIBLE_DEVICES=\"", 46));
}

/* Native GPUs of other vendors do not answer to NVIDIA's words. */
static void whose_words_they_are(void **state)
{
	static const struct {
		const char *a, *b, *domain;
	} cases[] = {
		{"NVIDIA_VISIBLE_DEVICES=all", "X=", "nvidia.com"},
		{"NVIDIA_VISIBLE_DEVICES=0", "AMD_VISIBLE_DEVICES=none", "nvidia.com"},
		{"CUDA_VERSION=11.2", "X=", "nvidia.com"},
		{"X=", "AMD_VISIBLE_DEVICES=0", NULL},
		{"NVIDIA_VISIBLE_DEVICES=all", "AMD_VISIBLE_DEVICES=all", NULL},
		{"CTR_GPU_VISIBLE_DEVICES=all", "X=", NULL},
		{"DOCKER_RESOURCE_GPU=GPU-1", "X=", NULL},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct request request = {0};
		struct err err = {0};

		assert_int_equal(read_environment(&request, ENV(cases[i].a, cases[i].b), &err), 0);
		if (!request.domain != !cases[i].domain || (request.domain && !streq(request.domain, cases[i].domain)))
			fail_msg("case %zu: %s", i, request.domain ? request.domain : "nobody");
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
		{ENV("DOCKER_RESOURCE_GPU=GPU-1", "NVIDIA_VISIBLE_DEVICES=all\n"), REQUEST_SOME, "GPU-1", "GPU-1"},
		{ENV("DOCKER_RESOURCE_GPU=GPU-1", "CUDA_VERSION=11.2"), REQUEST_SOME, "GPU-1", "GPU-1"},
		/* What somebody chose stays chosen: an image can carry the variable. */
		{ENV("DOCKER_RESOURCE_GPU=all", "NVIDIA_VISIBLE_DEVICES=1"), REQUEST_SOME, "1", "1"},
		{ENV("DOCKER_RESOURCE_GPU=GPU-1", "NVIDIA_VISIBLE_DEVICES=all", "NVIDIA_VISIBLE_DEVICES=void"),
		 REQUEST_VOID, NULL, NULL},
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

		assert_int_equal(read_environment(&request, cases[i].environment, &err), 0);
		if (request.kind != cases[i].kind)
			fail_msg("case %zu: kind %d", i, (int)request.kind);
		if (request.kind == REQUEST_SOME) {
			assert_string_equal(request.devices.items[0].text, cases[i].first);
			assert_string_equal(request.devices.items[request.devices.count - 1].text, cases[i].last);
		}
		request_clear(&request);
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

		assert_int_equal(read_environment(&request, ENV(cases[i].version), &err), 0);
		assert_int_equal(request.capabilities, CAPABILITY_ALL);
		assert_int_equal(request.requirements.count, 1);
		assert_string_equal(request.requirements.items[0], cases[i].requirement);
		request_clear(&request);
		/* Nothing is something else than no word. */
		assert_int_equal(read_environment(&request, ENV(cases[i].version, "NVIDIA_DRIVER_CAPABILITIES="), &err),
				 0);
		assert_int_equal(request.kind, REQUEST_ALL);
		assert_int_equal(request.capabilities, CAPABILITY_UTILITY | CAPABILITY_COMPUTE);
		request_clear(&request);
	}
}

static void versions_that_are_none_are_named(void **state)
{
	static const char *const cases[] = {
		"CUDA_VERSION=foo", "CUDA_VERSION=9..0",       "CUDA_VERSION=+9",         "CUDA_VERSION=-9",
		"CUDA_VERSION=9.",  "CUDA_VERSION=9.0.116.50", "CUDA_VERSION=9.0.116foo", "CUDA_VERSION=9.4294967296",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct request request = {0};
		struct err err = {0};

		if (read_environment(&request, ENV(cases[i], "NVIDIA_VISIBLE_DEVICES=all"), &err) !=
			    CTR_GPU_E_BAD_REQUIREMENT ||
		    !str_has_prefix(err.text, "CUDA_VERSION: "))
			fail_msg("%s: %s", cases[i], err.text);
		request_clear(&request);
		assert_int_equal(
			read_environment(&request,
					 ENV(cases[i], "NVIDIA_VISIBLE_DEVICES=all", "NVIDIA_DISABLE_REQUIRE=1"), &err),
			0);
		assert_int_equal(request.kind, REQUEST_ALL);
		request_clear(&request);
	}
}

static void unknown_capability_is_named(void **state)
{
	struct request request = {0};
	struct err err = {0};

	(void)state;
	assert_int_equal(read_environment(&request,
					  ENV("NVIDIA_VISIBLE_DEVICES=all", "NVIDIA_DRIVER_CAPABILITIES=compute,magic"),
					  &err),
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
	assert_int_equal(read_environment(&request,
					  ENV("NVIDIA_VISIBLE_DEVICES=all", "NVIDIA_REQUIRE_CUDA=cuda>=99",
					      "NVIDIA_REQUIRE_CUDA=cuda>=12.4", "NVIDIA_REQUIRE_DRIVER=driver>=470",
					      "NVIDIA_REQUIRE_JETPACK=csv-mounts=all", "NVIDIA_REQUIRE_EMPTY="),
					  &err),
			 0);
	assert_int_equal(request.requirements.count, 2);
	assert_string_equal(request.requirements.items[0], "cuda>=12.4");
	request_clear(&request);

	assert_int_equal(read_environment(&request,
					  ENV("NVIDIA_VISIBLE_DEVICES=all", "NVIDIA_DISABLE_REQUIRE=true",
					      "NVIDIA_REQUIRE_CUDA=cuda>=99"),
					  &err),
			 0);
	assert_int_equal(request.requirements.count, 0);
	request_clear(&request);

	assert_int_equal(
		read_environment(&request, ENV("NVIDIA_VISIBLE_DEVICES=all", "NVIDIA_REQUIRE_CUDA=cuda~12"), &err),
		CTR_GPU_E_BAD_REQUIREMENT);
	assert_non_null(strstr(err.text, "NVIDIA_REQUIRE_CUDA: "));
	request_clear(&request);
}

static void the_environment_leaves_given_devices_alone(void **state)
{
	struct request request = {0};
	struct err err = {0};

	(void)state;
	assert_int_equal(request_set_devices(&request, "1"), 0);
	assert_int_equal(read_properties(&request,
					 ENV("NVIDIA_VISIBLE_DEVICES=void", "NVIDIA_DRIVER_CAPABILITIES=video",
					     "NVIDIA_REQUIRE_CUDA=cuda>=12.4"),
					 &err),
			 0);
	assert_int_equal(request.kind, REQUEST_SOME);
	assert_string_equal(request.devices.items[0].text, "1");
	assert_int_equal(request.capabilities, CAPABILITY_VIDEO);
	assert_int_equal(request.requirements.count, 1);
	request_clear(&request);
}

/* ---- who may ask ---- */

#define MOUNTS(...)                                                                                         \
	{                                                                                                   \
		.items = (char *[]){__VA_ARGS__}, .count = sizeof((char *[]){__VA_ARGS__}) / sizeof(char *) \
	}

static void who_may_ask_for_devices(void **state)
{
	const struct {
		const char *variable;
		struct strv mounts;
		bool privileged, accept_environment, accept_mounts;
		const char *devices; /* NULL: nothing */
	} cases[] = {
		{"NVIDIA_VISIBLE_DEVICES=2,3", {0}, false, true, true, "2,3"},
		{"NVIDIA_VISIBLE_DEVICES=2,3", {0}, false, false, true, NULL},
		{"NVIDIA_VISIBLE_DEVICES=2,3", {0}, true, false, true, "2,3"},
		{"NVIDIA_VISIBLE_DEVICES=2,3", {0}, true, false, false, "2,3"},
		{"NVIDIA_VISIBLE_DEVICES=2,3", MOUNTS("0", "GPU-1"), false, false, true, "0,GPU-1"},
		{"NVIDIA_VISIBLE_DEVICES=2,3", MOUNTS("0", "GPU-1"), false, true, true, "0,GPU-1"},
		{"NVIDIA_VISIBLE_DEVICES=2,3", MOUNTS("0", "GPU-1"), false, true, false, "2,3"},
		{"NVIDIA_VISIBLE_DEVICES=2,3", MOUNTS("0", "GPU-1"), false, false, false, NULL},
		{"NVIDIA_VISIBLE_DEVICES=void", MOUNTS("0"), false, true, true, "0"},
		{"A=b", MOUNTS("MIG-GPU-1/0/1", "MIG-GPU-2/0/1"), false, false, true, "MIG-GPU-1/0/1,MIG-GPU-2/0/1"},
		{"A=b", MOUNTS("cdi/nvidia.com/gpu/0", "cdi/nvidia.com/mig/1:0"), false, false, true,
		 "nvidia.com/gpu=0,nvidia.com/mig=1:0"},
		{"A=b", MOUNTS("imex/0"), false, false, true, NULL},
		{"NVIDIA_VISIBLE_DEVICES=1", MOUNTS("imex/0"), false, true, true, "1"},
		{"CUDA_VERSION=9.0", {0}, false, false, true, NULL},
		{"DOCKER_RESOURCE_GPU=GPU-1", {0}, false, false, true, NULL},
		{"DOCKER_RESOURCE_GPU=GPU-1", {0}, true, false, true, "GPU-1"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct env_request ask = {ENV(cases[i].variable), &cases[i].mounts, cases[i].privileged, false};
		const struct settings settings = {.accept_environment = cases[i].accept_environment,
						  .accept_mounts = cases[i].accept_mounts};
		_cleanup_free_ char *devices = NULL;
		struct request request = {0};
		struct err err = {0};

		assert_int_equal(env_request_read(&ask, &settings, &request, &err), 0);
		print_devices(&request.devices, &devices);
		if (request.kind != (cases[i].devices ? REQUEST_SOME : REQUEST_VOID) ||
		    !streq(devices, cases[i].devices ? cases[i].devices : ""))
			fail_msg("case %zu: \"%s\"", i, devices);
		assert_true(env_request_is_something(&ask) || request.kind == REQUEST_VOID);
		request_clear(&request);
	}
}

static void what_is_not_given_is_known(void **state)
{
	static const char *const environment[] = {"NVIDIA_GDS=enabled", "NVIDIA_MOFED=disabled",
						  "NVIDIA_GDRCOPY=enabled", NULL};
	const struct env_request ask = {.environment = environment};
	const struct settings settings = {.accept_environment = true};
	struct request request = {0};
	struct err err = {0};

	(void)state;
	assert_int_equal(env_request_read_properties(&ask, &settings, &request, &err), 0);
	assert_int_equal(request.unserved, 1 << 0 | 1 << 2);
	assert_string_equal(request_unserved[2].variable, "NVIDIA_GDRCOPY");
	request_clear(&request);
}

static void who_may_ask_for_more(void **state)
{
	static const char *const environment[] = {"NVIDIA_IMEX_CHANNELS=3", "NVIDIA_NVSWITCH=enabled", NULL};
	const struct strv mounts = MOUNTS("imex/0", "imex/7", "0");
	const struct {
		const struct strv *mounts;
		bool privileged, accept_environment, accept_mounts, switches;
		const char *channels;
	} cases[] = {
		{NULL, false, true, true, true, "3"},      {NULL, false, false, true, false, ""},
		{NULL, true, false, true, true, "3"},      {&mounts, false, false, true, false, "0,7"},
		{&mounts, false, false, false, false, ""}, {&mounts, false, true, true, true, "0,7"},
		{&mounts, true, true, false, true, "3"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct env_request ask = {environment, cases[i].mounts, cases[i].privileged, false};
		const struct settings settings = {.accept_environment = cases[i].accept_environment,
						  .accept_mounts = cases[i].accept_mounts};
		_cleanup_free_ char *channels = NULL;
		struct request request = {0};
		struct err err = {0};

		assert_int_equal(env_request_read_properties(&ask, &settings, &request, &err), 0);
		assert_int_equal(strv_join(&request.imex_channels, ",", &channels), 0);
		if (request.nvswitches != cases[i].switches || !streq(channels, cases[i].channels))
			fail_msg("case %zu: \"%s\"", i, channels);
		request_clear(&request);
	}
}

static void rights_over_parts_of_gpus(void **state)
{
	static const struct {
		const char *variable;
		bool privileged;
		int result;
		bool config, monitor;
	} cases[] = {
		{"NVIDIA_MIG_CONFIG_DEVICES=all", true, 0, true, false},
		{"NVIDIA_MIG_MONITOR_DEVICES=all", true, 0, false, true},
		{"NVIDIA_MIG_CONFIG_DEVICES=all", false, CTR_GPU_E_NO_PERMISSION, false, false},
		{"NVIDIA_MIG_MONITOR_DEVICES=0", false, CTR_GPU_E_NO_PERMISSION, false, false},
		{"NVIDIA_MIG_MONITOR_DEVICES=0", true, CTR_GPU_E_BAD_ARGUMENT, false, false},
		{"NVIDIA_MIG_CONFIG_DEVICES=", false, 0, false, false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct env_request ask = {ENV("NVIDIA_VISIBLE_DEVICES=all", cases[i].variable), NULL,
						cases[i].privileged, false};
		const struct settings settings = {.accept_environment = true};
		struct request request = {0};
		struct err err = {0};

		assert_int_equal(env_request_read(&ask, &settings, &request, &err), cases[i].result);
		if (request.mig_config != cases[i].config || request.mig_monitor != cases[i].monitor)
			fail_msg("case %zu", i);
		request_clear(&request);
	}
}

static void words_that_an_image_may_have(void **state)
{
	const struct strv mounts = MOUNTS("all");
	const struct {
		const char *variable;
		const struct strv *mounts;
		bool by_engine, unnamed;
	} cases[] = {
		{"NVIDIA_VISIBLE_DEVICES=all", NULL, false, true},
		{"NVIDIA_VISIBLE_DEVICES=none", NULL, false, true},
		{"CUDA_VERSION=11.2", NULL, false, true},
		{"NVIDIA_VISIBLE_DEVICES=0", NULL, false, false},
		{"NVIDIA_VISIBLE_DEVICES=nvidia.com/gpu=all", NULL, false, false},
		{"DOCKER_RESOURCE_GPU=GPU-1", NULL, false, false},
		{"NVIDIA_VISIBLE_DEVICES=all", &mounts, false, false},
		{"NVIDIA_VISIBLE_DEVICES=all", NULL, true, false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct env_request ask = {.environment = ENV(cases[i].variable),
						.mounts = cases[i].mounts,
						.by_engine = cases[i].by_engine};
		struct request request = {0};
		struct settings settings;
		struct err err = {0};

		settings_init(&settings);
		assert_int_equal(env_request_read(&ask, &settings, &request, &err), 0);
		if (request.unnamed != cases[i].unnamed)
			fail_msg("%s", cases[i].variable);
		request_clear(&request);
	}
}

/* As many as a config.json of the largest size holds. */
static void vcuda_is_asked_for_by_variables(void **state)
{
	const struct {
		const char *const *environment;
		int r;
		enum request_mode mode;
		uint64_t memory;
		unsigned share;
	} cases[] = {
		{ENV("NVIDIA_VISIBLE_DEVICES=all"), 0, REQUEST_ANY_MODE, 0, 0},
		{ENV("NVIDIA_VISIBLE_DEVICES=0", "CTR_GPU_MODE=vcuda"), 0, REQUEST_VCUDA, 0, 0},
		{ENV("NVIDIA_VISIBLE_DEVICES=0", "CTR_GPU_MODE="), 0, REQUEST_ANY_MODE, 0, 0},
		{ENV("NVIDIA_VISIBLE_DEVICES=0", "CTR_GPU_MODE=vcuda", "CTR_GPU_MODE=device"), 0, REQUEST_DEVICE, 0, 0},
		{ENV("NVIDIA_VISIBLE_DEVICES=0", "CTR_GPU_MEMORY=4G"), 0, REQUEST_ANY_MODE, 4ULL << 30, 0},
		{ENV("NVIDIA_VISIBLE_DEVICES=0", "CTR_GPU_MODE=cuda"), CTR_GPU_E_BAD_ARGUMENT, 0, 0, 0},
		{ENV("NVIDIA_VISIBLE_DEVICES=0", "CTR_GPU_MEMORY=4 G"), CTR_GPU_E_BAD_ARGUMENT, 0, 0, 0},
		{ENV("NVIDIA_VISIBLE_DEVICES=0", "CTR_GPU_MEMORY=4"), CTR_GPU_E_BAD_ARGUMENT, 0, 0, 0},
		{ENV("NVIDIA_VISIBLE_DEVICES=0", "CTR_GPU_MEMORY=1023K"), CTR_GPU_E_BAD_ARGUMENT, 0, 0, 0},
		{ENV("NVIDIA_VISIBLE_DEVICES=0", "CTR_GPU_MEMORY=1M"), 0, REQUEST_ANY_MODE, 1 << 20, 0},
		{ENV("NVIDIA_VISIBLE_DEVICES=0", "CTR_GPU_SHARE=25"), 0, REQUEST_ANY_MODE, 0, 25},
		{ENV("NVIDIA_VISIBLE_DEVICES=0", "CTR_GPU_SHARE="), 0, REQUEST_ANY_MODE, 0, 0},
		{ENV("NVIDIA_VISIBLE_DEVICES=0", "CTR_GPU_SHARE=0"), CTR_GPU_E_BAD_ARGUMENT, 0, 0, 0},
		{ENV("NVIDIA_VISIBLE_DEVICES=0", "CTR_GPU_SHARE=1001"), CTR_GPU_E_BAD_ARGUMENT, 0, 0, 0},
		{ENV("NVIDIA_VISIBLE_DEVICES=0", "CTR_GPU_SHARE=half"), CTR_GPU_E_BAD_ARGUMENT, 0, 0, 0},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct request request = {0};
		struct err err = {0};
		int r = read_environment(&request, cases[i].environment, &err);

		if (r != cases[i].r ||
		    (r == 0 && (request.mode != cases[i].mode || request.vcuda_memory != cases[i].memory ||
				request.vcuda_share != cases[i].share)))
			fail_msg("case %zu: %s", i, err.text);
		request_clear(&request);
	}
}

static void many_variables_take_no_time(void **state)
{
	enum { COUNT = 200000 };
	const char **environment = calloc(COUNT + 2, sizeof(*environment));
	struct request request = {0};
	struct err err = {0};

	(void)state;
	assert_non_null(environment);
	environment[0] = "NVIDIA_VISIBLE_DEVICES=all";
	for (size_t i = 1; i <= COUNT; i++)
		assert_int_equal(str_format((char **)&environment[i], "%s%zu=%s",
					    i % 2 ? "NVIDIA_REQUIRE_" : "DOCKER_RESOURCE_GPU", i / 4,
					    i % 2 ? "cuda>=1" : "1"),
				 0);
	assert_int_equal(read_environment(&request, environment, &err), 0);
	assert_int_equal(request.requirements.count, COUNT / 4);
	request_clear(&request);
	for (size_t i = 1; i <= COUNT; i++)
		free((char *)environment[i]);
	free(environment);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(devices_of_the_environment),
		cmocka_unit_test(variables_of_other_names),
		cmocka_unit_test(whose_words_they_are),
		cmocka_unit_test(resources_of_a_swarm),
		cmocka_unit_test(images_that_say_their_version_only),
		cmocka_unit_test(versions_that_are_none_are_named),
		cmocka_unit_test(unknown_capability_is_named),
		cmocka_unit_test(requirements_of_the_environment),
		cmocka_unit_test(the_environment_leaves_given_devices_alone),
		cmocka_unit_test(who_may_ask_for_devices),
		cmocka_unit_test(what_is_not_given_is_known),
		cmocka_unit_test(who_may_ask_for_more),
		cmocka_unit_test(rights_over_parts_of_gpus),
		cmocka_unit_test(words_that_an_image_may_have),
		cmocka_unit_test(vcuda_is_asked_for_by_variables),
		cmocka_unit_test(many_variables_take_no_time),
	};

	return cmocka_run_group_tests_name("ask", tests, NULL, NULL);
}

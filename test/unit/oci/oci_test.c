/* SPDX-License-Identifier: Apache-2.0 */

/* What runtimes send to hooks, and what nobody should. */

#include "unit.h"

#include "base/str.h"
#include "oci/oci.h"

static int state(const char *text, struct oci_state *ret, struct err *err)
{
	*ret = (struct oci_state){0};
	*err = (struct err){0};
	return oci_parse_state(text, strlen(text), ret, err);
}

static int config(const char *text, struct oci_config *ret, struct err *err)
{
	*ret = (struct oci_config){0};
	*err = (struct err){0};
	return oci_parse_config(text, strlen(text), ret, err);
}

static const struct {
	const char *text;
	int pid;
} good_states[] = {
	/* runc 1.1, prestart and createRuntime */
	{"{\"ociVersion\":\"1.0.2-dev\",\"id\":\"c\",\"status\":\"creating\",\"pid\":17240,\"bundle\":\"/b\"}", 17240},
	/* crun 1.8 */
	{"{\"ociVersion\":\"1.0\",\"id\":\"c\",\"pid\":18374,\"root\":\"rootfs\",\"bundle\":\"/b\",\"status\":\"created\"}",
	 18374},
	{"{\"status\":\"created\",\"pid\":1,\"bundle\":\"/b\",\"annotations\":{\"a\":\"b\"}}\n", 1},
};

static void test_good_states(void **unused)
{
	struct oci_state parsed;
	struct err err;

	(void)unused;
	for (size_t i = 0; i < ARRAY_SIZE(good_states); i++) {
		assert_int_equal(state(good_states[i].text, &parsed, &err), 0);
		assert_int_equal(parsed.pid, good_states[i].pid);
		assert_string_equal(parsed.bundle, "/b");
		oci_state_clear(&parsed);
	}
}

static const struct {
	const char *text;
	int result;
	const char *says;
} bad_states[] = {
	{"", CTR_GPU_E_BAD_STATE, "state"},
	{"[]", CTR_GPU_E_BAD_STATE, "object"},
	{"null", CTR_GPU_E_BAD_STATE, "state"},
	{"{\"status\":\"created\",\"pid\":1,\"bundle\":\"/b\"", CTR_GPU_E_BAD_STATE, "state"},
	{"{\"status\":\"created\",\"pid\":1,\"bundle\":\"/b\"} x", CTR_GPU_E_BAD_STATE, "state"},
	{"{\"status\":\"created\",\"pid\":1,\"pid\":2,\"bundle\":\"/b\"}", CTR_GPU_E_BAD_STATE, "duplicate"},
	{"{\"status\":\"created\",\"pid\":0,\"bundle\":\"/b\"}", CTR_GPU_E_BAD_STATE, "pid"},
	{"{\"status\":\"created\",\"pid\":-1,\"bundle\":\"/b\"}", CTR_GPU_E_BAD_STATE, "pid"},
	{"{\"status\":\"created\",\"pid\":4294967297,\"bundle\":\"/b\"}", CTR_GPU_E_BAD_STATE, "pid"},
	{"{\"status\":\"created\",\"pid\":1e3,\"bundle\":\"/b\"}", CTR_GPU_E_BAD_STATE, "pid"},
	{"{\"status\":\"created\",\"pid\":\"1\",\"bundle\":\"/b\"}", CTR_GPU_E_BAD_STATE, "pid"},
	{"{\"status\":\"created\",\"bundle\":\"/b\"}", CTR_GPU_E_BAD_STATE, "pid"},
	{"{\"status\":\"created\",\"pid\":1,\"bundle\":\"b\"}", CTR_GPU_E_BAD_STATE, "bundle"},
	{"{\"status\":\"created\",\"pid\":1,\"bundle\":\"\"}", CTR_GPU_E_BAD_STATE, "bundle"},
	{"{\"status\":\"created\",\"pid\":1,\"bundle\":\"/b\\u0000c\"}", CTR_GPU_E_BAD_STATE, "state"},
	{"{\"status\":\"created\",\"pid\":1,\"bundle\":[\"/b\"]}", CTR_GPU_E_BAD_STATE, "bundle"},
	{"{\"status\":\"created\",\"pid\":1}", CTR_GPU_E_BAD_STATE, "bundle"},
	{"{\"status\":1,\"pid\":1,\"bundle\":\"/b\"}", CTR_GPU_E_BAD_STATE, "status"},
	{"{\"pid\":1,\"bundle\":\"/b\"}", CTR_GPU_E_BAD_STATE, "status"},
	{"{\"status\":\"stopped\",\"pid\":1,\"bundle\":\"/b\"}", CTR_GPU_E_BAD_STATE, "status"},
	{"{\"status\":\"running\",\"pid\":1,\"bundle\":\"/b\"}", CTR_GPU_E_CONTAINER_RUNNING, "running"},
	{"{\"status\":\"paused\",\"pid\":1,\"bundle\":\"/b\"}", CTR_GPU_E_CONTAINER_RUNNING, "paused"},
	{"{\"status\":\"created\",\"pid\":1,\"bundle\":\"/\xff\"}", CTR_GPU_E_BAD_STATE, "state"},
};

static void test_bad_states(void **unused)
{
	struct oci_state parsed;
	struct err err;

	(void)unused;
	for (size_t i = 0; i < ARRAY_SIZE(bad_states); i++) {
		assert_int_equal(state(bad_states[i].text, &parsed, &err), bad_states[i].result);
		assert_non_null(strstr(err.text, bad_states[i].says));
		assert_null(parsed.bundle);
	}
}

static void test_config(void **unused)
{
	struct oci_config parsed;
	struct err err;

	(void)unused;
	assert_int_equal(
		config("{\"root\":{\"path\":\"rootfs\"},\"process\":{\"env\":[\"A=b\",\"\",\"C\"]}}", &parsed, &err),
		0);
	assert_string_equal(parsed.root, "rootfs");
	assert_int_equal(parsed.environment.count, 3);
	assert_string_equal(parsed.environment.items[0], "A=b");
	assert_string_equal(parsed.environment.items[2], "C");
	oci_config_clear(&parsed);
	assert_int_equal(config("{\"root\":{\"path\":\"/r\"},\"process\":{\"env\":null}}", &parsed, &err), 0);
	assert_int_equal(parsed.environment.count, 0);
	oci_config_clear(&parsed);
	assert_int_equal(config("{\"root\":{\"path\":\"/r\"}}", &parsed, &err), 0);
	oci_config_clear(&parsed);
}

static void test_privileged(void **unused)
{
	static const struct {
		const char *capabilities;
		bool privileged;
	} cases[] = {
		{"{\"bounding\":[\"CAP_CHOWN\",\"CAP_SYS_ADMIN\"]}", true},
		{"[\"CAP_SYS_ADMIN\"]", true}, /* before 1.0.0-rc5 */
		{"{\"bounding\":[\"CAP_SYS_FOO\"],\"effective\":[\"CAP_SYS_ADMIN\"],\"ambient\":[\"CAP_SYS_ADMIN\"]}",
		 false},
		{"{\"bounding\":[\"CAP_SYS_ADMINX\",\"SYS_ADMIN\",1,null]}", false},
		{"{\"bounding\":\"CAP_SYS_ADMIN\"}", false},
		{"{}", false},
		{"null", false},
		{"7", false},
	};
	struct err err;

	(void)unused;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct oci_config parsed;
		char text[256];

		(void)snprintf(text, sizeof(text), "{\"root\":{\"path\":\"r\"},\"process\":{\"capabilities\":%s}}",
			       cases[i].capabilities);
		assert_int_equal(config(text, &parsed, &err), 0);
		if (parsed.privileged != cases[i].privileged)
			fail_msg("%s", text);
		oci_config_clear(&parsed);
	}
}

/* What a runtime makes, and what it brings from elsewhere, which must be known of all mounts or is of none. */
static void test_mounts(void **unused)
{
	static const struct {
		const char *mounts;
		size_t tmpfs, binds;
	} cases[] = {
		{"[{\"destination\":\"/dev\",\"type\":\"tmpfs\"},{\"destination\":\"/proc\",\"type\":\"proc\",\"source\":\"proc\"}]",
		 1, 0},
		{"[{\"destination\":\"/dev\",\"type\":\"tmpfs\"},{\"destination\":\"/x\",\"source\":\"/y\",\"options\":[\"rbind\"]}]",
		 1, 1},
		{"[{\"destination\":\"/dev\",\"type\":\"tmpfs\",\"source\":\"/run\",\"options\":[\"ro\",\"bind\"]}]", 0,
		 1},
		{"[{\"destination\":\"/dev\",\"type\":\"tmpfs\"},{\"destination\":\"/x\",\"type\":\"none\",\"source\":\"/y\"}]",
		 1, 1},
		{"[{\"destination\":\"/dev\",\"type\":\"tmpfs\"},{\"destination\":\"/x\",\"type\":\"bind\",\"source\":\"y\"}]",
		 0, 0},
		{"[{\"destination\":\"/dev\",\"type\":\"tmpfs\"},{\"destination\":\"/x\",\"type\":\"fuse\"}]", 0, 0},
		{"[{\"destination\":7,\"type\":\"tmpfs\"},null,7]", 0, 0},
		{"{}", 0, 0},
	};
	struct err err;

	(void)unused;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct oci_config parsed;
		char text[512];

		(void)snprintf(text, sizeof(text), "{\"root\":{\"path\":\"r\"},\"mounts\":%s}", cases[i].mounts);
		assert_int_equal(config(text, &parsed, &err), 0);
		if (parsed.tmpfs.count != cases[i].tmpfs || parsed.binds.count != cases[i].binds)
			fail_msg("%s: %zu, %zu", text, parsed.tmpfs.count, parsed.binds.count);
		oci_config_clear(&parsed);
	}
}

static void test_by_engine(void **unused)
{
	static const struct {
		const char *hooks;
		bool by_engine;
	} cases[] = {
		{"{\"prestart\":[{\"path\":\"/other\"},{\"path\":\"/usr/bin/nvidia-container-runtime-hook\"}]}", true},
		{"{\"prestart\":[{\"path\":\"/usr/bin/ctr-gpu-hook\"},{\"path\":7},null]}", false},
		{"{\"prestart\":[{\"path\":\"nvidia-container-runtime-hook\"}]}", false},
		{"{\"poststop\":[{\"path\":\"/usr/bin/nvidia-container-runtime-hook\"}]}", false},
		{"null", false},
	};
	struct err err;

	(void)unused;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct oci_config parsed;
		char text[256];

		(void)snprintf(text, sizeof(text), "{\"root\":{\"path\":\"r\"},\"hooks\":%s}", cases[i].hooks);
		assert_int_equal(config(text, &parsed, &err), 0);
		if (parsed.by_engine != cases[i].by_engine)
			fail_msg("%s", text);
		oci_config_clear(&parsed);
	}
}

static void test_device_mounts(void **unused)
{
	static const char *const foreign[] = {
		"{\"source\":\"/not/dev/null\",\"destination\":\"/var/run/nvidia-container-devices/GPU0\"}",
		"{\"destination\":\"/var/run/nvidia-container-devices/GPU0\"}",
		"{\"source\":\"/dev/null\",\"destination\":\"/other/prefix/GPU0\"}",
		"{\"source\":\"/dev/null\",\"destination\":\"/var/run/nvidia-container-devices\"}",
		"{\"source\":\"/dev/null\",\"destination\":\"/var/run/nvidia-container-devices/\"}",
		"{\"source\":\"/dev/null\",\"destination\":\"/var/run/nvidia-container-devicesX\"}",
		"{\"source\":\"/dev/null\",\"destination\":7}",
		"null",
		"7",
	};
	struct oci_config parsed;
	struct err err;
	char text[256];

	(void)unused;
	assert_int_equal(
		config("{\"root\":{\"path\":\"r\"},\"mounts\":["
		       "{\"source\":\"/dev/null\",\"destination\":\"/var/run/nvidia-container-devices/GPU0-MIG0/0/1\"},"
		       "{\"source\":\"/dev/null\",\"destination\":\"/var/run/nvidia-container-devices/imex/0\"}]}",
		       &parsed, &err),
		0);
	assert_int_equal(parsed.device_mounts.count, 2);
	assert_string_equal(parsed.device_mounts.items[0], "GPU0-MIG0/0/1");
	assert_string_equal(parsed.device_mounts.items[1], "imex/0");
	oci_config_clear(&parsed);
	for (size_t i = 0; i < ARRAY_SIZE(foreign); i++) {
		(void)snprintf(text, sizeof(text), "{\"root\":{\"path\":\"r\"},\"mounts\":[%s]}", foreign[i]);
		assert_int_equal(config(text, &parsed, &err), 0);
		if (parsed.device_mounts.count > 0)
			fail_msg("%s", text);
		oci_config_clear(&parsed);
	}
}

#define HOOKS(entries) "{\"root\":{\"path\":\"r\"},\"hooks\":{\"createRuntime\":" entries "}}"

static void test_hooks(void **unused)
{
	static const char *const foreign[] = {
		HOOKS("[]"),
		HOOKS("null"),
		HOOKS("{}"),
		HOOKS("[1,null,{}]"),
		HOOKS("[{\"args\":7}]"),
		HOOKS("[{\"args\":[]}]"),
		HOOKS("[{\"args\":[1,\"--device=0\"]}]"),
		HOOKS("[{\"args\":[\"ctr-gpu-hook\",\"createRuntime\"]}]"),
		HOOKS("[{\"args\":[\"other-ctr-gpu-hook\",\"--device=0\"]}]"),
		"{\"root\":{\"path\":\"r\"},\"hooks\":[]}",
		"{\"root\":{\"path\":\"r\"},\"hooks\":{\"prestart\":[{\"args\":[\"ctr-gpu-hook\",\"--device=0\"]}]}}",
	};
	struct strv devices = {0};
	struct oci_config parsed;
	struct err err;

	(void)unused;
	assert_int_equal(config(HOOKS("[{\"path\":\"/x\",\"args\":[\"x\",\"--device=9\"]},"
				      "{\"args\":[\"ctr-gpu-hook\",\"--device=nvidia.com/gpu=0\",\"createRuntime\"]},"
				      "{\"args\":[\"/usr/bin/ctr-gpu-hook\",\"--device=1,2\",3]}]"),
				&parsed, &err),
			 0);
	assert_int_equal(parsed.hook_count, 2);
	assert_int_equal(parsed.hooks[0].arguments.count, 3);
	assert_null(parsed.hooks[0].arguments.items[3]);
	assert_int_equal(parsed.hooks[1].arguments.count, 2);
	for (size_t i = 0; i < parsed.hook_count; i++)
		assert_int_equal(oci_hook_devices((const char *const *)parsed.hooks[i].arguments.items, &devices), 0);
	assert_int_equal(devices.count, 3);
	assert_string_equal(devices.items[0], "nvidia.com/gpu=0");
	assert_string_equal(devices.items[2], "2");
	strv_clear(&devices);
	oci_config_clear(&parsed);
	for (size_t i = 0; i < ARRAY_SIZE(foreign); i++) {
		assert_int_equal(config(foreign[i], &parsed, &err), 0);
		assert_int_equal(parsed.hook_count, 0);
		oci_config_clear(&parsed);
	}
}

static void test_bad_configs(void **unused)
{
	static const char *const bad[] = {
		"",
		"7",
		"[{\"root\":{\"path\":\"/r\"}}]",
		"{}",
		"{\"root\":\"/r\"}",
		"{\"root\":{}}",
		"{\"root\":{\"path\":\"\"}}",
		"{\"root\":{\"path\":1}}",
		"{\"root\":{\"path\":\"/r\"},\"root\":{\"path\":\"/s\"}}",
		"{\"root\":{\"path\":\"/r\\u0000\"}}",
		"{\"root\":{\"path\":\"/r\"},\"process\":[]}",
		"{\"root\":{\"path\":\"/r\"},\"process\":{\"env\":{}}}",
		"{\"root\":{\"path\":\"/r\"},\"process\":{\"env\":[\"a\",1]}}",
		"{\"root\":{\"path\":\"/r\"},\"process\":{\"env\":[\"A=\\u0000\"]}}",
		"{\"root\":{\"path\":\"/r\"},\"process\":{\"env\":[null]}}",
	};
	struct oci_config parsed;
	struct err err;

	(void)unused;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		assert_int_equal(config(bad[i], &parsed, &err), CTR_GPU_E_BAD_STATE);
		assert_non_null(strstr(err.text, "config.json"));
		assert_null(parsed.root);
		assert_null(parsed.environment.items);
	}
}

static void test_size_and_depth(void **unused)
{
	size_t size = OCI_STATE_MAX + 1;
	char *text = malloc(size), deep[200];
	struct oci_state parsed = {0};
	struct err err;

	(void)unused;
	memset(text, ' ', size);
	memcpy(text, good_states[0].text, strlen(good_states[0].text));
	assert_int_equal(oci_parse_state(text, size, &parsed, &err), CTR_GPU_E_BAD_STATE);
	assert_non_null(strstr(err.text, "1 MiB"));
	assert_int_equal(oci_parse_state(text, size - 1, &parsed, &err), 0);
	oci_state_clear(&parsed);
	free(text);
	memset(deep, '[', sizeof(deep));
	assert_int_equal(oci_parse_state(deep, sizeof(deep), &parsed, &err), CTR_GPU_E_BAD_STATE);
	assert_non_null(strstr(err.text, "deep"));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_good_states), cmocka_unit_test(test_bad_states),
		cmocka_unit_test(test_config),      cmocka_unit_test(test_hooks),
		cmocka_unit_test(test_privileged),  cmocka_unit_test(test_mounts),
		cmocka_unit_test(test_by_engine),   cmocka_unit_test(test_device_mounts),
		cmocka_unit_test(test_bad_configs), cmocka_unit_test(test_size_and_depth),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

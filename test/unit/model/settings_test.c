/* SPDX-License-Identifier: Apache-2.0 */

#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "lib/context.h"

static int parse(const char *json, struct settings *settings, struct err *err)
{
	settings_init(settings);
	return settings_parse(settings, "config.json", json, strlen(json), err);
}

static void every_key_is_read(void **state)
{
	struct settings settings;
	struct err err = {0};

	(void)state;
	assert_int_equal(
		parse("{\"inventory\": \"ioctl\", \"driver-timeout\": 2.5, \"library-directories\": [\"/a\", \"/b\"],"
		      "\"driver-root\": \"/run/driver\", \"mps-user\": 1001, \"runtimes\": [\"youki\", \"/opt/runc\"], \"strict-requirements\": true, \"disable-requirements\": true,"
		      "\"choice\": \"strict\","
		      "\"accept-nvidia-visible-devices-envvar-when-unprivileged\": false,"
		      "\"accept-nvidia-visible-devices-as-volume-mounts\": false}",
		      &settings, &err),
		0);
	assert_int_equal(settings.inventory, INVENTORY_IOCTL);
	assert_int_equal(settings.driver_timeout_ms, 2500);
	assert_int_equal(settings.library_dirs.count, 2);
	assert_string_equal(settings.library_dirs.items[1], "/b");
	assert_string_equal(settings.driver_root, "/run/driver");
	assert_int_equal(settings.mps_user, 1001);
	assert_int_equal(settings.runtimes.count, 2);
	assert_string_equal(settings.runtimes.items[1], "/opt/runc");
	assert_int_equal(settings.choice, CHOICE_STRICT);
	assert_true(settings.strict_requirements);
	assert_true(settings.disable_requirements);
	assert_false(settings.accept_environment);
	assert_false(settings.accept_mounts);
	settings_clear(&settings);
	settings_init(&settings);
	assert_true(settings.accept_environment);
	assert_true(settings.accept_mounts);
	settings_clear(&settings);
}

static void vcuda_is_off_unless_it_is_switched_on(void **state)
{
	struct settings settings;
	struct err err = {0};

	(void)state;
	/* As an editor of Windows may have written it. */
	assert_int_equal(parse("\xef\xbb\xbf{\"deadline\": 7}\r\n", &settings, &err), 0);
	assert_int_equal(settings.deadline_s, 7);
	settings_clear(&settings);
	assert_int_equal(parse("{}", &settings, &err), 0);
	assert_int_equal(settings.vcuda_mode, VCUDA_OFF);
	assert_true(settings.vcuda_limits.memory == STR_SHARE(50));
	assert_int_equal(settings.vcuda_limits.host_memory, 0);
	assert_int_equal(settings.vcuda_limits.max_clients, 16);
	assert_int_equal(settings.vcuda_slots, 0);
	assert_int_equal(settings.vcuda_limits.idle, 0);
	settings_clear(&settings);
	assert_int_equal(
		parse("{\"vcuda\": {\"mode\": \"force\", \"memory\": \"8G\", \"host_memory\": \"3G\", \"max_clients\": 256, \"idle\": 600, \"share\": 300, \"slots\": 32, \"move\": true}}",
		      &settings, &err),
		0);
	assert_int_equal(settings.vcuda_mode, VCUDA_FORCE);
	assert_int_equal(settings.vcuda_limits.memory, 8ULL << 30);
	assert_int_equal(settings.vcuda_limits.host_memory, 3ULL << 30);
	assert_int_equal(settings.vcuda_limits.max_clients, 256);
	assert_int_equal(settings.vcuda_limits.idle, 600);
	assert_int_equal(settings.vcuda_limits.share, 300);
	assert_int_equal(settings.vcuda_slots, 32);
	assert_true(settings.vcuda_move);
	settings_clear(&settings);
}

static void users_are_those_of_a_list(void **state)
{
	struct settings settings;
	struct err err = {0};

	(void)state;
	assert_int_equal(
		parse("{\"vcuda\": {\"users\": [{\"uid\": 1000}, {\"gid\": 2000, \"memory\": \"8G\", \"host_memory\": \"3G\", "
		      "\"share\": 7, \"max_clients\": 5, \"containers\": 64, \"gpus\": [\"0\", \"GPU-5a3f\"]}]}}",
		      &settings, &err),
		0);
	assert_int_equal(settings.vcuda_user_count, 2);
	assert_int_equal(settings.vcuda_users[0].uid, 1000);
	assert_int_equal(settings.vcuda_users[0].gid, 0);
	assert_true(settings.vcuda_users[0].limits.memory == STR_SHARE(50));
	assert_int_equal(settings.vcuda_users[0].limits.share, 100);
	assert_int_equal(settings.vcuda_users[0].limits.max_clients, 16);
	assert_int_equal(settings.vcuda_users[0].containers, 4);
	assert_int_equal(settings.vcuda_users[0].gpus.count, 0);
	assert_int_equal(settings.vcuda_users[1].gid, 2000);
	assert_int_equal(settings.vcuda_users[1].limits.memory, 8ULL << 30);
	assert_int_equal(settings.vcuda_users[1].limits.host_memory, 3ULL << 30);
	assert_int_equal(settings.vcuda_users[1].limits.share, 7);
	assert_int_equal(settings.vcuda_users[1].limits.max_clients, 5);
	assert_int_equal(settings.vcuda_users[1].containers, 64);
	assert_string_equal(settings.vcuda_users[1].gpus.items[1], "GPU-5a3f");
	settings_clear(&settings);
	assert_int_equal(parse("{\"vcuda\": {\"users\": []}}", &settings, &err), 0);
	assert_int_equal(settings.vcuda_user_count, 0);
	settings_clear(&settings);
}

static void what_makes_no_sense_is_refused(void **state)
{
	static const struct {
		const char *json, *told;
	} cases[] = {
		{"", "not a JSON object"},
		{"[]", "not a JSON object: it is a list"},
		{"\xef\xbb\xbf\xef\xbb\xbf{}", "not a JSON object"},
		{"{\n\t\"deadline\": 10,\n}\n", "expected near '}' in line 3"},
		{"{\"inventory\": \"wmi\"}", "\"inventory\" must be"},
		{"{\"inventory\": 1}", "\"inventory\" must be"},
		{"{\"mps-user\": \"mps\"}", "\"mps-user\" must be"},
		{"{\"mps-user\": -1}", "\"mps-user\" must be"},
		{"{\"mps-user\": 4294967295}", "\"mps-user\" must be"},
		{"{\"driver-timeout\": 0}", "\"driver-timeout\" must be"},
		{"{\"driver-timeout\": -1}", "\"driver-timeout\" must be"},
		{"{\"driver-timeout\": 1e99}", "\"driver-timeout\" must be"},
		{"{\"driver-timeout\": \"10\"}", "\"driver-timeout\" must be"},
		{"{\"library-directories\": [\"relative\"]}", "\"library-directories\" must be"},
		{"{\"library-directories\": \"/a\"}", "\"library-directories\" must be"},
		{"{\"driver-root\": \"x\"}", "\"driver-root\" must be"},
		{"{\"runtimes\": []}", "\"runtimes\" must be"},
		{"{\"runtimes\": \"runc\"}", "\"runtimes\" must be"},
		{"{\"runtimes\": [\"bin/runc\"]}", "\"runtimes\" must be"},
		{"{\"runtimes\": [\"\"]}", "\"runtimes\" must be"},
		{"{\"runtimes\": [18446744073709551615]}", "\"runtimes\" must be"},
		{"{\"choice\": \"hard\"}", "\"choice\" must be"},
		{"{\"choice\": true}", "\"choice\" must be"},
		{"{\"strict-requirements\": 1}", "\"strict-requirements\" must be"},
		{"{\"on-missing\": \"never\"}", "or \"cdi\", not \"never\""},
		{"{\"on-missing\": \"fial\"}", "not \"fial\"; did you mean 'fail'?"},
		{"{\"on-mising\": \"fail\"}", "unknown key \"on-mising\"; did you mean 'on-missing'?"},
		{"{\"on-missing\": {\"hok\": \"fail\"}}", "\"on-missing\": unknown key \"hok\"; did you mean 'hook'?"},
		{"{\"on-missing\": {\"hook\": \"wran\"}}",
		 "\"hook\" must be \"fail\", \"warn\" or \"skip\", not \"wran\"; did you mean 'warn'?"},
		{"{\"vcuda\": {\"mode\": \"alow\"}}", "did you mean 'allow'?"},
		{"{\"vcuda\": {\"host-memory\": \"8G\"}}", "did you mean 'host_memory'?"},
		{"{\"on-missing\": true}", "\"on-missing\" must be"},
		{"{\"on-missing\": {\"hook\": \"\"}}", "\"on-missing\": \"hook\" must be"},
		{"{\"on-missing\": {\"door\": \"warn\"}}", "\"on-missing\": unknown key \"door\""},
		{"{\"vcuda\": \"force\"}", "\"vcuda\" must be"},
		{"{\"vcuda\": {\"users\": {\"uid\": 1000}}}", "\"vcuda\": \"users\" must be"},
		{"{\"vcuda\": {\"users\": [1000]}}", "\"vcuda\": \"users\" must be"},
		{"{\"vcuda\": {\"users\": [{\"memory\": \"8G\"}]}}", "\"users\" must be a list of objects, each with"},
		{"{\"vcuda\": {\"users\": [{\"uid\": 1, \"gid\": 1}]}}",
		 "\"users\" must be a list of objects, each with"},
		{"{\"vcuda\": {\"users\": [{\"uid\": 0}]}}", "\"users\": \"uid\" must be"},
		{"{\"vcuda\": {\"users\": [{\"uid\": \"alice\"}]}}", "\"users\": \"uid\" must be"},
		{"{\"vcuda\": {\"users\": [{\"uid\": 1000, \"containers\": 65}]}}",
		 "\"users\": \"containers\" must be"},
		{"{\"vcuda\": {\"users\": [{\"uid\": 1000, \"mode\": \"allow\"}]}}", "\"users\": unknown key"},
		{"{\"vcuda\": {\"mode\": \"on\"}}", "\"vcuda\": \"mode\" must be \"off\""},
		{"{\"vcuda\": {\"memory\": 8}}", "\"vcuda\": \"memory\" must be"},
		{"{\"vcuda\": {\"memory\": \"much\"}}", "\"vcuda\": \"memory\" must be"},
		{"{\"vcuda\": {\"host_memory\": 8}}", "\"vcuda\": \"host_memory\" must be"},
		{"{\"vcuda\": {\"max_clients\": 0}}",
		 "\"vcuda\": \"max_clients\" must be a whole number from 1 to 256"},
		{"{\"vcuda\": {\"max_clients\": 257}}", "\"vcuda\": \"max_clients\" must be"},
		{"{\"vcuda\": {\"slots\": 33}}", "\"vcuda\": \"slots\" must be a whole number from 0 to 32, not 33"},
		{"{\"vcuda\": {\"move\": 1}}", "\"vcuda\": \"move\" must be true or false"},
		{"{\"vcuda\": {\"share\": 0}}", "\"vcuda\": \"share\" must be a whole number from 1 to 1000"},
		{"{\"vcuda\": {\"share\": 1001}}", "\"vcuda\": \"share\" must be a whole number from 1 to 1000"},
		{"{\"vcuda\": {\"idle\": 2592001}}", "\"vcuda\": \"idle\" must be seconds, a whole number from 0"},
		{"{\"vcuda\": {\"shares\": 1}}", "\"vcuda\": unknown key \"shares\""},
		{"{\"colour\": 1}", "unknown key \"colour\""},
		{"{\"inventory\": \"auto\", \"inventory\": \"auto\"}", "duplicate"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct settings settings;
		struct err err = {0};

		if (parse(cases[i].json, &settings, &err) != CTR_GPU_E_BAD_CONFIG || !strstr(err.text, cases[i].told) ||
		    !strstr(err.advice, "config.json"))
			fail_msg("%s: %s\n%s", cases[i].json, err.text, err.advice);
		settings_clear(&settings);
	}
}

/* A container can be stopped by its runtime, whatever else a file says. */
static void runtimes_are_known_in_spite_of_mistakes(void **state)
{
	static const struct {
		const char *json;
		size_t count;
	} cases[] = {
		{"{\"colour\": 1, \"runtimes\": [\"crun\"], \"inventory\": 1}", 1},
		{"{\"colour\": 1}", 0},
		{"{\"runtimes\": [\"crun\", \"\"]}", 1},
		{"{\"runtimes\": [\"crun\"],}", 0},
		{"[\"crun\"]", 0},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct settings settings;
		struct err err = {0};

		assert_int_equal(parse(cases[i].json, &settings, &err), CTR_GPU_E_BAD_CONFIG);
		assert_int_equal(settings.runtimes.count, cases[i].count);
		settings_clear(&settings);
	}
}

static void what_happens_without_a_gpu(void **state)
{
	static const struct {
		const char *json;
		enum on_missing policies[ENTRIES];
	} cases[] = {
		{"{}", {ON_MISSING_BY_REQUEST, ON_MISSING_BY_REQUEST, ON_MISSING_BY_REQUEST}},
		{"{\"on-missing\": \"skip\"}", {ON_MISSING_SKIP, ON_MISSING_SKIP, ON_MISSING_SKIP}},
		{"{\"on-missing\": {\"runtime\": \"fail\", \"cdi\": \"warn\"}}",
		 {ON_MISSING_BY_REQUEST, ON_MISSING_FAIL, ON_MISSING_WARN}},
		{"{\"on-missing\": {}}", {ON_MISSING_BY_REQUEST, ON_MISSING_BY_REQUEST, ON_MISSING_BY_REQUEST}},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct settings settings;
		struct err err = {0};

		assert_int_equal(parse(cases[i].json, &settings, &err), 0);
		assert_memory_equal(settings.on_missing, cases[i].policies, sizeof(settings.on_missing));
		settings_clear(&settings);
	}
}

static void deep_nesting_is_refused(void **state)
{
	enum { DEPTH = 99999 };
	_cleanup_free_ char *json = malloc(DEPTH + 1);
	struct settings settings;
	struct err err = {0};

	(void)state;
	assert_non_null(json);
	memset(json, '[', DEPTH);
	json[DEPTH] = '\0';
	assert_int_equal(parse(json, &settings, &err), CTR_GPU_E_BAD_CONFIG);
	assert_non_null(strstr(err.text, "nested too deeply"));
}

static void a_file_others_can_write_is_not_read(void **state)
{
	char path[] = "/tmp/ctr-gpu-settings-XXXXXX", directory[] = "/tmp/ctr-gpu-settings-XXXXXX";
	_cleanup_close_ int fd = mkstemp(path);
	_cleanup_free_ char *inside = NULL;
	struct settings settings;
	struct err err = {0};

	(void)state;
	assert_true(fd >= 0);
	settings_init(&settings);
	/* /tmp itself is writable by all, so even a good file there is refused. */
	assert_int_equal(settings_load(&settings, path, &err), CTR_GPU_E_BAD_CONFIG);
	assert_non_null(strstr(err.text, "/tmp can be written by others"));

	assert_non_null(mkdtemp(directory));
	assert_int_equal(str_format(&inside, "%s/config.json", directory), 0);
	assert_int_equal(rename(path, inside), 0);
	assert_int_equal(fd_write_all(fd, "{\"inventory\": \"dxcore\"}", 23), 0);
	assert_int_equal(settings_load(&settings, inside, &err), 0);
	assert_int_equal(settings.inventory, INVENTORY_DXCORE);
	assert_int_equal(chmod(inside, 0666), 0);
	assert_int_equal(settings_load(&settings, inside, &err), CTR_GPU_E_BAD_CONFIG);
	(void)unlink(inside);
	assert_int_equal(settings_load(&settings, inside, &err), -ENOENT);
	(void)rmdir(directory);
	settings_clear(&settings);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_key_is_read),
		cmocka_unit_test(vcuda_is_off_unless_it_is_switched_on),
		cmocka_unit_test(users_are_those_of_a_list),
		cmocka_unit_test(what_makes_no_sense_is_refused),
		cmocka_unit_test(runtimes_are_known_in_spite_of_mistakes),
		cmocka_unit_test(what_happens_without_a_gpu),
		cmocka_unit_test(deep_nesting_is_refused),
		cmocka_unit_test(a_file_others_can_write_is_not_read),
	};

	return cmocka_run_group_tests_name("settings", tests, NULL, NULL);
}

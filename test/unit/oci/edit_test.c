/* SPDX-License-Identifier: Apache-2.0 */

/* What becomes of a config.json when a plan is written into it. */

#include "unit.h"

#include <errno.h>
#include <sys/sysmacros.h>

#include "base/str.h"
#include "ctr-gpu.h"
#include "oci/edit.h"

static struct plan plan;
static const struct stat nodes[] = {{.st_mode = S_IFCHR | 0666}, {.st_mode = S_IFCHR | 0660, .st_gid = 4294967294U}};

static void add_device(const char *path, dev_t number)
{
	struct plan_device device = {.path = strdup(path), .number = number, .access = "rw", .reason = strdup("")};

	assert_int_equal(plan_add_device(&plan, &device), 0);
}

static void add_mount(const char *path, unsigned flags)
{
	struct plan_mount mount = {
		.source = strdup(path), .target = strdup(path), .flags = flags, .reason = strdup("")};

	assert_int_equal(plan_add_mount(&plan, &mount), 0);
}

static int make_plan(void **unused)
{
	struct plan_env variable = {
		.name = strdup("NAME"), .value = strdup("value"), .reason = strdup(""), .replaces = true};
	struct plan_env mild = {.name = strdup("MILD"), .value = strdup("ours"), .reason = strdup("")};

	(void)unused;
	add_device("/dev/dxg", makedev(10, 125));
	add_device("/dev/other", makedev(195, 300));
	add_mount("/usr/lib/wsl/lib", 0);
	add_mount("/usr/share/vulkan", PLAN_MOUNT_NOEXEC);
	return plan_add_env(&plan, &mild) || plan_add_env(&plan, &variable);
}

static int clear_plan(void **unused)
{
	(void)unused;
	plan_clear(&plan);
	return 0;
}

#define DXG "{\"path\":\"/dev/dxg\",\"type\":\"c\",\"major\":10,\"minor\":125,\"fileMode\":438,\"uid\":0,\"gid\":0}"
#define OTHER \
	"{\"path\":\"/dev/other\",\"type\":\"c\",\"major\":195,\"minor\":300,\"fileMode\":432,\"uid\":0,\"gid\":4294967294}"
#define RULE(major, minor) "{\"allow\":true,\"type\":\"c\",\"major\":" major ",\"minor\":" minor ",\"access\":\"rw\"}"
#define RULES RULE("10", "125") "," RULE("195", "300")
#define DENIAL "{\"allow\":false,\"access\":\"rwm\"}"
#define OPTIONS "\"ro\",\"nosuid\",\"nodev\",\"rbind\",\"rprivate\""
#define MOUNT(path, options) \
	"{\"destination\":\"" path "\",\"type\":\"bind\",\"source\":\"" path "\",\"options\":[" options "]}"
#define MOUNTS MOUNT("/usr/lib/wsl/lib", OPTIONS) "," MOUNT("/usr/share/vulkan", OPTIONS ",\"noexec\"")
#define NODE(path) MOUNT(path, "\"nosuid\",\"noexec\",\"rbind\",\"rprivate\"")
#define ENV "\"MILD=ours\",\"NAME=value\""
#define REST(devices) "\"process\":{\"env\":[" ENV "]},\"linux\":{\"devices\":[" devices "]},\"mounts\":[" MOUNTS "]}"

static char *edit(const char *text, const struct stat *with, int expected)
{
	_cleanup_json_ json_t *config = NULL;
	struct err err = {0};
	char *result = NULL;

	assert_int_equal(json_parse_to_print(text, strlen(text), &config, NULL), 0);
	assert_int_equal(oci_edit_apply(config, &plan, with, &err), expected);
	if (expected)
		assert_non_null(strstr(err.text, "config.json"));
	else
		assert_int_equal(json_print(config, JSON_COMPACT, &result), 0);
	return result;
}

static const struct {
	const char *before, *after;
	bool unprivileged;
} edits[] = {
	{"{}", "{\"linux\":{\"devices\":[" DXG "," OTHER "]},\"mounts\":[" MOUNTS "],\"process\":{\"env\":[" ENV "]}}",
	 false},
	/* null is how some serializers write an empty list */
	{"{\"process\":{\"env\":null},\"linux\":{\"devices\":null},\"mounts\":null}", "{" REST(DXG "," OTHER), false},
	/* what is there stays, in front; of variables, only one that the plan replaces does not */
	{"{\"a\":18446744073709551615,\"process\":{\"env\":[\"NAME=other\",\"MILD=\",\"NAMES=x\",\"NAME\"],\"z\":1},\"linux\":{\"devices\":"
	 "[{\"path\":\"/dev/fuse\"}],\"resources\":{\"devices\":[" DENIAL
	 "],\"memory\":{}}},\"mounts\":[{\"destination\":\"/proc\"}]}",
	 "{\"a\":18446744073709551615,\"process\":{\"env\":[\"MILD=\",\"NAMES=x\",\"NAME\",\"NAME=value\"],\"z\":1},\"linux\":{\"devices\":"
	 "[{\"path\":\"/dev/fuse\"}," DXG "," OTHER "],\"resources\":{\"devices\":[" DENIAL "," RULES
	 "],\"memory\":{}}},"
	 "\"mounts\":[{\"destination\":\"/proc\"}," MOUNTS "]}",
	 false},
	/* the user's owner of the same device stays, another device at its path does not */
	{"{\"process\":{},\"linux\":{\"devices\":[{\"path\":\"/dev/dxg\",\"type\":\"c\",\"major\":10,\"minor\":125,\"uid\":7},"
	 "{\"path\":\"/dev/other\",\"type\":\"c\",\"major\":1,\"minor\":3},7]}}",
	 "{\"process\":{\"env\":[" ENV
	 "]},\"linux\":{\"devices\":[{\"path\":\"/dev/dxg\",\"type\":\"c\",\"major\":10,\"minor\":125,\"uid\":7},7," OTHER
	 "]},\"mounts\":[" MOUNTS "]}",
	 false},
	/* a rule in front of a denial is none */
	{"{\"process\":{},\"linux\":{\"devices\":[],\"resources\":{\"devices\":[" RULES "," DENIAL "]}},\"mounts\":[]}",
	 "{\"process\":{\"env\":[" ENV "]},\"linux\":{\"devices\":[" DXG "," OTHER
	 "],\"resources\":{\"devices\":[" RULES "," DENIAL "," RULES "]}},\"mounts\":[" MOUNTS "]}",
	 false},
	/* an engine without rules gets none */
	{"{\"process\":{},\"linux\":{\"resources\":{\"devices\":[]}},\"mounts\":[]}",
	 "{\"process\":{\"env\":[" ENV "]},\"linux\":{\"resources\":{\"devices\":[]},\"devices\":[" DXG "," OTHER
	 "]},\"mounts\":[" MOUNTS "]}",
	 false},
	/* nodes that are mounted need no "linux" */
	{"{\"process\":{},\"mounts\":[]}",
	 "{\"process\":{\"env\":[" ENV "]},\"mounts\":[" NODE("/dev/dxg") "," NODE("/dev/other") "," MOUNTS "]}", true},
};

static void test_edits(void **unused)
{
	(void)unused;
	for (size_t i = 0; i < ARRAY_SIZE(edits); i++) {
		const struct stat *with = edits[i].unprivileged ? NULL : nodes;
		_cleanup_free_ char *once = edit(edits[i].before, with, 0), *twice = NULL;

		assert_string_equal(once, edits[i].after);
		twice = edit(once, with, 0);
		assert_string_equal(twice, edits[i].after);
	}
}

static void test_bad_configs(void **unused)
{
	static const char *const bad[] = {
		"{\"linux\":[]}",  "{\"linux\":{\"devices\":{}}}",    "{\"mounts\":{}}",
		"{\"process\":7}", "{\"process\":{\"env\":\"A=b\"}}",
	};

	(void)unused;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_null(edit(bad[i], nodes, CTR_GPU_E_BAD_STATE));
}

#define OUR_HOOK \
	"{\"path\":\"/bin/ctr-gpu-hook\",\"args\":[\"ctr-gpu-hook\",\"createRuntime\"],\"env\":[\"CTR_GPU_HOOK=runtime\"],\"timeout\":120}"
#define CLEAN_HOOK \
	"{\"path\":\"/bin/ctr-gpu-hook\",\"args\":[\"ctr-gpu-hook\",\"poststop\"],\"env\":[\"CTR_GPU_HOOK=runtime\"],\"timeout\":120}"
#define CDI_HOOK "{\"path\":\"/usr/bin/ctr-gpu-hook\",\"args\":[\"ctr-gpu-hook\",\"--device=0\",\"createRuntime\"]}"
#define FOREIGN_HOOK "{\"path\":\"/usr/bin/my-ctr-gpu-hook\"}"

static const struct {
	const char *before, *path, *after;
	bool gives;
} hooks[] = {
	{"{}", NULL, "{}", false},
	{"{}", "/bin/ctr-gpu-hook", "{\"hooks\":{\"createRuntime\":[" OUR_HOOK "],\"poststop\":[" CLEAN_HOOK "]}}",
	 true},
	{"{\"hooks\":null}", "/bin/ctr-gpu-hook", "{\"hooks\":{\"poststop\":[" CLEAN_HOOK "]}}", false},
	{"{\"hooks\":{\"poststop\":[" CLEAN_HOOK "," FOREIGN_HOOK "]}}", "/bin/ctr-gpu-hook",
	 "{\"hooks\":{\"poststop\":[" FOREIGN_HOOK "," CLEAN_HOOK "]}}", false},
	{"{\"hooks\":{\"prestart\":[{\"path\":\"/usr/bin/nvidia-container-runtime-hook\"}],\"poststop\":[" FOREIGN_HOOK
	 "]}}",
	 NULL, "{\"hooks\":{\"poststop\":[" FOREIGN_HOOK "]}}", false},
	{"{\"hooks\":{\"prestart\":[{\"path\":\"/x/nvidia-container-toolkit\"}," FOREIGN_HOOK ",{\"path\":7},8]}}",
	 NULL, "{\"hooks\":{\"prestart\":[" FOREIGN_HOOK ",{\"path\":7},8]}}", false},
	{"{\"hooks\":{\"createRuntime\":[" OUR_HOOK "," CDI_HOOK "," OUR_HOOK "]}}", "/bin/ctr-gpu-hook",
	 "{\"hooks\":{\"createRuntime\":[" CDI_HOOK "," OUR_HOOK "],\"poststop\":[" CLEAN_HOOK "]}}", true},
	{"{\"hooks\":{\"createRuntime\":[],\"prestart\":{}}}", NULL,
	 "{\"hooks\":{\"createRuntime\":[],\"prestart\":{}}}", false},
};

static void test_hooks(void **unused)
{
	struct err err;

	(void)unused;
	for (size_t i = 0; i < ARRAY_SIZE(hooks); i++) {
		_cleanup_json_ json_t *config = NULL;
		_cleanup_free_ char *text = NULL;

		assert_int_equal(json_parse(hooks[i].before, strlen(hooks[i].before), &config, NULL), 0);
		assert_int_equal(
			oci_edit_set_hooks(config, &(struct oci_edit_hook){hooks[i].path, hooks[i].gives, 120}, &err),
			0);
		assert_int_equal(json_print(config, JSON_COMPACT, &text), 0);
		assert_string_equal(text, hooks[i].after);
	}
}

/* Once each, behind what the engine has; in a user namespace the numbers are others'. */
static void groups_of_nodes_are_the_process_s(void **state)
{
	static const struct {
		const char *config, *groups; /* NULL: none */
	} cases[] = {
		{"{}", "[992]"},
		{"{\"process\":{\"user\":{\"uid\":1000,\"additionalGids\":[5]}}}", "[5,992]"},
		{"{\"process\":{\"user\":{\"additionalGids\":[992,5]}}}", "[992,5]"},
		{"{\"linux\":{\"namespaces\":[{\"type\":\"pid\"}]}}", "[992]"},
		{"{\"linux\":{\"namespaces\":[{\"type\":\"user\"}]}}", NULL},
	};
	struct plan grouped = {0};

	(void)state;
	for (int i = 0; i < 3; i++) {
		struct plan_device device = {.access = "rw", .group = i < 2 ? 992 : 0, .reason = strdup("")};

		assert_true(str_format(&device.path, "/dev/dri/renderD%d", 128 + i) == 0);
		assert_int_equal(plan_add_device(&grouped, &device), 0);
	}
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_json_ json_t *config = json_loads(cases[i].config, 0, NULL), *wanted = NULL;
		const json_t *user;
		struct err err = {0};

		assert_int_equal(oci_edit_apply_rules(config, &grouped, &err), 0);
		user = json_object_get(json_object_get(config, "process"), "user");
		wanted = cases[i].groups ? json_loads(cases[i].groups, 0, NULL) : NULL;
		if (wanted ? !json_equal(json_object_get(user, "additionalGids"), wanted)
			   : json_object_get(user, "additionalGids") != NULL)
			fail_msg("case %zu", i);
	}
	plan_clear(&grouped);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(groups_of_nodes_are_the_process_s),
		cmocka_unit_test(test_edits),
		cmocka_unit_test(test_bad_configs),
		cmocka_unit_test(test_hooks),
	};

	return cmocka_run_group_tests(tests, make_plan, clear_plan);
}

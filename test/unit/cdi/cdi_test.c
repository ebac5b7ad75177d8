/* SPDX-License-Identifier: Apache-2.0 */

/* CDI specs: names, what is written, what is read, and what engines make of it. */

#include "unit.h"

#include "cdi/cdi.h"
#include "cdi/report.h"
#include "cdi/spec.h"
#include "lib/context.h"

static void kinds_and_names(void **state)
{
	static const char *const kinds[] = {"nvidia.com/gpu", "a/b", "A_1.b-c/D.e_f-1"};
	static const char *const no_kinds[] = {
		"",     "/",     "nvidia.com", "nvidia.com/",
		"/gpu", "1a/b",  "a/1b",       "a-/b",
		"a/b-", "a/b/c", "a b/c",      "a/bcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmno"};
	static const char *const names[] = {"0", "all", "GPU-b703df58", "0000:01:00.0", "1:0", "LUID-00", "a_b"};
	static const char *const no_names[] = {"", "-a", "a-", ".", "a/b", "MIG-GPU-1/2/3", "a b", "\xc3\xa4"};
	char *name = NULL;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		assert_true(cdi_is_kind(kinds[i]));
	for (size_t i = 0; i < ARRAY_SIZE(no_kinds); i++)
		assert_false(cdi_is_kind(no_kinds[i]));
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		assert_true(cdi_is_device_name(names[i]));
	for (size_t i = 0; i < ARRAY_SIZE(no_names); i++)
		assert_false(cdi_is_device_name(no_names[i]));
	assert_int_equal(cdi_file_name("nvidia.com/gpu", &name), 0);
	assert_string_equal(name, "ctr-gpu-nvidia.json");
	free(name);
	assert_int_equal(cdi_file_name("example.com/card", &name), 0);
	assert_string_equal(name, "ctr-gpu-example.com-card.json");
	free(name);
}

static void a_spec_s_path_is_known_before_it_is_written(void **state)
{
	struct ctr_gpu_context *context;
	char *path = NULL;

	(void)state;
	assert_int_equal(ctr_gpu_context_new(&context), 0);
	assert_int_equal(ctr_gpu_cdi_path(context, "nvidia.com/gpu", "/nowhere/", &path), 0);
	assert_string_equal(path, "/nowhere/ctr-gpu-nvidia.json");
	free(path);
	assert_int_equal(ctr_gpu_cdi_path(context, "nvidia.com/gpu", "/nowhere/x.json", &path), 0);
	assert_string_equal(path, "/nowhere/x.json");
	free(path);
	assert_int_equal(ctr_gpu_cdi_path(context, "nvidia.com/gpu", "/nowhere/x", &path), CTR_GPU_E_BAD_ARGUMENT);
	assert_int_equal(ctr_gpu_cdi_path(context, "nvidia.com/gpu", "x.json", &path), CTR_GPU_E_BAD_ARGUMENT);
	assert_int_equal(ctr_gpu_cdi_path(context, "../gpu", "/nowhere/", &path), CTR_GPU_E_BAD_ARGUMENT);
	(void)ctr_gpu_context_unref(context);
}

/* ---- what is written ---- */

static int plan_nothing(const struct settings *settings, void *seen, const struct request *request,
			const struct adapter *const *selected, size_t count, struct plan *plan, struct err *err)
{
	(void)settings;
	(void)seen;
	(void)err;
	for (size_t i = 0; i < count; i++) {
		struct plan_device device = {.access = "rw", .reason = strdup("test")};

		assert_true(str_format(&device.path, "/dev/gpu%d", selected[i]->minor) == 0);
		assert_int_equal(plan_add_device(plan, &device), 0);
	}
	if (!request->nodes_only) {
		struct plan_mount mount = {
			.source = strdup("/driver"), .target = strdup("/driver"), .reason = strdup("test")};
		struct plan_mount socket = {
			.source = strdup("/run/s"), .target = strdup("/run/s"), .reason = strdup("test")};
		struct plan_library_dir dir = {.path = strdup("/driver"), .reason = strdup("test")};

		assert_int_equal(plan_add_mount(plan, &mount), 0);
		assert_int_equal(plan_add_mount(plan, &socket), 0);
		assert_int_equal(plan_add_library_dir(plan, &dir), 0);
	}
	return 0;
}

static const struct backend backend = {.name = "test", .plan = plan_nothing};

static struct adapter adapters[] = {
	{.backend = &backend,
	 .index = 0,
	 .minor = 0,
	 .vendor_id = PCI_VENDOR_NVIDIA,
	 .uuid = (char *)"GPU-1",
	 .pci_address = (char *)"0000:01:00.0"},
	{.backend = &backend,
	 .index = 1,
	 .minor = 1,
	 .vendor_id = PCI_VENDOR_INTEL,
	 .luid = {1, 0},
	 .has_luid = true,
	 .pci_address = (char *)"0000:00:02.0"},
	{.backend = &backend,
	 .index = -1,
	 .minor = 0,
	 .vendor_id = PCI_VENDOR_NVIDIA,
	 .is_part = true,
	 .whole = 0,
	 .part = 3,
	 .uuid = (char *)"MIG-GPU-1/2/3",
	 .alias = (char *)"MIG-1234",
	 .pci_address = (char *)"0000:01:00.0"},
};

static struct ctr_gpu_host host = {
	.inventory = {.adapters = adapters, .count = ARRAY_SIZE(adapters)},
	.present = {&backend},
	.present_count = 1,
};

static unsigned deadline_s = 60;

static json_t *generate(const char *kind, const char *hook, const char *capabilities, int expected)
{
	struct ctr_gpu_context *context;
	struct request request = {.kind = REQUEST_ALL};
	const struct cdi_options wish = {.kind = kind, .hook = hook, .request = &request};
	struct err err;
	json_t *spec = NULL;

	assert_int_equal(ctr_gpu_context_new(&context), 0);
	context->settings.deadline_s = deadline_s;
	host.settings = &context->settings;
	assert_int_equal(request_set_capabilities(&request, capabilities, &err), 0);
	assert_int_equal(cdi_generate(context, &host, &wish, &spec), expected);
	ctr_gpu_context_unref(context);
	return spec;
}

static json_int_t read_timeout(const json_t *edits)
{
	return json_integer_value(json_object_get(json_array_get(json_object_get(edits, "hooks"), 0), "timeout"));
}

/* Otherwise the engine kills the hook before that can take back what it did. */
static void the_timeout_of_a_hook_is_above_its_deadline(void **state)
{
	static const unsigned deadlines[] = {1, 60, 61, 600, 3600};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(deadlines); i++) {
		json_t *spec, *device;

		deadline_s = deadlines[i];
		spec = generate("intel.com/gpu", "/hook", "", 0);
		device = json_object_get(json_array_get(json_object_get(spec, "devices"), 0), "containerEdits");
		assert_true(read_timeout(device) >= 60 + deadlines[i] && read_timeout(device) >= 120);
		assert_int_equal(read_timeout(json_object_get(spec, "containerEdits")), read_timeout(device));
		json_decref(spec);
	}
	deadline_s = 60;
}

static void assert_names(const json_t *spec, const char *expected)
{
	const json_t *devices = json_object_get(spec, "devices"), *device;
	struct strv names = {0};
	char *text;
	size_t i;

	json_array_foreach (devices, i, device)
		assert_int_equal(strv_add(&names, json_string_value(json_object_get(device, "name"))), 0);
	assert_int_equal(strv_join(&names, " ", &text), 0);
	assert_string_equal(text, expected);
	free(text);
	strv_clear(&names);
}

/* What is written is read as ours, with nothing against it. */
static void assert_good(json_t *json, const char *version)
{
	char *text = json_dumps(json, 0);
	struct cdi_spec spec = {0};

	assert_int_equal(cdi_spec_parse("x.json", text, strlen(text), &spec), 0);
	assert_int_equal(spec.problems.count, 0);
	assert_true(spec.is_ours);
	assert_string_equal(spec.version, version);
	assert_int_equal(spec.declared, spec.needed);
	cdi_spec_clear(&spec);
	free(text);
	json_decref(json);
}

static void a_spec_has_the_adapters_of_its_kind(void **state)
{
	json_t *spec;

	(void)state;
	spec = generate("nvidia.com/gpu", "/hook", "", 0);
	assert_names(spec, "0 GPU-1 0000:01:00.0 0:3 MIG-1234 all");
	assert_good(spec, "0.5.0");
	spec = generate("intel.com/gpu", "/hook", "", 0);
	assert_names(spec, "0 LUID-0000000000000001 0000:00:02.0 all");
	assert_good(spec, "0.5.0");
	spec = generate("example.com/car.d", "/hook", "", 0);
	assert_names(spec, "0 GPU-1 0000:01:00.0 1 LUID-0000000000000001 0000:00:02.0 0:3 MIG-1234 all");
	assert_good(spec, "0.6.0");
	assert_null(generate("amd.com/gpu", "/hook", "", CTR_GPU_E_NO_ADAPTER));
}

static void a_hook_has_environment_and_timeout(void **state)
{
	json_t *spec = generate("intel.com/gpu", "/hook", "", 0), *edits, *other;

	(void)state;
	edits = json_object_get(json_array_get(json_object_get(spec, "devices"), 3), "containerEdits");
	other = json_loads(
		"{\"deviceNodes\": [{\"path\": \"/dev/gpu1\", \"permissions\": \"rw\"}], \"hooks\": [{\"hookName\": \"createRuntime\","
		"\"path\": \"/hook\", \"args\": [\"ctr-gpu-hook\", \"--device=intel.com/gpu=all\", \"createRuntime\"],"
		"\"env\": [\"CTR_GPU_HOOK=cdi\"], \"timeout\": 120}]}",
		0, NULL);
	assert_true(json_equal(edits, other));
	json_decref(other);
	json_decref(spec);
	/* A later check must know with which parts of the driver the spec was made. */
	spec = generate("intel.com/gpu", "/hook", "graphics", 0);
	edits = json_object_get(json_array_get(json_object_get(spec, "devices"), 3), "containerEdits");
	edits = json_object_get(json_array_get(json_object_get(edits, "hooks"), 0), "env");
	assert_string_equal(json_string_value(json_array_get(edits, 1)), "NVIDIA_DRIVER_CAPABILITIES=graphics");
	assert_good(spec, "0.5.0");
}

static void a_spec_without_hooks_has_the_plan(void **state)
{
	json_t *spec = generate("intel.com/gpu", NULL, "compute", 0), *edits, *env;

	(void)state;
	edits = json_object_get(json_array_get(json_object_get(spec, "devices"), 0), "containerEdits");
	assert_null(json_object_get(edits, "hooks"));
	/* The socket of a daemon is not in it. */
	assert_int_equal(json_array_size(json_object_get(edits, "mounts")), 1);
	env = json_object_get(json_object_get(spec, "containerEdits"), "env");
	assert_string_equal(json_string_value(json_array_get(env, 1)), "NVIDIA_DRIVER_CAPABILITIES=compute");
	assert_string_equal(json_string_value(json_array_get(env, 2)), "LD_LIBRARY_PATH=/driver");
	assert_good(spec, "0.5.0");
}

/* ---- what is read ---- */

#define SPEC(version, device) "{\"cdiVersion\":\"" version "\",\"kind\":\"a.b/c\",\"devices\":[" device "]}"
#define DEVICE(edits) "{\"name\":\"a\",\"containerEdits\":{" edits "}}"
#define ENV "\"env\":[\"A=b\"]"

static void versions_follow_features(void **state)
{
	static const struct {
		const char *text;
		const char *needed;
	} cases[] = {
		{SPEC("0.3.0", DEVICE(ENV)), "0.3.0"},
		{SPEC("v0.3.0", DEVICE(ENV)), "0.3.0"},
		{SPEC("0.4.0", DEVICE("\"mounts\":[{\"hostPath\":\"/a\",\"containerPath\":\"/b\",\"type\":\"bind\"}]")),
		 "0.4.0"},
		{SPEC("0.5.0", DEVICE("\"deviceNodes\":[{\"path\":\"/a\",\"hostPath\":\"/b\"}]")), "0.5.0"},
		{SPEC("0.5.0", "{\"name\":\"0\",\"containerEdits\":{" ENV "}}"), "0.5.0"},
		{SPEC("0.6.0", "{\"name\":\"a\",\"annotations\":{},\"containerEdits\":{" ENV "}}"), "0.6.0"},
		{SPEC("0.7.0", DEVICE("\"additionalGids\":[1]")), "0.7.0"},
		{SPEC("0.7.0", DEVICE("\"intelRdt\":{\"closID\":\"x\"}")), "0.7.0"},
		{SPEC("1.1.0", DEVICE("\"netDevices\":[{\"hostInterfaceName\":\"a\",\"name\":\"b\"}]")), "1.1.0"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct cdi_spec spec = {0};

		assert_int_equal(cdi_spec_parse("x.json", cases[i].text, strlen(cases[i].text), &spec), 0);
		if (spec.problems.count > 0)
			fail_msg("%s: %s", cases[i].text, spec.problems.items[0]);
		assert_string_equal(cdi_versions[spec.needed], cases[i].needed);
		assert_false(spec.is_ours);
		cdi_spec_clear(&spec);
	}
}

static void what_engines_refuse_is_told(void **state)
{
	static const struct {
		const char *name, *text, *says;
	} cases[] = {
		{"x.json", "", "not a JSON object"},
		{"x.json", "{", "not JSON"},
		{"x.json", "[]", "not a JSON object"},
		{"x.json", "{}", "no \"cdiVersion\""},
		{"x.yml", SPEC("0.3.0", DEVICE(ENV)), "neither in .json nor in .yaml"},
		{"x.json", SPEC("0.3.0", ""), "no device"},
		{"x.json", SPEC("9.9.9", DEVICE(ENV)), "not a version of CDI"},
		{"x.json", SPEC("0.3.0", DEVICE("\"unknown\":1")), "field \"unknown\""},
		{"x.json", SPEC("0.3.0", DEVICE("")), "changes nothing"},
		{"x.json", SPEC("0.3.0", DEVICE("\"env\":{}")), "wrong type"},
		{"x.json", SPEC("0.3.0", DEVICE("\"env\":[1]")), "not a string"},
		{"x.json",
		 SPEC("0.3.0",
		      DEVICE("\"mounts\":[{\"hostPath\":\"/a\",\"containerPath\":\"/a\",\"options\":[18446744073709551615]}]")),
		 "not a string"},
		{"x.json", SPEC("0.3.0", DEVICE("\"env\":[\"A\"]")), "not NAME=VALUE"},
		{"x.json", SPEC("0.3.0", DEVICE("\"mounts\":[{\"hostPath\":\"/a\"}]")), "no \"containerPath\""},
		{"x.json", SPEC("0.3.0", DEVICE("\"hooks\":[{\"hookName\":\"x\",\"path\":\"/a\"}]")), "stage \"x\""},
		{"x.json", SPEC("0.3.0", DEVICE("\"additionalGids\":[1]")), "needs 0.7.0"},
		{"x.json", SPEC("0.7.0", DEVICE("\"additionalGids\":[\"render\"]")), "no group's number"},
		{"x.json", SPEC("0.7.0", DEVICE("\"additionalGids\":[-1]")), "no group's number"},
		{"x.json", SPEC("0.7.0", DEVICE("\"additionalGids\":[4294967296]")), "no group's number"},
		{"x.json", SPEC("0.3.0", DEVICE(ENV) "," DEVICE(ENV)), "twice"},
		{"x.json", SPEC("0.3.0", "{\"name\":\"a/b\",\"containerEdits\":{" ENV "}}"), "may be called \"a/b\""},
		{"x.json", SPEC("0.3.0", "7"), "is not an object"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct cdi_spec spec = {0};
		bool found = false;

		assert_int_equal(cdi_spec_parse(cases[i].name, cases[i].text, strlen(cases[i].text), &spec), 0);
		for (size_t j = 0; j < spec.problems.count; j++)
			found = found || strstr(spec.problems.items[j], cases[i].says);
		if (!found)
			fail_msg("%s: %s", cases[i].text, spec.problems.count > 0 ? spec.problems.items[0] : "nothing");
		cdi_spec_clear(&spec);
	}
}

/* As Go reads null, and no text at all where it is not needed. */
static void what_is_null_is_missing(void **state)
{
	static const char text[] = "{\"cdiVersion\":\"0.5.0\",\"kind\":\"a.b/c\",\"annotations\":null,"
				   "\"containerEdits\":{\"env\":null,\"hooks\":null,\"intelRdt\":null},\"devices\":["
				   "{\"name\":\"a\",\"containerEdits\":{\"deviceNodes\":["
				   "{\"path\":\"/a\",\"hostPath\":null,\"major\":null,\"minor\":null},"
				   "{\"path\":\"/b\",\"hostPath\":\"\",\"major\":1,\"minor\":null}]}}]}";
	struct cdi_spec spec = {0};
	const struct cdi_node *nodes;

	(void)state;
	assert_int_equal(cdi_spec_parse("x.json", text, strlen(text), &spec), 0);
	if (spec.problems.count > 0)
		fail_msg("%s", spec.problems.items[0]);
	assert_int_equal(spec.devices[0].edits.node_count, 2);
	nodes = spec.devices[0].edits.nodes;
	assert_string_equal(nodes[0].path, "/a");
	assert_false(nodes[0].numbered);
	assert_string_equal(nodes[1].path, "/b");
	assert_true(nodes[1].numbered);
	assert_false(nodes[1].is_complete);
	cdi_spec_clear(&spec);
}

static const char yaml[] = "---\n"
			   "cdiVersion: 0.5.0\n"
			   "containerEdits:\n"
			   "  deviceNodes:\n"
			   "  - path: /dev/nvidiactl\n"
			   "  env:\n"
			   "  - NVIDIA_VISIBLE_DEVICES=void\n"
			   "  hooks:\n"
			   "  - args:\n"
			   "    - nvidia-cdi-hook\n"
			   "    - create-symlinks\n"
			   "    - --link\n"
			   "    - libcuda.so.1::/usr/lib/libcuda.so\n"
			   "    env:\n"
			   "    - NVIDIA_CTK_DEBUG=false\n"
			   "    timeout: 20 # seconds\n"
			   "    hookName: createContainer\n"
			   "    path: /usr/bin/nvidia-cdi-hook\n"
			   "  - hookName: createContainer\n"
			   "    path: /usr/bin/other\n"
			   "  mounts:\n"
			   "  - containerPath: /usr/bin/nvidia-smi\n"
			   "    hostPath: /usr/bin/nvidia-smi\n"
			   "    options:\n"
			   "    - ro\n"
			   "devices:\n"
			   "- containerEdits:\n"
			   "    deviceNodes:\n"
			   "    - hostPath: /dev/real0\n"
			   "      path: /dev/nvidia0\n"
			   "      fileMode: 0666\n"
			   "      major: 195\n"
			   "      minor: 0xa\n"
			   "  name: \"0\"\n"
			   "- name: all\n"
			   "  containerEdits:\n"
			   "    deviceNodes:\n"
			   "    - path: /dev/nvidia0\n"
			   "    additionalGids:\n"
			   "    - 44\n"
			   "kind: nvidia.com/gpu\n";

static void yaml_is_read_as_json_is(void **state)
{
	struct cdi_spec spec = {0};

	(void)state;
	assert_int_equal(cdi_spec_parse("nvidia.yaml", yaml, strlen(yaml), &spec), 0);
	assert_true(spec.is_yaml);
	assert_string_equal(spec.kind, "nvidia.com/gpu");
	assert_int_equal(spec.device_count, 2);
	assert_string_equal(spec.devices[0].name, "0");
	assert_string_equal(spec.devices[0].edits.nodes[0].path, "/dev/real0");
	assert_int_equal(spec.devices[0].edits.nodes[0].major, 195);
	assert_int_equal(spec.devices[0].edits.nodes[0].minor, 10);
	assert_string_equal(spec.devices[1].name, "all");
	assert_int_equal(spec.edits.node_count, 1);
	assert_string_equal(spec.edits.environment.items[0], "NVIDIA_VISIBLE_DEVICES=void");
	assert_int_equal(spec.edits.hook_count, 2);
	assert_true(spec.edits.hooks[0].has_environment);
	assert_true(spec.edits.hooks[0].has_timeout);
	assert_string_equal(spec.edits.hooks[0].path, "/usr/bin/nvidia-cdi-hook");
	assert_false(spec.edits.hooks[1].has_environment);
	assert_string_equal(spec.edits.mounts[0].source, "/usr/bin/nvidia-smi");
	assert_int_equal(spec.problems.count, 1);
	assert_non_null(strstr(spec.problems.items[0], "additionalGids, which needs 0.7.0"));
	cdi_spec_clear(&spec);
}

#define YAML(version, name, edits) \
	"cdiVersion: " version "\nkind: a.b/c\ndevices:\n- name: " name "\n  containerEdits: " edits "\n"
#define YAML_ENV "{env: [A=b]}"

/* The first device of a spec that has nothing against it is called so; otherwise the first problem says so. */
static void yaml_says_what_engines_take_it_for(void **state)
{
	static const struct {
		const char *text, *name, *says;
	} cases[] = {
		{YAML("0.5.0", "0", YAML_ENV), "0", NULL},
		{YAML("\"0.5.0\"", "'0'", YAML_ENV), "0", NULL},
		{YAML("0.5.0", "010", YAML_ENV), "8", NULL},
		{YAML("0.5.0", "0o10", YAML_ENV), "8", NULL},
		{YAML("0.5.0", "\"010\"", YAML_ENV), "010", NULL},
		{YAML("0.5.0", "!!str 0x10", YAML_ENV), "0x10", NULL},
		{YAML("0.5.0", "yes", YAML_ENV), "true", NULL},
		{YAML("0.5.0", "off", YAML_ENV), "false", NULL},
		{YAML("0.5.0", "0000:01:00.0", YAML_ENV), "0000:01:00.0", NULL},
		{YAML("0.5.0", "a", "{env: [A=b], mounts: ~, hooks: }"), "a", NULL},
		{YAML("0.5.0", "&name a", "{env: [&env A=b, *env]}"), "a", NULL},
		{"%YAML 1.1\n---\n" YAML("0.5.0", "a", YAML_ENV) "...\n---\nanother: document\n", "a", NULL},
		{"\xef\xbb\xbf" YAML("0.5.0", "a", YAML_ENV), "a", NULL},
		{SPEC("0.3.0", DEVICE(ENV)), "a", NULL},
		{YAML("0.5.0", "null", YAML_ENV), NULL, "has no \"name\""},
		{YAML("0.5.0", "~", YAML_ENV), NULL, "has no \"name\""},
		{YAML("0.5.0", "a", ""), NULL, "has no \"containerEdits\""},
		{YAML("0.5.0", "a", "{}"), NULL, "changes nothing"},
		{YAML("0.5.0", "a", "{deviceNodes: [{path: /dev/a, major: \"1\"}]}"), NULL,
		 "\"major\" of devices[0].containerEdits.deviceNodes[0]"},
		{YAML("0.5.0", "a", "{unknown: 1}"), NULL, "field \"unknown\""},
		{YAML("0.5", "a", YAML_ENV), NULL, "\"0.5\" is not a version"},
		{YAML("0.5.0", "a", YAML_ENV) "kind: x.y/z\n", NULL, "a key for the second time in line 6"},
		{YAML("0.5.0", "!!binary YQ==", YAML_ENV), NULL, "a tag"},
		{YAML("0.5.0", "!custom a", YAML_ENV), NULL, "a tag"},
		{YAML("0.5.0", "\"a\\0b\"", YAML_ENV), NULL, "a NUL character in line 4"},
		{YAML("0.5.0", "*name", YAML_ENV), NULL, "an alias of nothing"},
		{YAML("0.5.0", "a", "&edits {env: *edits}"), NULL, "an alias of nothing"},
		{YAML("0.5.0", "a", "{<<: {env: [A=b]}}"), NULL, "a merge key"},
		{YAML("0.5.0", "a", "{[a]: b}"), NULL, "a key that is not text"},
		{YAML("0.5.0", "a", "{\"a\\0b\": b}"), NULL, "a key that is not text"},
		{YAML("0.5.0", "a", YAML_ENV) "}", NULL, "not good YAML"},
		{"\tkind: a", NULL, "not good YAML"},
		{"\xff\xfe", NULL, "not a mapping"},
		{"kind: \xff", NULL, "not good YAML"},
		{"", NULL, "not a mapping"},
		{"# nothing\n---\n", NULL, "not a mapping"},
		{"- a\n", NULL, "not a mapping"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const char *said = "nothing";
		struct cdi_spec spec = {0};

		assert_int_equal(cdi_spec_parse("x.yaml", cases[i].text, strlen(cases[i].text), &spec), 0);
		if (spec.problems.count > 0)
			said = spec.problems.items[0];
		if (cases[i].name ? spec.problems.count > 0 || !streq(spec.devices[0].name, cases[i].name)
				  : !strstr(said, cases[i].says))
			fail_msg("%s: %s", cases[i].text, said);
		cdi_spec_clear(&spec);
	}
}

/* A problem of @text says so. */
static void assert_yaml_says(const char *text, size_t size, const char *says)
{
	struct cdi_spec spec = {0};

	assert_int_equal(cdi_spec_parse("x.yaml", text, size, &spec), 0);
	assert_true(spec.problems.count > 0);
	if (!strstr(spec.problems.items[0], says))
		fail_msg("%s", spec.problems.items[0]);
	cdi_spec_clear(&spec);
}

/* Ten lists, each of ten times the one before: a thousand bytes that mean ten thousand million. */
static void yaml_stays_as_small_as_it_is(void **state)
{
	char *text, *deep;
	size_t size;
	FILE *file = open_memstream(&text, &size);

	(void)state;
	(void)fputs("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n", file);
	for (int i = 1; i < 10; i++) {
		(void)fprintf(file, "a%d: &a%d [", i, i);
		for (int j = 0; j < 10; j++)
			(void)fprintf(file, "*a%d, ", i - 1);
		(void)fputs("]\n", file);
	}
	(void)fclose(file);
	assert_yaml_says(text, size, "more than any real spec has");
	free(text);
	for (size_t i = 0; i < 2; i++) {
		size = 1 << 20;
		deep = malloc(size);
		assert_non_null(deep);
		memset(deep, "[-"[i], size);
		for (size_t j = 1; i == 1 && j < size; j += 2)
			deep[j] = ' ';
		assert_yaml_says(deep, size, "nested too deeply");
		free(deep);
	}
	assert_yaml_says("a: b\0c", 6, "not good YAML");
}

/* ---- engines ---- */

static void engines_know_versions(void **state)
{
	static const struct {
		const char *text;
		const char *newest;
	} cases[] = {
		{"podman:4.3", "0.5.0"},    {"podman:4.3.1", "0.5.0"},   {"podman:4.9", "0.6.0"},
		{"podman:v5.4.2", "0.8.0"}, {"podman:4.0", NULL},        {"podman:6", "1.0.0"},
		{"docker:28.2.2", "1.0.0"}, {"docker:26.0", "0.6.0"},    {"docker:26.1.5", "0.7.0"},
		{"docker:20.10", NULL},     {"containerd:1.7", "0.5.0"}, {"crio:1.30", "0.7.0"},
		{"cri-o:1.30", "0.7.0"},    {"buildkit:0.20", "0.8.0"},
	};
	static const char *const bad[] = {"", "podman", "podman:", "podman:x", "lxc:5.0", "podma:4.3", ":4.3"};
	struct cdi_engine engine;
	struct err err;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_int_equal(cdi_engine_parse(cases[i].text, &engine, &err), 0);
		if (cases[i].newest)
			assert_string_equal(cdi_versions[engine.newest], cases[i].newest);
		else
			assert_int_equal(engine.newest, -1);
	}
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(cdi_engine_parse(bad[i], &engine, &err), CTR_GPU_E_BAD_ARGUMENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kinds_and_names),
		cmocka_unit_test(a_spec_s_path_is_known_before_it_is_written),
		cmocka_unit_test(a_spec_has_the_adapters_of_its_kind),
		cmocka_unit_test(a_hook_has_environment_and_timeout),
		cmocka_unit_test(the_timeout_of_a_hook_is_above_its_deadline),
		cmocka_unit_test(a_spec_without_hooks_has_the_plan),
		cmocka_unit_test(versions_follow_features),
		cmocka_unit_test(what_engines_refuse_is_told),
		cmocka_unit_test(what_is_null_is_missing),
		cmocka_unit_test(yaml_is_read_as_json_is),
		cmocka_unit_test(yaml_says_what_engines_take_it_for),
		cmocka_unit_test(yaml_stays_as_small_as_it_is),
		cmocka_unit_test(engines_know_versions),
	};

	return cmocka_run_group_tests_name("cdi", tests, NULL, NULL);
}

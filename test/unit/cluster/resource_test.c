/* SPDX-License-Identifier: Apache-2.0 */

/* What becomes of a resource's devices as the host is looked at, and which of them fit each other. */

#include "unit.h"

#include "base/json.h"
#include "base/str.h"
#include "cluster/devices.h"

static void look(struct resources *resources, const char *devices)
{
	_cleanup_free_ char *text = NULL;
	_cleanup_json_ json_t *json = NULL;

	assert_int_equal(str_format(&text, "{\"devices\": [%s]}", devices), 0);
	assert_int_equal(json_parse(text, strlen(text), &json, NULL), 0);
	assert_int_equal(resources_update(resources, json), 0);
}

#define GPU(id, more) "{\"resource\": \"nvidia.com/gpu\", \"usable\": true, \"id\": \"" id "\"" more "}"
#define UNNAMED(locator, usable) \
	"{\"resource\": \"nvidia.com/gpu\", \"usable\": " usable ", \"id\": null, \"locator\": \"" locator "\"}"

static void test_comes_and_goes(void **state)
{
	struct resources resources = {0};
	const struct resource *gpus = &resources.list[0];
	unsigned changes;

	(void)state;
	look(&resources, "");
	assert_int_equal(resources.count, 0);
	look(&resources, GPU("a", "") "," GPU("b", ""));
	assert_int_equal(resources.count, 1);
	assert_int_equal(gpus->count, 2);
	assert_string_equal(gpus->name, "nvidia.com/gpu");
	changes = gpus->changes;
	look(&resources, GPU("b", "") "," GPU("a", ""));
	assert_int_equal(gpus->changes, changes);
	look(&resources, GPU("b", ""));
	assert_int_not_equal(gpus->changes, changes);
	assert_int_equal(gpus->count, 2);
	assert_false(resource_find(gpus, "a")->healthy);
	assert_true(resource_find(gpus, "b")->healthy);
	changes = gpus->changes;
	look(&resources, GPU("a", "") "," GPU("b", ""));
	assert_int_not_equal(gpus->changes, changes);
	assert_true(resource_find(gpus, "a")->healthy);
	resources_fail(&resources);
	assert_false(resource_find(gpus, "a")->healthy);
	assert_false(resource_find(gpus, "b")->healthy);
	resources_clear(&resources);
}

static void test_slots_of_lost_gpus(void **state)
{
#define SLOT(id) "{\"resource\": \"" RESOURCE_SLOTS "\", \"usable\": true, \"id\": \"" id "\"}"
#define SLOTS(lost) "{\"devices\": [" SLOT("GPU-1:0") ", " SLOT("GPU-12:0") "], \"lost\": [" lost "]}"
#define SLOTS_UNKNOWN "{\"devices\": [" SLOT("GPU-1:0") ", " SLOT("GPU-12:0") "], \"lost\": null}"
	/* A manager that does not answer has not said that a GPU is well again. */
	static const char *const looks[] = {SLOTS_UNKNOWN,
					    SLOTS("\"GPU-1\", 7, \"\""),
					    SLOTS("\"GPU-1\""),
					    SLOTS_UNKNOWN,
					    "{\"devices\": [" SLOT("GPU-1:0") ", " SLOT("GPU-12:0") "]}",
					    SLOTS("")};
	static const bool healthy[] = {true, false, false, false, false, true};
	struct resources resources = {0};

	(void)state;
	for (size_t i = 0; i < sizeof(looks) / sizeof(looks[0]); i++) {
		const struct resource *slots = &resources.list[0];
		const unsigned changes = slots->changes;
		_cleanup_json_ json_t *json = NULL;

		assert_int_equal(json_parse(looks[i], strlen(looks[i]), &json, NULL), 0);
		assert_int_equal(resources_update(&resources, json), 0);
		assert_int_equal(resource_find(slots, "GPU-1:0")->healthy, healthy[i]);
		assert_true(resource_find(slots, "GPU-12:0")->healthy);
		assert_int_equal(slots->changes != changes, i < 2 || i == 5);
	}
	resources_clear(&resources);
}

static void test_use_of_a_host_that_does_not_answer(void **state)
{
	static const char found[] = "{\"devices\": [], \"slots\": [{\"device\": \"a:0\", \"used\": 7}]}";
	_cleanup_json_ json_t *json = NULL;
	struct resources resources = {0};

	(void)state;
	assert_int_equal(json_parse(found, strlen(found), &json, NULL), 0);
	assert_int_equal(resources_update(&resources, json), 0);
	assert_int_equal(json_array_size(resources.slots), 1);
	resources_fail(&resources);
	assert_int_equal(json_array_size(resources.slots), 0);
	assert_int_equal(resources_update(&resources, json), 0);
	assert_int_equal(json_array_size(resources.slots), 1);
	resources_clear(&resources);
}

/* Behind /dev/dxg a driver alone tells the name, and is not asked each time. */
static void test_known_again(void **state)
{
	struct resources resources = {0};
	const struct resource *gpus = &resources.list[0];
	unsigned changes;

	(void)state;
	look(&resources, UNNAMED("LUID-1", "true"));
	assert_int_equal(resources.count, 0);
	assert_true(resources.wants_names);
	look(&resources, GPU("a", ", \"locator\": \"LUID-1\""));
	assert_false(resources.wants_names);
	changes = gpus->changes;
	look(&resources, UNNAMED("LUID-1", "true"));
	assert_int_equal(gpus->changes, changes);
	assert_true(resource_find(gpus, "a")->healthy);
	look(&resources, UNNAMED("LUID-1", "false"));
	assert_false(resource_find(gpus, "a")->healthy);
	/* After an update of Windows' driver it is elsewhere, and the same. */
	look(&resources, UNNAMED("LUID-2", "true"));
	assert_true(resources.wants_names);
	assert_int_equal(gpus->count, 1);
	look(&resources, GPU("a", ", \"locator\": \"LUID-2\""));
	assert_true(resource_find(gpus, "a")->healthy);
	assert_int_equal(gpus->count, 1);
	resources_clear(&resources);
}

static void test_not_listed(void **state)
{
	static const char *const hostile[] = {
		UNNAMED("LUID-1", "false"),
		"{\"resource\": \"nvidia.com/gpu\", \"usable\": false, \"id\": \"a\"}",
		GPU("a=b", ""),
		GPU("../a", ""),
		GPU("a,b", ""),
		GPU("", ""),
		GPU("0123456789012345678901234567890123456789012345678901234567890123456789", ""),
		"{\"resource\": \"nvidia.com\", \"usable\": true, \"id\": \"a\"}",
		"{\"resource\": \"nvidia.com/\", \"usable\": true, \"id\": \"a\"}",
		"{\"resource\": \"a/b/c\", \"usable\": true, \"id\": \"a\"}",
		"{\"usable\": true, \"id\": \"a\"}",
		"7",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(hostile); i++) {
		struct resources resources = {0};

		look(&resources, hostile[i]);
		assert_int_equal(resources.count, 0);
		resources_clear(&resources);
	}
}

static void test_bounded(void **state)
{
	struct resources resources = {0};
	_cleanup_free_ char *devices = strdup("");

	(void)state;
	for (int i = 0; i < RESOURCE_DEVICES_MAX + 3; i++)
		assert_int_equal(str_append(&devices, "%s" GPU("%d", ""), i > 0 ? "," : "", i), 0);
	look(&resources, devices);
	assert_int_equal(resources.list[0].count, RESOURCE_DEVICES_MAX);
	assert_null(resource_find(&resources.list[0], "512"));
	/* Those that are gone make room, the first of them first. */
	look(&resources, GPU("1", "") "," GPU("512", "") "," GPU("513", ""));
	assert_null(resource_find(&resources.list[0], "512"));
	look(&resources, GPU("1", "") "," GPU("512", "") "," GPU("513", ""));
	assert_int_equal(resources.list[0].count, RESOURCE_DEVICES_MAX);
	assert_null(resource_find(&resources.list[0], "0"));
	assert_true(resource_find(&resources.list[0], "1")->healthy);
	assert_null(resource_find(&resources.list[0], "2"));
	assert_non_null(resource_find(&resources.list[0], "3"));
	assert_true(resource_find(&resources.list[0], "513")->healthy);
	for (int i = 0; i < RESOURCES_MAX + 3; i++) {
		_cleanup_free_ char *device = NULL;

		assert_int_equal(
			str_format(&device, "{\"resource\": \"v%d.com/gpu\", \"usable\": true, \"id\": \"a\"}", i), 0);
		look(&resources, device);
	}
	assert_int_equal(resources.count, RESOURCES_MAX);
	resources_clear(&resources);
}

/* Two sockets, and on the second two drivers. */
#define FOUR                                                                                                       \
	GPU("a", ", \"numa\": 0, \"store\": \"/x\"")                                                               \
	"," GPU("b", ", \"numa\": 1, \"store\": \"/x\"") "," GPU("c", ", \"numa\": 0, \"store\": \"/x\"") "," GPU( \
		"d", ", \"numa\": 1, \"store\": \"/y\"") "," GPU("e", ", \"numa\": 1, \"store\": \"/x\"")

/* A part keeps its name while it stays; one that is made anew at its place is asked for its own. */
static void test_part_made_anew(void **state)
{
	struct resources resources = {0};

	(void)state;
	look(&resources, GPU("MIG-a", ", \"locator\": \"MIG-GPU-1/1/0\""));
	look(&resources, UNNAMED("MIG-GPU-1/1/0", "true"));
	assert_true(resources.list[0].devices[0].healthy);
	assert_false(resources.wants_names);
	look(&resources, "");
	assert_false(resources.list[0].devices[0].healthy);
	look(&resources, UNNAMED("MIG-GPU-1/1/0", "true"));
	assert_false(resources.list[0].devices[0].healthy);
	assert_true(resources.wants_names);
	look(&resources, GPU("MIG-b", ", \"locator\": \"MIG-GPU-1/1/0\""));
	look(&resources, UNNAMED("MIG-GPU-1/1/0", "true"));
	assert_int_equal(resources.list[0].count, 2);
	assert_false(resources.list[0].devices[0].healthy);
	assert_true(resources.list[0].devices[1].healthy);
	resources_clear(&resources);
}

/* Of a part whose driver is not asked it is not known which resource it is of, and of a kind which name. */
static void test_by_profile(void **state)
{
#define PART(resource, id, locator)                                                                \
	"{\"resource\": " resource ", \"kind\": \"nvidia.com/gpu\", \"usable\": true, \"id\": " id \
	", \"locator\": \"" locator "\"}"
#define UNASKED(locator) PART("null", "null", locator)
	struct resources resources = {0};

	(void)state;
	look(&resources, UNASKED("P1") "," UNASKED("P2"));
	assert_int_equal(resources.count, 0);
	assert_true(resources.wants_names);
	look(&resources, PART("\"nvidia.com/mig-1g.5gb\"", "\"MIG-a\"", "P1") "," PART("\"nvidia.com/mig-2g.10gb\"",
										       "\"MIG-b\"", "P2"));
	assert_int_equal(resources.count, 2);
	assert_string_equal(resources.list[1].name, "nvidia.com/mig-2g.10gb");
	assert_string_equal(resources.list[1].kind, "nvidia.com/gpu");
	assert_false(resources.wants_names);
	look(&resources, UNASKED("P1") "," UNASKED("P2"));
	assert_true(resources.list[0].devices[0].healthy);
	assert_true(resources.list[1].devices[0].healthy);
	assert_false(resources.wants_names);
	/* Made anew with another size: what was there is known by its own name alone. */
	look(&resources, PART("\"nvidia.com/mig-2g.10gb\"", "\"MIG-c\"", "P1") "," UNASKED("P2"));
	assert_false(resources.list[0].devices[0].healthy);
	look(&resources, UNASKED("P1") "," UNASKED("P2"));
	assert_false(resources.list[0].devices[0].healthy);
	assert_true(resource_find(&resources.list[1], "MIG-c")->healthy);
	/* Known already, and now at the place of one of another size. */
	look(&resources, PART("\"nvidia.com/mig-1g.5gb\"", "\"MIG-a\"", "P4"));
	look(&resources, PART("\"nvidia.com/mig-2g.10gb\"", "\"MIG-b\"", "P4"));
	look(&resources, UNASKED("P4"));
	assert_false(resources.list[0].devices[0].healthy);
	assert_true(resource_find(&resources.list[1], "MIG-b")->healthy);
	look(&resources, PART("null", "\"MIG-d\"", "P3"));
	assert_int_equal(resources.list[0].count + resources.list[1].count, 3);
	resources_clear(&resources);
}

/* The GPU of which slots are taken already, so that others stay whole. */
static void test_slots(void **state)
{
#define OF(gpu, slot) \
	"{\"resource\": \"ctr-gpu.org/vgpu\", \"usable\": true, \"id\": \"" gpu ":" slot "\", \"store\": \"" gpu "\"}"
	char *const available[] = {"a:0", "a:1", "a:2", "b:0", "b:2"}, *const last[] = {"b:0", "a:1"};
	struct resources resources = {0};
	const char *chosen[2];

	(void)state;
	look(&resources,
	     OF("a", "0") "," OF("a", "1") "," OF("a", "2") "," OF("b", "0") "," OF("b", "1") "," OF("b", "2"));
	assert_true(resource_is_single(&resources.list[0]));
	assert_string_equal(resources.list[0].kind, "ctr-gpu.org/vgpu");
	assert_int_equal(resource_prefer(&resources.list[0], available, 5, NULL, 0, 1, chosen), 1);
	assert_string_equal(chosen[0], "b:0");
	assert_int_equal(resource_prefer(&resources.list[0], last, 2, NULL, 0, 1, chosen), 1);
	assert_string_equal(chosen[0], "b:0");
	resources_clear(&resources);
}

static void test_preference(void **state)
{
	static const struct {
		const char *available, *must;
		size_t size;
		const char *chosen;
	} cases[] = {
		{"a b c d e", "", 2, "a c"},  /* one node, one store, and no other of its group is left alone */
		{"a b d e", "", 2, "b e"},    /* of node 1 those of one store */
		{"a b d", "", 2, "b d"},      /* one node goes before one store */
		{"a b", "", 2, "a b"},        /* what there is */
		{"a b c d e", "e", 2, "e b"}, /* to one that it has */
		{"a b c d e", "d", 3, "d b e"},
		{"a b c d e", "", 1, "d"}, /* the group of which the least is left */
		{"a b c d e", "", 5, "b e d a c"},
		{"a c", "", 3, "a c"}, /* less than was asked for */
		{"a x a", "", 2, "a"}, /* unknown, and named twice */
		{"a b", "", 0, ""},
	};
	struct resources resources = {0};

	(void)state;
	look(&resources, FOUR);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_strv_ struct strv available = {0}, must = {0}, chosen = {0};
		const char *ret[8];
		long count;

		assert_int_equal(strv_split(cases[i].available, " ", &available), 0);
		assert_int_equal(strv_split(cases[i].must, " ", &must), 0);
		assert_int_equal(strv_split(cases[i].chosen, " ", &chosen), 0);
		count = resource_prefer(&resources.list[0], available.items, available.count, must.items, must.count,
					cases[i].size, ret);
		assert_int_equal(count, chosen.count);
		for (long j = 0; j < count; j++)
			assert_string_equal(ret[j], chosen.items[j]);
	}
	resources_clear(&resources);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_comes_and_goes), cmocka_unit_test(test_slots_of_lost_gpus),
		cmocka_unit_test(test_known_again),    cmocka_unit_test(test_not_listed),
		cmocka_unit_test(test_bounded),        cmocka_unit_test(test_part_made_anew),
		cmocka_unit_test(test_preference),     cmocka_unit_test(test_by_profile),
		cmocka_unit_test(test_slots),          cmocka_unit_test(test_use_of_a_host_that_does_not_answer),
	};

	return cmocka_run_group_tests_name("resource", tests, NULL, NULL);
}

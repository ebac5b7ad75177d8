/* SPDX-License-Identifier: Apache-2.0 */

/* What AMD's compute driver writes of its nodes, and near misses. */

#include "unit.h"

#include "drm/internal.h"

static const struct {
	const char *text;
	bool gpu;
	struct topology_node node;
} cases[] = {
	/* The shape of AMD's public tests (tests/amdgpu/topology of its container toolkit). */
	{"drm_render_minor 129\nunique_id 2\ngfx_target_version 90402\nlocation_id 1281\ndomain 0\n",
	 true,
	 {.render_minor = 129, .unique_id = 2, .gfx_target = 90402, .location = 1281}},
	{"cpu_cores_count 20\ndrm_render_minor 0\n", false, {0}},
	{"drm_render_minor 128", true, {.render_minor = 128}},
	{"unique_id 18446744073709551615\ndrm_render_minor 128\n",
	 true,
	 {.render_minor = 128, .unique_id = UINT64_MAX}},
	{"unique_id 18446744073709551616\ndrm_render_minor 128\n", true, {.render_minor = 128}},
	{"", false, {0}},
	{"drm_render_minor", false, {0}},
	{"drm_render_minor \n", false, {0}},
	{"drm_render_minor -1\n", false, {0}},
	{"drm_render_minor 128x\n", false, {0}},
	{"drm_render_minor 99999999999\n", false, {0}},
	{" drm_render_minor 128\n", false, {0}},
	{"xdrm_render_minor 128\ndrm_render_minors 128\n", false, {0}},
};

static void properties_of_nodes(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct topology_node node;

		if (topology_parse(cases[i].text, &node) != cases[i].gpu ||
		    node.render_minor != cases[i].node.render_minor || node.unique_id != cases[i].node.unique_id ||
		    node.gfx_target != cases[i].node.gfx_target || node.location != cases[i].node.location ||
		    node.domain != cases[i].node.domain)
			fail_msg("case %zu", i);
	}
}

static void targets_have_names(void **state)
{
	static const struct {
		unsigned number;
		const char *name;
	} targets[] = {
		{90402, "gfx942"}, {90010, "gfx90a"}, {110000, "gfx1100"}, {100306, "gfx1036"}, {90006, "gfx906"}};
	char text[TOPOLOGY_TARGET_SIZE];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(targets); i++) {
		topology_format_target(targets[i].number, text);
		assert_string_equal(text, targets[i].name);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(properties_of_nodes),
		cmocka_unit_test(targets_have_names),
	};

	return cmocka_run_group_tests_name("topology", tests, NULL, NULL);
}

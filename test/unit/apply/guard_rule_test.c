/* SPDX-License-Identifier: Apache-2.0 */

/* What the guard is told of a container that is made, and of one that runs, and what is taken back: in maps of the kernel. */

#include "guard_maps.h"

#include "apply/internal.h"
#include "devcgroup/device_world.h"

static struct device_world world;
static struct devcgroup *cgroup;
static struct choices choices = CHOICES_NONE;
static struct guard_key key;
static struct undo_log *undo_log;
static struct guard_rule_before before;
static uint64_t first[] = {0x1000000a1}, second[] = {0x1000000a2};
static const struct log quiet;

static int begin(void **state)
{
	struct err err = {0};
	size_t depth;

	(void)state;
	assert_int_equal(mount("bpf", PINS_USUAL_FILE_SYSTEM, "bpf", 0, "mode=700"), 0);
	maps_load();
	device_world_start(&world, 1, "");
	assert_int_equal(devcgroup_open(world.member, -1, &cgroup, &err), 0);
	assert_non_null(cgroup);
	assert_int_equal(choice_key(devcgroup_directory(cgroup, &depth), &key), 0);
	assert_int_equal(choices_open(&choices), 0);
	undo_log = undo_log_new(false);
	assert_non_null(undo_log);
	before = (struct guard_rule_before){0};
	return 0;
}

static int end(void **state)
{
	(void)state;
	undo_log_free(undo_log);
	choices_close(&choices);
	cgroup = devcgroup_free(cgroup);
	device_world_stop(&world);
	return umount2(PINS_USUAL_FILE_SYSTEM, MNT_DETACH);
}

/* @luid: NULL: no choice is made */
static void tell(uint64_t *luid, bool running, bool has_device, bool all)
{
	const struct plan_choice choice = {.grade = luid ? "guard" : NULL, .luids = luid, .luid_count = luid != NULL};
	struct err err = {0};
	const struct guard_rule rule = {
		.choice = &choice,
		.cgroup = cgroup,
		.before = running ? &before : NULL,
		.has_device = has_device,
		.all = all,
		.undo_log = undo_log,
		.log = &quiet,
		.err = &err,
	};

	assert_int_equal(guard_rule_guard(&rule), 0);
}

/* @count: -1: there is no choice */
static void expect_choice(int count, uint64_t one, uint64_t other)
{
	struct guard_choice found = {0};
	int r = choice_get(&choices, &key, &found);

	assert_int_equal(r, count < 0 ? -ENOENT : 0);
	if (count < 0)
		return;
	assert_int_equal(found.count, count);
	assert_true(found.luids[0] == one && found.luids[1] == other);
}

static void a_container_that_is_made_has_none_when_its_start_is_undone(void **state)
{
	(void)state;
	tell(first, false, false, false);
	expect_choice(1, *first, 0);
	undo_log_undo(undo_log);
	expect_choice(-1, 0, 0);
}

/* A device that was open for a moment must not reach all adapters. */
static void one_that_runs_may_use_no_adapter_afterwards(void **state)
{
	size_t depth;

	(void)state;
	tell(first, true, false, false);
	assert_true(before.changed && before.count == 0);
	expect_choice(1, *first, 0);
	undo_log_undo(undo_log);
	expect_choice(0, 0, 0);
	tell(second, true, false, false);
	expect_choice(1, *second, 0);
	assert_int_equal(guard_rule_restore(&choices, devcgroup_directory(cgroup, &depth), NULL, 0), 0);
	expect_choice(0, 0, 0);
}

static void an_earlier_choice_is_extended_and_restored(void **state)
{
	(void)state;
	assert_int_equal(choice_set(&choices, &key, first, 1), 0);
	tell(second, true, true, false);
	assert_true(before.changed && before.count == 1 && before.luids[0] == *first);
	expect_choice(2, *first, *second);
	undo_log_undo(undo_log);
	expect_choice(1, *first, 0);
}

static void all_adapters_lift_an_earlier_choice(void **state)
{
	(void)state;
	tell(NULL, true, false, true);
	assert_false(before.changed);
	expect_choice(-1, 0, 0);
	assert_int_equal(choice_set(&choices, &key, first, 1), 0);
	tell(NULL, true, true, false); /* of another kind of GPU */
	expect_choice(1, *first, 0);
	tell(NULL, true, true, true);
	assert_true(before.changed && before.count == 1);
	expect_choice(-1, 0, 0);
	undo_log_undo(undo_log);
	expect_choice(1, *first, 0);
}

static void one_that_may_use_all_is_not_narrowed(void **state)
{
	(void)state;
	tell(first, true, true, false);
	assert_false(before.changed);
	expect_choice(-1, 0, 0);
}

static void more_adapters_than_a_choice_holds_are_an_error(void **state)
{
	uint64_t luids[GUARD_ADAPTERS_MAX];
	const struct plan_choice choice = {
		.grade = "guard", .strict = true, .luids = luids, .luid_count = ARRAY_SIZE(luids)};
	struct err err = {0};
	const struct guard_rule rule = {
		.choice = &choice,
		.cgroup = cgroup,
		.before = &before,
		.has_device = true,
		.undo_log = undo_log,
		.log = &quiet,
		.err = &err,
	};
	unsigned open_before;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(luids); i++)
		luids[i] = 0x2000000000 + i;
	assert_int_equal(choice_set(&choices, &key, first, 1), 0);
	open_before = unit_count_descriptors();
	assert_int_equal(guard_rule_guard(&rule), CTR_GPU_E_GUARD);
	assert_int_equal(unit_count_descriptors(), open_before);
	expect_choice(1, *first, 0);
}

static bool possible(void)
{
	return device_world_possible(1) && mount("bpf", PINS_USUAL_FILE_SYSTEM, "bpf", 0, "mode=700") == 0 &&
	       umount2(PINS_USUAL_FILE_SYSTEM, MNT_DETACH) == 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_container_that_is_made_has_none_when_its_start_is_undone, begin, end),
		cmocka_unit_test_setup_teardown(one_that_runs_may_use_no_adapter_afterwards, begin, end),
		cmocka_unit_test_setup_teardown(an_earlier_choice_is_extended_and_restored, begin, end),
		cmocka_unit_test_setup_teardown(all_adapters_lift_an_earlier_choice, begin, end),
		cmocka_unit_test_setup_teardown(one_that_may_use_all_is_not_narrowed, begin, end),
		cmocka_unit_test_setup_teardown(more_adapters_than_a_choice_holds_are_an_error, begin, end),
	};
	int r;

	scratch_enter();
	if (!possible())
		scratch_skip_all("needs cgroup version 1, and to mount a file system for BPF");
	r = cmocka_run_group_tests(tests, NULL, NULL);
	scratch_remove();
	return r;
}

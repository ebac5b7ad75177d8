/* SPDX-License-Identifier: Apache-2.0 */

/* Choices and how many of them the programs are told of, in maps of the kernel; no program reads them here. */

#include "guard_maps.h"

static const struct guard_key first = {.cgroup = 1001}, second = {.cgroup = 1002};
static const uint64_t luids[] = {0x1000000a1, 0x1000000a2};

/* A BPF file system of this program's mount namespace. */
static bool mount_pins(void)
{
	assert_int_equal(mount("none", "/sys", "tmpfs", 0, NULL), 0);
	assert_int_equal(mkdir("/sys/fs", 0755), 0);
	assert_int_equal(mkdir(PINS_USUAL_FILE_SYSTEM, 0700), 0);
	return mount("bpf", PINS_USUAL_FILE_SYSTEM, "bpf", 0, "mode=700") == 0;
}

static int begin(void **state)
{
	(void)state;
	assert_true(mount_pins());
	maps_load();
	return 0;
}

static int end(void **state)
{
	(void)state;
	return umount2("/sys", MNT_DETACH);
}

static void expect_count(const struct choices *choices, unsigned expected)
{
	unsigned count;

	assert_int_equal(choice_read_count(choices->counts, GUARD_CGROUP2, &count), 0);
	assert_int_equal(count, expected);
	assert_int_equal(choice_read_count(choices->counts, GUARD_DEVICES, &count), 0);
	assert_int_equal(count, 0);
}

static void choices_are_counted(void **state)
{
	_cleanup_choices_ struct choices choices = CHOICES_NONE;
	struct guard_choice found;

	(void)state;
	assert_int_equal(choices_open(&choices), 0);
	assert_int_equal(choice_get(&choices, &first, &found), -ENOENT);
	assert_int_equal(choice_set(&choices, &first, luids, 2), 0);
	assert_int_equal(choice_set(&choices, &second, luids, 1), 0);
	expect_count(&choices, 2);
	assert_int_equal(choice_set(&choices, &first, luids + 1, 1), 0);
	expect_count(&choices, 2);
	assert_int_equal(choice_get(&choices, &first, &found), 0);
	assert_int_equal(found.count, 1);
	assert_true(found.luids[0] == luids[1]);
	assert_int_equal(choice_remove(&choices, &first), 0);
	assert_int_equal(choice_remove(&choices, &first), 0);
	expect_count(&choices, 1);
	assert_int_equal(choice_remove(&choices, &second), 0);
	expect_count(&choices, 0);
}

/* As the programs do it, where a process reached an adapter that was not chosen. */
static void mark(const struct choices *choices, const struct guard_key *who)
{
	struct guard_choice choice;
	union bpf_attr attr = {.map_fd = (unsigned)choices->map};

	assert_int_equal(choice_get(choices, who, &choice), 0);
	choice.state = GUARD_RACED | GUARD_PLACE;
	attr.key = (uintptr_t)who;
	attr.value = (uintptr_t)&choice;
	assert_int_equal(syscall(SYS_bpf, BPF_MAP_UPDATE_ELEM, &attr, sizeof(attr)), 0);
}

static void what_its_processes_did_is_not_forgotten_with_another_choice(void **state)
{
	_cleanup_choices_ struct choices choices = CHOICES_NONE;
	struct guard_choice found;

	(void)state;
	assert_int_equal(choices_open(&choices), 0);
	assert_int_equal(choice_set(&choices, &first, luids, 1), 0);
	mark(&choices, &first);
	assert_int_equal(choice_set(&choices, &first, luids, 2), 0);
	assert_int_equal(choice_get(&choices, &first, &found), 0);
	assert_int_equal(found.count, 2);
	assert_int_equal(found.state, GUARD_RACED | GUARD_PLACE);
	assert_int_equal(choice_count_marked_for_kill(&choices), 1);
	/* A choice of its own after that is another's. */
	assert_int_equal(choice_remove(&choices, &first), 0);
	assert_int_equal(choice_set(&choices, &first, luids, 2), 0);
	assert_int_equal(choice_get(&choices, &first, &found), 0);
	assert_int_equal(found.state, 0);
	assert_int_equal(choice_remove(&choices, &first), 0);
}

/* Return: whether @key comes before @other in the map. What is written anew comes first of those in its bucket. */
static bool comes_before(const struct choices *choices, const struct guard_key *key, const struct guard_key *other)
{
	struct guard_key at;
	int r = choice_next(choices, NULL, &at);

	while (r == 0 && at.cgroup != key->cgroup && at.cgroup != other->cgroup)
		r = choice_next(choices, &at, &at);
	assert_int_equal(r, 0);
	return at.cgroup == key->cgroup;
}

/*
 * Between a reader's look and its update a program may write into the same entry, which then is lost. Nothing tells of an
 * update but the order within a bucket; of 64 entries some have the same bucket as the first.
 */
static void a_choice_that_is_the_same_is_not_written_again(void **state)
{
	_cleanup_choices_ struct choices choices = CHOICES_NONE;
	struct guard_key other = {.cgroup = 2000};

	(void)state;
	assert_int_equal(choices_open(&choices), 0);
	for (; other.cgroup < 2064; other.cgroup++) {
		bool before;

		assert_int_equal(choice_set(&choices, &first, luids, 2), 0);
		assert_int_equal(choice_set(&choices, &other, luids, 2), 0);
		before = comes_before(&choices, &first, &other);
		mark(&choices, before ? &other : &first);
		before = comes_before(&choices, &first, &other);
		assert_int_equal(choice_set(&choices, before ? &other : &first, luids, 2), 0);
		assert_int_equal(comes_before(&choices, &first, &other), before);
		assert_int_equal(choice_count_marked_for_kill(&choices), 1);
		assert_int_equal(choice_remove(&choices, &first), 0);
		assert_int_equal(choice_remove(&choices, &other), 0);
	}
	expect_count(&choices, 0);
}

static void a_full_map_counts_no_more(void **state)
{
	_cleanup_choices_ struct choices choices = CHOICES_NONE;
	struct guard_key key = {0};

	(void)state;
	assert_int_equal(choices_open(&choices), 0);
	for (key.cgroup = 1; key.cgroup <= 4; key.cgroup++)
		assert_int_equal(choice_set(&choices, &key, luids, 1), 0);
	assert_int_equal(choice_set(&choices, &key, luids, 1), -E2BIG);
	expect_count(&choices, 4);
	assert_int_equal(choice_set(&choices, &key, luids, GUARD_ADAPTERS_MAX + 1), -E2BIG);
	expect_count(&choices, 4);
}

/* Else the programs of the new load would take it that there are none, and look for none. */
static void what_is_removed_from_an_old_load_is_not_counted_in_the_new_one(void **state)
{
	_cleanup_choices_ struct choices old = CHOICES_NONE, new = CHOICES_NONE;

	(void)state;
	assert_int_equal(choices_open(&old), 0);
	assert_int_equal(choice_set(&old, &first, luids, 1), 0);
	maps_unload();
	assert_int_equal(choices_open(&new), -ENOENT);
	maps_load();
	assert_int_equal(choices_open(&new), 0);
	assert_int_equal(choice_set(&new, &second, luids, 1), 0);
	assert_int_equal(choice_remove(&old, &first), 0);
	expect_count(&new, 1);
	expect_count(&old, 0);
	assert_int_equal(choice_set(&old, &first, luids, 1), 0);
	expect_count(&new, 1);
	expect_count(&old, 1);
}

static void without_counts_choices_can_be_read(void **state)
{
	_cleanup_choices_ struct choices choices = CHOICES_NONE;
	struct guard_key key;

	(void)state;
	assert_int_equal(unlink(MAPS_PRESENT), 0);
	assert_int_equal(choices_open(&choices), 0);
	assert_int_equal(choices.counts, -1);
	assert_int_equal(choice_next(&choices, NULL, &key), -ENOENT);
	assert_true(choice_set(&choices, &first, luids, 1) < 0);
	assert_int_equal(choice_next(&choices, NULL, &key), -ENOENT);
	assert_int_equal(choice_remove(&choices, &first), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(choices_are_counted, begin, end),
		cmocka_unit_test_setup_teardown(what_its_processes_did_is_not_forgotten_with_another_choice, begin,
						end),
		cmocka_unit_test_setup_teardown(a_choice_that_is_the_same_is_not_written_again, begin, end),
		cmocka_unit_test_setup_teardown(a_full_map_counts_no_more, begin, end),
		cmocka_unit_test_setup_teardown(what_is_removed_from_an_old_load_is_not_counted_in_the_new_one, begin,
						end),
		cmocka_unit_test_setup_teardown(without_counts_choices_can_be_read, begin, end),
	};
	int r;

	scratch_enter();
	if (!mount_pins() || end(NULL) != 0)
		scratch_skip_all("needs to mount a file system for BPF");
	r = cmocka_run_group_tests(tests, NULL, NULL);
	scratch_remove();
	return r;
}

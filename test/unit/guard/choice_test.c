/* SPDX-License-Identifier: Apache-2.0 */

/* Choices and how many of them the programs are told of, in maps of the kernel; no program reads them here. */

#include "scratch.h"

#include <linux/bpf.h>
#include <sys/syscall.h>

#include "guard/choice.h"

#define DIRECTORY PINS_USUAL_FILE_SYSTEM "/" PINS_NAME
#define CHOICES DIRECTORY "/" GUARD_CHOICES_NAME
#define PRESENT DIRECTORY "/" GUARD_PRESENT_NAME

static const struct guard_key first = {.cgroup = 1001}, second = {.cgroup = 1002};
static const uint64_t luids[] = {0x1000000a1, 0x1000000a2};

static int call(enum bpf_cmd command, union bpf_attr *attr)
{
	return (int)syscall(SYS_bpf, command, attr, sizeof(*attr));
}

static void make_map(const char *path, enum bpf_map_type type, uint32_t key, uint32_t value, uint32_t entries,
		     uint32_t flags)
{
	union bpf_attr attr;
	int fd;

	memset(&attr, 0, sizeof(attr));
	attr.map_type = type;
	attr.key_size = key;
	attr.value_size = value;
	attr.max_entries = entries;
	attr.map_flags = flags;
	fd = call(BPF_MAP_CREATE, &attr);
	if (fd < 0 && errno == EPERM)
		skip("needs to make BPF maps");
	assert_true(fd >= 0);
	memset(&attr, 0, sizeof(attr));
	attr.pathname = (uint64_t)(uintptr_t)path;
	attr.bpf_fd = (uint32_t)fd;
	assert_int_equal(call(BPF_OBJ_PIN, &attr), 0);
	assert_int_equal(close(fd), 0);
}

/* What a load of the guard leaves, but for the programs. */
static void load(void)
{
	assert_int_equal(mkdir(DIRECTORY, 0700), 0);
	make_map(CHOICES, BPF_MAP_TYPE_HASH, sizeof(struct guard_key), sizeof(struct guard_choice), 4,
		 BPF_F_NO_PREALLOC);
	make_map(PRESENT, BPF_MAP_TYPE_ARRAY, sizeof(uint32_t), sizeof(struct guard_counts), 1, BPF_F_MMAPABLE);
}

static void unload(void)
{
	assert_int_equal(unlink(CHOICES), 0);
	assert_int_equal(unlink(PRESENT), 0);
	assert_int_equal(rmdir(DIRECTORY), 0);
}

/* A BPF file system of this program's mount namespace. */
static int begin(void **state)
{
	(void)state;
	assert_int_equal(mount("none", "/sys", "tmpfs", 0, NULL), 0);
	assert_int_equal(mkdir("/sys/fs", 0755), 0);
	assert_int_equal(mkdir(PINS_USUAL_FILE_SYSTEM, 0700), 0);
	if (mount("bpf", PINS_USUAL_FILE_SYSTEM, "bpf", 0, "mode=700") < 0)
		skip("needs to mount a file system for BPF");
	load();
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
	unload();
	assert_int_equal(choices_open(&new), -ENOENT);
	load();
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
	assert_int_equal(unlink(PRESENT), 0);
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
		cmocka_unit_test_setup_teardown(a_full_map_counts_no_more, begin, end),
		cmocka_unit_test_setup_teardown(what_is_removed_from_an_old_load_is_not_counted_in_the_new_one, begin,
						end),
		cmocka_unit_test_setup_teardown(without_counts_choices_can_be_read, begin, end),
	};
	int r;

	scratch_enter();
	r = cmocka_run_group_tests(tests, NULL, NULL);
	scratch_remove();
	return r;
}

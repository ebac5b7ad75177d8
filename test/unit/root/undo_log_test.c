/* SPDX-License-Identifier: Apache-2.0 */

#include "unit.h"

#include <sys/fsuid.h>
#include <unistd.h>

#include "root/undo_log.h"

enum { OTHER_UID = 54321, OTHER_GID = 54322, STEPS = 3 };

static int users[STEPS], groups[STEPS];

/* A number that is no user's changes nothing. */
static void see(const struct undo_log *undo_log, const struct undo_step *undo_step)
{
	(void)undo_log;
	users[undo_step->number] = setfsuid((uid_t)-1);
	groups[undo_step->number] = setfsgid((gid_t)-1);
}

static void add(struct undo_log *undo_log, unsigned number, bool as_owner)
{
	const struct undo_step undo_step = {.undo = see, .fds = {-1, -1, -1}, .number = number, .as_owner = as_owner};

	assert_int_equal(undo_log_add(undo_log, &undo_step, NULL), 0);
}

/* A signal's handler undoes what was done wherever the signal comes. */
static void each_step_is_undone_by_its_own_user(void **state)
{
	struct undo_log *undo_log = undo_log_new(false);
	const struct mapped_root owner = {true, OTHER_UID, OTHER_GID};

	(void)state;
	if (geteuid() != 0)
		skip("needs root");
	assert_non_null(undo_log);
	undo_log->owner = owner;
	add(undo_log, 0, false);
	add(undo_log, 1, true);
	add(undo_log, 2, false);
	mapped_root_begin(&owner);
	undo_log_undo(undo_log);
	mapped_root_end(&owner);
	assert_int_equal(undo_log->count, 0);
	for (int i = 0; i < STEPS; i++) {
		assert_int_equal(users[i], i == 1 ? OTHER_UID : (int)geteuid());
		assert_int_equal(groups[i], i == 1 ? OTHER_GID : (int)getegid());
	}
	(void)undo_log_free(undo_log);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_step_is_undone_by_its_own_user),
	};

	return cmocka_run_group_tests_name("undo_log", tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */

/* The directory of the records of one root filesystem or container, and its lock. */

#include "scratch.h"

#include <signal.h>
#include <sys/time.h>

#include "apply/internal.h"

/* The waiting for a lock ends with a signal. */
static void on_alarm(int signal)
{
	(void)signal;
}

static void interrupt_soon(void)
{
	const struct sigaction action = {.sa_handler = on_alarm};
	/* Again and again, since the first may come before it waits. */
	const struct itimerval soon = {.it_value.tv_usec = 50 * 1000, .it_interval.tv_usec = 50 * 1000};

	assert_int_equal(sigaction(SIGALRM, &action, NULL), 0);
	assert_int_equal(setitimer(ITIMER_REAL, &soon, NULL), 0);
}

static void interrupt_no_more(void)
{
	const struct itimerval never = {0};

	assert_int_equal(setitimer(ITIMER_REAL, &never, NULL), 0);
}

static int take_lock(const char *path, struct undo_records *ret)
{
	*ret = UNDO_RECORDS_CLOSED;
	return undo_records_open(scratch_path(path), ret);
}

static void an_empty_directory_goes_with_its_lock(void **state)
{
	struct undo_records records = UNDO_RECORDS_CLOSED;

	(void)state;
	assert_int_equal(undo_records_make(scratch_path("/records/a"), &records), 0);
	assert_true(exists("/records/a"));
	undo_records_close(&records, AT_FDCWD, scratch_path("/records/a"));
	assert_false(exists("/records/a"));
	assert_true(exists("/records"));
}

/* Whoever makes the first record has an empty directory for a while. */
static void another_holders_directory_stays(void **state)
{
	struct undo_records holder = UNDO_RECORDS_CLOSED, other;

	(void)state;
	assert_int_equal(undo_records_make(scratch_path("/records/a"), &holder), 0);
	interrupt_soon();
	assert_int_equal(take_lock("/records/a", &other), -EINTR);
	interrupt_no_more();
	undo_records_close(&other, AT_FDCWD, scratch_path("/records/a"));
	assert_true(exists("/records/a"));
	undo_records_close(&holder, AT_FDCWD, scratch_path("/records/a"));
	assert_false(exists("/records/a"));
}

static void make_through_link(const char *link, const char *path)
{
	struct undo_records records = UNDO_RECORDS_CLOSED;
	char *full = scratch_path(path), before[512];

	make_link(link, "/nowhere");
	(void)snprintf(before, sizeof(before), "%s", full);
	(void)signal(SIGALRM, SIG_DFL); /* ends this program */
	alarm(60);
	assert_int_equal(undo_records_make(full, &records), -ENOENT);
	alarm(0);
	assert_string_equal(full, before);
	undo_records_close(&records, AT_FDCWD, full);
	assert_true(exists(link));
}

static void links_that_lead_nowhere_are_errors(void **state)
{
	(void)state;
	make_through_link("/above", "/above/records/a");
	make_through_link("/last", "/last");
}

static void ended_containers_leave_no_descriptors(void **state)
{
	struct undo_records holder = UNDO_RECORDS_CLOSED;
	unsigned before;

	(void)state;
	assert_int_equal(undo_records_make(scratch_path("/records/4194303-1"), &holder), 0);
	before = unit_count_descriptors();
	interrupt_soon();
	running_drop_ended(scratch_path("/records"));
	interrupt_no_more();
	assert_int_equal(unit_count_descriptors(), before);
	assert_true(exists("/records/4194303-1"));
	undo_records_close(&holder, AT_FDCWD, scratch_path("/records/none"));
	running_drop_ended(scratch_path("/records"));
	assert_false(exists("/records/4194303-1"));
}

#define CASE(function) cmocka_unit_test_setup_teardown(function, scratch_mount, scratch_unmount)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(an_empty_directory_goes_with_its_lock),
		CASE(another_holders_directory_stays),
		CASE(links_that_lead_nowhere_are_errors),
		CASE(ended_containers_leave_no_descriptors),
	};
	int failed;

	scratch_enter();
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	scratch_remove();
	return failed != 0;
}

/* SPDX-License-Identifier: Apache-2.0 */

/* Files in memory that drivers of several servers share, while another server writes what it likes among them. */

#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vcuda/server/server.h"
#include "vcuda/server/share.h"

struct server server;

static struct start_quota quota;
static unsigned asked; /* the manager */

void server_tell(enum start_event_kind kind, uint64_t number, const char *text)
{
	(void)number;
	(void)text;
	asked += kind == START_EVENT_WANT;
}

/* In a place: the slot, the descriptor. */
static uint32_t *numbers_of(unsigned place)
{
	return (uint32_t *)(void *)quota.shares.place[place].handle;
}

static bool is_same(int one, int other)
{
	struct stat a, b;

	return fstat(one, &a) == 0 && fstat(other, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

static int open_state(void **state)
{
	const struct rlimit descriptors = {2 * SHARE_FD, 2 * SHARE_FD};

	(void)state;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &descriptors), 0);
	memset(&quota, 0, sizeof(quota));
	server.quota = &quota;
	server.start.quota_slot = 3;
	return 0;
}

static void a_file_is_found_by_its_name(void **state)
{
	int made = shm_open("/cuda.one", O_RDWR | O_CREAT | O_EXCL, 0600), again, kept;

	(void)state;
	assert_true(made >= 0);
	assert_int_equal(shm_open("/cuda.one", O_RDWR | O_CREAT | O_EXCL, 0600), -1);
	assert_int_equal(errno, EEXIST);
	assert_int_equal(shm_open("/cuda.two", O_RDWR, 0600), -1);
	assert_int_equal(errno, ENOENT);
	again = shm_open("/cuda.one", O_RDWR, 0600);
	assert_true(again >= 0 && again != made && is_same(made, again));
	kept = (int)numbers_of(0)[1];
	assert_int_equal(shm_unlink("/cuda.one"), 0);
	assert_int_equal(fcntl(kept, F_GETFD), -1);
	assert_int_equal(shm_unlink("/cuda.one"), -1);
	(void)close(made);
	(void)close(again);
}

/* The number of a descriptor that is no such file: it is neither given to the driver nor closed. */
static void another_server_names_no_descriptor_of_ours(void **state)
{
	int made = shm_open("/cuda.one", O_RDWR | O_CREAT, 0600), low = memfd_create("secret", MFD_CLOEXEC),
	    secret = fcntl(low, F_DUPFD_CLOEXEC, SHARE_FD);
	const uint32_t kept = numbers_of(0)[1],
		       wrong[] = {(uint32_t)secret, (uint32_t)low, 0, 1, 9999, UINT32_MAX, kept | 1U << 31};

	(void)state;
	assert_true(made >= 0 && secret >= 0);
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		numbers_of(0)[1] = wrong[i];
		assert_int_equal(shm_open("/cuda.one", O_RDWR, 0600), -1);
		assert_int_equal(errno, EACCES);
		assert_int_equal(shm_unlink("/cuda.one"), -1);
		assert_int_equal(errno, EACCES);
	}
	assert_true(fcntl(secret, F_GETFD) >= 0 && fcntl(STDOUT_FILENO, F_GETFD) >= 0);
	/* Nor is it, if the number is right and leads elsewhere by now. */
	numbers_of(0)[1] = kept;
	assert_int_equal(dup2(secret, (int)kept), (int)kept);
	assert_int_equal(shm_open("/cuda.one", O_RDWR, 0600), -1);
	assert_int_equal(shm_unlink("/cuda.one"), -1);
	assert_true(fcntl((int)kept, F_GETFD) >= 0);
	assert_int_equal(asked, 0);
	(void)close((int)kept);
	(void)close(secret);
	(void)close(low);
	(void)close(made);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_file_is_found_by_its_name, open_state),
		cmocka_unit_test_setup(another_server_names_no_descriptor_of_ours, open_state),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

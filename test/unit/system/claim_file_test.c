/* SPDX-License-Identifier: Apache-2.0 */

/* Which container has a GPU, below /run, which is a tmpfs of the test's. */

#include "unit.h"

#include <sys/wait.h>

#include "scratch.h"
#include "system/claim_file.h"

#define FOLDER "/run/ctr-gpu/assigned"
#define GPU "0000:01:00.0"

enum { PROCESSES = 4, ROUNDS = 25 };

static int set_up(void **state)
{
	(void)state;
	return mount("tmpfs", "/run", "tmpfs", 0, "mode=755");
}

static int tear_down(void **state)
{
	(void)state;
	return umount2("/run", MNT_DETACH);
}

static int take_lock(void)
{
	pid_t holder;
	int fd = claim_file_lock(&holder);

	assert_true(fd >= 0);
	return fd;
}

static struct claim own_claim(const char *container)
{
	struct claim claim = {.since = 1764201600};
	int process = open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC);

	assert_int_equal(process_key_make(getpid(), process, claim.process), 0);
	close(process);
	(void)snprintf(claim.container, sizeof(claim.container), "%s", container);
	return claim;
}

static void a_claim_is_read_as_it_was_written(void **state)
{
	const struct claim claim = own_claim("c0ffee");
	struct claim found;
	struct stat st;
	int fd = take_lock();

	(void)state;
	assert_int_equal(claim_file_read(fd, GPU, &found), -ENOENT);
	assert_int_equal(claim_file_write(fd, GPU, &claim), 0);
	assert_int_equal(claim_file_read(fd, GPU, &found), 0);
	assert_string_equal(found.process, claim.process);
	assert_string_equal(found.container, "c0ffee");
	assert_int_equal(found.since, claim.since);
	assert_int_equal(claim_file_remove(fd, GPU), 0);
	assert_int_equal(claim_file_read(fd, GPU, &found), -ENOENT);
	assert_int_equal(stat(FOLDER, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	close(fd);
}

static void what_is_no_claim_of_a_process_that_lives_is_none(void **state)
{
	static const char *const texts[] = {"",          "1",    "1-1", "1-1 1", "1-1 1 c0ffee", "1-1 1 c0ffee\n",
					    "a-1 1 x\n", " \n\n"};
	struct claim found;
	int fd = take_lock();

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		int file = openat(fd, GPU, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

		assert_int_equal(fd_write_all(file, texts[i], strlen(texts[i])), 0);
		close(file);
		assert_int_equal(claim_file_read(fd, GPU, &found), -ENOENT);
	}
	close(fd);
}

static void names_lead_nowhere_else(void **state)
{
	static const char *const names[] = {"",
					    ".",
					    "..",
					    "../x",
					    "/run/x",
					    "a/b",
					    "1234567890123456789012345678901234567890123456789012345678901234"};
	const struct claim claim = own_claim("");
	struct claim found;
	int fd = take_lock();

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		assert_int_equal(claim_file_read(fd, names[i], &found), -EINVAL);
		assert_int_equal(claim_file_write(fd, names[i], &claim), -EINVAL);
		assert_int_equal(claim_file_remove(fd, names[i]), -EINVAL);
	}
	close(fd);
}

/* What a process of a user's could have made is not looked at. */
static void a_directory_of_another_user_is_refused(void **state)
{
	pid_t holder;

	(void)state;
	close(take_lock());
	assert_int_equal(chown(FOLDER, 1234, 1234), 0);
	assert_int_equal(claim_file_lock(&holder), -EPERM);
}

/* Each process has the GPU in turn, and finds that no other has it meanwhile. */
static void compete(void)
{
	const struct claim claim = own_claim("");
	struct claim found;

	for (int i = 0; i < ROUNDS;) {
		pid_t holder;
		int fd = claim_file_lock(&holder), taken;

		if (fd < 0)
			_exit(2);
		taken = claim_file_read(fd, GPU, &found);
		if (taken == -ENOENT && claim_file_write(fd, GPU, &claim) < 0)
			_exit(3);
		close(fd);
		if (taken != -ENOENT)
			continue;
		(void)sched_yield();
		fd = claim_file_lock(&holder);
		if (fd < 0 || claim_file_read(fd, GPU, &found) < 0 || !streq(found.process, claim.process) ||
		    claim_file_remove(fd, GPU) < 0)
			_exit(4);
		close(fd);
		i++;
	}
	_exit(0);
}

static void one_process_at_a_time_has_a_gpu(void **state)
{
	int wait_status;

	(void)state;
	for (int i = 0; i < PROCESSES; i++)
		if (fork() == 0)
			compete();
	for (int i = 0; i < PROCESSES; i++) {
		assert_true(wait(&wait_status) > 0);
		assert_int_equal(wait_status, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_claim_is_read_as_it_was_written, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_is_no_claim_of_a_process_that_lives_is_none, set_up, tear_down),
		cmocka_unit_test_setup_teardown(names_lead_nowhere_else, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_directory_of_another_user_is_refused, set_up, tear_down),
		cmocka_unit_test_setup_teardown(one_process_at_a_time_has_a_gpu, set_up, tear_down),
	};
	int failed;

	scratch_enter();
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	scratch_remove();
	return failed;
}

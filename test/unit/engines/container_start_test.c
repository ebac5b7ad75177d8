/* SPDX-License-Identifier: Apache-2.0 */

/* Processes that look like an OCI runtime and the first process of what it makes, and some that do not. */

#include "scratch.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "engines/engine.h"

static const char own[] = "/proc/self/exe";

enum { OTHER_UID = 65533 };

/* The first process: in a mount namespace of its own, it lives for that time. */
static int live(const char *milliseconds)
{
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (unshare(CLONE_NEWNS) < 0)
		return 1;
	(void)puts("");
	(void)fflush(stdout);
	(void)poll(NULL, 0, atoi(milliseconds));
	return 0;
}

/*
 * Has this program run as if it were called so, and waits until that is seen. @other: "user": the runtime is another
 * user's; "container": it is in a container; NULL. Return: the process.
 */
static pid_t play(const char *word, const char *milliseconds, const char *other)
{
	int ends[2];
	pid_t pid;
	char c;

	assert_int_equal(pipe(ends), 0);
	pid = fork();
	if (pid == 0) {
		(void)dup2(ends[1], STDOUT_FILENO);
		(void)execl(own, "runtime", word, milliseconds, other, NULL);
		_exit(1);
	}
	(void)close(ends[1]);
	for (int both = 0; both < 2; both++)
		assert_int_equal(read(ends[0], &c, 1), 1);
	(void)close(ends[0]);
	return pid;
}

static void ended(pid_t pid)
{
	(void)kill(pid, SIGTERM);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void what_is_being_made_is_waited_for(void **state)
{
	int64_t before;
	pid_t runtime;

	(void)state;
	if (geteuid() != 0)
		skip("needs root");
	before = clock_now_ms();
	runtime = play("create", "300", NULL);
	assert_int_equal(container_start_wait(10000, NULL), 0);
	assert_true(clock_now_ms() - before >= 250);
	ended(runtime);
}

static void it_is_waited_for_no_longer_than_is_said(void **state)
{
	pid_t runtime;

	(void)state;
	if (geteuid() != 0)
		skip("needs root");
	runtime = play("run", "5000", NULL);
	assert_true(container_start_wait(100, NULL) > 0);
	ended(runtime);
}

static void other_processes_in_namespaces_are_not_waited_for(void **state)
{
	pid_t other;

	(void)state;
	if (geteuid() != 0)
		skip("needs root");
	other = play("play", "5000", NULL);
	assert_int_equal(container_start_wait(0, NULL), 0);
	ended(other);
}

static void what_others_make_is_not_waited_for(void **state)
{
	static const char *const others[] = {"user", "container"};

	(void)state;
	if (geteuid() != 0)
		skip("needs root");
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		const pid_t other = play("create", "5000", others[i]);

		assert_int_equal(container_start_wait(0, NULL), 0);
		ended(other);
	}
}

/* "WORD MILLISECONDS [OTHER]": the runtime. */
static int act(char **words)
{
	pid_t first;

	if (words[3] && strcmp(words[3], "container") == 0) {
		if (unshare(CLONE_NEWPID) < 0)
			return 1;
		first = fork();
		if (first > 0)
			return waitpid(first, NULL, 0) == first ? 0 : 1;
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	}
	first = fork();
	if (first == 0)
		return live(words[2]);
	/* One that is not to be looked into seems to be root's. */
	if (words[3] && strcmp(words[3], "user") == 0 &&
	    (setresuid(OTHER_UID, OTHER_UID, OTHER_UID) < 0 || prctl(PR_SET_DUMPABLE, 0) < 0))
		return 1;
	(void)puts("");
	(void)fflush(stdout);
	return waitpid(first, NULL, 0) == first ? 0 : 1;
}

/* Containers that others of this machine make meanwhile are not seen. Return: the status of the tests. */
static int alone(int (*run)(void))
{
	int status = 1;
	pid_t pid;

	if (unshare(CLONE_NEWPID | CLONE_NEWNS) < 0)
		return run();
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		scratch_skip_all("wants / to be a mount point, which it is not in a plain chroot");
	pid = fork();
	if (pid == 0)
		_exit(mount("proc", "/proc", "proc", 0, NULL) < 0 ? 1 : run());
	return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

static int run(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_being_made_is_waited_for),
		cmocka_unit_test(it_is_waited_for_no_longer_than_is_said),
		cmocka_unit_test(other_processes_in_namespaces_are_not_waited_for),
		cmocka_unit_test(what_others_make_is_not_waited_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(int argc, char **argv)
{
	return argc >= 3 ? act(argv) : alone(run);
}

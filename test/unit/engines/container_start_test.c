/* SPDX-License-Identifier: Apache-2.0 */

/* Processes that look like an OCI runtime and the first process of what it makes, and some that do not. */

#include "unit.h"

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

/* Has this program run as if it were called so, and waits until that is seen. Return: the process. */
static pid_t play(const char *word, const char *milliseconds)
{
	int ends[2];
	pid_t pid;
	char c;

	assert_int_equal(pipe(ends), 0);
	pid = fork();
	if (pid == 0) {
		(void)dup2(ends[1], STDOUT_FILENO);
		(void)execl(own, "runtime", word, milliseconds, NULL);
		_exit(1);
	}
	(void)close(ends[1]);
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
	runtime = play("create", "300");
	assert_int_equal(container_start_wait(10000), 0);
	assert_true(clock_now_ms() - before >= 250);
	ended(runtime);
}

static void it_is_waited_for_no_longer_than_is_said(void **state)
{
	pid_t runtime;

	(void)state;
	if (geteuid() != 0)
		skip("needs root");
	runtime = play("run", "5000");
	assert_true(container_start_wait(100) > 0);
	ended(runtime);
}

static void other_processes_in_namespaces_are_not_waited_for(void **state)
{
	pid_t other;

	(void)state;
	if (geteuid() != 0)
		skip("needs root");
	other = play("play", "5000");
	assert_int_equal(container_start_wait(0), 0);
	ended(other);
}

/* "WORD MILLISECONDS": the runtime. */
static int act(char **words)
{
	const pid_t first = fork();

	if (first == 0)
		return live(words[2]);
	return waitpid(first, NULL, 0) == first ? 0 : 1;
}

/* Containers that others of this machine make meanwhile are not seen. Return: the status of the tests. */
static int alone(int (*run)(void))
{
	int status = 1;
	pid_t pid;

	if (unshare(CLONE_NEWPID | CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return run();
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
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(int argc, char **argv)
{
	return argc == 3 ? act(argv) : alone(run);
}

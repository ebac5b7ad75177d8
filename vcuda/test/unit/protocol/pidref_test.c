/* SPDX-License-Identifier: Apache-2.0 */

/* Processes that are somebody else's children, and who connected to a socket: also one whose number another gets. */

#include "unit.h"
#include "vcuda/test/unit/peer.h"

#include <errno.h>
#include <linux/sched.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "vcuda/protocol/pidref.h"

/* A process that connects to us, and lives until a signal. */
struct caller {
	pid_t pid;
	int connection;
};

static void caller_open(struct caller *caller)
{
	_cleanup_close_ int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	socklen_t size = sizeof(address);

	/* The kernel finds a name for it. */
	assert_int_equal(bind(listener, (const struct sockaddr *)&address, sizeof(address.sun_family)), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &size), 0);
	assert_int_equal(listen(listener, 1), 0);
	caller->pid = fork();
	if (caller->pid == 0) {
		int fd = socket(AF_UNIX, SOCK_STREAM, 0);

		if (connect(fd, (const struct sockaddr *)&address, size) == 0)
			(void)pause();
		_exit(1);
	}
	caller->connection = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	assert_true(caller->connection >= 0);
}

static void caller_end(const struct caller *caller)
{
	(void)kill(caller->pid, SIGKILL);
	assert_int_equal(waitpid(caller->pid, NULL, 0), caller->pid);
}

/* Return: whether there is now a process of that number, which waits for a signal. */
static bool start_with_number(pid_t pid)
{
	const struct clone_args arguments = {
		.exit_signal = SIGCHLD, .set_tid = (uint64_t)(uintptr_t)&pid, .set_tid_size = 1};
	long child = syscall(SYS_clone3, &arguments, sizeof(arguments));

	if (child == 0) {
		(void)pause();
		_exit(0);
	}
	return child == pid;
}

static void a_peer_is_told_while_it_lives(void **state)
{
	_cleanup_close_ int by_number = -1, pidfd = -1;
	uint64_t started = 0, again = 1;
	struct ucred who = {0};
	struct caller caller;

	(void)state;
	caller_open(&caller);
	assert_int_equal(pidref_open_peer(caller.connection, &pidfd, &again, &who), 0);
	assert_int_equal(who.pid, caller.pid);
	assert_int_equal(who.uid, geteuid());
	assert_int_equal(pidref_open(caller.pid, 0, &by_number, &started), 0);
	assert_int_equal(started, again);
	assert_false(pidref_has_ended(pidfd));
	caller_end(&caller);
	assert_true(pidref_has_ended(pidfd));
	(void)close(caller.connection);
}

static void a_peer_that_has_ended_is_none(void **state)
{
	_cleanup_close_ int pidfd = -1;
	struct ucred who = {0};
	struct caller caller;

	(void)state;
	caller_open(&caller);
	caller_end(&caller);
	assert_int_equal(pidref_open_peer(caller.connection, &pidfd, NULL, &who), -ESRCH);
	assert_int_equal(pidfd, -1);
	assert_int_equal(who.pid, caller.pid);
	(void)close(caller.connection);
}

static void nor_is_another_of_its_number(void **state)
{
	_cleanup_close_ int pidfd = -1, other = -1;
	struct ucred who = {0};
	struct caller caller;

	(void)state;
	caller_open(&caller);
	if (!peer_is_held(caller.connection)) {
		caller_end(&caller);
		(void)close(caller.connection);
		skip("needs SO_PEERPIDFD");
	}
	caller_end(&caller);
	/* Who may not choose numbers cannot see this. */
	if (!start_with_number(caller.pid)) {
		(void)close(caller.connection);
		skip("needs to choose the number of a process");
	}
	assert_int_equal(pidref_open(caller.pid, 0, &other, NULL), 0);
	assert_int_equal(pidref_open_peer(caller.connection, &pidfd, NULL, &who), -ESRCH);
	assert_int_equal(who.pid, caller.pid);
	caller_end(&caller);
	(void)close(caller.connection);
}

static void a_process_is_the_one_that_was_started_then(void **state)
{
	_cleanup_close_ int pidfd = -1, same = -1, later = -1;
	uint64_t started = 0;

	(void)state;
	assert_int_equal(pidref_open(getpid(), 0, &pidfd, &started), 0);
	assert_true(started > 0);
	assert_int_equal(pidref_open(getpid(), started, &same, NULL), 0);
	assert_int_equal(pidref_open(getpid(), started + 1, &later, NULL), -ESRCH);
	assert_int_equal(pidref_open(0, 0, &later, NULL), -ESRCH);
	assert_int_equal(later, -1);
	assert_true(pidref_is_of_this_namespace(getpid()));
}

static void a_child_that_has_ended_is_had_until_it_is_waited_for(void **state)
{
	_cleanup_close_ int pidfd = -1, none = -1;
	const pid_t pid = fork();
	uint64_t started = 0;
	siginfo_t info;

	(void)state;
	assert_true(pid >= 0);
	if (pid == 0)
		_exit(0);
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	assert_int_equal(pidref_open(pid, 0, &none, NULL), -ESRCH);
	assert_int_equal(pidref_open_child(pid, &pidfd, &started), 0);
	assert_true(started > 0);
	assert_true(pidref_has_ended(pidfd));
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_true(pidref_open_child(pid, &none, &started) < 0);
	assert_int_equal(none, -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_peer_is_told_while_it_lives),
		cmocka_unit_test(a_peer_that_has_ended_is_none),
		cmocka_unit_test(nor_is_another_of_its_number),
		cmocka_unit_test(a_process_is_the_one_that_was_started_then),
		cmocka_unit_test(a_child_that_has_ended_is_had_until_it_is_waited_for),
	};

	return cmocka_run_group_tests_name("alive", tests, NULL, NULL);
}

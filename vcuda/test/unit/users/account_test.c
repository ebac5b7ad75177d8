/* SPDX-License-Identifier: Apache-2.0 */

/* Who connects as a user: by the kernel's word, also where another process has its number by now. */

#include "unit.h"
#include "vcuda/test/unit/peer.h"

#include <errno.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "vcuda/users/users.h"

enum { USER = 54322 };

/* A user's process in no namespace of users, which connects and lives until a signal. */
static pid_t start_user(const struct sockaddr_un *address, socklen_t size)
{
	const pid_t pid = fork();
	int fd;

	if (pid != 0)
		return pid;
	fd = socket(AF_UNIX, SOCK_STREAM, 0);
	if (setresuid(USER, USER, USER) == 0 && prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 &&
	    connect(fd, (const struct sockaddr *)address, size) == 0)
		(void)pause();
	_exit(1);
}

static int accept_user(pid_t *ret_pid)
{
	_cleanup_close_ int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	socklen_t size = sizeof(address);
	int fd;

	/* The kernel finds a name for it. */
	assert_int_equal(bind(listener, (const struct sockaddr *)&address, sizeof(address.sun_family)), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &size), 0);
	assert_int_equal(listen(listener, 1), 0);
	*ret_pid = start_user(&address, size);
	fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

static void end(pid_t pid)
{
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* In a namespace of users that root has made, of which each user counts for itself. Return: whether it is there. */
static bool start_inside_with_number(pid_t pid)
{
	const struct clone_args arguments = {.flags = CLONE_NEWUSER,
					     .exit_signal = SIGCHLD,
					     .set_tid = (uint64_t)(uintptr_t)&pid,
					     .set_tid_size = 1};
	long child = syscall(SYS_clone3, &arguments, sizeof(arguments));

	if (child == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		(void)pause();
		_exit(0);
	}
	return child == pid;
}

static void a_user_in_no_namespace_is_none(void **state)
{
	struct account account;
	int process = -1;
	pid_t pid;
	_cleanup_close_ int connection = accept_user(&pid);

	(void)state;
	assert_int_equal(account_of_peer(connection, &account, &process), -EPERM);
	assert_int_equal(process, -1);
	end(pid);
}

static void nor_is_one_whose_number_a_process_in_a_namespace_has(void **state)
{
	struct account account;
	int process = -1;
	pid_t pid;
	_cleanup_close_ int connection = accept_user(&pid);

	(void)state;
	if (!peer_is_held(connection)) {
		end(pid);
		skip("needs SO_PEERPIDFD");
	}
	end(pid);
	if (!start_inside_with_number(pid))
		skip("needs to choose the number of a process");
	assert_int_equal(account_of_peer(connection, &account, &process), -ESRCH);
	assert_int_equal(process, -1);
	end(pid);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_user_in_no_namespace_is_none),
		cmocka_unit_test(nor_is_one_whose_number_a_process_in_a_namespace_has),
	};

	if (geteuid() != 0) {
		puts("ok 1 - needs root # SKIP\n1..1");
		return 0;
	}
	return cmocka_run_group_tests_name("account", tests, NULL, NULL);
}

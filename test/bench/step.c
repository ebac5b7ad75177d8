/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Runs a program step by step and counts its instructions, its children's too: the same number on every machine of a
 * kind, however busy it is.
 *
 *	step PROGRAM [ARGUMENT…]
 *
 * Prints how many steps there were. Alarms are kept from the program: it is a thousand times slower.
 */

#include <err.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__x86_64__)

/* Of what stopped it, what the program is to get. */
static int signal_of(int status)
{
	int number = WSTOPSIG(status);

	return status >> 16 || number == SIGTRAP || number == SIGSTOP || number == SIGALRM ? 0 : number;
}

static unsigned long follow(void)
{
	unsigned long steps = 0;
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, __WALL)) > 0) {
		if (!WIFSTOPPED(status)) {
			if (!WIFEXITED(status) || WEXITSTATUS(status))
				errx(1, "the program ended with %#x", (unsigned)status);
			continue;
		}
		steps++;
		(void)ptrace(PTRACE_SINGLESTEP, pid, 0, signal_of(status));
	}
	return steps;
}

/* Each step ends one process and wakes the other: on one CPU that takes a fourth of the time. */
static void stay_on_one_cpu(void)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET((size_t)sched_getcpu(), &one);
	(void)sched_setaffinity(0, sizeof(one), &one);
}

int main(int argc, char **argv)
{
	pid_t pid;

	if (argc < 2)
		errx(2, "usage: step PROGRAM [ARGUMENT]...");
	stay_on_one_cpu();
	pid = fork();
	if (pid == 0) {
		(void)ptrace(PTRACE_TRACEME, 0, 0, 0);
		(void)execv(argv[1], argv + 1);
		err(127, "%s", argv[1]);
	}
	if (pid < 0 || waitpid(pid, NULL, 0) < 0)
		err(1, "fork");
	(void)ptrace(PTRACE_SETOPTIONS, pid, 0, PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK);
	(void)ptrace(PTRACE_SINGLESTEP, pid, 0, 0);
	(void)printf("%lu\n", follow());
	return 0;
}

#else

int main(void)
{
	errx(1, "written for x86-64");
}

#endif

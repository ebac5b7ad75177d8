/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Runs a program step by step and counts its instructions, its children's too: the same number on every machine of a
 * kind, however busy it is.
 *
 *	step FILE PROGRAM [ARGUMENT…]
 *
 * Adds to FILE a line "OFFSET COUNT" for each instruction of PROGRAM's own file, OFFSET from its first mapped byte in
 * hexadecimal, and prints how many steps there were in all. Alarms are kept from the program: it is a thousand times slower.
 */

#include <err.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SIZE_MAX_OF_PROGRAM = 8 << 20 };

#if defined(__x86_64__)

static unsigned counts[SIZE_MAX_OF_PROGRAM];

/* Where the program was put: just after execve(2) its file is the first in memory, and only the kernel's pages before it. */
static unsigned long find_base(pid_t pid)
{
	char path[64], line[512];
	FILE *maps;

	(void)snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	maps = fopen(path, "re");
	do {
		if (!maps || !fgets(line, sizeof(line), maps))
			err(1, "%s", path);
	} while (!strchr(line, '/'));
	(void)fclose(maps);
	return strtoul(line, NULL, 16);
}

static void count(pid_t pid, unsigned long base)
{
	struct user_regs_struct registers;

	if (ptrace(PTRACE_GETREGS, pid, 0, &registers) == 0 && registers.rip - base < SIZE_MAX_OF_PROGRAM)
		counts[registers.rip - base]++;
}

/* Of what stopped it, what the program is to get. */
static int signal_of(int status)
{
	int number = WSTOPSIG(status);

	return status >> 16 || number == SIGTRAP || number == SIGSTOP || number == SIGALRM ? 0 : number;
}

static unsigned long follow(unsigned long base)
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
		count(pid, base);
		(void)ptrace(PTRACE_SINGLESTEP, pid, 0, signal_of(status));
	}
	return steps;
}

int main(int argc, char **argv)
{
	unsigned long base, steps;
	FILE *file;
	pid_t pid;

	if (argc < 3)
		errx(2, "usage: step FILE PROGRAM [ARGUMENT]...");
	pid = fork();
	if (pid == 0) {
		(void)ptrace(PTRACE_TRACEME, 0, 0, 0);
		(void)execv(argv[2], argv + 2);
		err(127, "%s", argv[2]);
	}
	if (pid < 0 || waitpid(pid, NULL, 0) < 0)
		err(1, "fork");
	base = find_base(pid);
	(void)ptrace(PTRACE_SETOPTIONS, pid, 0, PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK);
	(void)ptrace(PTRACE_SINGLESTEP, pid, 0, 0);
	steps = follow(base);
	file = fopen(argv[1], "ae");
	for (unsigned i = 0; file && i < SIZE_MAX_OF_PROGRAM; i++)
		if (counts[i])
			(void)fprintf(file, "%x %u\n", i, counts[i]);
	if (!file || fclose(file))
		err(1, "%s", argv[1]);
	(void)printf("%lu\n", steps);
	return 0;
}

#else

int main(void)
{
	errx(1, "written for x86-64");
}

#endif

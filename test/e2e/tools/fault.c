/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Runs a command, one of whose system calls fails: fault NUMBER FAULT COMMAND…. NUMBER counts the calls of the command and its
 * children, from the first that is the program's own (it looks for the lowest free descriptor, for /dev/null or for /etc/ctr-gpu) to
 * the execution of another program. FAULT is the name of an error, which the call returns without having been made; "interrupt": a ^C; "kill", which kills the process instead of the call,
 * "kill-first", which kills the command, whoever calls, "kill-all", which kills both and all, or "killed", which kills the process when
 * the call is over. Nothing else of the calls changes.
 *
 * Ends when all of them have. Writes to descriptor 9, if that is open, what happened: "CALL in parent" (or child), or "none" if there
 * were fewer calls. The exit status is the command's; 128 and the signal's number; 125 for a mistake of its own, and, with nothing
 * written to descriptor 9, for a command that makes no call of its own.
 */

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

enum { REPORT_FD = 9, KILL_ALL = -2, KILL_FIRST = -3, INTERRUPT = -4 };

static const struct {
	const char *name;
	int error;
} errors[] = {{"ENOMEM", ENOMEM},
	      {"EPERM", EPERM},
	      {"ENOSYS", ENOSYS},
	      {"EIO", EIO},
	      {"EINTR", EINTR},
	      {"kill", 0},
	      {"killed", -1},
	      {"kill-all", KILL_ALL},
	      {"kill-first", KILL_FIRST},
	      {"interrupt", INTERRUPT}};

static unsigned long wanted, seen;
static int error;
static bool counting, pending;
static pid_t first, failing;

static int fail(const char *what)
{
	perror(what);
	exit(125);
}

/* The path that a call opens or asks for; 0: it does neither. */
static uint64_t path_of(const struct __ptrace_syscall_info *info)
{
#ifdef SYS_access
	if (info->entry.nr == SYS_access)
		return info->entry.args[0];
#endif
	return info->entry.nr == SYS_openat || info->entry.nr == SYS_faccessat ? info->entry.args[1] : 0;
}

static bool begins(pid_t pid, const struct __ptrace_syscall_info *info)
{
	char path[16] = "";
	struct iovec here = {path, sizeof(path) - 1};
	struct iovec there = {(void *)(uintptr_t)path_of(info), sizeof(path) - 1};

	if (info->entry.nr == SYS_fcntl)
		return info->entry.args[0] == STDIN_FILENO && info->entry.args[1] == F_DUPFD;
	if (!there.iov_base || process_vm_readv(pid, &here, 1, &there, 1, 0) <= 0)
		return false;
	return strncmp(path, "/dev/null", 9) == 0 || strncmp(path, "/etc/ctr-gpu", 12) == 0;
}

#if defined(__x86_64__)
static void skip_call(pid_t pid)
{
	struct user_regs_struct registers;

	if (ptrace(PTRACE_GETREGS, pid, 0, &registers) < 0)
		return;
	registers.orig_rax = (unsigned long)-1;
	(void)ptrace(PTRACE_SETREGS, pid, 0, &registers);
}

static void set_result(pid_t pid, long result)
{
	struct user_regs_struct registers;

	if (ptrace(PTRACE_GETREGS, pid, 0, &registers) < 0)
		return;
	registers.rax = (unsigned long)result;
	(void)ptrace(PTRACE_SETREGS, pid, 0, &registers);
}
#elif defined(__aarch64__)
static void skip_call(pid_t pid)
{
	int number = -1;
	struct iovec part = {&number, sizeof(number)};

	(void)ptrace(PTRACE_SETREGSET, pid, NT_ARM_SYSTEM_CALL, &part);
}

static void set_result(pid_t pid, long result)
{
	struct user_regs_struct registers;
	struct iovec part = {&registers, sizeof(registers)};

	if (ptrace(PTRACE_GETREGSET, pid, NT_PRSTATUS, &part) < 0)
		return;
	registers.regs[0] = (unsigned long)result;
	(void)ptrace(PTRACE_SETREGSET, pid, NT_PRSTATUS, &part);
}
#endif

/*
 * Those that do not fail (brk(2) tells the old end; what a process is cannot be unknown), and those with which it is over: a runtime
 * that is there cannot be executed.
 */
static bool is_exempt(uint64_t number)
{
	return number == SYS_geteuid || number == SYS_getpid || number == SYS_brk || number == SYS_exit_group ||
	       number == SYS_exit || number == SYS_rt_sigreturn || number == SYS_restart_syscall ||
	       number == SYS_execve;
}

static void enter(pid_t pid, const struct __ptrace_syscall_info *info)
{
	if (!counting && begins(pid, info))
		counting = true;
	if (!counting || is_exempt(info->entry.nr) || ++seen != wanted)
		return;
	(void)dprintf(REPORT_FD, "call %llu in %s\n", (unsigned long long)info->entry.nr,
		      pid == first ? "parent" : "child");
	if (error == INTERRUPT) {
		(void)kill(-first, SIGINT);
		return;
	}
	if (error == 0 || error == KILL_ALL || error == KILL_FIRST) {
		(void)kill(error == KILL_ALL ? -first : error == KILL_FIRST ? first : pid, SIGKILL);
		return;
	}
	if (error > 0)
		skip_call(pid);
	failing = pid;
	pending = true;
}

static void leave(pid_t pid)
{
	if (!pending || pid != failing)
		return;
	pending = false;
	if (error > 0)
		set_result(pid, -error);
	else
		(void)kill(pid, SIGKILL);
}

static void look(pid_t pid)
{
	struct __ptrace_syscall_info info;

	if (ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof(info), &info) < 0)
		return;
	if (info.op == PTRACE_SYSCALL_INFO_ENTRY)
		enter(pid, &info);
	else if (info.op == PTRACE_SYSCALL_INFO_EXIT)
		leave(pid);
}

/* Return: false if the process is another program from here on. */
static bool stopped(pid_t pid, int status)
{
	static bool begun;
	int number = WSTOPSIG(status), event = status >> 16, deliver = 0;

	if (event == PTRACE_EVENT_EXEC && begun)
		return ptrace(PTRACE_DETACH, pid, 0, 0) < 0;
	if (event == PTRACE_EVENT_EXEC)
		begun = true;
	else if (number == (SIGTRAP | 0x80))
		look(pid);
	else if (event == 0 && number != SIGSTOP && number != SIGTRAP)
		deliver = number;
	(void)ptrace(PTRACE_SYSCALL, pid, 0, deliver);
	return true;
}

static void start(char **command)
{
	const long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK |
			     PTRACE_O_TRACEEXEC;
	int status;

	first = fork();
	if (first == 0) {
		(void)setpgid(0, 0);
		/* A shell has its jobs ignore it. */
		(void)signal(SIGINT, SIG_DFL);
		(void)raise(SIGSTOP);
		(void)execvp(*command, command);
		_exit(127);
	}
	if (first < 0 || ptrace(PTRACE_SEIZE, first, 0, options) < 0)
		fail("fault");
	(void)waitpid(first, &status, WUNTRACED);
	(void)kill(first, SIGCONT);
	(void)ptrace(PTRACE_SYSCALL, first, 0, 0);
}

int main(int argc, char **argv)
{
	int status, result = 125;
	size_t i = 0;
	pid_t pid;

	while (argc > 3 && i < sizeof(errors) / sizeof(errors[0]) && strcmp(errors[i].name, argv[2]) != 0)
		i++;
	if (argc <= 3 || i == sizeof(errors) / sizeof(errors[0])) {
		(void)fprintf(stderr, "usage: fault NUMBER ERROR|interrupt|kill|killed|kill-first|kill-all COMMAND…\n");
		return 125;
	}
	wanted = strtoul(argv[1], NULL, 10);
	error = errors[i].error;
	(void)prctl(PR_SET_CHILD_SUBREAPER, 1);
	start(argv + 3);
	while ((pid = waitpid(-1, &status, __WALL)) > 0 || errno == EINTR) {
		if (pid > 0 && WIFSTOPPED(status))
			(void)stopped(pid, status);
		else if (pid == first)
			result = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	}
	if (!counting) {
		(void)fprintf(stderr, "fault: %s made no call of its own\n", argv[3]);
		return 125;
	}
	if (seen < wanted)
		(void)dprintf(REPORT_FD, "none\n");
	return result;
}

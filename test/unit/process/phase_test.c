/* SPDX-License-Identifier: Apache-2.0 */

/* What a process may do in each phase, as the kernel tells it of the process, and as it answers. */

#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "process/phase.h"
#include "process/privilege.h"

#ifdef __SANITIZE_ADDRESS__
enum { SANITIZED = 1 };
#else
enum { SANITIZED = 0 };
#endif

static uint64_t status_of(const char *name, int base)
{
	FILE *file = fopen("/proc/self/status", "re");
	uint64_t value = UINT64_MAX;
	char line[256];

	while (file && fgets(line, sizeof(line), file))
		if (strncmp(line, name, strlen(name)) == 0)
			value = strtoull(line + strlen(name), NULL, base);
	if (file)
		(void)fclose(file);
	return value;
}

static uint64_t bit(unsigned capability)
{
	return (uint64_t)1 << capability;
}

/* In a child. Return: its status of waitpid(2). */
static int in_child(int (*function)(const void *argument), const void *argument)
{
	pid_t pid = fork();
	int status = -1;

	if (pid == 0)
		_exit(function(argument));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

/* ---- capabilities ---- */

struct expectation {
	enum phase first, second;
	uint64_t permitted, effective;
};

#define COMMON (bit(CAP_DAC_OVERRIDE) | bit(CAP_SETUID) | bit(CAP_SETGID))
#define SINGLE (bit(CAP_NET_ADMIN) | bit(CAP_SYS_RESOURCE) | bit(CAP_SYSLOG))
#define MOUNTS (bit(CAP_SYS_ADMIN) | bit(CAP_SYS_CHROOT) | bit(CAP_SYS_PTRACE))
#define OWNERS (bit(CAP_CHOWN) | bit(CAP_FOWNER))

/* The first phase that is not as expected, or 0. */
static int enter_both(const void *argument)
{
	const struct expectation *expected = argument;
	uint64_t had = status_of("CapPrm:", 16);

	if (phase_enter(expected->first) < 0 || phase_enter(expected->second) < 0)
		return 1;
	if (status_of("CapPrm:", 16) != (expected->permitted & had))
		return 2;
	if (status_of("CapEff:", 16) != (expected->effective & had))
		return 3;
	return status_of("Seccomp:", 10) == (expected->second == PHASE_BEGIN || SANITIZED ? 0 : 2) ? 0 : 4;
}

static void each_phase_has_its_capabilities(void **state)
{
	const struct expectation expected[] = {
		{PHASE_BEGIN, PHASE_BEGIN, COMMON | bit(CAP_KILL) | MOUNTS | SINGLE, COMMON | bit(CAP_KILL)},
		{PHASE_BEGIN, PHASE_GIVE, COMMON | MOUNTS | SINGLE, COMMON | MOUNTS},
		{PHASE_GIVE, PHASE_GIVE, COMMON | MOUNTS | SINGLE | OWNERS, COMMON | MOUNTS | OWNERS},
		{PHASE_EDIT, PHASE_EDIT, COMMON | OWNERS, COMMON | OWNERS},
	};

	(void)state;
	if (geteuid() != 0)
		skip("needs root");
	for (size_t i = 0; i < ARRAY_SIZE(expected); i++)
		assert_int_equal(in_child(enter_both, &expected[i]), 0);
}

static int raise_one(const void *unused)
{
	int raised;

	(void)unused;
	if (phase_enter(PHASE_BEGIN) < 0 || phase_enter(PHASE_GIVE) < 0)
		return 1;
	raised = capability_raise(CAP_SYSLOG);
	if (raised != CAP_SYSLOG || !(status_of("CapEff:", 16) & bit(CAP_SYSLOG)))
		return 2;
	capability_lower(&raised);
	return status_of("CapEff:", 16) & bit(CAP_SYSLOG)          ? 3
	       : capability_raise(CAP_SYS_BOOT) == CAPABILITY_NONE ? 0
								   : 4;
}

static void a_capability_is_raised_for_one_call(void **state)
{
	(void)state;
	if (geteuid() != 0)
		skip("needs root");
	assert_int_equal(in_child(raise_one, NULL), 0);
}

/* ---- system calls ---- */

static char none[] = "/none";

#define CALL(name, ...)             \
	{                           \
#name, SYS_##name,  \
		{                   \
			__VA_ARGS__ \
		}                   \
	}
#define TEXT(text) (long)(uintptr_t)(text)

static const struct call {
	const char *name;
	long number;
	long arguments[6];
} refused[] =
	{
		CALL(execve, TEXT(none)),
		CALL(execveat, -1, TEXT(none)),
		CALL(clone, CLONE_SIGHAND),
		CALL(clone3),
		CALL(ptrace, PTRACE_TRACEME),
		CALL(process_vm_readv, -1),
		CALL(process_vm_writev, -1),
		CALL(pidfd_open, -1),
		CALL(tgkill, -1),
		CALL(kill, 1, 0),
		CALL(init_module),
		CALL(finit_module, -1),
		CALL(delete_module),
		CALL(kexec_load, 0, 0, 0, 1L << 30),
		CALL(reboot),
		CALL(keyctl, 999),
		CALL(add_key),
		CALL(request_key),
		CALL(perf_event_open),
		CALL(io_uring_setup),
		CALL(userfaultfd, -1),
		CALL(bpf, BPF_MAP_CREATE),
		CALL(bpf, BPF_PROG_TEST_RUN),
		CALL(bpf, 32 + BPF_PROG_LOAD),
		CALL(unshare, -1),
		CALL(setns, -1, CLONE_NEWNET),
		CALL(setns, -1, CLONE_NEWPID),
		CALL(chroot, TEXT(none)),
		CALL(pivot_root, TEXT(none), TEXT(none)),
		CALL(mount, TEXT("x"), TEXT(none), TEXT("proc"), 0),
		CALL(mount, TEXT("x"), TEXT(none), 0, MS_REMOUNT),
		CALL(mount, TEXT("x"), TEXT(none), 0, MS_SHARED),
		CALL(socket, AF_INET, -1),
		CALL(socket, AF_NETLINK, -1),
		CALL(socketpair, -1),
		CALL(bind, -1),
		CALL(mknodat, -1, TEXT("x")),
		CALL(fchownat, -1, TEXT("x")),
		CALL(setresuid, -1, -1, -1),
		CALL(setgroups, -1),
		CALL(prctl, PR_SET_NAME, TEXT("x")),
		CALL(prctl, PR_SET_DUMPABLE, -1),
		CALL(fcntl, 0, F_SETOWN, 0),
		CALL(fcntl, 0, F_SETLEASE, -1),
		CALL(ioctl, -1, TIOCSTI),
		CALL(prlimit64, 1, -1),
		CALL(memfd_create),
		CALL(open_by_handle_at, -1),
		CALL(swapon, TEXT(none)),
		CALL(quotactl, -1),
		CALL(setxattr, TEXT(none)),
		CALL(personality, 0xffffffff),
		CALL(settimeofday, -1),
		CALL(sethostname, -1),
},
  allowed[] = {
	  /* and no kernel asks for a capability that is only permitted */
	  CALL(openat, -1, TEXT("x")),
	  CALL(bpf, BPF_PROG_LOAD),
	  CALL(bpf, BPF_PROG_GET_FD_BY_ID),
	  CALL(setns, -1, CLONE_NEWNS),
	  CALL(setns, -1, CLONE_NEWUSER),
	  CALL(mount, TEXT("x"), TEXT(none), 0, MS_BIND | MS_REC),
	  CALL(mount, TEXT("x"), TEXT(none), 0, MS_REMOUNT | MS_BIND | MS_RDONLY),
	  CALL(mount, TEXT("x"), TEXT(none), TEXT("tmpfs"), MS_NOSUID | MS_NODEV | MS_NOEXEC),
	  CALL(socket, AF_UNIX, -1),
	  CALL(fsmount, -1),
	  CALL(mount_setattr, -1, TEXT("x")),
	  CALL(prctl, PR_SET_PDEATHSIG, 0),
	  CALL(fcntl, -1, F_DUPFD_CLOEXEC),
	  CALL(prlimit64, 0, -1),
	  CALL(umount2, TEXT(none)),
	  CALL(unlinkat, -1, TEXT("x")),
	  CALL(getppid),
};

static int error_of(const struct call *call)
{
	const long *a = call->arguments;

	errno = 0;
	return syscall(call->number, a[0], a[1], a[2], a[3], a[4], a[5]) < 0 ? errno : 0;
}

/* A call that fails so without a filter proves nothing. */
static int is_refused_by_filter(const void *argument)
{
	const struct call *call = argument;
	int before = call->number == SYS_ptrace || call->number == SYS_io_uring_setup ? 0 : error_of(call);

	if (phase_enter(PHASE_GIVE) < 0 || before == EPERM)
		return 1;
	return error_of(call) == EPERM ? 0 : 2;
}

static int is_allowed(const void *argument)
{
	return phase_enter(PHASE_GIVE) == 0 && error_of(argument) != EPERM ? 0 : 1;
}

static void what_is_not_in_the_table_is_refused(void **state)
{
	(void)state;
	if (geteuid() != 0 || SANITIZED)
		skip("needs root, and no sanitizer");
	for (size_t i = 0; i < ARRAY_SIZE(refused); i++)
		if (in_child(is_refused_by_filter, &refused[i]) != 0)
			fail_msg("%s (%zu) is not refused", refused[i].name, i);
	for (size_t i = 0; i < ARRAY_SIZE(allowed); i++)
		if (in_child(is_allowed, &allowed[i]) != 0)
			fail_msg("%s (%zu) is refused", allowed[i].name, i);
}

static int kill_itself(const void *unused)
{
	(void)unused;
	if (phase_enter(PHASE_GIVE) < 0 || kill(getpid(), 0) < 0)
		return 1;
	return kill(getppid(), 0) < 0 && errno == EPERM ? 0 : 2;
}

/* With the answer that a tracer gave. */
static int answer_of_tracer(const void *unused)
{
	(void)unused;
	return phase_enter(PHASE_GIVE) == 0 && syscall(-1) < 0 && errno == ENOSYS ? 0 : 1;
}

static void a_call_that_a_tracer_answered_keeps_its_answer(void **state)
{
	(void)state;
	if (geteuid() != 0)
		skip("needs root");
	assert_int_equal(in_child(answer_of_tracer, NULL), 0);
}

static void signals_go_to_itself_alone(void **state)
{
	(void)state;
	if (geteuid() != 0 || SANITIZED)
		skip("needs root, and no sanitizer");
	assert_int_equal(in_child(kill_itself, NULL), 0);
}

#ifdef __x86_64__
enum { X32_GETPID = 0x40000000 + SYS_getpid, I386_GETPID = 20 };

static int call_as_x32(const void *unused)
{
	(void)unused;
	(void)phase_enter(PHASE_GIVE);
	(void)syscall(X32_GETPID);
	return 0;
}

static int call_as_i386(const void *unused)
{
	long number = I386_GETPID;

	(void)unused;
	(void)phase_enter(PHASE_GIVE);
	__asm__ volatile("int $0x80" : "+a"(number) : : "memory", "r8", "r9", "r10", "r11");
	return 0;
}

static void calls_of_another_kind_kill(void **state)
{
	int status;

	(void)state;
	if (geteuid() != 0 || SANITIZED)
		skip("needs root, and no sanitizer");
	status = in_child(call_as_x32, NULL);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS);
	status = in_child(call_as_i386, NULL);
	/* A kernel without IA-32 emulation has no such call. */
	assert_true(WIFSIGNALED(status) && (WTERMSIG(status) == SIGSYS || WTERMSIG(status) == SIGSEGV));
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_phase_has_its_capabilities),
		cmocka_unit_test(a_capability_is_raised_for_one_call),
		cmocka_unit_test(what_is_not_in_the_table_is_refused),
		cmocka_unit_test(a_call_that_a_tracer_answered_keeps_its_answer),
		cmocka_unit_test(signals_go_to_itself_alone),
#ifdef __x86_64__
		cmocka_unit_test(calls_of_another_kind_kill),
#endif
	};

	return cmocka_run_group_tests_name("phase", tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Tries what a library that somebody took over would try, and gives what worked as bits of the LUID. The bits are named in
 * attempts.h.
 */

#define FAKE_OWN_ENUMERATE
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../attempts.h"
#include "fake.h"

extern char **environ;

static bool opens(const char *path, int flags)
{
	return open(path, flags, 0600) >= 0;
}

static bool writes_file(void)
{
	return opens("/tmp/ctr-gpu-escaped", O_WRONLY | O_CREAT) || opens("/tmp", O_RDWR | O_TMPFILE) ||
	       opens("/tmp/ctr-gpu-escaped", O_RDONLY | O_CREAT) || opens("/dev/null", O_RDWR) ||
	       mkdir("/tmp/ctr-gpu-escaped", 0700) == 0;
}

static bool opens_socket(void)
{
	int pair[2];

	return socket(AF_UNIX, SOCK_STREAM, 0) >= 0 || socket(AF_INET, SOCK_DGRAM, 0) >= 0 ||
	       socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0;
}

/* An exec that works would end this process, so a failure of the test shows as no answer at all. */
static bool executes(void)
{
	char *const arguments[] = {(char *)"true", NULL};

	return execv("/bin/true", arguments) == 0 ||
	       syscall(SYS_execveat, AT_FDCWD, "/bin/true", arguments, NULL, 0) == 0;
}

static bool forks(void)
{
	pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);

	/* The kernel refuses these for other reasons, too; the filter's is the first. */
	if (syscall(SYS_clone, CLONE_THREAD | CLONE_NEWUSER, NULL, NULL, NULL, NULL) >= 0 || errno != EPERM)
		return true;

	if (child == 0)
		_exit(0);
	return child > 0;
}

static bool has_environment(void)
{
	return environ && environ[0];
}

static bool mounts(void)
{
	return mount("none", "/tmp", "tmpfs", 0, NULL) == 0 || unshare(CLONE_NEWUSER) == 0;
}

static bool traces(void)
{
	return ptrace(PTRACE_ATTACH, getppid(), NULL, NULL) == 0 || kill(getppid(), 0) == 0;
}

static bool is_somebody(void)
{
	return getuid() == 0 || geteuid() == 0 || getgid() == 0 || setuid(0) == 0;
}

static bool has_descriptors(void)
{
	for (int fd = 4; fd < 256; fd++)
		if (fcntl(fd, F_GETFD) >= 0)
			return true;
	return false;
}

static bool outlives_deadline(void)
{
	struct itimerspec never = {0};
	struct rlimit unlimited = {RLIM_INFINITY, RLIM_INFINITY};

	return timer_settime((timer_t)0, 0, &never, NULL) == 0 || timer_delete((timer_t)0) == 0 ||
	       setrlimit(RLIMIT_CORE, &unlimited) == 0;
}

static bool holds_capabilities(void)
{
	FILE *status = fopen("/proc/self/status", "re");
	unsigned long long set, all = 0;
	char line[256];

	while (status && fgets(line, sizeof(line), status))
		if (strncmp(line, "CapBnd", 6) != 0 && sscanf(line, "Cap%*3s: %llx", &set) == 1)
			all |= set;
	return !status || all != 0;
}

static bool gains_rights(void)
{
	FILE *status = fopen("/proc/self/status", "re");
	int no_new_privileges = 0, seccomp = 0;
	char line[256];

	while (status && fgets(line, sizeof(line), status)) {
		(void)sscanf(line, "NoNewPrivs: %d", &no_new_privileges);
		(void)sscanf(line, "Seccomp: %d", &seccomp);
	}
	return no_new_privileges != 1 || seccomp != 2;
}

/* By way of a file whose input or output the kernel reports to a process of the same user, or to all of a group. */
static bool sends_signals(void)
{
	struct f_owner_ex owner = {F_OWNER_PID, 1};
	int pair[2], number = getppid();

	if (pipe2(pair, 0) < 0)
		return true;
	for (int fd = 3; fd <= pair[1]; fd++)
		if (fcntl(fd, F_SETOWN, 1) == 0 || fcntl(fd, F_SETOWN_EX, &owner) == 0 ||
		    fcntl(fd, F_SETSIG, SIGKILL) == 0 || fcntl(fd, F_SETFL, O_ASYNC) == 0 ||
		    fcntl(fd, F_NOTIFY, DN_ACCESS) == 0 || ioctl(fd, FIOSETOWN, &number) == 0 ||
		    ioctl(fd, SIOCSPGRP, &number) == 0 || ioctl(fd, FIOASYNC, &number) == 0)
			return true;
	return syscall(SYS_rt_sigqueueinfo, getppid(), 0, NULL) == 0 || syscall(SYS_tkill, getppid(), 0) == 0 ||
	       kill(-1, 0) == 0 || kill(0, 0) == 0;
}

static bool controls_devices(void)
{
	struct winsize size;
	char character = 'x';
	int value;

	return ioctl(0, TIOCSTI, &character) == 0 || ioctl(3, FIONREAD, &value) == 0 ||
	       ioctl(0, TIOCGWINSZ, &size) == 0 || errno != EPERM;
}

static bool passes_descriptors(void)
{
	char byte;
	struct iovec data = {&byte, 1};
	struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1};

	return sendmsg(3, &message, MSG_DONTWAIT) >= 0 || errno != EPERM || recvmsg(3, &message, MSG_DONTWAIT) >= 0 ||
	       errno != EPERM || syscall(SYS_pidfd_getfd, 3, 0, 0) >= 0 || errno != EPERM;
}

static bool holds_locks(void)
{
	struct flock lock = {.l_type = F_RDLCK};
	int fd = open("/etc/passwd", O_RDONLY);

	return fcntl(fd, F_SETLK, &lock) == 0 || fcntl(fd, F_OFD_SETLK, &lock) == 0 ||
	       fcntl(fd, F_SETLEASE, F_RDLCK) == 0 || flock(fd, LOCK_SH) == 0;
}

/* What the kernel shows of a process to others of its user. */
static bool reads_neighbours(void)
{
	DIR *processes = opendir("/proc");
	const struct dirent *entry;
	char path[300];

	while (processes && (entry = readdir(processes))) {
		if (!isdigit((unsigned char)entry->d_name[0]) || atoi(entry->d_name) == getpid())
			continue;
		(void)snprintf(path, sizeof(path), "/proc/%s/environ", entry->d_name);
		if (opens(path, O_RDONLY))
			return true;
	}
	return !processes;
}

static void *waits(void *unused)
{
	(void)sleep(600);
	return unused;
}

/* Each takes a number of the host's and memory of its kernel. */
static bool starts_many_threads(void)
{
	enum { MANY = 200 };
	pthread_attr_t attributes;
	pthread_t thread;
	int count = 0;

	(void)pthread_attr_init(&attributes);
	(void)pthread_attr_setstacksize(&attributes, (size_t)PTHREAD_STACK_MIN);
	while (count < MANY && pthread_create(&thread, &attributes, waits, NULL) == 0)
		count++;
	return count == MANY;
}

static const struct {
	enum attempt attempt;
	bool (*works)(void);
} attempts[] = {
	{ATTEMPT_WRITE_FILE, writes_file},
	{ATTEMPT_SOCKET, opens_socket},
	{ATTEMPT_EXECUTE, executes},
	{ATTEMPT_FORK, forks},
	{ATTEMPT_ENVIRONMENT, has_environment},
	{ATTEMPT_MOUNT, mounts},
	{ATTEMPT_TRACE, traces},
	{ATTEMPT_SOMEBODY, is_somebody},
	{ATTEMPT_DESCRIPTORS, has_descriptors},
	{ATTEMPT_DEADLINE, outlives_deadline},
	{ATTEMPT_CAPABILITIES, holds_capabilities},
	{ATTEMPT_RIGHTS, gains_rights},
	{ATTEMPT_SIGNAL, sends_signals},
	{ATTEMPT_DEVICES, controls_devices},
	{ATTEMPT_PASS, passes_descriptors},
	{ATTEMPT_LOCK, holds_locks},
	{ATTEMPT_NEIGHBOURS, reads_neighbours},
	{ATTEMPT_THREADS, starts_many_threads},
};

EXPORT int32_t D3DKMTEnumAdapters3(struct d3dkmt_enumadapters3 *arguments)
{
	struct d3dkmt_adapterinfo *adapters = (struct d3dkmt_adapterinfo *)(uintptr_t)arguments->adapters;

	adapters[0] = (struct d3dkmt_adapterinfo){.handle = FAKE_HANDLE};
	for (size_t i = 0; i < sizeof(attempts) / sizeof(attempts[0]); i++)
		if (attempts[i].works())
			adapters[0].luid.low |= attempts[i].attempt;
	/* What a library may do with its descriptors; and the rest must work, or no library would: threads, memory, reading. */
	adapters[0].luid.high = opens("/proc/self/maps", O_RDONLY) || opens("/etc/passwd", O_RDONLY);
	arguments->count = 1;
	return 0;
}

EXPORT int32_t D3DKMTEnumAdapters2(struct d3dkmt_enumadapters2 *arguments)
{
	(void)arguments;
	return FAKE_STATUS_INVALID_PARAMETER;
}

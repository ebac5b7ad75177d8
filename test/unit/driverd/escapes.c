/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Tries what a library that somebody took over would try, and gives what worked as bits of the LUID. The bits are named in
 * attempts.h.
 */

#define FAKE_OWN_ENUMERATE
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "attempts.h"
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

	return execv("/bin/true", arguments) == 0 || syscall(SYS_execveat, AT_FDCWD, "/bin/true", arguments, NULL, 0) == 0;
}

static bool forks(void)
{
	pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);

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
};

EXPORT int32_t D3DKMTEnumAdapters3(struct d3dkmt_enumadapters3 *arguments)
{
	struct d3dkmt_adapterinfo *adapters = (struct d3dkmt_adapterinfo *)(uintptr_t)arguments->adapters;

	adapters[0] = (struct d3dkmt_adapterinfo){.handle = FAKE_HANDLE};
	for (size_t i = 0; i < sizeof(attempts) / sizeof(attempts[0]); i++)
		if (attempts[i].works())
			adapters[0].luid.low |= attempts[i].attempt;
	/* The rest must work, or no library would: threads, memory, reading. */
	adapters[0].luid.high = opens("/proc/self/maps", O_RDONLY) || opens("/etc/passwd", O_RDONLY);
	arguments->count = 1;
	return 0;
}

EXPORT int32_t D3DKMTEnumAdapters2(struct d3dkmt_enumadapters2 *arguments)
{
	(void)arguments;
	return FAKE_STATUS_INVALID_PARAMETER;
}

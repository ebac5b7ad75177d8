/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The part of `sandbox` that runs for most cases of tests several times, and so starts no program for a mount or a directory:
 *
 *	sandbox-stage [--machine [--cgroup2]] COMMAND [ARGUMENT…]
 *
 * In the mount namespace of a simulated host, or with --machine in a new one of the machine, it makes what engines want to write to,
 * runs the command in a PID namespace, and when the command has ended removes the cgroups below $CTR_GPU_TEST_CGROUP.
 */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PATH_SIZE = 512, EXIT_STAGE = 1, EXIT_NOT_EXECUTABLE = 126, EXIT_NOT_FOUND = 127 };

static const char cgroups[] = "/sys/fs/cgroup", new_cgroups[] = "/run/cgroup", host_proc[] = "/run/host-proc";

static char our_cgroup[64];
static pid_t child;

_Noreturn static void fail(const char *what)
{
	(void)fprintf(stderr, "sandbox: %s: %s\n", what, strerror(errno));
	exit(EXIT_STAGE);
}

__attribute__((format(printf, 2, 3))) static void format(char path[static PATH_SIZE], const char *text, ...)
{
	va_list arguments;
	int length;

	va_start(arguments, text);
	length = vsnprintf(path, PATH_SIZE, text, arguments);
	va_end(arguments);
	errno = ENAMETOOLONG;
	if (length >= PATH_SIZE)
		fail(path);
}

static void make_directory(const char *path)
{
	if (mkdir(path, 0755) < 0 && errno != EEXIST)
		fail(path);
}

static void mount_over(const char *source, const char *target, const char *type, unsigned long flags,
		       const char *options)
{
	if (mount(source, target, type, flags, options) < 0)
		fail(target);
}

static bool is_mount_point(const char *path)
{
	struct statx st;

	return statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, 0, &st) == 0 && st.stx_attributes & STATX_ATTR_MOUNT_ROOT;
}

/* ---- cgroups ---- */

static bool is_on_cgroup(const char *path)
{
	struct statfs st;

	return statfs(path, &st) == 0 && (st.f_type == CGROUP_SUPER_MAGIC || st.f_type == CGROUP2_SUPER_MAGIC);
}

/* Not those of another sandbox, whose number may begin with ours. */
static bool is_ours(const char *path)
{
	const char *found = strstr(path, our_cgroup);
	char next = found ? found[strlen(our_cgroup)] : '0';

	return (next < '0' || next > '9') && is_on_cgroup(path);
}

/* Return: how many of ours are left below a directory, and with it. Those of others may go while we look. */
static int remove_ours(const char *path)
{
	DIR *directory = opendir(path);
	const struct dirent *entry;
	char below[PATH_SIZE];
	int left = 0;

	while (directory && (entry = readdir(directory))) {
		if (entry->d_type != DT_DIR || strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		format(below, "%s/%s", path, entry->d_name);
		left += remove_ours(below);
	}
	if (directory)
		(void)closedir(directory);
	return is_ours(path) && rmdir(path) < 0 && errno != ENOENT ? left + 1 : left;
}

static void remove_cgroups(void)
{
	const struct timespec moment = {.tv_nsec = 20000000};

	for (int i = 0; i < 500; i++) {
		if (remove_ours(cgroups) == 0)
			return;
		(void)nanosleep(&moment, NULL);
	}
	(void)fprintf(stderr, "sandbox: cgroups below %s could not be removed\n", our_cgroup);
}

static void copy_cgroup(const char *name)
{
	char old[PATH_SIZE], new[PATH_SIZE], points_to[PATH_SIZE] = "";

	format(old, "%s/%s", cgroups, name);
	format(new, "%s/%s", new_cgroups, name);
	if (readlink(old, points_to, sizeof(points_to) - 1) >= 0) {
		if (symlink(points_to, new) < 0)
			fail(new);
	} else if (strcmp(name, "unified") != 0) {
		make_directory(new);
		mount_over(old, new, NULL, MS_BIND, NULL);
	}
}

/* crun wants cgroup version 1 or version 2, and refuses the mixture that some machines start with. */
static void version1_only(void)
{
	DIR *directory = opendir(cgroups);
	const struct dirent *entry;

	make_directory(new_cgroups);
	mount_over("tmpfs", new_cgroups, "tmpfs", 0, "mode=755");
	while (directory && (entry = readdir(directory)))
		if (entry->d_name[0] != '.')
			copy_cgroup(entry->d_name);
	if (directory)
		(void)closedir(directory);
	mount_over(new_cgroups, cgroups, NULL, MS_MOVE, NULL);
	(void)rmdir(new_cgroups);
}

/* ---- the host ---- */

static void enter_machine(bool cgroup2)
{
	if (unshare(CLONE_NEWNS) < 0)
		fail("a mount namespace of its own");
	mount_over("none", "/", NULL, MS_REC | MS_PRIVATE, NULL);
	if (!cgroup2)
		return;
	mount_over("tmpfs", cgroups, "tmpfs", 0, NULL);
	mount_over("cgroup2", cgroups, "cgroup2", 0, NULL);
}

/* What a native host shows below /proc stays behind in the old one. */
static void keep_proc(void)
{
	char driver[PATH_SIZE], devices[PATH_SIZE];
	int fd;

	if (access("/proc/driver/nvidia", F_OK) < 0)
		return;
	format(driver, "%s/driver", host_proc);
	format(devices, "%s/devices", host_proc);
	make_directory(host_proc);
	make_directory(driver);
	fd = open(devices, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	if (fd < 0)
		fail(devices);
	(void)close(fd);
	mount_over("/proc/driver", driver, NULL, MS_BIND, NULL);
	mount_over("/proc/devices", devices, NULL, MS_BIND, NULL);
}

static void show_proc(const char *name)
{
	char old[PATH_SIZE], new[PATH_SIZE];

	format(old, "%s/%s", host_proc, name);
	format(new, "/proc/%s", name);
	if (access(old, F_OK) == 0)
		mount_over(old, new, NULL, MS_BIND, NULL);
}

static void make_writable(void)
{
	mount_over("tmpfs", "/run", "tmpfs", 0, "mode=755");
	make_directory("/run/lock");
	make_directory("/run/user");
	make_directory("/run/shm");
	make_directory("/var/lib/containers");
	mount_over("tmpfs", "/var/lib/containers", "tmpfs", 0, "mode=755");
	if (is_mount_point("/var/lib/ctr-gpu"))
		return;
	make_directory("/var/lib/ctr-gpu");
	mount_over("tmpfs", "/var/lib/ctr-gpu", "tmpfs", 0, "mode=755");
}

/* ---- the command ---- */

static int exit_status(int status)
{
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

_Noreturn static void run_command(char **command)
{
	(void)execvp(command[0], command);
	(void)fprintf(stderr, "sandbox: %s: %s\n", command[0], strerror(errno));
	_exit(errno == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE);
}

/*
 * The first process of the PID namespace, which is not the command: some programs, as timeout of coreutils 9.10, end at once where they
 * are. Mounts propagate as on hosts with systemd, where a runtime has to see to it that a container's do not.
 */
_Noreturn static void run_init(char **command)
{
	pid_t pid, ended;
	int status;

	mount_over("none", "/", NULL, MS_REC | MS_PRIVATE, NULL);
	mount_over("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL);
	show_proc("driver");
	show_proc("devices");
	mount_over("none", "/", NULL, MS_REC | MS_SHARED, NULL);
	pid = fork();
	if (pid == 0)
		run_command(command);
	if (pid < 0)
		fail("fork");
	while ((ended = waitpid(-1, &status, 0)) != pid)
		if (ended < 0 && errno != EINTR)
			fail("wait");
	_exit(exit_status(status));
}

static void end_child(int number)
{
	(void)number;
	(void)kill(child, SIGKILL);
}

/* What ends us by a signal ends the command, and the cgroups are removed all the same. */
static void set_signals(void (*handler)(int))
{
	static const int numbers[] = {SIGTERM, SIGINT, SIGHUP};
	const struct sigaction action = {.sa_handler = handler};

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		(void)sigaction(numbers[i], &action, NULL);
}

static int run(char **command)
{
	int status;

	/* A terminal's signals come to us, who end what runs. */
	(void)signal(SIGINT, SIG_IGN);
	(void)signal(SIGQUIT, SIG_IGN);
	child = (pid_t)syscall(SYS_clone, CLONE_NEWNS | CLONE_NEWPID | SIGCHLD, NULL, NULL, NULL, NULL);
	if (child < 0)
		fail("a PID namespace of its own");
	if (child == 0) {
		/* Not by the kernel on our end alone: a signal to us must not leave it behind. */
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		run_init(command);
	}
	set_signals(end_child);
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			fail("wait");
	set_signals(SIG_IGN);
	return exit_status(status);
}

int main(int argc, char **argv)
{
	bool machine = argc > 1 && strcmp(argv[1], "--machine") == 0;
	bool cgroup2 = machine && argc > 2 && strcmp(argv[2], "--cgroup2") == 0;
	char **command = argv + 1 + machine + cgroup2;
	char unified[PATH_SIZE];
	int status;

	if (!command[0]) {
		(void)fprintf(stderr, "usage: sandbox-stage [--machine [--cgroup2]] COMMAND [ARGUMENT…]\n");
		return 2;
	}
	if (machine)
		enter_machine(cgroup2);
	make_writable();
	format(unified, "%s/unified", cgroups);
	if (is_mount_point(unified))
		version1_only();
	(void)snprintf(our_cgroup, sizeof(our_cgroup), "/ctr-gpu-test-%d", (int)getpid());
	(void)setenv("CTR_GPU_TEST_CGROUP", our_cgroup, 1);
	keep_proc();
	status = run(command);
	remove_cgroups();
	return status;
}

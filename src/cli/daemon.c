/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/daemon.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cli/cleanup.h"
#include "cli/output.h"
#include "cli/text.h"

enum { PROC_FILE_MAX = 1024 * 1024 };

void daemon_close(struct daemon *daemon)
{
	free(daemon->arguments);
	free(daemon->environment);
	if (daemon->root >= 0)
		(void)close(daemon->root);
	*daemon = (struct daemon){.root = -1};
}

/* A file of /proc, with a NUL behind it. Return: NULL if it cannot be read. */
static char *read_proc(int process, const char *name, size_t *ret_size)
{
	_cleanup_close_ int fd = openat(process, name, O_RDONLY | O_CLOEXEC);
	_cleanup_free_ char *data = fd < 0 ? NULL : malloc(PROC_FILE_MAX + 1);
	size_t size = 0;
	ssize_t got;
	char *whole;

	if (!data)
		return NULL;
	while (size < PROC_FILE_MAX && (got = read(fd, data + size, PROC_FILE_MAX - size)) != 0) {
		if (got < 0)
			return NULL;
		size += (size_t)got;
	}
	data[size] = '\0';
	whole = data;
	data = NULL;
	if (ret_size)
		*ret_size = size;
	return whole;
}

static bool same_namespace(int process, const char *name)
{
	_cleanup_free_ char *ours = text_format("/proc/self/%s", name);
	struct stat mine, its;

	return !ours || stat(ours, &mine) < 0 || fstatat(process, name, &its, 0) < 0 || (mine.st_dev == its.st_dev && mine.st_ino == its.st_ino);
}

static bool is_named(int process, const char *name)
{
	_cleanup_free_ char *comm = read_proc(process, "comm", NULL);

	return comm && strncmp(comm, name, strlen(name)) == 0 && strcmp(comm + strlen(name), "\n") == 0;
}

static bool runs_as(int process, uid_t uid)
{
	_cleanup_free_ char *status = read_proc(process, "status", NULL);
	const char *line = status ? strstr(status, "\nUid:\t") : NULL;

	return line && strtoul(line + strlen("\nUid:\t"), NULL, 10) == uid;
}

/* proc(5): field 22 of stat, in ticks since the boot, whose time is in /proc/stat. */
static unsigned long long find_start(int process)
{
	_cleanup_free_ char *stat_text = read_proc(process, "stat", NULL), *system_text = read_proc(AT_FDCWD, "/proc/stat", NULL);
	const char *at = stat_text ? strrchr(stat_text, ')') : NULL, *boot = system_text ? strstr(system_text, "\nbtime ") : NULL;
	long ticks = sysconf(_SC_CLK_TCK);

	for (int field = 2; at && field < 22; field++) {
		at = strchr(at, ' ');
		at = at ? at + 1 : NULL;
	}
	if (!at || !boot || ticks <= 0)
		return 0;
	return strtoull(boot + strlen("\nbtime "), NULL, 10) + strtoull(at, NULL, 10) / (unsigned long long)ticks;
}

static void describe(int process, pid_t pid, struct daemon *ret)
{
	struct stat ours, its;

	ret->pid = pid;
	ret->arguments = read_proc(process, "cmdline", &ret->arguments_size);
	ret->environment = read_proc(process, "environ", &ret->environment_size);
	ret->root = openat(process, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
	ret->elsewhere = !same_namespace(process, "ns/mnt") || (ret->root >= 0 && fstat(ret->root, &its) == 0 && stat("/", &ours) == 0 &&
							       (ours.st_ino != its.st_ino || ours.st_dev != its.st_dev));
	ret->snap = daemon_variable(ret, "SNAP_NAME") != NULL;
	ret->start = find_start(process);
}

int daemon_find(const char *name, uid_t uid, bool (*wanted)(const struct daemon *daemon, const void *user), const void *user,
		struct daemon *ret)
{
	const struct dirent *entry;
	DIR *proc = opendir("/proc");
	int directory = proc ? dirfd(proc) : -1;

	if (directory < 0)
		return output_complain("cannot read /proc: %m");
	while (!ret->pid && (entry = readdir(proc))) {
		_cleanup_close_ int process = -1;
		char *end;
		long pid = strtol(entry->d_name, &end, 10);

		if (pid <= 0 || *end)
			continue;
		process = openat(directory, entry->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		/* One that is in a PID namespace of its own is a container's affair. */
		if (process < 0 || !is_named(process, name) || !runs_as(process, uid) || !same_namespace(process, "ns/pid"))
			continue;
		describe(process, (pid_t)pid, ret);
		if (wanted && !wanted(ret, user))
			daemon_close(ret);
	}
	(void)closedir(proc);
	return 0;
}

/* ---- arguments and environment ---- */

const char *daemon_argument(const struct daemon *daemon, const char *name)
{
	const char *end = daemon->arguments + daemon->arguments_size;
	size_t length = strlen(name);

	for (const char *at = daemon->arguments; at && at < end; at += strlen(at) + 1) {
		if (strncmp(at, name, length) != 0)
			continue;
		if (at[length] == '=')
			return at + length + 1;
		if (!at[length] && at + length + 1 < end)
			return at + length + 1;
	}
	return NULL;
}

bool daemon_has_argument(const struct daemon *daemon, const char *name)
{
	const char *end = daemon->arguments + daemon->arguments_size;
	size_t length = strlen(name);

	for (const char *at = daemon->arguments; at && at < end; at += strlen(at) + 1)
		if (strncmp(at, name, length) == 0 && (at[length] == '=' || !at[length]))
			return true;
	return false;
}

const char *daemon_variable(const struct daemon *daemon, const char *name)
{
	const char *end = daemon->environment + daemon->environment_size;
	size_t length = strlen(name);

	for (const char *at = daemon->environment; at && at < end; at += strlen(at) + 1)
		if (strncmp(at, name, length) == 0 && at[length] == '=')
			return at + length + 1;
	return NULL;
}

/* ---- what it sees ---- */

static int open_in(const struct daemon *daemon, const char *path)
{
	struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT};
	int fd;

	if (!daemon->elsewhere || daemon->root < 0)
		return open(path, O_PATH | O_CLOEXEC);
	/* A symlink in its root that is absolute leads to its files and not to ours. */
	fd = (int)syscall(SYS_openat2, daemon->root, path, &how, sizeof(how));
	if (fd < 0 && errno == ENOSYS)
		fd = openat(daemon->root, path + strspn(path, "/"), O_PATH | O_CLOEXEC);
	return fd;
}

bool daemon_sees(const struct daemon *daemon, const char *path)
{
	_cleanup_close_ int fd = open_in(daemon, path);
	struct stat ours, its;

	return fd >= 0 && fstat(fd, &its) == 0 && stat(path, &ours) == 0 && ours.st_dev == its.st_dev && ours.st_ino == its.st_ino;
}

bool daemon_is_older(const struct daemon *daemon, const char *path)
{
	_cleanup_close_ int fd = open_in(daemon, path);
	struct stat program, link;

	if (fd < 0 || fstat(fd, &program) < 0)
		return false;
	if (lstat(path, &link) == 0 && link.st_ctim.tv_sec > program.st_ctim.tv_sec)
		program = link;
	return daemon->start && (unsigned long long)program.st_ctim.tv_sec >= daemon->start;
}

static bool is_program(const struct daemon *daemon, const char *path)
{
	_cleanup_close_ int fd = open_in(daemon, path);
	struct stat status;

	return fd >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && (status.st_mode & 0111);
}

char *daemon_look_up(const struct daemon *daemon, const char *program)
{
	const char *path = daemon_variable(daemon, "PATH");

	while (path && *path) {
		size_t length = strcspn(path, ":");
		_cleanup_free_ char *candidate = text_format("%.*s/%s", (int)length, path, program);
		char *found;

		if (candidate && candidate[0] == '/' && is_program(daemon, candidate)) {
			found = candidate;
			candidate = NULL;
			return found;
		}
		path += length + (path[length] == ':');
	}
	return NULL;
}

/* ---- what it takes to make it notice ---- */

static bool is_service_manager(const char *directory)
{
	struct stat status;

	return stat(directory, &status) == 0 && S_ISDIR(status.st_mode);
}

char *daemon_command(const struct daemon *daemon, const char *service, bool user, enum daemon_step step)
{
	const char *verb = step == DAEMON_RELOAD ? "reload" : "restart";
	_cleanup_free_ char *script = text_format("/etc/init.d/%s", service);

	/* sd_booted(3) looks for this directory, too. */
	if (is_service_manager("/run/systemd/system"))
		return text_format("systemctl %s%s %s", user ? "--user " : "", verb, service);
	if (step == DAEMON_RELOAD && daemon->pid)
		return text_format("kill -HUP %d", daemon->pid);
	if (!user && is_service_manager("/run/openrc"))
		return text_format("rc-service %s restart", service);
	if (!user && script && access(script, X_OK) == 0)
		return text_format("service %s restart", service);
	if (daemon->pid)
		return text_format("kill %d, and start it again as it was started", daemon->pid);
	return strdup("start it");
}

/* SPDX-License-Identifier: Apache-2.0 */

#include "engines/daemon.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"
#include "engines/daemon_root.h"
#include "engines/path_lookup.h"
#include "system/trusted_file.h"

enum { PROCESS_FILE_MAX = 1024 * 1024 };

void daemon_close(struct daemon *daemon)
{
	free(daemon->arguments);
	free(daemon->environment);
	cleanup_closep(&daemon->root);
	*daemon = DAEMON_NONE;
}

/* ---- which process ---- */

/* A file of a process, or of @process AT_FDCWD, with a NUL behind it. Return: NULL if it cannot be read. */
static char *daemon_read_file(int process, const char *name, size_t *ret_size)
{
	_cleanup_free_ char *data = NULL;

	if (fd_read_file_at(process, name, PROCESS_FILE_MAX, &data, ret_size) < 0)
		return NULL;
	return steal_ptr(data);
}

static bool daemon_is_called(int process, const char *name)
{
	size_t size, length = strlen(name);
	_cleanup_free_ char *comm = daemon_read_file(process, "comm", &size);

	return comm && size == length + 1 && strncmp(comm, name, length) == 0;
}

/* Whoever asks may have no right to look at its pid namespace, but sees its numbers in each: "NSpid:\t4711\t1". */
static bool daemon_is_in_container(const char *status)
{
	const char *line = strstr(status, "\nNSpid:\t");

	if (!line)
		return false;
	line += strlen("\nNSpid:\t");
	return line[strcspn(line, "\t\n")] == '\t';
}

/*
 * The first of its four ids. Anybody may have a process of this name, and with a setuid program one whose files in
 * /proc are root's; the real id stays that of who started it.
 */
static bool daemon_is_of(const char *status, uid_t uid)
{
	const char *line = strstr(status, "\nUid:\t");

	return line && strtoul(line + strlen("\nUid:\t"), NULL, 10) == uid;
}

/* ---- what is known of it ---- */

/* proc(5): field 22 of stat is ticks since the boot, counted behind the name, which may have blanks. */
static struct timespec daemon_find_start(int process)
{
	_cleanup_free_ char *stat = daemon_read_file(process, "stat", NULL);
	const char *field = stat ? strrchr(stat, ')') : NULL;
	long per_second = sysconf(_SC_CLK_TCK);
	struct timespec now, up, start = {0};
	unsigned long long ticks;

	for (int i = 2; field && i < 22; i++)
		field = strchr(field + 1, ' ');
	/* The boot to the nanosecond: /proc/stat has whole seconds only. */
	if (!field || per_second <= 0 || clock_gettime(CLOCK_REALTIME, &now) < 0 ||
	    clock_gettime(CLOCK_BOOTTIME, &up) < 0)
		return start;
	ticks = strtoull(field, NULL, 10);
	start.tv_sec = now.tv_sec - up.tv_sec + (time_t)(ticks / (unsigned long)per_second);
	start.tv_nsec =
		now.tv_nsec - up.tv_nsec + (long)(ticks % (unsigned long)per_second) * (1000000000 / per_second);
	for (; start.tv_nsec < 0; start.tv_sec--)
		start.tv_nsec += 1000000000;
	for (; start.tv_nsec >= 1000000000; start.tv_sec++)
		start.tv_nsec -= 1000000000;
	return start;
}

static bool daemon_is_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Return: 1 if it is what we have at @path; 0 if not; negative errno. */
static int daemon_shares(int process, const char *name, const char *path)
{
	struct stat ours, its;

	if (fstatat(process, name, &its, 0) < 0 || stat(path, &ours) < 0)
		return -errno;
	return daemon_is_same(&ours, &its);
}

/* The kernel's own word for a program that was replaced while it ran, as an upgrade does it. */
static const char deleted[] = " (deleted)";

/*
 * The program that a process runs, if root or @uid put it where it is. One that an upgrade removed is known by its path
 * alone; only in our own root does that name what it was.
 */
static char *daemon_find_program(int process, uid_t uid, bool in_our_root)
{
	_cleanup_close_ int ours = -1, its = openat(process, "exe", O_PATH | O_CLOEXEC);
	_cleanup_free_ char *path = NULL;
	struct stat our_file, its_file;
	char *end;

	if (its < 0 || fstat(its, &its_file) < 0 || fd_read_link_at(process, "exe", &path) < 0)
		return NULL;
	end = path + strlen(path) - strlen(deleted);
	if (in_our_root && its_file.st_nlink == 0 && end > path && streq(end, deleted)) {
		*end = '\0';
		ours = trusted_file_open(path, S_IFREG, uid, O_PATH);
		return (ours >= 0 || ours == -ENOENT) && (its_file.st_uid == 0 || its_file.st_uid == uid)
			       ? steal_ptr(path)
			       : NULL;
	}
	ours = trusted_file_open(path, S_IFREG, uid, O_PATH);
	return ours >= 0 && fstat(ours, &our_file) == 0 && daemon_is_same(&our_file, &its_file) ? steal_ptr(path)
												: NULL;
}

/* Whether a process of the right name and user is a daemon of this host; sets what depends on where it lives. */
static bool daemon_counts(struct daemon *daemon, int process)
{
	int root = daemon_shares(process, "root", "/"), mounts = daemon_shares(process, "ns/mnt", "/proc/self/ns/mnt"),
	    users = daemon_shares(process, "ns/user", "/proc/self/ns/user");
	_cleanup_free_ char *program = NULL;

	/*
	 * A user may not look at root's process; what follows from its arguments is done with no more than the user's
	 * rights.
	 */
	if (root < 0 || mounts < 0 || users < 0)
		return geteuid() != 0 && daemon->uid == 0;
	daemon->elsewhere = !root || !mounts;
	program = daemon_find_program(process, daemon->uid, root);
	if (!program)
		return false;
	daemon->snap =
		str_has_prefix(program, "/snap/docker/") || str_has_prefix(program, "/var/lib/snapd/snap/docker/");
	if (daemon->snap)
		return users;
	return root && (daemon->uid != 0 || (mounts && users));
}

static void daemon_describe(int process, struct daemon *daemon)
{
	daemon->arguments = daemon_read_file(process, "cmdline", &daemon->arguments_size);
	daemon->environment = daemon_read_file(process, "environ", &daemon->environment_size);
	daemon->root = openat(process, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
	daemon->started = daemon_find_start(process);
}

/*
 * Return: whether this process is the one; what is in @ret is to be closed then. @stranger: the process, if only its
 * name is right.
 */
static bool daemon_examine(int proc, const char *entry, const char *name, uid_t uid, pid_t *stranger,
			   struct daemon *ret)
{
	_cleanup_close_ int process = -1;
	_cleanup_free_ char *status = NULL;
	char *end;
	long pid = strtol(entry, &end, 10);

	if (pid <= 0 || *end)
		return false;
	process = openat(proc, entry, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (process < 0 || !daemon_is_called(process, name))
		return false;
	status = daemon_read_file(process, "status", NULL);
	if (!status || !daemon_is_of(status, uid) || daemon_is_in_container(status))
		return false;
	*ret = (struct daemon){.uid = uid, .root = -1};
	if (!daemon_counts(ret, process)) {
		*stranger = (pid_t)pid;
		return false;
	}
	ret->pid = (pid_t)pid;
	daemon_describe(process, ret);
	return true;
}

int daemon_find(const char *name, uid_t uid, bool (*wanted)(const struct daemon *daemon), struct daemon *ret)
{
	_cleanup_dir_ DIR *proc = opendir("/proc");
	struct daemon daemon = DAEMON_NONE;
	const struct dirent *entry;
	pid_t stranger = 0;

	if (!proc)
		return -errno;
	while (daemon.pid == 0 && (entry = readdir(proc)))
		if (daemon_examine(directory_fd(proc), entry->d_name, name, uid, &stranger, &daemon) && wanted &&
		    !wanted(&daemon))
			daemon_close(&daemon);
	*ret = daemon;
	ret->rejected_pid = stranger;
	return 0;
}

/* ---- arguments and environment ---- */

/* Strings with a NUL behind each. Return: the one behind @at, the first behind NULL; NULL behind the last. */
static const char *daemon_next_string(const char *strings, size_t size, const char *at)
{
	const char *next = at ? at + strlen(at) + 1 : strings;

	return strings && next < strings + size ? next : NULL;
}

static const char *daemon_next_argument(const struct daemon *daemon, const char *at)
{
	return daemon_next_string(daemon->arguments, daemon->arguments_size, at);
}

/* Return: what is behind @name, '=' or the end; NULL if this is another option. */
static const char *daemon_behind(const char *argument, const char *name)
{
	const char *rest = argument + strlen(name);

	return str_has_prefix(argument, name) && (*rest == '=' || !*rest) ? rest : NULL;
}

const char *daemon_option(const struct daemon *daemon, const char *name, const char *letter)
{
	for (const char *at = daemon_next_argument(daemon, NULL); at; at = daemon_next_argument(daemon, at)) {
		const char *rest = daemon_behind(at, name);

		if (!rest && letter)
			rest = daemon_behind(at, letter);
		if (rest)
			return *rest ? rest + 1 : daemon_next_argument(daemon, at);
	}
	return NULL;
}

bool daemon_has_option(const struct daemon *daemon, const char *name)
{
	for (const char *at = daemon_next_argument(daemon, NULL); at; at = daemon_next_argument(daemon, at))
		if (daemon_behind(at, name))
			return true;
	return false;
}

bool daemon_mentions(const struct daemon *daemon, const char *part)
{
	for (const char *at = daemon_next_argument(daemon, NULL); at; at = daemon_next_argument(daemon, at))
		if (strstr(at, part))
			return true;
	return false;
}

const char *daemon_variable(const struct daemon *daemon, const char *name)
{
	const char *at = NULL, *rest;

	while ((at = daemon_next_string(daemon->environment, daemon->environment_size, at))) {
		rest = daemon_behind(at, name);
		if (rest && *rest)
			return rest + 1;
	}
	return NULL;
}

int daemon_config(const struct daemon *daemon, const char *name, const char *letter, char **ret)
{
	const char *path = daemon_option(daemon, name, letter);
	_cleanup_close_ int fd = -1;

	if (!path || path[0] != '/') {
		*ret = NULL;
		return 0;
	}
	*ret = strdup(path);
	if (!*ret)
		return -ENOMEM;
	if (daemon->elsewhere)
		return -EPERM;
	fd = trusted_file_open(path, S_IFREG, daemon->uid, O_PATH);
	return fd >= 0 || fd == -ENOENT ? 0 : -EPERM;
}

/*
 * dockerd writes that one's configuration below its --exec-root (moby libcontainerd/supervisor), /var/run/docker unless
 * told otherwise.
 */
bool daemon_stands_alone(const struct daemon *daemon)
{
	const char *path = daemon_option(daemon, "--config", "-c");

	return !path || !strstr(path, "/docker/containerd/");
}

/* ---- what it sees ---- */

int daemon_open_root(const struct daemon *daemon, struct rootfs *ret)
{
	return daemon->elsewhere && daemon->root >= 0 ? rootfs_open(daemon->root, ".", ret)
						      : rootfs_open(AT_FDCWD, "/", ret);
}

bool daemon_sees(const struct daemon *daemon, const char *path)
{
	_cleanup_rootfs_ struct rootfs root = ROOTFS_CLOSED;
	_cleanup_close_ int fd = -1;
	struct stat ours, its;

	if (daemon_open_root(daemon, &root) < 0)
		return false;
	fd = rootfs_open_path(&root, path, O_PATH);
	return fd >= 0 && fstat(fd, &its) == 0 && stat(path, &ours) == 0 && daemon_is_same(&ours, &its);
}

bool daemon_is_older(const struct daemon *daemon, const struct timespec *than)
{
	const struct timespec *started = &daemon->started;

	return started->tv_sec && (than->tv_sec > started->tv_sec ||
				   (than->tv_sec == started->tv_sec && than->tv_nsec > started->tv_nsec));
}

bool daemon_look_up(const struct daemon *daemon, const char *name, struct program *ret)
{
	const char *path = daemon->pid > 0 ? daemon_variable(daemon, "PATH") : PATH_LOOKUP_PATH;
	_cleanup_rootfs_ struct rootfs root = ROOTFS_CLOSED;

	return path && daemon_open_root(daemon, &root) == 0 && path_lookup_find(&root, path, name, ret);
}

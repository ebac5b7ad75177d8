/* SPDX-License-Identifier: Apache-2.0 */

#include "engines/daemon.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "engines/text.h"
#include "system/trusted_file.h"

/* ---- path lookup ---- */

void path_lookup_clear(struct program *program)
{
	free(program->path);
	*program = (struct program){0};
}

/* The file that a descriptor is of is called ctr-gpu, ctr-gpu-hook or ctr-gpu-runtime. */
static bool path_lookup_is_ours(int fd)
{
	_cleanup_free_ char *real = NULL;
	const char *name;
	char link[32];

	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	if (fd_read_link_at(AT_FDCWD, link, &real) < 0)
		return false;
	name = strrchr(real, '/');
	return name && (streq(name, "/ctr-gpu") || str_has_prefix(name, "/ctr-gpu-"));
}

bool path_lookup_look(const struct rootfs *root, const char *path, struct program *ret)
{
	_cleanup_close_ int fd = rootfs_open_path(root, path, O_PATH), entry = -1;
	struct program program = {0};
	struct stat st;

	/* Root may execute a file if any of its x bits is set. */
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || !(st.st_mode & (S_IXUSR | S_IXGRP | S_IXOTH)))
		return false;
	program.st = st;
	program.ours = path_lookup_is_ours(fd);
	/* The time of the link, if the name is one: a daemon may have looked for the name before it was made. */
	entry = rootfs_open_path(root, path, O_PATH | O_NOFOLLOW);
	if (entry >= 0)
		(void)fstat(entry, &program.st);
	program.path = strdup(path);
	if (!program.path)
		return false;
	*ret = program;
	return true;
}

bool path_lookup_find(const struct rootfs *root, const char *path, const char *name, struct program *ret)
{
	_cleanup_strv_ struct strv directories = {0};

	if (strv_split(path, ":", &directories) < 0)
		return false;
	for (size_t i = 0; i < directories.count; i++) {
		_cleanup_free_ char *file = NULL;

		if (directories.items[i][0] == '/' && str_format(&file, "%s/%s", directories.items[i], name) == 0 &&
		    path_lookup_look(root, file, ret))
			return true;
	}
	return false;
}

bool path_lookup_is_here(const char *name)
{
	_cleanup_rootfs_ struct rootfs root = ROOTFS_CLOSED;
	_cleanup_program_ struct program program = {0};
	const char *path = getenv("PATH");

	if (rootfs_open(AT_FDCWD, "/", &root) < 0)
		return false;
	return path_lookup_find(&root, PATH_LOOKUP_PATH ":/snap/bin", name, &program) ||
	       (path && path_lookup_find(&root, path, name, &program));
}

/* ---- process view ---- */

enum { PROCESS_FILE_MAX = 1024 * 1024 };

void process_view_close(struct process_view *view)
{
	cleanup_closep(&view->directory);
	cleanup_closep(&view->pidfd);
	*view = PROCESS_VIEW_NONE;
}

/* A file of it, with a NUL behind it, owned by the caller. @ret_size: may be NULL. Return: NULL if there is none. */
static char *process_view_read(const struct process_view *view, const char *name, size_t *ret_size)
{
	_cleanup_free_ char *data = NULL;

	if (fd_read_file_at(view->directory, name, PROCESS_FILE_MAX, &data, ret_size) < 0)
		return NULL;
	return steal_ptr(data);
}

/* proc_pid_stat(5): fields are counted behind the name, which may have blanks; the name is the second. */
static bool process_view_read_stat(const struct process_view *view, struct process_state *ret)
{
	static const int layout[ARRAY_SIZE(ret->layout)] = {26, 27, 28, 45, 46, 47, 48, 49, 50, 51};
	_cleanup_free_ char *stat = process_view_read(view, "stat", NULL);
	const char *field = stat ? strrchr(stat, ')') : NULL;
	size_t found = 0;

	for (int i = 2; field && found < ARRAY_SIZE(layout); i++, field = strchr(field + 1, ' ')) {
		if (i == 4)
			ret->parent = (pid_t)strtol(field, NULL, 10);
		if (i == 22)
			ret->started = strtoull(field, NULL, 10);
		if (i == layout[found])
			ret->layout[found++] = strtoull(field, NULL, 10);
	}
	return found == ARRAY_SIZE(layout);
}

/*
 * Reads "Uid:\t0\t0\t0\t0" and "NSpid:\t4711\t1", the process's number in each pid namespace. The caller may not be
 * allowed to look at these namespaces themselves.
 */
static bool process_view_read_status(const struct process_view *view, struct process_state *ret)
{
	_cleanup_free_ char *status = process_view_read(view, "status", NULL);
	const char *ids = status ? strstr(status, "\nUid:\t") : NULL, *numbers = ids ? strstr(ids, "\nNSpid:\t") : NULL;
	char *end = (char *)(uintptr_t)(ids ? ids + strlen("\nUid:\t") : NULL);

	for (size_t i = 0; end && i < PROCESS_VIEW_IDS; i++)
		ret->uids[i] = (uid_t)strtoul(end, &end, 10);
	if (numbers)
		numbers += strlen("\nNSpid:\t");
	ret->in_container = numbers && numbers[strcspn(numbers, "\t\n")] == '\t';
	return end && *end == '\n';
}

static int process_view_look(const struct process_view *view, struct process_state *ret)
{
	struct stat program;

	*ret = (struct process_state){0};
	if (!process_view_read_stat(view, ret) || !process_view_read_status(view, ret))
		return -ESRCH;
	if (fstatat(view->directory, "exe", &program, 0) == 0) {
		ret->device = program.st_dev;
		ret->inode = program.st_ino;
	}
	return 0;
}

int process_view_open(int proc, pid_t pid, struct process_view *ret)
{
	_cleanup_process_view_ struct process_view view = PROCESS_VIEW_NONE;
	char name[16];
	int r;

	(void)snprintf(name, sizeof(name), "%d", (int)pid);
	view.pid = pid;
	view.directory = openat(proc, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (view.directory < 0)
		return -errno;
	view.pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (view.pidfd < 0 && errno != ENOSYS && errno != EPERM)
		return -errno;
	/* That the directory answers now means that both are the same process. */
	r = process_view_look(&view, &view.state);
	if (r < 0)
		return r;
	*ret = view;
	view = PROCESS_VIEW_NONE;
	return 0;
}

bool process_view_is_of(const struct process_view *view, uid_t uid)
{
	for (size_t i = 0; i < PROCESS_VIEW_IDS; i++)
		if (view->state.uids[i] != uid)
			return false;
	return true;
}

static bool process_view_is_same(const struct process_state *a, const struct process_state *b)
{
	return a->started == b->started && memcmp(a->layout, b->layout, sizeof(a->layout)) == 0 &&
	       memcmp(a->uids, b->uids, sizeof(a->uids)) == 0 && a->in_container == b->in_container &&
	       a->device == b->device && a->inode == b->inode;
}

bool process_view_is_unchanged(const struct process_view *view)
{
	struct pollfd end = {.fd = view->pidfd, .events = POLLIN};
	struct process_state now;

	return process_view_look(view, &now) == 0 && process_view_is_same(&view->state, &now) &&
	       (view->pidfd < 0 || poll(&end, 1, 0) == 0);
}

/* ---- daemon ---- */

enum { COMM_MAX = 64 };

/* Why a process that has a daemon's name is not taken for it, for a sentence. */
#define DAEMON_ELSEWHERE "does not belong to this host (a container's?)"
#define DAEMON_OTHER_PROGRAM "runs another program"
#define DAEMON_OTHERS_PROGRAM "runs a program that others than root may change"
#define DAEMON_OTHERS_SOCKET "another process answers at its socket"
#define DAEMON_CHANGED "became another while it was looked at"

void daemon_close(struct daemon *daemon)
{
	free(daemon->arguments);
	free(daemon->environment);
	cleanup_closep(&daemon->root);
	cleanup_closep(&daemon->pidfd);
	*daemon = DAEMON_NONE;
}

/* ---- what is known of it ---- */

/* Any user can have a process of this name; a kernel thread or a process that is ending has no program. */
static bool daemon_is_called(int proc, const char *entry, const char *name)
{
	_cleanup_free_ char *path = NULL, *comm = NULL;
	size_t size, length = strlen(name);

	return str_format(&path, "%s/comm", entry) == 0 && fd_read_file_at(proc, path, COMM_MAX, &comm, &size) == 0 &&
	       size == length + 1 && strncmp(comm, name, length) == 0;
}

/* proc(5): ticks since the boot. */
static struct timespec daemon_find_start(unsigned long long ticks)
{
	long per_second = sysconf(_SC_CLK_TCK);
	struct timespec now, up, start = {0};

	/* The boot to the nanosecond: /proc/stat has whole seconds only. */
	if (per_second <= 0 || clock_gettime(CLOCK_REALTIME, &now) < 0 || clock_gettime(CLOCK_BOOTTIME, &up) < 0)
		return start;
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

/* Whether the program gives its caller other ids or capabilities: root owns such a program, and any user can run it. */
static bool daemon_gives_rights(int program, const struct stat *st)
{
	char path[32];

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", program);
	return (st->st_mode & (S_ISUID | S_ISGID)) || getxattr(path, "security.capability", NULL, 0) >= 0;
}

/* Whether a file at this path is the engine's program. */
static bool daemon_is_program(const struct daemon_kind *kind, const char *path)
{
	const char *name = strrchr(path, '/');

	if (!name)
		return false;
	if (streq(name + 1, kind->name))
		return true;
	return kind->multicall && str_has_prefix(path, kind->multicall) && streq(name, strrchr(kind->multicall, '/'));
}

/*
 * The program that a process runs, if it is the engine's and root or @uid put it where it is. One that an upgrade
 * removed is known by its path alone; only in our own root does that name what it was.
 *
 * Return: its path; NULL with @ret_why.
 */
static char *daemon_find_program(const struct daemon_kind *kind, const struct process_view *view, uid_t uid,
				 bool in_our_root, const char **ret_why)
{
	_cleanup_close_ int ours = -1, its = openat(view->directory, "exe", O_PATH | O_CLOEXEC);
	_cleanup_free_ char *path = NULL;
	struct stat our_file, its_file;
	bool gone;
	char *end;

	*ret_why = DAEMON_OTHER_PROGRAM;
	if (its < 0 || fstat(its, &its_file) < 0 || fd_read_link_at(view->directory, "exe", &path) < 0)
		return NULL;
	end = path + strlen(path) - strlen(deleted);
	gone = in_our_root && its_file.st_nlink == 0 && end > path && streq(end, deleted);
	if (gone)
		*end = '\0';
	if (!daemon_is_program(kind, path) || daemon_gives_rights(its, &its_file))
		return NULL;
	*ret_why = DAEMON_OTHERS_PROGRAM;
	ours = trusted_file_open(path, S_IFREG, uid, O_PATH);
	if (gone)
		return (ours >= 0 || ours == -ENOENT) && (its_file.st_uid == 0 || its_file.st_uid == uid)
			       ? steal_ptr(path)
			       : NULL;
	return ours >= 0 && fstat(ours, &our_file) == 0 && daemon_is_same(&our_file, &its_file) ? steal_ptr(path)
												: NULL;
}

/*
 * Whether a process of the right name and user is a daemon of this host; sets what depends on where it lives.
 *
 * Return: NULL; why not.
 */
static const char *daemon_check(const struct daemon_kind *kind, const struct process_view *view, struct daemon *daemon)
{
	int process = view->directory;
	int root = daemon_shares(process, "root", "/"), mounts = daemon_shares(process, "ns/mnt", "/proc/self/ns/mnt"),
	    users = daemon_shares(process, "ns/user", "/proc/self/ns/user");
	_cleanup_free_ char *program = NULL;
	const char *why;

	/*
	 * A user may not look at root's process; what follows from its arguments is done with no more than the user's
	 * rights.
	 */
	if (root < 0 || mounts < 0 || users < 0)
		return geteuid() != 0 && daemon->uid == 0 ? NULL : DAEMON_ELSEWHERE;
	daemon->elsewhere = !root || !mounts;
	program = daemon_find_program(kind, view, daemon->uid, root, &why);
	daemon->snap = program && (str_has_prefix(program, "/snap/docker/") ||
				   str_has_prefix(program, "/var/lib/snapd/snap/docker/"));
	if (!users && daemon->uid == 0)
		return DAEMON_ELSEWHERE;
	if (!daemon->snap && (!root || (daemon->uid == 0 && !mounts)))
		return DAEMON_ELSEWHERE;
	return program ? NULL : why;
}

static void daemon_describe(const struct process_view *view, struct daemon *daemon)
{
	daemon->pid = view->pid;
	daemon->parent = view->state.parent;
	daemon->arguments = process_view_read(view, "cmdline", &daemon->arguments_size);
	daemon->environment = process_view_read(view, "environ", &daemon->environment_size);
	daemon->root = openat(view->directory, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
	daemon->started = daemon_find_start(view->state.started);
	daemon->pidfd = fcntl(view->pidfd, F_DUPFD_CLOEXEC, 0);
}

/* ---- which process ---- */

/*
 * daemon_socket_is_of() - whether a socket is this process's
 *
 * The kernel notes who listens (SO_PEERCRED). A service manager that starts the daemon on demand listens for it.
 *
 * Return: false only if another process listens there.
 */
static bool daemon_socket_is_of(const char *path, pid_t pid)
{
	_cleanup_close_ int fd = fd_connect(path);
	struct ucred peer = {0};
	socklen_t size = sizeof(peer);

	return fd < 0 || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0 || peer.pid == pid || peer.pid == 1;
}

/* Whether it is unchanged, and no other process listens at the engine's socket. Return: NULL; why not. */
static const char *daemon_confirm(const struct daemon_kind *kind, const struct process_view *view,
				  const struct daemon *daemon)
{
	const char *path = daemon->uid == 0 && !daemon->elsewhere ? daemon_socket_path(kind, daemon) : NULL;
	const char *why = path && !daemon_socket_is_of(path, daemon->pid) ? DAEMON_OTHERS_SOCKET : NULL;

	return process_view_is_unchanged(view) ? why : DAEMON_CHANGED;
}

/*
 * Return: whether this process is the one; what is in @ret is to be closed then. @rejected: the process, if only its
 * name and user are right.
 */
static bool daemon_examine(int proc, const char *entry, const struct daemon_kind *kind, uid_t uid,
			   struct daemon *rejected, struct daemon *ret)
{
	_cleanup_process_view_ struct process_view view = PROCESS_VIEW_NONE;
	_cleanup_daemon_ struct daemon daemon = DAEMON_NONE;
	const char *why;
	char *end;
	long pid = strtol(entry, &end, 10);

	if (pid <= 0 || *end || !daemon_is_called(proc, entry, kind->name) ||
	    process_view_open(proc, (pid_t)pid, &view) < 0 || !process_view_is_of(&view, uid) ||
	    view.state.in_container)
		return false;
	daemon.uid = uid;
	why = daemon_check(kind, &view, &daemon);
	if (!why) {
		daemon_describe(&view, &daemon);
		if (kind->is_wanted && !kind->is_wanted(&daemon))
			return false;
		why = daemon_confirm(kind, &view, &daemon);
	}
	if (why) {
		rejected->rejected_pid = (pid_t)pid;
		rejected->rejected_why = why;
		return false;
	}
	*ret = daemon;
	daemon = DAEMON_NONE;
	return true;
}

int daemon_find(const struct daemon_kind *kind, uid_t uid, struct daemon *ret)
{
	_cleanup_dir_ DIR *proc = opendir("/proc");
	struct daemon daemon = DAEMON_NONE, rejected = DAEMON_NONE;
	const struct dirent *entry;

	if (!proc)
		return -errno;
	while (daemon.pid == 0 && (entry = readdir(proc)))
		(void)daemon_examine(directory_fd(proc), entry->d_name, kind, uid, &rejected, &daemon);
	*ret = daemon;
	ret->rejected_pid = rejected.rejected_pid;
	ret->rejected_why = rejected.rejected_why;
	return 0;
}

void daemon_signal(const struct daemon *daemon, int number)
{
	if (daemon->pidfd >= 0)
		(void)syscall(SYS_pidfd_send_signal, daemon->pidfd, number, NULL, 0);
	else if (daemon->pid > 0)
		(void)kill(daemon->pid, number);
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

/*
 * Return: what is behind @name, '=' or the end; NULL if this is another option. containerd and CRI-O take "-name" for
 * "--name", as Go's flag package does; dockerd does not start with it.
 */
static const char *daemon_behind(const char *argument, const char *name)
{
	const char *whole = str_has_prefix(name, "--") && !str_has_prefix(argument, "--") ? name + 1 : name;
	const char *rest = argument + strlen(whole);

	return str_has_prefix(argument, whole) && (*rest == '=' || !*rest) ? rest : NULL;
}

/* @name: NULL: no such option */
const char *daemon_next_option(const struct daemon *daemon, const char *name, const char *letter, const char *value)
{
	/* From inside of "--name=value", too, the next string is the next argument. */
	for (const char *at = daemon_next_argument(daemon, value); name && at; at = daemon_next_argument(daemon, at)) {
		const char *rest = daemon_behind(at, name);

		if (!rest && letter)
			rest = daemon_behind(at, letter);
		if (rest)
			return *rest ? rest + 1 : daemon_next_argument(daemon, at);
	}
	return NULL;
}

const char *daemon_option(const struct daemon *daemon, const char *name, const char *letter)
{
	const char *last = NULL, *value = NULL;

	while ((value = daemon_next_option(daemon, name, letter, value)))
		last = value;
	return last;
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
 * told otherwise. With another root only its parent tells it from one whose file an administrator has called so.
 */
bool daemon_stands_alone(const struct daemon *daemon)
{
	static const char dockers[] = "/containerd/containerd.toml";
	const char *path = daemon_option(daemon, "--config", "-c");
	size_t length = path ? strlen(path) : 0;
	char parent[32];

	if (!path || strstr(path, "/docker/containerd/"))
		return !path;
	(void)snprintf(parent, sizeof(parent), "/proc/%d", (int)daemon->parent);
	return length < strlen(dockers) || !streq(path + length - strlen(dockers), dockers) ||
	       !daemon_is_called(AT_FDCWD, parent, "dockerd");
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

/* Of ours the directory of its package counts, which an upgrade leaves. */
bool daemon_is_older_than(const struct daemon *daemon, const struct program *program)
{
	struct timespec birth = program->st.st_ctim;
	struct statx directory;

	if (program->ours && statx(AT_FDCWD, "/usr/share/doc/ctr-gpu-nvidia-compat", 0, STATX_BTIME, &directory) == 0 &&
	    (directory.stx_mask & STATX_BTIME) && directory.stx_btime.tv_sec < birth.tv_sec)
		birth = (struct timespec){.tv_sec = directory.stx_btime.tv_sec, .tv_nsec = directory.stx_btime.tv_nsec};
	return program->path && daemon_is_older(daemon, &birth);
}

bool daemon_look_up(const struct daemon *daemon, const char *name, struct program *ret)
{
	const char *path = daemon->pid > 0 ? daemon_variable(daemon, "PATH") : PATH_LOOKUP_PATH;
	_cleanup_rootfs_ struct rootfs root = ROOTFS_CLOSED;

	return path && daemon_open_root(daemon, &root) == 0 && path_lookup_find(&root, path, name, ret);
}

/* ---- daemon socket ---- */

static const char socket_scheme[] = "unix://";

/* "fd://": the service manager's, at the usual place. */
const char *daemon_socket_path(const struct daemon_kind *kind, const struct daemon *daemon)
{
	const char *value = NULL;
	bool told = false;

	while ((value = daemon_next_option(daemon, kind->socket_option, kind->socket_letter, value))) {
		if (str_has_prefix(value, socket_scheme))
			return value + strlen(socket_scheme);
		if (value[0] == '/')
			return value;
		told |= !str_has_prefix(value, "fd:");
	}
	return told ? NULL : kind->socket;
}

/* ---- daemon http ---- */

/*
 * One GET of HTTP/1.0: the answer ends with the connection, and comes in one piece (RFC 1945; servers may not answer
 * 1.0 in chunks).
 */

enum {
	DAEMON_HTTP_MS = 2000,
	DAEMON_HTTP_MAX = 16 * 1024 * 1024, /* a list of some thousand containers */
	DAEMON_HTTP_PART = 64 * 1024,
};

/* Return: 0, with the bytes there are when the connection ends, and a NUL behind them; negative errno. */
static int daemon_http_receive(int fd, char **ret, size_t *ret_size)
{
	const int64_t end = clock_now_ms() + DAEMON_HTTP_MS;
	_cleanup_free_ char *answer = NULL;
	size_t size = 0, room = 0;

	for (;;) {
		struct pollfd input = {.fd = fd, .events = POLLIN};
		const int64_t left = end - clock_now_ms();
		ssize_t length;

		if (left <= 0 || poll(&input, 1, (int)left) == 0)
			return -ETIMEDOUT;
		if (room - size < 2) {
			char *longer =
				room < DAEMON_HTTP_MAX ? realloc(answer, room ? 2 * room : DAEMON_HTTP_PART) : NULL;

			if (!longer)
				return room < DAEMON_HTTP_MAX ? -ENOMEM : -EFBIG;
			room = room ? 2 * room : DAEMON_HTTP_PART;
			answer = longer;
		}
		length = recv(fd, answer + size, room - size - 1, MSG_DONTWAIT);
		if (length == 0)
			break;
		if (length < 0 && errno != EINTR && errno != EAGAIN)
			return -errno;
		size += length > 0 ? (size_t)length : 0;
	}
	answer[size] = '\0';
	*ret = steal_ptr(answer);
	*ret_size = size;
	return 0;
}

static int daemon_http_check(const char *answer)
{
	char *end;
	long code;

	if (!str_has_prefix(answer, "HTTP/1.0 ") && !str_has_prefix(answer, "HTTP/1.1 "))
		return -EPROTO;
	code = strtol(answer + strlen("HTTP/1.1 "), &end, 10);
	if (*end != ' ')
		return -EPROTO;
	switch (code) {
	case 200:
		return 0;
	case 404:
		return -ENOENT;
	case 401:
	case 403:
		return -EACCES;
	default:
		return -EPROTO;
	}
}

static int daemon_http_ask(int fd, const char *what)
{
	_cleanup_free_ char *request = NULL;
	ssize_t size, sent;

	if (str_format(&request, "GET %s HTTP/1.0\r\nHost: localhost\r\n\r\n", what) < 0)
		return -ENOMEM;
	size = (ssize_t)strlen(request);
	sent = send(fd, request, (size_t)size, MSG_NOSIGNAL | MSG_DONTWAIT);
	return sent < 0 ? -errno : sent < size ? -EAGAIN : 0;
}

int daemon_http_get(const char *path, const char *what, struct text_buffer *ret)
{
	_cleanup_close_ int fd = fd_connect(path);
	_cleanup_free_ char *answer = NULL;
	size_t size = 0;
	const char *body;
	int r = fd == -ENOENT ? -ENOTCONN : fd < 0 ? fd : daemon_http_ask(fd, what);

	if (r == 0)
		r = daemon_http_receive(fd, &answer, &size);
	if (r == 0)
		r = daemon_http_check(answer);
	if (r < 0)
		return r;
	body = strstr(answer, "\r\n\r\n");
	if (!body)
		return -EPROTO;
	body += strlen("\r\n\r\n");
	return text_buffer_set(ret, body, (size_t)(answer + size - body));
}

/* SPDX-License-Identifier: Apache-2.0 */

#include "vcuda/users/users.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/nsfs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"
#include "system/machine.h"
#include "vcuda/protocol/pidref.h"

enum {
	NAMESPACES_MAX = 33, /* the kernel nests no more user namespaces */
	ANCESTORS_MAX = 64,
	STATUS_MAX = 64 * 1024,
	GROUPS_MAX = 65536,
};

/* ---- processes ---- */

static int account_open_process(pid_t pid)
{
	char path[32];
	int fd;

	(void)snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

/* What stands behind a name such as "Uid:" in its status, up to the end of the line; NULL; owned by the caller. */
static char *account_read_status(int process, const char *name)
{
	_cleanup_free_ char *text = NULL;
	const char *line;

	if (fd_read_kernel_file(process, "status", STATUS_MAX, &text) < 0)
		return NULL;
	line = strstr(text, name);
	return line && line > text && line[-1] == '\n'
		       ? strndup(line + strlen(name), strcspn(line, "\n") - strlen(name))
		       : NULL;
}

/* Return: the user that all of its ids are; -EPERM if they differ. */
static int account_read_uid(int process, uid_t *ret)
{
	_cleanup_free_ char *line = account_read_status(process, "Uid:");
	unsigned uids[4];

	if (!line || sscanf(line, "%u %u %u %u", &uids[0], &uids[1], &uids[2], &uids[3]) != 4)
		return -ESRCH;
	*ret = uids[0];
	return uids[0] == uids[1] && uids[0] == uids[2] && uids[0] == uids[3] ? 0 : -EPERM;
}

/* @other: "self", or a number; what cannot be looked at is taken for shared */
static bool account_shares(int process, const char *other, const char *namespace)
{
	struct stat one, its;
	char path[32];

	(void)snprintf(path, sizeof(path), "/proc/%s/%s", other, namespace);
	return stat(path, &one) < 0 || fstatat(process, namespace, &its, 0) < 0 ||
	       (one.st_dev == its.st_dev && one.st_ino == its.st_ino);
}

/* The host's files are init's: systemd gives the manager a mount namespace of its own. */
static bool account_has_files_of_host(int process)
{
	return account_shares(process, "self", "ns/mnt") || account_shares(process, "1", "ns/mnt");
}

/* ---- accounts ---- */

/* @uid: of the process, as it is here. Return: as account_of_peer(). */
static int account_read(int process, uid_t uid, struct account *ret)
{
	_cleanup_close_ int namespace = openat(process, "ns/user", O_RDONLY | O_CLOEXEC);
	struct stat own, st;
	uid_t owner = (uid_t)-1;

	if (namespace < 0 || stat("/proc/self/ns/user", &own) < 0 || fstat(namespace, &st) < 0)
		return -errno;
	*ret = (struct account){.device = st.st_dev, .inode = st.st_ino};
	for (int i = 0; i < NAMESPACES_MAX && st.st_ino != own.st_ino; i++) {
		int parent;

		if (ioctl(namespace, NS_GET_OWNER_UID, &owner) < 0)
			return -errno;
		/* -EPERM: it is not below this one. */
		parent = ioctl(namespace, NS_GET_PARENT);
		if (parent < 0)
			return -errno;
		(void)close(namespace);
		namespace = parent;
		if (fstat(namespace, &st) < 0)
			return -errno;
	}
	if (owner == (uid_t)-1 || st.st_ino != own.st_ino)
		return -EPERM;
	ret->by_root = owner == 0;
	ret->uid = ret->by_root ? uid : owner;
	return ret->uid ? 0 : -EPERM;
}

/* One of another pid namespace has no number here. If it has ended meanwhile, another of its number may be opened. */
static int account_open_peer(int connection, struct ucred *ret_who)
{
	_cleanup_close_ int pidfd = -1, process = -1;
	int r = pidref_open_peer(connection, &pidfd, NULL, ret_who);

	if (r < 0)
		return r;
	process = account_open_process(ret_who->pid);
	if (process < 0)
		return process;
	return pidref_has_ended(pidfd) ? -ESRCH : steal_fd(&process);
}

int account_of_peer(int connection, struct account *ret, int *ret_process)
{
	struct ucred who;
	_cleanup_close_ int process = account_open_peer(connection, &who);
	int r;

	if (process < 0)
		return process;
	r = account_read(process, who.uid, ret);
	/* Users that are numbered in a namespace belong to the one that made it, and would be as many accounts. */
	if (r == 0 && ret->uid != who.uid)
		r = -EPERM;
	if (r == 0)
		*ret_process = steal_fd(&process);
	return r;
}

/* ---- containers ---- */

/* The number that its innermost pid namespace has for a process. */
static pid_t account_inner_pid(int process)
{
	_cleanup_free_ char *line = account_read_status(process, "NSpid:");
	const char *last = line ? strrchr(line, '\t') : NULL;

	return last ? (pid_t)atoi(last) : 0;
}

/* Of a pid namespace, from one of its processes on. Return: its directory; negative errno. */
static int account_open_first(int process, pid_t *ret_pid)
{
	_cleanup_close_ int at = fcntl(process, F_DUPFD_CLOEXEC, 0);

	for (int i = 0; i < ANCESTORS_MAX && at >= 0; i++) {
		_cleanup_free_ char *line = account_read_status(at, "PPid:");

		if (account_inner_pid(at) == 1)
			return *ret_pid ? steal_fd(&at) : -EPERM;
		*ret_pid = line ? (pid_t)atoi(line) : 0;
		cleanup_closep(&at);
		at = *ret_pid > 0 ? account_open_process(*ret_pid) : -ESRCH;
	}
	return -EPERM;
}

static bool account_is_same(const struct account *one, const struct account *other)
{
	if (one->uid != other->uid || one->by_root != other->by_root)
		return false;
	return !one->by_root || (one->device == other->device && one->inode == other->inode);
}

int account_open_container(const struct account *account, int peer, pid_t pid, pid_t *ret_pid,
			   unsigned long long *ret_started)
{
	const bool outside = account_shares(peer, "self", "ns/pid");
	_cleanup_close_ int process = -1;
	struct account its;
	uid_t uid;
	int r;

	*ret_pid = outside ? pid : 0;
	process = !outside ? account_open_first(peer, ret_pid) : pid > 0 ? account_open_process(pid) : -EPERM;
	if (process < 0)
		return process;
	r = account_read_uid(process, &uid);
	if (r == 0)
		r = account_read(process, uid, &its);
	/* Not a process of the host's files: it is in a container, or about to begin there. */
	if (r == 0 && (!account_is_same(account, &its) || account_has_files_of_host(process)))
		r = -EPERM;
	return r == 0 ? process_key_start(process, ret_started) : r;
}

/* ---- settings ---- */

/* Those that it had when it connected, as the kernel keeps them: more than it had, it cannot say. */
static size_t account_read_groups(int connection, gid_t *groups)
{
	socklen_t size = GROUPS_MAX * sizeof(*groups);
	struct ucred who;
	socklen_t who_size = sizeof(who);
	size_t count;

	if (getsockopt(connection, SOL_SOCKET, SO_PEERGROUPS, groups, &size) < 0)
		size = 0;
	count = size / sizeof(*groups);
	if (getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &who, &who_size) == 0)
		groups[count++] = who.gid;
	return count;
}

static bool account_has_group(const gid_t *groups, size_t count, gid_t group)
{
	for (size_t i = 0; i < count; i++)
		if (groups[i] == group)
			return true;
	return false;
}

const struct vcuda_user *account_find_user(const struct settings *settings, const struct account *account,
					   int connection)
{
	_cleanup_free_ gid_t *groups = calloc(GROUPS_MAX + 1, sizeof(*groups));
	/* In a namespace of root's, groups are root's to give, and each of its users would be one more member. */
	const size_t count = groups && !account->by_root ? account_read_groups(connection, groups) : 0;

	for (size_t i = 0; i < settings->vcuda_user_count; i++) {
		const struct vcuda_user *user = &settings->vcuda_users[i];

		if (user->uid ? user->uid == account->uid : account_has_group(groups, count, user->gid))
			return user;
	}
	return NULL;
}

/* SPDX-License-Identifier: Apache-2.0 */

#include "client.h"

#include <fcntl.h>
#include <linux/kcmp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"

enum { ORPHANS_MAX = 64 };

static bool is_alive(const struct client *client)
{
	struct pollfd poll_exit = {.fd = client->pidfd, .events = POLLIN};

	return poll(&poll_exit, 1, 0) == 0;
}

static bool same_file(pid_t pid, int fd, pid_t other, int other_fd)
{
	return syscall(SYS_kcmp, pid, other, KCMP_FILE, fd, other_fd) == 0;
}

/* A number from /proc/PID/status; -1 if there is none. */
static pid_t read_status(pid_t pid, const char *key)
{
	char path[32], status[512];
	const char *line;
	_cleanup_close_ int fd = -1;
	ssize_t length;

	(void)snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	length = fd < 0 ? -1 : read(fd, status, sizeof(status) - 1);
	if (length <= 0)
		return -1;
	status[length] = '\0';
	line = strstr(status, key);
	return line ? (pid_t)strtol(line + strlen(key), NULL, 10) : -1;
}

static void drop_opened(struct clients *clients, struct opened *opened)
{
	for (struct opened **at = &clients->opened; *at; at = &(*at)->next) {
		if (*at != opened)
			continue;
		*at = opened->next;
		(void)close(opened->file);
		free(opened);
		return;
	}
}

/*
 * Files of processes that are gone are remembered for a while: a child may still hold one, and must not become its
 * owner.
 */
static void limit_orphans(struct clients *clients)
{
	struct opened *oldest = NULL;
	unsigned orphans = 0;

	for (struct opened *at = clients->opened; at; at = at->next) {
		if (!at->orphan)
			continue;
		orphans++;
		oldest = at;
	}
	if (orphans > ORPHANS_MAX)
		drop_opened(clients, oldest);
}

static void client_free(struct clients *clients, struct client *client)
{
	for (struct opened *at = clients->opened; at; at = at->next)
		if (at->owner == client->pid)
			at->orphan = true;
	limit_orphans(clients);
	handles_clear(&client->handles);
	memory_close(&client->memory);
	(void)close(client->pidfd);
	free(client);
}

static void sweep(struct clients *clients)
{
	struct client **at = &clients->first;

	while (*at) {
		struct client *client = *at;

		if (is_alive(client)) {
			at = &client->next;
			continue;
		}
		*at = client->next;
		client_free(clients, client);
	}
}

static struct client *lookup(struct clients *clients, pid_t pid)
{
	for (struct client *at = clients->first; at; at = at->next)
		if (at->pid == pid)
			return at;
	return NULL;
}

static struct client *client_new(struct clients *clients, pid_t pid)
{
	struct client *client = calloc(1, sizeof(*client));

	if (!client)
		return NULL;
	client->pid = pid;
	client->memory.fd = -1;
	client->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (client->pidfd < 0 || memory_open(pid, &client->memory) < 0) {
		if (client->pidfd >= 0)
			(void)close(client->pidfd);
		free(client);
		return NULL;
	}
	for (size_t i = 0; i < CLIENT_FILES_MAX; i++)
		client->files[i].fd = -1;
	client->next = clients->first;
	clients->first = client;
	return client;
}

struct client *clients_find(struct clients *clients, pid_t thread, bool *ret_uncertain)
{
	struct client *client = lookup(clients, thread);
	pid_t pid;

	/* A process that is known and has not exited still has its number to itself. */
	*ret_uncertain = false;
	if (client && is_alive(client))
		return client;
	*ret_uncertain = true;
	pid = read_status(thread, "\nTgid:\t");
	if (pid < 0)
		return NULL;
	client = lookup(clients, pid);
	if (client && is_alive(client))
		return client;
	sweep(clients);
	return client_new(clients, pid);
}

static void forget(struct clients *clients, struct client *client, struct opened *opened)
{
	for (unsigned i = 0; i < CLIENT_FILES_MAX; i++)
		if (client->files[i].opened == opened)
			client->files[i].fd = -1;
	drop_opened(clients, opened);
}

static void remember(struct clients *clients, struct client *client, int fd, struct opened *opened)
{
	unsigned slot = client->next_file++ % CLIENT_FILES_MAX;

	for (unsigned i = 0; i < CLIENT_FILES_MAX; i++)
		if (client->files[i].fd == fd)
			slot = i;
	/* The number was closed and used again. */
	if (client->files[slot].fd == fd && client->files[slot].opened != opened)
		forget(clients, client, client->files[slot].opened);
	client->files[slot].fd = fd;
	client->files[slot].opened = opened;
}

/* Whether both have one table of descriptors, so that none tells who opened it. */
static bool same_files(pid_t pid, pid_t other)
{
	return syscall(SYS_kcmp, pid, other, KCMP_FILES, 0, 0) == 0;
}

/* The farthest ancestor that holds the same open file under the same number; the process itself if none does. */
static pid_t find_opener(pid_t self, pid_t pid, int fd)
{
	pid_t opener = pid, ancestor = read_status(pid, "\nPPid:\t");

	while (ancestor > 1 && ancestor != self && !same_files(pid, ancestor) && same_file(pid, fd, ancestor, fd)) {
		opener = ancestor;
		ancestor = read_status(ancestor, "\nPPid:\t");
	}
	return opener;
}

static struct opened *find_opened(const struct clients *clients, int file)
{
	for (struct opened *at = clients->opened; at; at = at->next)
		if (same_file(clients->self, file, clients->self, at->file))
			return at;
	return NULL;
}

/* The handles of a process end with its last open file, which shows when it uses another one. */
static void end_handles(struct clients *clients, struct client *client)
{
	for (size_t i = 0; i < CLIENT_FILES_MAX; i++)
		if (client->files[i].fd >= 0 &&
		    same_file(client->pid, client->files[i].fd, clients->self, client->files[i].opened->file))
			return;
	handles_clear(&client->handles);
}

static enum summary first_use(struct clients *clients, struct client *client, int fd)
{
	_cleanup_close_ int file = (int)syscall(SYS_pidfd_getfd, client->pidfd, fd, 0);
	struct opened *opened;
	struct stat st;

	if (file < 0 || fstat(file, &st) < 0 || !S_ISCHR(st.st_mode) || st.st_rdev != clients->device)
		return VERDICT_NOT_OURS;
	opened = find_opened(clients, file);
	if (!opened) {
		opened = calloc(1, sizeof(*opened));
		if (!opened)
			return VERDICT_FOREIGN;
		opened->owner = find_opener(clients->self, client->pid, fd);
		if (!lookup(clients, opened->owner))
			(void)client_new(clients, opened->owner); /* so that its end is noticed */
		opened->file = steal_fd(&file);
		end_handles(clients, client);
		opened->next = clients->opened;
		clients->opened = opened;
	}
	if (opened->owner != client->pid || opened->orphan)
		return VERDICT_FOREIGN;
	remember(clients, client, fd, opened);
	return VERDICT_OURS;
}

enum summary client_verdict(struct clients *clients, struct client *client, int fd)
{
	/* The kernel says EBADF. */
	if (fd < 0)
		return VERDICT_NOT_OURS;
	for (size_t i = 0; i < CLIENT_FILES_MAX; i++)
		if (client->files[i].fd == fd &&
		    same_file(client->pid, fd, clients->self, client->files[i].opened->file))
			return VERDICT_OURS;
	return first_use(clients, client, fd);
}

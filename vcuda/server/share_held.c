/* SPDX-License-Identifier: Apache-2.0 */

/* What this server holds of what its container shares: places, and files in memory. */

#include "vcuda/server/share.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "vcuda/protocol/descriptors.h"
#include "vcuda/server/server.h"

/* ---- places ---- */

static pthread_mutex_t share_held_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct share_held *share_held_list;
static _Atomic uint64_t share_held_given_bytes;

void share_held_begin(void)
{
	share_forget_slot(&server.quota->shares, server.start.quota_slot);
}

uint64_t share_held_given(void)
{
	return share_held_given_bytes;
}

pthread_mutex_t *share_held_lock(void)
{
	(void)pthread_mutex_lock(&share_held_mutex);
	return &share_held_mutex;
}

void share_held_unlock(pthread_mutex_t *const *mutex)
{
	(void)pthread_mutex_unlock(*mutex);
}

struct share *share_held_take_place(void)
{
	struct shares *shares = &server.quota->shares;

	for (uint32_t i = 0; i < SHARE_PLACES; i++) {
		int32_t none = 0;
		uint32_t used;

		if (!atomic_compare_exchange_strong(&shares->place[i].state, &none,
						    (int32_t)server.start.quota_slot + 1))
			continue;
		used = shares->used;
		while (used <= i && !atomic_compare_exchange_weak(&shares->used, &used, i + 1))
			;
		return &shares->place[i];
	}
	return NULL;
}

struct share_held *share_held_find(enum share_kind kind, uint64_t key)
{
	struct share_held *one = share_held_list;

	while (one && (one->key != key || one->place->kind != kind || one->leaves))
		one = one->next;
	return one;
}

struct share_held *share_held_find_place(const struct share *place)
{
	struct share_held *one = share_held_list;

	while (one && one->place != place)
		one = one->next;
	return one;
}

int share_held_descriptor(const struct share *place)
{
	const struct share_held *one = share_held_list;

	while (one && (one->place != place || one->fd < 0))
		one = one->next;
	return one ? one->fd : -1;
}

struct share_held *share_held_find_token(enum share_kind kind, const uint64_t token[2])
{
	struct share_held *one = share_held_list;

	while (one &&
	       (one->place->kind != kind || one->place->token[0] != token[0] || one->place->token[1] != token[1]))
		one = one->next;
	return one;
}

struct share_held *share_held_add(struct share *place, uint64_t key, uint64_t given, uint64_t context)
{
	struct share_held *one = malloc(sizeof(*one));

	if (!one)
		return NULL;
	*one = (struct share_held){share_held_list, place, key, given, context, 1, -1, false, false};
	share_held_list = one;
	share_held_given_bytes += given;
	return one;
}

void share_held_end(struct share_held *one)
{
	struct share_held **at = &share_held_list;
	struct share *place = one->place;

	while (*at != one)
		at = &(*at)->next;
	*at = one->next;
	share_held_given_bytes -= one->given;
	if (one->fd >= 0)
		(void)close(one->fd);
	free(one);
	/* It may be held a second time, for another context. */
	if (!share_held_find_place(place))
		share_let_go(place, server.start.quota_slot);
}

struct share_held *share_held_begin_end(enum share_kind kind, uint64_t key)
{
	struct share_held *one;

	SHARE_HELD_LOCK();
	one = share_held_find(kind, key);
	if (one)
		one->leaves = true;
	return one;
}

void share_held_end_freed(struct share_held *one)
{
	SHARE_HELD_LOCK();
	if (one)
		share_held_end(one);
}

void share_held_show(struct share_held *one)
{
	SHARE_HELD_LOCK();
	if (one && one->ended)
		share_held_end(one);
	else if (one)
		one->leaves = false;
}

void share_held_end_key(enum share_kind kind, uint64_t key)
{
	struct share_held *one;

	SHARE_HELD_LOCK();
	one = share_held_find(kind, key);
	if (one)
		share_held_end(one);
}

void share_held_end_context(uint64_t context)
{
	struct share_held *next;

	SHARE_HELD_LOCK();
	for (struct share_held *one = share_held_list; one; one = next) {
		next = one->next;
		if (one->context != context)
			continue;
		one->ended = true;
		if (!one->leaves)
			share_held_end(one);
	}
}

/* ---- files in memory that drivers of a container's servers share ---- */

/*
 * For events that processes give each other, NVIDIA's library makes a file in /dev/shm in one process and opens it in
 * the other, by a name in its handle. A server may make and open no file, and the name would be known to the whole
 * host. But as every library it looks shm_open() up in the program first. Here such a file is a memfd, whose name has a
 * place among what the container shares. Another server gets it of the manager, which takes it out of the server that
 * has it.
 */

enum { SHARE_FILE_PATIENCE_MS = 2000, SHARE_FILE_MADE = 1024 };

/*
 * What this server has made itself. Another one that was taken over can write any number among what the container
 * shares, and so name another descriptor of this one, to be given to the driver or closed.
 */
static struct share_file_made {
	int fd; /* 0: free */
	dev_t device;
	ino_t inode;
} share_file_made[SHARE_FILE_MADE];
static pthread_mutex_t share_file_mutex = PTHREAD_MUTEX_INITIALIZER;

/* Return: the first with that descriptor; NULL. */
static struct share_file_made *share_file_find_made(int fd)
{
	for (size_t i = 0; i < SHARE_FILE_MADE; i++)
		if (share_file_made[i].fd == fd)
			return &share_file_made[i];
	return NULL;
}

/* Return: whether there was room for it. */
static bool share_file_note(int fd)
{
	struct share_file_made *made;
	struct stat st;

	(void)pthread_mutex_lock(&share_file_mutex);
	made = fd >= 0 && fstat(fd, &st) == 0 ? share_file_find_made(0) : NULL;
	if (made)
		*made = (struct share_file_made){fd, st.st_dev, st.st_ino};
	(void)pthread_mutex_unlock(&share_file_mutex);
	return made;
}

/* Whether it is one of these. @forget: and is none any more */
static bool share_file_is_made(uint32_t fd, bool forget)
{
	struct share_file_made *made;
	struct stat st;
	bool is = false;

	(void)pthread_mutex_lock(&share_file_mutex);
	made = fd > 0 && fd <= INT_MAX ? share_file_find_made((int)fd) : NULL;
	if (made)
		is = fstat(made->fd, &st) == 0 && st.st_dev == made->device && st.st_ino == made->inode;
	if (is && forget)
		made->fd = 0;
	(void)pthread_mutex_unlock(&share_file_mutex);
	return is;
}

/* Return: the place of a file, as it is now in @ret; NULL. */
static struct share *share_file_find(const char *name, struct share_file *ret)
{
	struct shares *shares = &server.quota->shares;

	for (uint32_t i = 0; i < share_count(shares); i++) {
		struct share *place = &shares->place[i];

		if (place->state != SHARE_READY || place->kind != SHARE_FILE)
			continue;
		memcpy(ret, place->handle, sizeof(*ret));
		if (strncmp(ret->name, name, sizeof(ret->name)) == 0)
			return place;
	}
	return NULL;
}

/* ---- files: making ---- */

int share_file_keep(int fd)
{
	return fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, SHARE_FD);
}

/* The driver closes its own. Return: a descriptor for it; -1. */
static int share_file_make(const char *name)
{
	_cleanup_close_ int given = memfd_create("ctr-gpu-vcuda-share", MFD_CLOEXEC), ours = share_file_keep(given);
	struct share_file file = {.slot = server.start.quota_slot};
	struct share *place;

	place = share_file_note(ours) ? share_held_take_place() : NULL;
	if (!place) {
		(void)share_file_is_made((uint32_t)ours, true);
		return -1;
	}
	file.fd = (uint32_t)ours;
	(void)snprintf(file.name, sizeof(file.name), "%s", name);
	place->kind = SHARE_FILE;
	place->bytes = 0;
	memcpy(place->handle, &file, sizeof(file));
	share_hold(place, server.start.quota_slot);
	place->state = SHARE_READY;
	(void)steal_fd(&ours);
	return steal_fd(&given);
}

/* ---- files: getting one of another server ---- */

/* Return: what came with the answer; -1. */
static int share_file_receive(uint64_t number)
{
	struct pollfd manager = {.fd = START_MANAGER, .events = POLLIN};
	struct start_event event;
	_cleanup_close_ int fd = -1;

	if (poll(&manager, 1, SHARE_FILE_PATIENCE_MS) != 1 ||
	    descriptors_receive(START_MANAGER, &event, sizeof(event), &fd, 1, MSG_DONTWAIT) != sizeof(event))
		return -1;
	/* To an earlier question, whose answer came too late. */
	if (event.kind != START_EVENT_WANT || event.number != number)
		return share_file_receive(number);
	return steal_fd(&fd);
}

/* What another server says may be anything; it is of the same container, and the driver checks what it reads there. */
int share_file_get(const struct share_file *file)
{
	static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;
	const uint64_t number = (uint64_t)file->slot << 32 | file->fd;
	int fd;

	if (file->fd < SHARE_FD || file->fd > INT_MAX)
		return -1;
	if (file->slot == server.start.quota_slot)
		return fcntl((int)file->fd, F_DUPFD_CLOEXEC, 0);
	(void)pthread_mutex_lock(&one_at_a_time);
	server_tell(START_EVENT_WANT, number, "");
	fd = share_file_receive(number);
	(void)pthread_mutex_unlock(&one_at_a_time);
	return fd;
}

static int share_file_get_memory(const struct share_file *file)
{
	const bool foreign = file->slot != server.start.quota_slot;
	_cleanup_close_ int fd = foreign || share_file_is_made(file->fd, false) ? share_file_get(file) : -1;
	struct stat st;

	return fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) ? steal_fd(&fd) : -1;
}

/* ---- files: in place of the C library's functions, for the driver's libraries ---- */

__attribute__((visibility("default"))) int share_file_open(const char *name, int flags,
							   mode_t mode) __asm__("shm_open");
__attribute__((visibility("default"))) int share_file_unlink(const char *name) __asm__("shm_unlink");

int share_file_open(const char *name, int flags, mode_t mode)
{
	struct share_file file;
	const struct share *place;
	int fd = -1;

	(void)mode;
	errno = EACCES;
	if (!server.quota || strlen(name) >= SHARE_FILE_NAME)
		return -1;
	place = share_file_find(name, &file);
	if ((place && flags & O_EXCL) || (!place && !(flags & O_CREAT))) {
		errno = place ? EEXIST : ENOENT;
		return -1;
	}
	fd = place ? share_file_get_memory(&file) : share_file_make(name);
	if (fd < 0)
		errno = EACCES;
	return fd;
}

int share_file_unlink(const char *name)
{
	struct share_file file;
	struct share *place = server.quota ? share_file_find(name, &file) : NULL;

	if (!place || file.slot != server.start.quota_slot || !share_file_is_made(file.fd, true)) {
		errno = place ? EACCES : ENOENT;
		return -1;
	}
	share_let_go(place, server.start.quota_slot);
	return close((int)file.fd);
}

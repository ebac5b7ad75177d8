/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Memory of the client's own that it registers, where that is a file in memory (of /dev/shm, say): the client sends its
 * descriptor, and the device reaches the file's pages through a mapping of ours. This process never reads or writes
 * them: a client can cut its file off at any time, and the driver has the pages by then.
 */

#include "vcuda/server/arena.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "vcuda/driver_api.h"
#include "vcuda/protocol/descriptors.h"
#include "vcuda/server/driver.h"
#include "vcuda/server/quota.h"
#include "vcuda/server/request.h"

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

enum { REGISTRATION_PAGE = 4096 };

/* Where libraries and what programs map lie, on either side, and nothing grows. */
static const uint64_t registration_first = 0x700000000000;

struct registration {
	struct registration *next;
	void *at;
	uint64_t bytes, context;
	bool leaves; /* the driver is asked to let go of it */
	bool ended;  /* and its context has ended meanwhile */
};

static pthread_mutex_t registration_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct registration *registration_list;

/* Return: what the client has sent before it asked; -1. */
static int registration_receive(void)
{
	char byte;
	_cleanup_close_ int fd = -1;

	return descriptors_receive(START_CLIENT, &byte, 1, &fd, 1, MSG_DONTWAIT) == 1 ? steal_fd(&fd) : -1;
}

/* Pages of other files can be written back, or arrive when another process or machine sends them. */
static bool registration_is_memory(int fd, uint64_t offset, uint64_t bytes)
{
	struct stat st;

	return fd >= 0 && fcntl(fd, F_GET_SEALS) >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
	       offset <= (uint64_t)st.st_size && bytes <= (uint64_t)st.st_size - offset + REGISTRATION_PAGE - 1;
}

/* At the client's own address if that is free here, so that the device has it there, too. */
static void *registration_map(uint64_t at, uint64_t bytes, int fd, uint64_t offset)
{
	const int flags = MAP_SHARED | MAP_NORESERVE;
	void *memory = MAP_FAILED;

	if (at >= registration_first)
		memory =
			mmap((void *)at, bytes, PROT_READ | PROT_WRITE, flags | MAP_FIXED_NOREPLACE, fd, (off_t)offset);
	/* An older kernel takes the address for a wish. */
	return memory != MAP_FAILED ? memory : mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, fd, (off_t)offset);
}

static void registration_keep(struct registration *one)
{
	(void)pthread_mutex_lock(&registration_mutex);
	one->next = registration_list;
	registration_list = one;
	(void)pthread_mutex_unlock(&registration_mutex);
}

/* Return: one that begins there, which is that caller's to drop from now on, or to show again; NULL */
static struct registration *registration_begin_drop(const void *at)
{
	struct registration *one;

	(void)pthread_mutex_lock(&registration_mutex);
	one = registration_list;
	while (one && (one->at != at || one->leaves))
		one = one->next;
	if (one)
		one->leaves = true;
	(void)pthread_mutex_unlock(&registration_mutex);
	return one;
}

/* With the lock. */
static void registration_drop(struct registration *one)
{
	struct registration **place = &registration_list;

	while (*place != one)
		place = &(*place)->next;
	*place = one->next;
	(void)munmap(one->at, one->bytes);
	quota_unlock(one->bytes);
	free(one);
}

/* What the driver keeps is locked, and counts. */
static void registration_end_drop(struct registration *one, bool kept)
{
	(void)pthread_mutex_lock(&registration_mutex);
	if (kept && !one->ended)
		one->leaves = false;
	else
		registration_drop(one);
	(void)pthread_mutex_unlock(&registration_mutex);
}

/* Without a context the driver registers nothing. */
static CUresult registration_add(uint64_t at, uint64_t bytes, uint64_t offset, int fd, struct registration *one)
{
	one->at = registration_map(at, bytes, fd, offset);
	if (one->at == MAP_FAILED)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (arena_register(one->at, bytes))
		return CUDA_SUCCESS;
	(void)munmap(one->at, bytes);
	return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult serve_wire_register(struct request *q)
{
	_cleanup_close_ int fd = registration_receive();
	CUresult r = request_words(q, 3);
	const uint64_t at = q->argument[0], bytes = q->argument[1], offset = q->argument[2];
	struct registration *one;
	uint64_t device;

	if (r)
		return r;
	if (at % REGISTRATION_PAGE || bytes == 0 || bytes % REGISTRATION_PAGE || offset % REGISTRATION_PAGE ||
	    bytes > WIRE_ARENA_BYTES || offset > INT64_MAX - bytes || !registration_is_memory(fd, offset, bytes))
		return CUDA_ERROR_INVALID_VALUE;
	if (!quota_lock(bytes))
		return CUDA_ERROR_OUT_OF_MEMORY;
	one = calloc(1, sizeof(*one));
	lane_leave(q);
	r = one ? registration_add(at, bytes, offset, fd, one) : CUDA_ERROR_OUT_OF_MEMORY;
	if (r) {
		quota_unlock(bytes);
		free(one);
		return r;
	}
	one->bytes = bytes;
	one->context = q->header.context;
	device = (uint64_t)one->at;
	registration_keep(one);
	request_reply(q, &device, sizeof(device));
	return CUDA_SUCCESS;
}

CUresult serve_wire_unregister(struct request *q)
{
	CUresult r = request_words(q, 1);
	struct registration *one = r ? NULL : registration_begin_drop((void *)q->argument[0]);

	if (!one)
		return r ? r : CUDA_ERROR_INVALID_VALUE;
	lane_leave(q);
	r = driver.cuMemHostUnregister ? driver.cuMemHostUnregister(one->at) : CUDA_SUCCESS;
	registration_end_drop(one, r);
	return r;
}

void registration_forget_context(uint64_t context)
{
	struct registration *next;

	(void)pthread_mutex_lock(&registration_mutex);
	for (struct registration *one = registration_list; one; one = next) {
		next = one->next;
		if (one->context != context)
			continue;
		one->ended = true;
		if (!one->leaves)
			registration_drop(one);
	}
	(void)pthread_mutex_unlock(&registration_mutex);
}

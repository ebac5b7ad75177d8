/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Descriptors of memory of a GPU. The driver's are open devices and stay with the servers. The program has one end of a
 * pair of sockets instead, in which the server's token lies, to be looked at and not to be taken. It may send it to
 * other processes, as it would the driver's. We keep the other end, which says when all are closed, wherever they are:
 * until then the memory is there, even if it was released.
 */

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "vcuda/client/call.h"
#include "vcuda/client/host.h"
#include "vcuda/client_api.h"
#include "vcuda/ops.h"

enum { DESCRIPTOR_TYPE = 1 }; /* CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR */

/* As the server makes it. */
struct descriptor_token {
	uint64_t magic, token[2], rest[5];
};

struct descriptor {
	struct descriptor *next;
	struct descriptor_token token;
	int end;
	uint64_t device, inode; /* a program may close it, and have something of its own there */
};

static struct lock descriptor_lock;
static struct descriptor *_Atomic descriptor_list;

static bool descriptor_is_whole(const struct descriptor *one)
{
	struct stat now;

	return syscall(SYS_fstat, one->end, &now) == 0 && now.st_dev == one->device && now.st_ino == one->inode;
}

static bool descriptor_is_closed(const struct descriptor *one)
{
	struct pollfd end = {.fd = one->end};

	return !descriptor_is_whole(one) || (poll(&end, 1, 0) == 1 && end.revents & POLLHUP);
}

static void descriptor_end(struct descriptor *one)
{
	if (descriptor_is_whole(one))
		(void)close(one->end);
	free(one);
}

/* Return: one that is closed, which is no more in the list; NULL. */
static struct descriptor *descriptor_take_closed(void)
{
	struct descriptor *before = NULL, *one;

	LOCK_HOLD(&descriptor_lock);
	for (one = descriptor_list; one && !descriptor_is_closed(one); one = one->next)
		before = one;
	if (one && before)
		before->next = one->next;
	else if (one)
		descriptor_list = one->next;
	return one;
}

void descriptor_sweep(void)
{
	struct descriptor *one;

	while (descriptor_list && (one = descriptor_take_closed())) {
		(void)call_sync(WIRE_SHARE_END, one->token.token, 2, NULL, 0, NULL, 0);
		descriptor_end(one);
	}
}

/* Return: the program's end, which has the token; -1. */
static int descriptor_make(struct descriptor *one)
{
	struct stat made;
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return -1;
	one->end = ends[0];
	if (syscall(SYS_fstat, ends[0], &made) == 0 &&
	    send(ends[0], &one->token, sizeof(one->token), MSG_NOSIGNAL) == sizeof(one->token)) {
		one->device = made.st_dev;
		one->inode = made.st_ino;
		return ends[1];
	}
	(void)close(ends[0]);
	(void)close(ends[1]);
	return -1;
}

CUresult cuMemExportToShareableHandle(void *shareable, CUmemGenericAllocationHandle memory,
				      CUmemAllocationHandleType type, unsigned long long flags)
{
	const uint64_t words[] = {memory, (uint64_t)type, flags};
	struct descriptor *one = shareable ? calloc(1, sizeof(*one)) : NULL;
	CUresult r;
	int fd;

	if (!one)
		return call_fail(shareable ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_VALUE);
	descriptor_sweep();
	r = call_sync(OP_cuMemExportToShareableHandle, words, 3, NULL, 0, &one->token, sizeof(one->token));
	if (r) {
		free(one);
		return r;
	}
	fd = descriptor_make(one);
	if (fd < 0) {
		(void)call_sync(WIRE_SHARE_END, one->token.token, 2, NULL, 0, NULL, 0);
		free(one);
		return CUDA_ERROR_OPERATING_SYSTEM;
	}
	*(int *)shareable = fd;
	LOCK_HOLD(&descriptor_lock);
	one->next = descriptor_list;
	descriptor_list = one;
	return CUDA_SUCCESS;
}

CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *memory, void *shareable,
					CUmemAllocationHandleType type)
{
	struct descriptor_token token;
	const uint64_t words[] = {sizeof(token), (uint64_t)type};
	const struct call_part part = {&token, sizeof(token)};

	if (!memory)
		return call_fail(CUDA_ERROR_INVALID_VALUE);
	if (type != DESCRIPTOR_TYPE)
		return call_fail(CUDA_ERROR_NOT_SUPPORTED);
	if (recv((int)(intptr_t)shareable, &token, sizeof(token), MSG_PEEK | MSG_DONTWAIT) != sizeof(token))
		return call_fail(CUDA_ERROR_UNKNOWN);
	return call_sync(OP_cuMemImportFromShareableHandle, words, 2, &part, 1, memory, sizeof(*memory));
}

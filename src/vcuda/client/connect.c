/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The connection: a socket whose only purpose is that the server's memory comes by it, and that each side notices when
 * the other is gone. The container's socket is the right to use a GPU, so nothing is said about who we are.
 */

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "vcuda/client/call.h"
#include "vcuda/client_api.h"
#include "vcuda/ops.h"

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

struct client client = {.socket = -1};
static struct lock connect_lock;

bool client_is_lost(void)
{
	struct pollfd socket = {.fd = client.socket, .events = POLLRDHUP};

	return client.wire->state == WIRE_DEAD || (poll(&socket, 1, 0) > 0 && socket.revents != 0);
}

static CUresult connect_socket(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = START_SOCKET};
	const char *other = getenv(START_SOCKET_VARIABLE);

	if (other && strlen(other) >= sizeof(address.sun_path))
		return CUDA_ERROR_SYSTEM_NOT_READY;
	if (other)
		memcpy(address.sun_path, other, strlen(other) + 1);
	client.socket = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (client.socket < 0)
		return CUDA_ERROR_OPERATING_SYSTEM;
	if (connect(client.socket, (const struct sockaddr *)&address, sizeof(address)) < 0)
		return errno == ENOENT ? CUDA_ERROR_NO_DEVICE : CUDA_ERROR_SYSTEM_NOT_READY;
	return CUDA_SUCCESS;
}

/* The descriptors of ring and staging. */
static CUresult connect_receive(int descriptors[2])
{
	struct wire_greeting greeting = {0};
	struct iovec data = {&greeting, sizeof(greeting)};
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(2 * sizeof(int))];
	} control = {0};
	struct msghdr message = {
		.msg_iov = &data, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};
	const struct cmsghdr *header;
	ssize_t r;

	do
		r = recvmsg(client.socket, &message, MSG_CMSG_CLOEXEC);
	while (r < 0 && errno == EINTR);
	if (r != sizeof(greeting) || greeting.magic != WIRE_MAGIC)
		return CUDA_ERROR_SYSTEM_NOT_READY;
	if (greeting.result)
		return greeting.result;
	header = CMSG_FIRSTHDR(&message);
	if (!header || header->cmsg_type != SCM_RIGHTS || header->cmsg_len != CMSG_LEN(2 * sizeof(int)))
		return CUDA_ERROR_SYSTEM_NOT_READY;
	memcpy(descriptors, CMSG_DATA(header), 2 * sizeof(int));
	return CUDA_SUCCESS;
}

static void *connect_map(int fd, size_t bytes)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	(void)close(fd);
	return memory == MAP_FAILED ? NULL : memory;
}

/* Address space for page-locked memory, where the server has the same free. */
static int connect_reserve(void)
{
	for (int i = 0; i < WIRE_ARENAS; i++) {
		void *at = (void *)client.wire->arena[i], *memory;

		if (!at)
			continue;
		memory = mmap(at, WIRE_ARENA_BYTES, PROT_NONE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
		if (memory == at) {
			client.arena = (uint64_t)at;
			return i;
		}
		/* A kernel before 4.17 takes the address for a wish. */
		if (memory != MAP_FAILED)
			(void)munmap(memory, WIRE_ARENA_BYTES);
	}
	return -1;
}

static CUresult connect_ask(void)
{
	const uint64_t words[] = {(uint64_t)connect_reserve(), (uint64_t)syscall(SYS_getpid)};
	CUresult r = call_sync(WIRE_HELLO, words, 2, NULL, 0, &client.host, sizeof(client.host));

	if (!r && (client.host.device_count < 0 || client.host.device_count > START_GPUS))
		r = CUDA_ERROR_UNKNOWN;
	for (int i = 0; !r && i < client.host.device_count; i++) {
		const uint64_t ordinal = (uint64_t)i;

		r = call_sync(WIRE_DEVICE, &ordinal, 1, NULL, 0, &client.device[i], sizeof(client.device[i]));
		client.device[i].name[sizeof(client.device[i].name) - 1] = '\0';
		client.device[i].bus[sizeof(client.device[i].bus) - 1] = '\0';
	}
	if (!r && client.host.device_count == 0)
		r = CUDA_ERROR_NO_DEVICE;
	return r;
}

static CUresult connect_open(void)
{
	const char *waits = getenv("CTR_GPU_VCUDA_SYNC");
	int descriptors[2];
	CUresult r = connect_socket();

	if (!r)
		r = connect_receive(descriptors);
	if (r)
		return r;
	client.wire = connect_map(descriptors[0], sizeof(*client.wire));
	client.staging = connect_map(descriptors[1], WIRE_STAGING_BYTES);
	if (!client.wire || !client.staging)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (client.wire->magic != WIRE_MAGIC || client.wire->ops != OP_END)
		return CUDA_ERROR_SYSTEM_NOT_READY;
	client.waits = waits && strcmp(waits, "1") == 0;
	client.life->ready = 1;
	r = connect_ask();
	client.life->ready = r == 0;
	return r;
}

CUresult cuInit(unsigned flags)
{
	static bool tried;
	struct client_life *life;
	CUresult r;

	if (flags)
		return CUDA_ERROR_INVALID_VALUE;
	LOCK_HOLD(&connect_lock);
	/* In a child of fork(2) the page is empty. */
	if (client.life)
		return client.life->ready ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
	life = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (life == MAP_FAILED || madvise(life, 4096, MADV_WIPEONFORK) < 0)
		return CUDA_ERROR_OPERATING_SYSTEM;
	client.life = life;
	r = tried ? CUDA_ERROR_SYSTEM_NOT_READY : connect_open();
	if (r) {
		if (client.socket >= 0)
			(void)close(client.socket);
		client.socket = -1;
		client.life = NULL;
		(void)munmap(life, 4096);
		tried = client.wire != NULL;
	}
	return r;
}

/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The connection: a socket whose only purpose is that the server's memory comes by it, and that each side notices when
 * the other is gone. Access to the container's socket is the right to use a GPU, so the client says no name.
 */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>

#include "vcuda/client/call.h"
#include "vcuda/client/device_name.h"
#include "vcuda/client_api.h"
#include "vcuda/ops.h"

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

struct client client = {.socket = -1};
static CUresult connect_failed; /* what the last cuInit() returned */

/* A driver may take seconds for each GPU when it starts. */
enum { CONNECT_PATIENCE_MS = 60000, CONNECT_DESCRIPTORS = 16, CONNECT_SPIN = 200000, CONNECT_WAIT_SPIN = 50000000 };

static int64_t connect_now(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* fstat(2) is no function of a glibc before 2.33. */
static bool connect_look(struct stat *ret)
{
	return client.socket >= 0 && syscall(SYS_fstat, client.socket, ret) == 0;
}

/* Whether the descriptor is still the connection, as far as the program's own filters let us look. */
static bool connect_is_whole(void)
{
	struct stat now;

	if (!connect_look(&now))
		return client.socket >= 0 && errno != EBADF;
	return now.st_dev == client.socket_device && now.st_ino == client.socket_inode;
}

static void connect_close(void)
{
	if (connect_is_whole())
		(void)close(client.socket);
	client.socket = -1;
}

bool client_is_lost(void)
{
	struct pollfd socket = {.fd = client.socket, .events = POLLRDHUP};

	if (!client.lost)
		client.lost = (client.patience && connect_now() > client.patience) || client.wire->state == WIRE_DEAD ||
			      !connect_is_whole() || (poll(&socket, 1, 0) > 0 && socket.revents != 0);
	return client.lost;
}

/* A program without standard descriptors writes into what has their numbers. */
static int connect_make_socket(void)
{
	const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	int higher;

	if (fd < 0 || fd > STDERR_FILENO)
		return fd;
	higher = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	(void)close(fd);
	return higher;
}

/*
 * On the host the process that starts a program sets the variable. Some pass it on into a container, which has the
 * socket in its usual place. Return: whether the path has room.
 */
static bool connect_find(struct sockaddr_un *ret)
{
	const char *other = getenv(START_SOCKET_VARIABLE);

	*ret = (struct sockaddr_un){.sun_family = AF_UNIX, .sun_path = START_SOCKET};
	if (!other || (access(other, F_OK) < 0 && errno == ENOENT && access(START_SOCKET, F_OK) == 0))
		return true;
	if (strlen(other) >= sizeof(ret->sun_path))
		return false;
	memcpy(ret->sun_path, other, strlen(other) + 1);
	return true;
}

static CUresult connect_socket(void)
{
	const struct timeval patience = {.tv_sec = CONNECT_PATIENCE_MS / 1000};
	struct sockaddr_un address;
	struct stat made;

	if (!connect_find(&address))
		return CUDA_ERROR_SYSTEM_NOT_READY;
	client.socket = connect_make_socket();
	if (!connect_look(&made))
		return CUDA_ERROR_OPERATING_SYSTEM;
	client.socket_device = made.st_dev;
	client.socket_inode = made.st_ino;
	/* A manager that does not accept lets connect(2) wait, too, and then any signal ends the wait. */
	(void)setsockopt(client.socket, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	while (connect(client.socket, (const struct sockaddr *)&address, sizeof(address)) < 0) {
		if (errno == ENOENT)
			return CUDA_ERROR_NO_DEVICE;
		if (errno != EINTR || connect_now() > client.patience)
			return CUDA_ERROR_SYSTEM_NOT_READY;
	}
	return CUDA_SUCCESS;
}

static bool connect_wait(void)
{
	struct pollfd socket = {.fd = client.socket, .events = POLLIN};

	for (;;) {
		const int64_t left = client.patience - connect_now();
		const int r = left > 0 ? poll(&socket, 1, (int)left) : 0;

		if (r >= 0 || errno != EINTR)
			return r > 0;
	}
}

/* Return: how many descriptors a message has; those above @count are closed. */
static unsigned connect_take(const struct cmsghdr *header, int ret[], unsigned count)
{
	const unsigned char *at = CMSG_DATA(header);
	unsigned all = 0;

	if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS)
		return 0;
	for (size_t bytes = header->cmsg_len - CMSG_LEN(0); (all + 1) * sizeof(int) <= bytes; all++) {
		int fd;

		memcpy(&fd, at + all * sizeof(fd), sizeof(fd));
		if (all < count)
			ret[all] = fd;
		else
			(void)close(fd);
	}
	return all;
}

bool client_receive(void *data, size_t bytes, int ret[], unsigned count, bool wait)
{
	struct iovec vector = {data, bytes};
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(CONNECT_DESCRIPTORS * sizeof(int))];
	} control = {0};
	struct msghdr message = {
		.msg_iov = &vector, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};
	const struct cmsghdr *header;
	unsigned all = 0;
	ssize_t r = -1;

	for (unsigned i = 0; i < count; i++)
		ret[i] = -1;
	if (connect_is_whole() && (!wait || connect_wait()))
		r = recvmsg(client.socket, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	header = r < 0 ? NULL : CMSG_FIRSTHDR(&message);
	if (header)
		all = connect_take(header, ret, count);
	if (r == (ssize_t)bytes && (all == count || all == 0))
		return true;
	for (unsigned i = 0; i < count; i++)
		if (ret[i] >= 0)
			(void)close(ret[i]);
	return false;
}

/* The descriptor of what is shared. */
static CUresult connect_receive(int *ret)
{
	struct wire_greeting greeting = {0};

	if (!client_receive(&greeting, sizeof(greeting), ret, 1, true))
		return CUDA_ERROR_SYSTEM_NOT_READY;
	if (greeting.magic == WIRE_MAGIC && !greeting.result && *ret >= 0)
		return CUDA_SUCCESS;
	if (*ret >= 0)
		(void)close(*ret);
	return greeting.magic == WIRE_MAGIC && greeting.result ? client_result(greeting.result)
							       : CUDA_ERROR_SYSTEM_NOT_READY;
}

void *client_map(int fd, void *at, uint64_t offset, size_t bytes)
{
	const int seals = fcntl(fd, F_GET_SEALS), fixed = at ? MAP_FIXED : 0;
	const off_t size = lseek(fd, 0, SEEK_END); /* fstat(2) is no function of a glibc before 2.33 */
	void *memory = MAP_FAILED;

	if (seals >= 0 && seals & F_SEAL_SHRINK && size >= 0 && (uint64_t)size >= offset &&
	    (uint64_t)size - offset >= bytes)
		memory = mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | fixed, fd, (off_t)offset);
	if (memory == MAP_FAILED)
		return NULL;
	/* A child that wrote here would change its parent's memory, or speak for it. */
	(void)madvise(memory, bytes, MADV_DONTFORK);
	return memory;
}

static long connect_bound(uint32_t nanoseconds, long most)
{
	return nanoseconds < most ? (long)nanoseconds : most;
}

/* Address space for page-locked memory, where the server has the same free. */
static int connect_reserve(void)
{
	for (int i = 0; i < WIRE_ARENAS && !client.looks; i++) {
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

/* Those alone that the program wants to see. NVML shows all of them, whatever it wants. */
static CUresult connect_choose(void)
{
	const char *wanted = client.looks ? NULL : getenv("CUDA_VISIBLE_DEVICES");
	const unsigned all = (unsigned)client.host.device_count;
	uint8_t list[START_GPUS];
	unsigned chosen;
	struct call_part part;
	struct wire_device *old;
	uint64_t count;
	CUresult r;

	if (!wanted)
		return CUDA_SUCCESS;
	r = device_name_choose(wanted, client.device, all, list, &chosen);
	if (r)
		return r;
	count = chosen;
	part = (struct call_part){list, count};
	old = malloc(sizeof(client.device));
	r = old ? call_sync(WIRE_CHOOSE, &count, 1, &part, 1, NULL, 0) : CUDA_ERROR_OUT_OF_MEMORY;
	if (!r) {
		memcpy(old, client.device, sizeof(client.device));
		for (uint64_t i = 0; i < count; i++)
			client.device[i] = old[list[i]];
		client.host.device_count = (int32_t)count;
	}
	free(old);
	return r;
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
	return r ? r : connect_choose();
}

static CUresult connect_open(void)
{
	const char *waits = getenv("CTR_GPU_VCUDA_SYNC");
	CUresult r = connect_socket();
	int shared;

	if (!r)
		r = connect_receive(&shared);
	if (r)
		return r;
	client.wire = client_map(shared, NULL, 0, sizeof(*client.wire));
	client.staging = client_map(shared, NULL, WIRE_STAGING_OFFSET, WIRE_STAGING_BYTES);
	(void)close(shared);
	if (!client.wire || !client.staging)
		return CUDA_ERROR_SYSTEM_NOT_READY;
	if (client.wire->magic != WIRE_MAGIC || client.wire->ops != OP_DIGEST)
		return CUDA_ERROR_SYSTEM_NOT_READY;
	client.spin = connect_bound(CLIENT_READ(client.wire->spin), CONNECT_SPIN);
	client.wait_spin = connect_bound(CLIENT_READ(client.wire->wait_spin), CONNECT_WAIT_SPIN);
	client.copy_threads = CLIENT_READ(client.wire->copy_threads);
	client.waits = waits && strcmp(waits, "1") == 0;
	client.life->ready = 1;
	r = connect_ask();
	client.life->ready = r == 0;
	return r;
}

void client_close(void)
{
	const struct client old = client;
	/* A child has none of this memory, and may have something else at its place. */
	const bool own = old.life && old.life->alive;

	connect_close();
	if (old.life)
		old.life->ready = 0;
	/* First, so that a child made meanwhile finds nothing of what is about to be unmapped. */
	client = (struct client){.life = old.life, .socket = -1, .looks = old.looks};
	if (old.wire && own)
		(void)munmap(old.wire, sizeof(*old.wire));
	if (old.staging && own)
		(void)munmap(old.staging, WIRE_STAGING_BYTES);
	if (old.arena && own)
		(void)munmap((void *)old.arena, WIRE_ARENA_BYTES);
	call_forget();
	thread_forget();
}

/* One page for the process and its children. It is there before anything is locked, whenever the process forks. */
static struct client_life *connect_life(void)
{
	struct client_life *life = __atomic_load_n(&client.life, __ATOMIC_ACQUIRE), *new;

	if (life)
		return life;
	new = mmap(NULL, sizeof(*new), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (new == MAP_FAILED)
		return NULL;
	new->alive = 1;
	if (madvise(new, sizeof(*new), MADV_WIPEONFORK) == 0 &&
	    __atomic_compare_exchange_n(&client.life, &life, new, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		return new;
	(void)munmap(new, sizeof(*new));
	return life;
}

/* Until a parent of it has begun to connect, a child may connect for itself. */
bool client_is_child(void)
{
	const struct client_life *life = __atomic_load_n(&client.life, __ATOMIC_ACQUIRE);

	return life && !client.looks && __atomic_load_n(&client.begun, __ATOMIC_ACQUIRE) && !life->alive;
}

/* With the lock of the connection. */
static CUresult connect_begin(struct client_life *life)
{
	CUresult r;

	life->alive = 1;
	__atomic_store_n(&client.begun, true, __ATOMIC_RELEASE);
	client.patience = connect_now() + CONNECT_PATIENCE_MS;
	/* After a failure the memory is still there, and it is not tried again. */
	r = client.wire ? connect_failed : connect_open();
	connect_failed = r;
	client.patience = 0;
	if (r) {
		connect_close();
		__atomic_store_n(&client.begun, false, __ATOMIC_RELEASE);
	}
	return r;
}

CUresult cuInit(unsigned flags)
{
	struct client_life *life;

	if (flags)
		return CUDA_ERROR_INVALID_VALUE;
	life = connect_life();
	if (!life)
		return CUDA_ERROR_OPERATING_SYSTEM;
	if (client_is_child())
		return CUDA_ERROR_NOT_INITIALIZED;
	LOCK_HOLD(&life->lock);
	return life->ready ? CUDA_SUCCESS : connect_begin(life);
}

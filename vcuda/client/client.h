/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What a process knows of its server, from a successful cuInit() on. */

#include <stdbool.h>

#include "vcuda/client/lock.h"
#include "vcuda/protocol/start.h"
#include "vcuda/protocol/types.h"
#include "vcuda/protocol/wire.h"

/*
 * Pages that a child of fork(2) finds empty. In the child the driver is not initialized, and cannot be if it is in the
 * parent, or is about to be. A lock that another thread of the parent had is free.
 */
struct client_life {
	_Alignas(4096) uint32_t alive;
	uint32_t ready;
	struct lock lock; /* of the connection: before all others, which are taken only once it is ready */
};

struct client {
	struct client_life *life;
	bool begun; /* to connect, since the process, or the parent that it is a copy of, called cuInit() */
	struct wire *wire;
	uint8_t *staging;
	int socket;
	uint64_t socket_device, socket_inode; /* a program may close it, and have something of its own there */
	_Atomic bool lost;                    /* the server is gone, so that no call waits for it again */
	uint64_t arena;       /* address of the page-locked memory; 0: it is not at the same address in the server */
	_Atomic int captures; /* that have begun and not ended: nothing is deferred then */
	bool waits;           /* for every answer: CTR_GPU_VCUDA_SYNC=1 */
	int64_t patience;     /* when cuInit() gives up waiting, in milliseconds; 0: never, since work may take long */
	long spin, wait_spin; /* nanoseconds, as in struct wire; what the server said, within bounds */
	unsigned copy_threads;
	bool looks; /* and does nothing else, as NVML does: it needs no page-locked memory */
	struct wire_host host;
	struct wire_device device[START_GPUS];
};

extern struct client client;

/** Return: a device's description; NULL if there is none of that number. */
static inline const struct wire_device *client_device(CUdevice device)
{
	return device >= 0 && device < client.host.device_count ? &client.device[device] : NULL;
}

/** Whether the server is there no more, or did not answer cuInit() in time. */
bool client_is_lost(void);

/**
 * client_receive() - a datagram of the server's, with descriptors; what else came along is closed
 * @wait: until there is one, as long as client.patience says; else it has to be there already
 *
 * Return: whether it has @bytes and @count descriptors. With @bytes and none, all of @ret are -1.
 */
bool client_receive(void *data, size_t bytes, int ret[], unsigned count, bool wait);

/**
 * client_map() - map memory that the server made; closes the descriptor
 * @at: where; NULL: anywhere
 *
 * It can be believed to stay: a server that could cut it off would have the kernel kill us. Children of fork(2) do not
 * have it.
 * Return: NULL if it is smaller than @bytes, or not sealed.
 */
void *client_map(int fd, void *at, size_t bytes);

/* Read once, whatever the compiler thinks: the server may write meanwhile. */
#define CLIENT_READ(word) (*(const volatile __typeof__(word) *)&(word))

/** What a server says that a call failed with: one of the driver's numbers, or CUDA_ERROR_UNKNOWN. */
static inline CUresult client_result(int32_t result)
{
	return result >= 0 && result <= (int32_t)CUDA_ERROR_UNKNOWN ? (CUresult)result : CUDA_ERROR_UNKNOWN;
}

/**
 * Ends the connection and forgets it, so that cuInit() makes another one. No other thread is in a call; where one of
 * the process was that this is a child of, what it had locked is free.
 */
void client_close(void);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What a process knows of its server, from a successful cuInit() on. */

#include <stdbool.h>

#include "vcuda/protocol/ring.h"
#include "vcuda/protocol/start.h"
#include "vcuda/protocol/types.h"
#include "vcuda/protocol/wire.h"

/* A mutex on a futex: the C library's differ from one to the next, and some want a library that is not loaded. */

struct lock {
	_Atomic uint32_t state; /* 0: free; 1: taken; 2: taken, and a thread sleeps */
};

/**
 * Whether this process is a child of fork(2) of one that had begun to connect, so that every call fails. With NVML
 * it never is: its calls connect again in a child.
 */
bool client_is_child(void);

/*
 * A child does not wait: the thread that had the lock when the process forked is not there to release it. What the lock
 * is for may be half changed, and other threads of the child may have the lock, too: it is only looked at, for a call
 * that fails. A function that changes it begins with call_enter(), which fails in a child. With NVML a child waits as
 * any process does: the one lock that its threads meet is wiped when it forks, and client_close() frees the others.
 */
static inline void lock_take(struct lock *lock)
{
	uint32_t old = 0;

	if (atomic_compare_exchange_strong(&lock->state, &old, 1))
		return;
	while (atomic_exchange(&lock->state, 2) != 0 && !client_is_child())
		BELL_SLEEP(&lock->state, 2, NULL);
}

/** Return: whether it was free. */
static inline bool lock_try(struct lock *lock)
{
	uint32_t old = 0;

	return atomic_compare_exchange_strong(&lock->state, &old, 1);
}

static inline void lock_release(struct lock *lock)
{
	if (atomic_exchange(&lock->state, 0) == 2)
		BELL_WAKE(&lock->state);
}

static inline void lock_releasep(struct lock *const *lock)
{
	lock_release(*lock);
}

/* Until the end of the block. */
#define LOCK_HOLD(which) \
	struct lock *const held __attribute__((cleanup(lock_releasep), unused)) = (lock_take(which), (which))

/*
 * Pages that a child of fork(2) finds empty. In the child the driver is not initialized, and cannot be if it is in the
 * parent, or is about to be. A lock that another thread of the parent had is free.
 */
struct client_life {
	_Alignas(4096) uint32_t alive;
	uint32_t ready;
	struct lock lock; /* of the connection: before all others, which are taken only once it is ready */
};

/* What is told of the program's calls: before an entry is written, and once one was waited for that did not fail. */
struct client_watch {
	void (*before)(unsigned op);
	void (*behind)(unsigned op);
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
	const struct client_watch *_Atomic watch; /* NULL: nothing is watched */
	bool waits;                               /* for every answer: CTR_GPU_VCUDA_SYNC=1 */
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
 * client_map() - map a part of memory that the server sent
 * @at: where; NULL: anywhere
 *
 * It can be believed to stay: a server that could cut it off would have the kernel kill us. Children of fork(2) do not
 * have it.
 * Return: NULL if it ends before that, or is not sealed.
 */
void *client_map(int fd, void *at, uint64_t offset, size_t bytes);

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

/* The calling thread: its place for replies, and its stack of contexts. */

struct context {
	uint64_t name;           /* what the program holds: a primary one's is the same after a reset */
	_Atomic uint64_t handle; /* the server's */
	CUdevice device;
	unsigned flags;
	unsigned attached; /* by cuCtxAttach() */
	bool primary;
	_Atomic bool gone;
	_Atomic unsigned long long id;  /* the driver's number of it, once somebody has asked; 0 */
	struct context_value *values;   /* of context.c */
	uint64_t exchange, exchange_of; /* of variable.c: a stream, and the handle of the context that it is of */
	struct context *next;
};

enum { THREAD_CONTEXTS = 64 };

struct thread {
	_Atomic int id; /* of the kernel; 0: nobody's */
	uint32_t slot, sequence;
	bool calls_back; /* it runs host functions, which may not call the driver */
	bool unwatched;  /* it does what the program has not asked for */
	int depth;
	struct context *stack[THREAD_CONTEXTS]; /* not freed while the process lives */
	uint32_t from, end; /* in the ring: where its last entry begins, with what fills up before it, and ends */
	/* A stream that it has seen done, while the ring ends there. NULL: none. */
	const struct context *idle_context;
	uint64_t idle_stream;
	uint32_t idle_end;
};

/** Return: the calling thread's; NULL if there are too many threads. */
struct thread *thread_self(void);

/** Return: whether the thread that had this place is no more, and the place is not another's. */
bool thread_has_ended(uint32_t slot);

/** No thread is about to get its place. */
void thread_forget(void);

/** Return: the current context of a thread, or NULL. */
static inline struct context *thread_context(const struct thread *thread)
{
	return thread->depth > 0 ? thread->stack[thread->depth - 1] : NULL;
}

/* Threads of the library's own. */

/** Whether there can be any. Older C libraries have them in another library, which a program may not have loaded. */
bool background_can_start(void);

/**
 * background_start() - run @run with @data, for as long as the process lives
 *
 * The thread takes no signal that is for the process: a program that blocks one in all of its own threads waits for it.
 * Return: whether it runs.
 */
bool background_start(void *(*run)(void *data), void *data);

/* Attributes of devices by the numbers of CUdevice_attribute. */

enum {
	DEVICE_MAX_BLOCK_X = 2,
	DEVICE_MAX_BLOCK_Y = 3,
	DEVICE_MAX_BLOCK_Z = 4,
	DEVICE_MAX_GRID_X = 5,
	DEVICE_MAX_GRID_Y = 6,
	DEVICE_MAX_GRID_Z = 7,
	DEVICE_MAX_SHARED = 8,
	DEVICE_PROCESSORS = 16,
	DEVICE_PROCESSOR_THREADS = 39,
	DEVICE_CAPABILITY_MAJOR = 75,
	DEVICE_CAPABILITY_MINOR = 76,
};

/** Of a device that there is, and a number below WIRE_ATTRIBUTES. */
int device_attribute(CUdevice device, CUdevice_attribute attribute);

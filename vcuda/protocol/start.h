/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * How the manager starts ctr-gpu-vcuda, one process for each client process. The manager accepts a connection on the
 * container's socket, reads nothing from it, and runs the server with no arguments, nothing in its environment but what
 * keeps the driver from an MPS daemon and from files, and these descriptors. The server takes from descriptor 4 one
 * datagram, a struct start, before anything else.
 *
 * The server ends by itself when its client closes the connection (status 0), and when it cannot start (status 1, after
 * a START_EVENT_FAILED). It goes on when its manager has ended: one may be started again, and finds its servers by
 * their process ids, and the other end of descriptor 4 with the keeper, or nowhere. It ends them by SIGTERM, which
 * keeps its default action, or SIGKILL. What the quota still counts for one then, the manager takes back: all that is
 * at start.quota_slot is 0 again, once the process has ended.
 */

#include <stdatomic.h>
#include <stdint.h>

#include "base/paths.h"
#include "vcuda/protocol/share.h"

/* Where a client looks for the socket, and the variable that names another. */
#define START_SOCKET PATH_RUN "/vcuda/socket"
#define START_SOCKET_VARIABLE "CTR_GPU_VCUDA_SOCKET"

enum {
	START_CLIENT = 3,  /* the accepted connection, a SOCK_SEQPACKET socket */
	START_MANAGER = 4, /* a SOCK_SEQPACKET socketpair(2): a struct start comes in, struct start_event go out */
	/*
	 * A memfd of sizeof(struct start_quota), the same one for all servers of a container. It stays open: a manager
	 * that is started again takes it from /proc/PID/fd/5. If it is of another size, that of an older version, the
	 * servers go on, and what they have is not counted any more.
	 */
	START_QUOTA = 5,
	/*
	 * A memfd of sizeof(struct start_orders), the same one for all servers of a container, open to be read: the
	 * manager's user alone may open it for writing. It stays open for the next manager, at /proc/PID/fd/6.
	 */
	START_ORDERS = 6,
	/* The same of sizeof(struct start_turns) (vcuda/protocol/turns.h), at /proc/PID/fd/7. */
	START_TURNS = 7,
	/* A memfd of this server alone, which it shares with its client (vcuda/protocol/wire.h), at /proc/PID/fd/8. */
	START_SHARED = 8,
};

enum {
	START_MAGIC = 0x7643753b, /* changes when a struct below does */
	START_GPUS = 16,
	START_QUOTA_SLOTS = 256,
	START_PATH = 256,
	START_NAME = 64,
};

/* In start_quota.client, whatever the client says of itself. */
#define START_CLIENT_SERVED ((uint64_t)1 << 63)

enum start_copy { START_COPY_IN, START_COPY_OUT, START_COPIES };

/*
 * Device memory of a container, and its memory on the host. A server adds to its own place alone and takes back
 * what makes the sum too large, so that a server that is killed at any moment leaves nothing behind but its own place.
 */
struct start_quota {
	_Atomic uint64_t used[START_QUOTA_SLOTS];
	/* Of the host: page-locked, and sent by clients and not used yet. */
	_Atomic uint64_t locked[START_QUOTA_SLOTS];
	/*
	 * The client of each place, which programs see by NVML: the process id that it claims, above it a bit for each
	 * GPU, and START_CLIENT_SERVED if the place is in use.
	 */
	_Atomic uint64_t client[START_QUOTA_SLOTS];
	/* What each does: the order that it has obeyed, whole. */
	_Atomic uint32_t obeyed[START_QUOTA_SLOTS];
	/* Its client has asked for something that waits for another order: not 0. */
	_Atomic uint32_t wanted[START_QUOTA_SLOTS];
	/* 0: it has work; else how many entries its client has sent, one more, when it fell asleep. */
	_Atomic uint64_t rests[START_QUOTA_SLOTS];
	/* What it needs of each GPU's time: enum turn_need. */
	_Atomic uint32_t needs[START_GPUS][START_QUOTA_SLOTS];
	/*
	 * For display only; nothing is decided by it. Nanoseconds in which a GPU had the server's work, sampled while
	 * it has rivals and while a display measures (vcuda/protocol/turns.h). Bytes that were copied for the client.
	 */
	_Atomic uint64_t busy[START_GPUS][START_QUOTA_SLOTS];
	_Atomic uint64_t copied[START_COPIES][START_QUOTA_SLOTS];
	/* What several have, of device memory: in no used[], and counted as one of these. */
	struct shares shares;
};
_Static_assert((int)START_QUOTA_SLOTS == (int)SHARE_SLOTS, "each has a bit");

/* What the manager says to a container's servers, any time. */
struct start_orders {
	/*
	 * start_quota.used in all, with a share of the GPUs of struct start (base/str.h). 0: no device memory at all;
	 * UINT64_MAX: what the card has
	 */
	_Atomic uint64_t limit;
	/* start_quota.locked in all; start.host_memory is one, too. 0: that alone */
	_Atomic uint64_t locked_limit;
	/* To each: enum start_order, and above START_ORDER_BITS another number for each order. A futex(2). */
	_Atomic uint32_t order[START_QUOTA_SLOTS];
	/* What follows is written by ctr-gpu-vcuda-checkpoint, once there are servers. */
	/* While they are suspended: what they had on each of the container's GPUs. */
	_Atomic uint64_t away[START_GPUS];
	/* Of each: where its GPUs are (start_place()). */
	_Atomic uint64_t places[START_QUOTA_SLOTS];
	/* The same, while the driver brings it back onto others: not 0 in coming_set. */
	_Atomic uint64_t coming[START_QUOTA_SLOTS];
	_Atomic uint32_t coming_set[START_QUOTA_SLOTS];
};

enum { START_PLACE_BITS = 4 };

/*
 * A container's GPUs are numbered: those that it was granted, then those that these may be moved to. Programs go on to
 * see a GPU of one number, under its name, when what it stands for is on the GPU of another number. All of these are
 * a word, 4 bits for each GPU; 0: each is where it was granted.
 */
static inline unsigned start_place(uint64_t places, unsigned number)
{
	return number ^ (unsigned)(places >> number * START_PLACE_BITS & ((1U << START_PLACE_BITS) - 1));
}

/* Return: the word in which @one and @other, GPUs, stand for each other's. */
static inline uint64_t start_exchange(uint64_t places, unsigned one, unsigned other)
{
	const uint64_t both = start_place(places, one) ^ start_place(places, other);

	return places ^ both << one * START_PLACE_BITS ^ both << other * START_PLACE_BITS;
}

/* Which it obeys between two entries of its client, and within a second when it sleeps. */
enum start_order {
	START_GO,   /* carry on */
	START_PARK, /* begin nothing more, once what is under way is done, until told to go */
	START_ORDER_BITS = 4,
};

enum start_flags {
	START_NO_SPIN = 1,     /* sleep at once where a server else spins for some microseconds */
	START_NO_FILTER = 2,   /* no seccomp filters: for tests under sanitizers */
	START_AUDIT_CALLS = 4, /* tell of each refused name, too */
	START_NO_PATHS = 8,    /* open what everybody may open, should a driver need more than sandbox.c knows */
	START_SPIN = 16,       /* spin as with many cores: for tests */
	START_WATCH = 32,      /* serve no client: tell what happens to the GPUs (vcuda/server/sensors.c) */
};

struct start_gpu {
	int32_t ordinal;  /* as the driver counts on the host, if uuid is all zeros */
	uint8_t uuid[16]; /* as cuDeviceGetUuid() gives it */
	uint32_t place;   /* domain, bus, device and function in 16, 8, 5 and 3 bits; 0: not known */
	uint32_t number;  /* in the grant, whatever is first or left out here: what servers of a container count by */
	uint32_t reserved;
};

struct start {
	uint32_t magic;    /* START_MAGIC */
	uint32_t size;     /* sizeof(struct start) */
	uint32_t flags;    /* enum start_flags */
	uint32_t uid, gid; /* what the server becomes when it is root; 0: uid and gid 65534 */
	uint32_t quota_slot;
	uint64_t host_memory;              /* memory of the host that the container may have, in bytes; 0: 1/4 of it */
	uint64_t context_bytes;            /* what a context is counted as; 0: nothing */
	uint32_t gpu_count;                /* those that the client sees, in its order, from 0 */
	uint32_t reach;                    /* these, and behind them those that they may be moved to; 0: the same */
	struct start_gpu gpus[START_GPUS]; /* under the names that the client sees */
	char library[START_PATH];          /* absolute path of the driver's libcuda.so.1; "": as the loader finds it */
};

/* What a server tells its manager, for the audit and the list. */
enum start_event_kind {
	START_EVENT_READY = 1, /* the client has its memory; number: the driver's version; text: how long that took */
	START_EVENT_FAILED,    /* it ends; number: errno or CUresult; text: the step */
	START_EVENT_REFUSED,   /* text: a function that is not offered, once a name */
	START_EVENT_TABLE,     /* text: the UUID of a hidden table that was asked for, once a table */
	START_EVENT_QUOTA,     /* number: bytes that were refused */
	START_EVENT_HOSTILE,   /* the client broke the protocol, and the server ends; text: how */
	/* number: the CUresult that this client's context is lost with; from bit 32 on the GPU's number, and one */
	START_EVENT_STICKY,
	START_EVENT_REACHED,   /* the client's kernels reach all of its memory; number: on which GPU; text: by what */
	START_EVENT_ESTIMATED, /* it cannot ask how much the driver has taken by itself; text: why */
	/*
	 * For no audit. number: the slot of another server of the container, and its descriptor of a memfd in the low
	 * 32 bits. The manager answers with the same, and the descriptor, if it is one.
	 */
	START_EVENT_WANT,
	/* Of the one that watches, with a GPU as it counts them from bit 32 on. */
	START_EVENT_WATCHES, /* it has begun */
	START_EVENT_XID,     /* number: an error that NVIDIA's driver reports (Xid) */
	START_EVENT_LOST,    /* the driver says that this GPU is lost; text: as what */
	/* To it: see whether a GPU is lost. */
	START_EVENT_LOOK,
	/* Of it again. number: how much memory a GPU has, in MiB */
	START_EVENT_MEMORY,
};

enum { START_EVENT_GPU_BIT = 32 };

struct start_event {
	uint32_t kind;
	uint32_t reserved;
	uint64_t number;
	char text[START_NAME]; /* NUL-terminated */
};

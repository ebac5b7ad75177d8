/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the parts of the server share: its start parameters, the memory that the client maps, the driver. */

#include <stdbool.h>

#include "vcuda/protocol/start.h"
#include "vcuda/protocol/turns.h"
#include "vcuda/protocol/types.h"
#include "vcuda/protocol/wire.h"

/* A GPU of the grant, as the client is told of it: it was so when the server began, and stays so when it is moved. */
struct server_name {
	uint8_t uuid[16];
	char bus[32];
	int bus_number, device_number, domain; /* attributes */
};

struct server {
	struct start start;
	struct wire *wire;
	uint8_t *staging;
	struct start_quota *quota;
	const struct start_orders *orders;
	const struct start_turns *turns;
	const _Atomic uint32_t *rivals; /* this server's word of these */
	long spin, long_spin;        /* nanoseconds: the least and the most that it spins before it sleeps; 0: none */
	long wait_spin;              /* the same while it waits for the GPU */
	uint64_t arena;              /* address of the page-locked memory; 0: the client could not have it there */
	CUdevice gpu[START_GPUS];    /* the driver's numbers of those that the client sees */
	uint8_t granted[START_GPUS]; /* the grant's numbers of them */
	struct server_name names[START_GPUS]; /* by these, and of those that they may be moved to */
	uint64_t gpu_bytes;                   /* the memory of all that are granted */
	int driver_version;
};

extern struct server server;

/** Whether there is a rival on any GPU. A load of memory that is written when that changes. */
static inline bool server_has_rivals(void)
{
	return atomic_load_explicit(server.rivals, memory_order_relaxed) != 0;
}

/** Counts bytes that were copied to a GPU or from one, for display only. Call it with the lead. */
static inline void server_count_copy(enum start_copy way, uint64_t bytes)
{
	_Atomic uint64_t *copied = &server.quota->copied[way][server.start.quota_slot];

	atomic_store_explicit(copied, atomic_load_explicit(copied, memory_order_relaxed) + bytes, memory_order_relaxed);
}

/** Return: the number, and so the name in server.names, of the GPU that the one of a number stands for now. */
unsigned server_find_name(unsigned number);

/** Return: another number when that has changed: the manager may have moved what was there. */
uint64_t server_places(void);

/** Tells the manager of something. */
void server_tell(enum start_event_kind kind, uint64_t number, const char *text);

/** The same, once for each text. */
void server_tell_once(enum start_event_kind kind, const char *text);

/** Sends the client a message, and the memory that we share. @flags: of sendmsg(2). Return: 0; negative errno. */
int server_send_shared(const void *message, size_t bytes, int flags);

/** The client broke the protocol: nothing that it says is believed any more. */
void server_end(const char *why) __attribute__((noreturn));

/* What the server gives up: all of it before the driver's library is loaded, but for what only its start needs. */

/** Before the library is loaded. Return: 0; a negative errno with *ret_step saying what could not be done. */
int server_sandbox_enter(const struct start *start, const char **ret_step);

/** Before the client is heard. Return: 0; a negative errno. */
int server_sandbox_close(const struct start *start);

/** watch_run() - tell the manager what happens to the GPUs, until it is gone. Return: the exit status. */
int watch_run(void);

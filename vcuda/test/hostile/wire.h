/* SPDX-License-Identifier: Apache-2.0 */

/* One side of a connection, written by hand: what a client that keeps to no rule sends. */

#ifndef VCUDA_HOSTILE_WIRE_H
#define VCUDA_HOSTILE_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vcuda/ops.h"
#include "vcuda/protocol/start.h"
#include "vcuda/protocol/wire.h"

struct control_client {
	int socket;
	struct wire *wire;
	uint8_t *staging;
	uint32_t head, sequence;
	int shared;
};

/* Connects to $CTR_GPU_VCUDA_SOCKET and maps what the server sends. */
bool peer_open(struct control_client *peer);
void control_client_close(struct control_client *peer);
/* Puts an entry into the ring, as it is; how far it moves the head is the caller's business. */
void peer_put(struct control_client *peer, const struct wire_entry *entry, const void *behind, size_t bytes);
void peer_push(struct control_client *peer, uint32_t units);
/* A well-formed call of thread @slot that is waited for. */
#define PEER_GONE (-1000)
#define PEER_SILENT (-1001)
int peer_call(struct control_client *peer, uint32_t slot, unsigned op, uint64_t context, const uint64_t *words,
	      unsigned count, const void *part, size_t bytes);
/* The same, not waited for. */
void peer_send(struct control_client *peer, uint32_t slot, unsigned op, uint64_t context, const uint64_t *words,
	       unsigned count, const void *part, size_t bytes, bool reply);
int peer_wait(struct control_client *peer, uint32_t slot, uint32_t sequence, int milliseconds);
bool peer_is_gone(struct control_client *peer, int milliseconds);
uint64_t peer_word(const struct control_client *peer, uint32_t slot);
/* Takes the first address for the arena. */
int peer_hello(struct control_client *peer);
/* The primary context of device 0, current nowhere. */
uint64_t peer_context(struct control_client *peer);

#endif

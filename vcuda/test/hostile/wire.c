/* SPDX-License-Identifier: Apache-2.0 */

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "wire.h"

static bool peer_receive(int socket, int *ret)
{
	struct wire_greeting greeting;
	struct iovec data = {&greeting, sizeof(greeting)};
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = {0};
	struct msghdr message = {
		.msg_iov = &data, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};
	const struct cmsghdr *header;

	if (recvmsg(socket, &message, MSG_CMSG_CLOEXEC) != sizeof(greeting) || greeting.result)
		return false;
	header = CMSG_FIRSTHDR(&message);
	if (!header || header->cmsg_len != CMSG_LEN(sizeof(int)))
		return false;
	memcpy(ret, CMSG_DATA(header), sizeof(int));
	return true;
}

bool peer_open(struct control_client *peer)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	const char *path = getenv(START_SOCKET_VARIABLE);

	*peer = (struct control_client){.socket = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)};
	if (!path || strlen(path) >= sizeof(address.sun_path))
		return false;
	memcpy(address.sun_path, path, strlen(path) + 1);
	if (connect(peer->socket, (const struct sockaddr *)&address, sizeof(address)) < 0 ||
	    !peer_receive(peer->socket, &peer->shared))
		return false;
	peer->wire = mmap(NULL, sizeof(*peer->wire), PROT_READ | PROT_WRITE, MAP_SHARED, peer->shared, 0);
	peer->staging =
		mmap(NULL, WIRE_STAGING_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, peer->shared, WIRE_STAGING_OFFSET);
	return peer->wire != MAP_FAILED && peer->staging != MAP_FAILED;
}

void control_client_close(struct control_client *peer)
{
	(void)close(peer->socket);
	(void)close(peer->shared);
	if (peer->wire)
		(void)munmap(peer->wire, sizeof(*peer->wire));
	if (peer->staging)
		(void)munmap(peer->staging, WIRE_STAGING_BYTES);
}

void peer_put(struct control_client *peer, const struct wire_entry *entry, const void *behind, size_t bytes)
{
	uint8_t *at = peer->wire->command + (size_t)(peer->head % RING_UNITS) * RING_UNIT;
	size_t room = sizeof(peer->wire->command) - (size_t)(at - peer->wire->command) - sizeof(*entry);

	memcpy(at, entry, sizeof(*entry));
	if (bytes)
		memcpy(at + sizeof(*entry), behind, bytes < room ? bytes : room);
}

void peer_push(struct control_client *peer, uint32_t units)
{
	peer->head += units;
	bell_ring(&peer->wire->ring.head, peer->head);
}

/* An entry may not wrap: a filler goes before it where it would. */
static void peer_fill(struct control_client *peer, uint32_t units)
{
	uint32_t rest = RING_UNITS - peer->head % RING_UNITS;
	struct wire_entry filler = {.slot = WIRE_SCRATCH, .bytes = rest * RING_UNIT - (uint32_t)sizeof(filler)};

	if (units <= rest)
		return;
	peer_put(peer, &filler, NULL, 0);
	peer_push(peer, rest);
}

void peer_send(struct control_client *peer, uint32_t slot, unsigned op, uint64_t context, const uint64_t *words,
	       unsigned count, const void *part, size_t bytes, bool reply)
{
	uint8_t behind[WIRE_INLINE];
	size_t all = count * 8 + ((bytes + 7) & ~(size_t)7);
	struct wire_entry entry = {.op = (uint16_t)op,
				   .words = (uint16_t)count,
				   .bytes = (uint32_t)all,
				   .thread = slot,
				   .context = context};

	memset(behind, 0, sizeof(behind));
	if (count)
		memcpy(behind, words, count * 8);
	if (bytes)
		memcpy(behind + count * 8, part, bytes);
	entry.slot = reply ? slot : WIRE_SCRATCH;
	entry.sequence = reply ? ++peer->sequence : 0;
	peer_fill(peer, (uint32_t)wire_units(all));
	peer_put(peer, &entry, behind, all);
	peer_push(peer, (uint32_t)wire_units(all));
}

bool peer_is_gone(struct control_client *peer, int milliseconds)
{
	struct pollfd socket = {.fd = peer->socket, .events = POLLRDHUP};

	return poll(&socket, 1, milliseconds) > 0;
}

int peer_wait(struct control_client *peer, uint32_t slot, uint32_t sequence, int milliseconds)
{
	const struct wire_reply *reply = &peer->wire->reply[slot];

	for (int i = 0; i < milliseconds * 10; i++) {
		if (atomic_load(&reply->done.value) == sequence)
			return reply->result;
		if (i % 10 == 9 && peer_is_gone(peer, 0))
			return atomic_load(&reply->done.value) == sequence ? reply->result : PEER_GONE;
		(void)usleep(100);
	}
	return PEER_SILENT;
}

int peer_call(struct control_client *peer, uint32_t slot, unsigned op, uint64_t context, const uint64_t *words,
	      unsigned count, const void *part, size_t bytes)
{
	peer_send(peer, slot, op, context, words, count, part, bytes, true);
	return peer_wait(peer, slot, peer->sequence, 5000);
}

uint64_t peer_word(const struct control_client *peer, uint32_t slot)
{
	return peer->wire->reply[slot].word[0];
}

int peer_hello(struct control_client *peer)
{
	const uint64_t words[] = {0, (uint64_t)getpid()};

	return peer_call(peer, 0, WIRE_HELLO, 0, words, 2, NULL, 0);
}

uint64_t peer_context(struct control_client *peer)
{
	const uint64_t words[] = {0};

	return peer_call(peer, 0, OP_cuDevicePrimaryCtxRetain, 0, words, 1, NULL, 0) == 0 ? peer_word(peer, 0) : 0;
}

/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What both sides of a call have in common: gRPC's messages in HTTP/2's data ("Length-Prefixed-Message" of its protocol
 * over HTTP/2), and a session of libnghttp2 with its socket, which does not block.
 */

#include "cluster/grpc.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { WIRE_READ = 8 * 1024 };

int64_t grpc_now(void)
{
	struct timespec now = {0};

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* ---- frame ---- */

static size_t frame_take(uint8_t *to, size_t have, size_t want, const uint8_t *data, size_t size)
{
	size_t taken = want - have < size ? want - have : size;

	if (taken > 0)
		memcpy(to + have, data, taken);
	return taken;
}

static int frame_begin(struct frame *frame)
{
	const uint8_t *head = frame->head;
	size_t length = (size_t)head[1] << 24 | (size_t)head[2] << 16 | (size_t)head[3] << 8 | (size_t)head[4];

	if (head[0] != 0)
		return GRPC_UNIMPLEMENTED;
	if (length > GRPC_MESSAGE_MAX || (frame->held && *frame->held + length > GRPC_HELD_MAX))
		return GRPC_RESOURCE_EXHAUSTED;
	frame->message = malloc(length + 1);
	if (!frame->message)
		return -ENOMEM;
	frame->length = length;
	if (frame->held)
		*frame->held += length;
	return GRPC_OK;
}

int frame_read(struct frame *frame, const uint8_t *data, size_t size)
{
	size_t taken = frame_take(frame->head, frame->head_size, FRAME_HEAD, data, size);
	int r = GRPC_OK;

	frame->head_size += taken;
	if (frame->head_size < FRAME_HEAD)
		return GRPC_OK;
	if (!frame->message)
		r = frame_begin(frame);
	if (r != GRPC_OK)
		return r;
	data += taken;
	size -= taken;
	taken = frame_take(frame->message, frame->size, frame->length, data, size);
	frame->size += taken;
	return taken < size ? GRPC_INTERNAL : GRPC_OK;
}

bool frame_is_whole(const struct frame *frame)
{
	return frame->message && frame->size == frame->length;
}

void frame_clear(struct frame *frame)
{
	if (frame->held && frame->message)
		*frame->held -= frame->length;
	free(frame->message);
	*frame = (struct frame){.held = frame->held};
}

uint8_t *frame_new(size_t size)
{
	uint8_t *frame = size <= UINT32_MAX - FRAME_HEAD ? malloc(FRAME_HEAD + size) : NULL;

	if (!frame)
		return NULL;
	frame[0] = 0;
	for (int i = 1; i < FRAME_HEAD; i++)
		frame[i] = (uint8_t)(size >> (8 * (FRAME_HEAD - 1 - i)));
	return frame;
}

/* ---- wire ---- */

nghttp2_nv wire_header(const char *name, const char *value)
{
	/* The library writes through neither. */
	return (nghttp2_nv){(uint8_t *)(uintptr_t)name, (uint8_t *)(uintptr_t)value, strlen(name), strlen(value),
			    NGHTTP2_NV_FLAG_NONE};
}

int wire_receive(struct wire *wire)
{
	uint8_t data[WIRE_READ];
	ssize_t size = recv(wire->fd, data, sizeof(data), MSG_DONTWAIT);

	if (size < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	if (size == 0)
		return -ECONNRESET;
	return nghttp2_session_mem_recv(wire->session, data, (size_t)size) < 0 ? -EPROTO : 0;
}

int wire_send(struct wire *wire)
{
	for (;;) {
		ssize_t size;

		if (wire->out_size == 0) {
			size = nghttp2_session_mem_send(wire->session, &wire->out);
			if (size < 0)
				return -EPROTO;
			if (size == 0)
				return 0;
			wire->out_size = (size_t)size;
		}
		size = send(wire->fd, wire->out, wire->out_size, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (size < 0)
			return errno == EAGAIN || errno == EINTR ? 0 : -errno;
		wire->out += size;
		wire->out_size -= (size_t)size;
	}
}

short wire_events(const struct wire *wire)
{
	bool writes = wire->out_size > 0 || nghttp2_session_want_write(wire->session);

	return (short)((nghttp2_session_want_read(wire->session) ? POLLIN : 0) | (writes ? POLLOUT : 0));
}

void wire_clear(struct wire *wire)
{
	nghttp2_session_del(wire->session);
	if (wire->fd >= 0)
		(void)close(wire->fd);
	*wire = (struct wire){.fd = -1};
}

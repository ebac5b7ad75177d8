/* SPDX-License-Identifier: Apache-2.0 */

/* The messages of gRPC in HTTP/2's data ("Length-Prefixed-Message" of its protocol over HTTP/2). */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/grpc.h"

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

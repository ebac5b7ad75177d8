/* SPDX-License-Identifier: Apache-2.0 */

/*
 * frames: a client that keeps to no rule, against a real server on the simulated driver, as TAP. Each case has a server of
 * its own, which either refuses what it gets or ends; a neighbour with another server is asked after each whether its memory
 * is as it was. What a server ends with, vcuda/test/tap reads off its manager's words.
 */

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "shares.h"
#include "textures.h"
#include "vcuda/protocol/types.h"
#include "waits.h"
#include "wire.h"

enum summary { SERVES, ENDS, EITHER };

/* Of the GPU: what is larger than half of one has pages of its own. */
enum { PAGE = 2 << 20 };

static struct control_client neighbour;
static uint64_t neighbour_context, neighbour_memory;
static const char kernels[] = ".version 6.0\n.target sm_50\n.address_size 64\n.visible .entry nop()\n{\n\tret;\n}\n";

/* ---- short forms ---- */

static int frames_call(struct control_client *peer, unsigned op, uint64_t context, uint64_t a, uint64_t b, uint64_t c,
		       uint64_t d, unsigned count)
{
	const uint64_t words[] = {a, b, c, d};

	return peer_call(peer, 0, op, context, words, count, NULL, 0);
}

static uint64_t frames_alloc(struct control_client *peer, uint64_t context, uint64_t bytes)
{
	return frames_call(peer, OP_cuMemAlloc_v2, context, bytes, 0, 0, 0, 1) == 0 ? peer_word(peer, 0) : 0;
}

static uint64_t frames_stream(struct control_client *peer, uint64_t context)
{
	return frames_call(peer, OP_cuStreamCreate, context, 1, 0, 0, 0, 1) == 0 ? peer_word(peer, 0) : 0;
}

static void frames_random(void *to, size_t bytes)
{
	if (getrandom(to, bytes, 0) < 0)
		abort();
}

/* An entry as it stands, and how many units the head goes on. */
static void frames_raw(struct control_client *peer, struct wire_entry entry, uint32_t units)
{
	static const uint8_t nothing[4096];

	peer_put(peer, &entry, nothing, sizeof(nothing));
	peer_push(peer, units);
}

static struct wire_entry frames_entry(unsigned op, uint32_t words, uint32_t bytes)
{
	return (struct wire_entry){.op = (uint16_t)op, .words = (uint16_t)words, .bytes = bytes, .sequence = 77};
}

/* ---- entries that are none ---- */

static int frames_op(struct control_client *peer, uint64_t context)
{
	(void)context;
	frames_raw(peer, frames_entry(OP_END, 0, 0), 1);
	return 0;
}

static int frames_op_last(struct control_client *peer, uint64_t context)
{
	(void)context;
	frames_raw(peer, frames_entry(0xffff, 0, 0), 1);
	return 0;
}

static int frames_long(struct control_client *peer, uint64_t context)
{
	(void)context;
	frames_raw(peer, frames_entry(OP_cuMemAlloc_v2, 1, WIRE_INLINE + 64), 2 + WIRE_INLINE / RING_UNIT);
	return 0;
}

static int frames_overflow(struct control_client *peer, uint64_t context)
{
	(void)context;
	frames_raw(peer, frames_entry(OP_cuMemAlloc_v2, 1, 0xffffffff), 1);
	return 0;
}

static int frames_overflow_filler(struct control_client *peer, uint64_t context)
{
	(void)context;
	frames_raw(peer, frames_entry(WIRE_FILLER, 1, 0xffffffc1), 1);
	return peer_hello(peer) == 0 ? 0 : 0;
}

static int frames_words(struct control_client *peer, uint64_t context)
{
	(void)context;
	frames_raw(peer, frames_entry(OP_cuMemAlloc_v2, 0xffff, 64), 2);
	return 0;
}

static int frames_beyond_head(struct control_client *peer, uint64_t context)
{
	(void)context;
	frames_raw(peer, frames_entry(OP_cuMemAlloc_v2, 1, 4096), 1);
	return 0;
}

static int frames_wrap(struct control_client *peer, uint64_t context)
{
	uint32_t rest = RING_UNITS - peer->head % RING_UNITS;
	struct wire_entry filler = {.slot = WIRE_SCRATCH, .bytes = (rest - 2) * RING_UNIT};

	(void)context;
	frames_raw(peer, filler, rest - 1);
	frames_raw(peer, frames_entry(OP_cuMemAlloc_v2, 1, 4096), 65);
	return 0;
}

static int frames_head_far(struct control_client *peer, uint64_t context)
{
	(void)context;
	peer_push(peer, RING_UNITS + 1);
	return 0;
}

static int frames_head_back(struct control_client *peer, uint64_t context)
{
	(void)context;
	peer_push(peer, (uint32_t)-1);
	return 0;
}

static int frames_slot(struct control_client *peer, uint64_t context)
{
	struct wire_entry entry = frames_entry(OP_cuMemAlloc_v2, 1, 8);

	(void)context;
	entry.thread = entry.slot = WIRE_SLOTS;
	frames_raw(peer, entry, 2);
	return 0;
}

static int frames_slot_of_another(struct control_client *peer, uint64_t context)
{
	struct wire_entry entry = frames_entry(OP_cuMemAlloc_v2, 1, 8);

	(void)context;
	entry.thread = 3;
	entry.slot = 4;
	frames_raw(peer, entry, 2);
	return 0;
}

static int frames_slot_huge(struct control_client *peer, uint64_t context)
{
	struct wire_entry entry = frames_entry(OP_cuMemAlloc_v2, 1, 8);

	(void)context;
	entry.thread = 0x80000000;
	entry.slot = WIRE_SCRATCH;
	frames_raw(peer, entry, 2);
	return 0;
}

static int frames_fillers(struct control_client *peer, uint64_t context)
{
	struct wire_entry filler = {.slot = WIRE_SCRATCH};

	for (int i = 0; i < 3 * RING_UNITS; i++) {
		while (ring_distance(atomic_load(&peer->wire->ring.tail.value), peer->head) > RING_UNITS - 8)
			(void)usleep(10);
		peer_put(peer, &filler, NULL, 0);
		peer_push(peer, 1);
	}
	return frames_alloc(peer, context, 4096) ? 0 : 1;
}

/* ---- arguments that are wrong ---- */

static int frames_is(int got, int wanted)
{
	if (got != wanted)
		printf("# got %d, not %d\n", got, wanted);
	return got != wanted;
}

static int frames_few_words(struct control_client *peer, uint64_t context)
{
	int r = 0;

	r |= frames_is(frames_call(peer, OP_cuMemAlloc_v2, context, 0, 0, 0, 0, 0), 1);
	r |= frames_is(frames_call(peer, OP_cuMemAlloc_v2, context, 4096, 0, 0, 0, 2), 1);
	r |= frames_is(frames_call(peer, OP_cuStreamCreate, context, 0, 0, 0, 0, 0), 1);
	r |= frames_is(frames_call(peer, WIRE_HELLO, context, 0, 0, 0, 0, 1), 1);
	r |= frames_is(frames_call(peer, OP_cuLaunchKernel, context, 0, 0, 0, 0, 0), 1);
	r |= frames_is(frames_call(peer, OP_cuModuleLoadDataEx, context, 0, 0, 0, 0, 0), 1);
	return r;
}

static int frames_part(struct control_client *peer, uint64_t context)
{
	static const uint64_t lengths[] = {
		9, 60000, WIRE_INLINE + 1, (uint64_t)1 << 32, (uint64_t)1 << 63, UINT64_MAX, UINT64_MAX - 7};
	int r = 0;

	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		const uint64_t words[] = {0, lengths[i]};

		r |= frames_is(peer_call(peer, 0, WIRE_UPLOAD, context, words, 2, "12345678", 8), 1);
		const uint64_t copy[] = {frames_alloc(peer, context, 64), 0, lengths[i]};

		r |= frames_is(peer_call(peer, 0, WIRE_COPY_IN, context, copy, 3, "12345678", 8), 1);
	}
	return r;
}

static int frames_handles(struct control_client *peer, uint64_t context)
{
	uint64_t stream = frames_stream(peer, context), event;
	int r = frames_is(frames_call(peer, OP_cuStreamSynchronize, context, stream, 0, 0, 0, 1), 0);

	r |= frames_is(frames_call(peer, OP_cuEventCreate, context, 0, 0, 0, 0, 1), 0);
	event = peer_word(peer, 0);
	r |= frames_is(frames_call(peer, OP_cuStreamSynchronize, context, event, 0, 0, 0, 1), 400);
	r |= frames_is(frames_call(peer, OP_cuStreamSynchronize, context, context, 0, 0, 0, 1), 400);
	r |= frames_is(frames_call(peer, OP_cuStreamSynchronize, context, stream + ((uint64_t)1 << 32), 0, 0, 0, 1),
		       400);
	r |= frames_is(frames_call(peer, OP_cuStreamSynchronize, context, stream | 0xffffff0, 0, 0, 0, 1), 400);
	r |= frames_is(frames_call(peer, OP_cuStreamSynchronize, context, UINT64_MAX, 0, 0, 0, 1), 400);
	r |= frames_is(frames_call(peer, OP_cuStreamSynchronize, context, stream + 1, 0, 0, 0, 1), 400);
	r |= frames_is(frames_call(peer, OP_cuStreamSynchronize, context, 0x4141414141414141, 0, 0, 0, 1), 400);
	r |= frames_is(frames_call(peer, OP_cuModuleUnload, context, event, 0, 0, 0, 1), 400);
	r |= frames_is(frames_call(peer, OP_cuStreamDestroy_v2, context, stream, 0, 0, 0, 1), 0);
	r |= frames_is(frames_call(peer, OP_cuStreamDestroy_v2, context, stream, 0, 0, 0, 1), 400);
	r |= frames_is(frames_call(peer, OP_cuStreamSynchronize, context, stream, 0, 0, 0, 1), 400);
	/* The next stream may get its place, but not its handle. */
	event = frames_stream(peer, context);
	r |= event == stream;
	r |= frames_is(frames_call(peer, OP_cuStreamSynchronize, context, stream, 0, 0, 0, 1), 400);
	return r;
}

/* As many events as there may be handles, each in one unit of the ring; after every 8192 an answer is waited for. */
static void frames_make_events(struct control_client *peer, uint64_t context, unsigned count)
{
	enum { BATCH = 8192 };
	struct wire_entry entry = {
		.op = OP_cuEventCreate, .words = 1, .bytes = 8, .slot = WIRE_SCRATCH, .context = context};
	const uint64_t flags = 0;

	for (unsigned i = 1; i <= count; i++) {
		peer_put(peer, &entry, &flags, sizeof(flags));
		peer_push(peer, 1);
		if (i % BATCH == 0)
			(void)peer_hello(peer);
	}
}

static int frames_full(struct control_client *peer, uint64_t context)
{
	static const char text[] =
		".version 6.0\n.target sm_50\n.address_size 64\n.visible .entry nop()\n{\n\tret;\n}\n";
	const uint64_t upload[] = {0, sizeof(text)}, load[] = {sizeof(text), 0, 0};
	const uint64_t stream = frames_stream(peer, context);
	int r = 0;

	frames_make_events(peer, context, 1 << 20);
	r |= frames_is(peer_call(peer, 0, WIRE_UPLOAD, context, upload, 2, text, sizeof(text)), 0);
	r |= frames_is(peer_call(peer, 0, OP_cuModuleLoadDataEx, context, load, 3, NULL, 0), 2);
	r |= frames_is(frames_call(peer, OP_cuCtxCreate_v2, context, 0, 0, 0, 0, 2), 2);
	r |= frames_is(frames_call(peer, OP_cuStreamCreate, context, 0, 0, 0, 0, 1), 2);
	/* What is there can be used and ended. */
	r |= frames_is(frames_call(peer, OP_cuStreamSynchronize, context, stream, 0, 0, 0, 1), 0);
	r |= frames_is(frames_call(peer, OP_cuDevicePrimaryCtxReset_v2, 0, 0, 0, 0, 0, 1), 0);
	context = peer_context(peer);
	return r | !context | frames_is(frames_call(peer, OP_cuStreamCreate, context, 0, 0, 0, 0, 1), 0);
}

static int frames_contexts(struct control_client *peer, uint64_t context)
{
	uint64_t stream = frames_stream(peer, context);
	int r = 0;

	r |= frames_is(frames_call(peer, OP_cuMemAlloc_v2, 0, 4096, 0, 0, 0, 1), 201);
	r |= frames_is(frames_call(peer, OP_cuMemAlloc_v2, stream, 4096, 0, 0, 0, 1), 201);
	r |= frames_is(frames_call(peer, OP_cuMemAlloc_v2, UINT64_MAX, 4096, 0, 0, 0, 1), 201);
	r |= frames_is(frames_call(peer, OP_cuMemAlloc_v2, context + 16, 4096, 0, 0, 0, 1), 201);
	r |= frames_is(frames_call(peer, OP_cuMemAlloc_v2, context, 4096, 0, 0, 0, 1), 0);
	return r;
}

static int frames_choose(struct control_client *peer, const uint8_t *list, uint64_t count)
{
	return peer_call(peer, 0, WIRE_CHOOSE, 0, &count, 1, list, count);
}

/* Of those granted, each once, and before anything is there that names one. */
static int frames_chosen(struct control_client *peer, uint64_t context)
{
	static const uint8_t one[] = {0}, twice[] = {0, 0}, other[] = {1}, far[] = {255};
	struct control_client fresh;
	int r = frames_is(frames_choose(peer, one, 1), 1);

	(void)context;
	if (!peer_open(&fresh) || peer_hello(&fresh))
		return 1;
	r |= frames_is(frames_choose(&fresh, twice, 2), 1);
	r |= frames_is(frames_choose(&fresh, other, 1), 1);
	r |= frames_is(frames_choose(&fresh, far, 1), 1);
	r |= frames_is(frames_choose(&fresh, one, 0), 1);
	r |= frames_is(frames_choose(&fresh, one, 1), 0);
	r |= frames_is(frames_choose(&fresh, one, 1), 1);
	r |= peer_context(&fresh) == 0;
	control_client_close(&fresh);
	return r;
}

static int frames_devices(struct control_client *peer, uint64_t context)
{
	int r = 0;

	r |= frames_is(frames_call(peer, WIRE_DEVICE, context, 1, 0, 0, 0, 1), 101);
	r |= frames_is(frames_call(peer, WIRE_DEVICE, context, UINT64_MAX, 0, 0, 0, 1), 101);
	r |= frames_is(frames_call(peer, OP_cuDevicePrimaryCtxRetain, context, (uint64_t)1 << 32, 0, 0, 0, 1), 101);
	r |= frames_is(frames_call(peer, OP_cuDevicePrimaryCtxRetain, context, 16, 0, 0, 0, 1), 101);
	r |= frames_is(frames_call(peer, OP_cuDeviceCanAccessPeer, context, 0, 1, 0, 0, 2), 101);
	return r;
}

/* ---- memory of the host ---- */

static int frames_host_ranges(struct control_client *peer, uint64_t context)
{
	uint64_t memory = frames_alloc(peer, context, 1 << 20);
	const uint64_t places[] = {
		0,     16, 0x400000, (uint64_t)(uintptr_t)&context, 0x7fffffffe000, 0x300000000000, UINT64_MAX - 4096,
		memory};
	int r = 0;

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		r |= frames_is(frames_call(peer, OP_cuMemcpyHtoDAsync_v2, context, memory, places[i], 4096, 0, 4), 1);
		r |= frames_is(frames_call(peer, OP_cuMemcpyDtoHAsync_v2, context, places[i], memory, 4096, 0, 4), 1);
	}
	return r;
}

static int frames_arena(struct control_client *peer, uint64_t context)
{
	uint64_t base = peer->wire->arena[0], memory;
	int r = 0;

	memory = frames_alloc(peer, context, 1 << 20);
	r |= frames_is(frames_call(peer, WIRE_ARENA_ADD, context, 4096, 65536, 0, 0, 3), 1);
	r |= frames_is(frames_call(peer, WIRE_ARENA_ADD, context, 0, 4096, 0, 0, 3), 1);
	r |= frames_is(frames_call(peer, WIRE_ARENA_ADD, context, 0, 0, 0, 0, 3), 1);
	r |= frames_is(frames_call(peer, WIRE_ARENA_ADD, context, WIRE_ARENA_BYTES, 65536, 0, 0, 3), 1);
	r |= frames_is(frames_call(peer, WIRE_ARENA_ADD, context, WIRE_ARENA_BYTES - 65536, 131072, 0, 0, 3), 1);
	r |= frames_is(frames_call(peer, WIRE_ARENA_ADD, context, -(uint64_t)65536, 65536, 0, 0, 3), 1);
	r |= frames_is(frames_call(peer, WIRE_ARENA_ADD, context, 0, -(uint64_t)65536, 0, 0, 3), 1);
	r |= frames_is(frames_call(peer, WIRE_ARENA_ADD, context, 0, WIRE_ARENA_BYTES, 0, 0, 3), 2);
	r |= frames_is(frames_call(peer, WIRE_ARENA_ADD, context, 0, 131072, 0, 0, 3), 0);
	r |= frames_is(frames_call(peer, WIRE_ARENA_ADD, context, 65536, 65536, 0, 0, 3), 1);
	r |= frames_is(frames_call(peer, OP_cuMemcpyHtoDAsync_v2, context, memory, base, 131072, 0, 4), 0);
	r |= frames_is(frames_call(peer, OP_cuMemcpyHtoDAsync_v2, context, memory, base + 65536, 65537, 0, 4), 1);
	r |= frames_is(frames_call(peer, OP_cuMemcpyHtoDAsync_v2, context, memory, base, UINT64_MAX, 0, 4), 1);
	r |= frames_is(frames_call(peer, OP_cuMemcpyDtoHAsync_v2, context, base + 131072, memory, 1, 0, 4), 1);
	r |= frames_is(frames_call(peer, WIRE_ARENA_DROP, context, 65536, 0, 0, 0, 1), 1);
	r |= frames_is(frames_call(peer, WIRE_ARENA_DROP, context, 0, 0, 0, 0, 1), 0);
	r |= frames_is(frames_call(peer, WIRE_ARENA_DROP, context, 0, 0, 0, 0, 1), 1);
	r |= frames_is(frames_call(peer, OP_cuMemcpyHtoDAsync_v2, context, memory, base, 4096, 0, 4), 1);
	return r;
}

static int frames_add_copy(struct control_client *peer, uint64_t context, uint64_t graph, const CUDA_MEMCPY3D *copy)
{
	const uint64_t words[] = {graph, 0, 0, sizeof(*copy), context};

	return peer_call(peer, 0, OP_cuGraphAddMemcpyNode, context, words, 5, copy, sizeof(*copy));
}

/* Boxes in page-locked memory, and such as reach out of it in ways that come to 0, or that are flat. */
static int frames_boxes(struct control_client *peer, uint64_t context)
{
	enum { HOST = 1, DEVICE = 2, PIECE = 131072, ROW = 4096 };
	const uint64_t base = peer->wire->arena[0], memory = frames_alloc(peer, context, PIECE);
	const CUDA_MEMCPY3D good = {.srcMemoryType = HOST,
				    .srcHost = (const void *)(base + PIECE / 2),
				    .srcPitch = ROW,
				    .srcHeight = 2,
				    .dstMemoryType = DEVICE,
				    .dstDevice = memory,
				    .dstPitch = ROW,
				    .dstHeight = 2,
				    .WidthInBytes = ROW,
				    .Height = 2,
				    .Depth = 2};
	CUDA_MEMCPY3D copy[6];
	uint64_t graph;
	int r = frames_is(frames_call(peer, WIRE_ARENA_ADD, context, 0, PIECE, 0, 0, 3), 0);

	r |= frames_is(frames_call(peer, OP_cuGraphCreate, context, 0, 0, 0, 0, 1), 0);
	graph = peer_word(peer, 0);
	r |= frames_is(frames_add_copy(peer, context, graph, &good), 0);
	for (int i = 0; i < 6; i++)
		copy[i] = good;
	copy[0].srcZ = UINT64_MAX;
	copy[1].srcY = UINT64_MAX;
	copy[2].srcXInBytes = UINT64_MAX;
	copy[3].srcPitch = 0;
	copy[4].srcHeight = 0;
	copy[5].srcPitch = (size_t)1 << 63;
	for (int i = 0; i < 6; i++)
		r |= frames_is(frames_add_copy(peer, context, graph, &copy[i]), 1);
	/* A row has neither. */
	copy[3].Height = copy[3].Depth = 1;
	copy[3].srcHeight = 0;
	return r | frames_is(frames_add_copy(peer, context, graph, &copy[3]), 0);
}

/* Who wanted none gets none: what was there may be something else by now. */
static int frames_arena_later(struct control_client *peer, uint64_t context)
{
	const uint64_t none[] = {(uint64_t)-1, (uint64_t)getpid()}, first[] = {0, (uint64_t)getpid()};
	struct control_client other;
	int r;

	(void)peer;
	if (!peer_open(&other) || peer_call(&other, 0, WIRE_HELLO, 0, none, 2, NULL, 0))
		return 1;
	context = peer_context(&other);
	r = frames_is(peer_call(&other, 0, WIRE_HELLO, context, first, 2, NULL, 0), 0);
	r |= frames_is((int32_t)other.wire->reply[0].word[1], -1);
	r |= frames_is(frames_call(&other, WIRE_ARENA_ADD, context, 0, 131072, 0, 0, 3), 1);
	control_client_close(&other);
	return r;
}

/* ---- files that are registered ---- */

enum { FILES_MOST = 8, FILE_BYTES = 1 << 20 };

static int frames_send_files(struct control_client *peer, int fd, unsigned count)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(FILES_MOST * sizeof(int))];
	} control = {.header = {.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS}};
	char bytes[4] = "";
	struct iovec data = {bytes, count};
	const struct msghdr message = {.msg_iov = &data,
				       .msg_iovlen = 1,
				       .msg_control = &control,
				       .msg_controllen = CMSG_SPACE(count * sizeof(int))};

	control.header.cmsg_len = CMSG_LEN(count * sizeof(int));
	for (unsigned i = 0; i < count; i++)
		memcpy(CMSG_DATA(&control.header) + i * sizeof(fd), &fd, sizeof(fd));
	return sendmsg(peer->socket, &message, MSG_NOSIGNAL) < 0;
}

static int frames_register(struct control_client *peer, uint64_t context, int fd, uint64_t at, uint64_t bytes,
			   uint64_t offset)
{
	if (fd >= 0 && frames_send_files(peer, fd, 1))
		return -1;
	return frames_call(peer, WIRE_REGISTER, context, at, bytes, offset, 0, 3);
}

/* None that is no memory, nothing beyond its end, and no address that is in use; what is cut off later harms nobody else. */
static int frames_files(struct control_client *peer, uint64_t context)
{
	const uint64_t at = 0x712345670000, own = peer->wire->arena[0];
	const int memory = memfd_create("file", MFD_CLOEXEC), null = open("/dev/null", O_RDWR | O_CLOEXEC),
		  disk = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	uint64_t first;
	int pair[2], r = memory < 0 || null < 0 || disk < 0 || pipe2(pair, O_CLOEXEC) < 0 ||
			 ftruncate(memory, FILE_BYTES) < 0;

	r |= frames_is(frames_register(peer, context, -1, at, 4096, 0), 1);
	r |= frames_is(frames_register(peer, context, null, at, 4096, 0), 1);
	r |= frames_is(frames_register(peer, context, disk, at, 4096, 0), 1);
	r |= frames_is(frames_register(peer, context, pair[0], at, 4096, 0), 1);
	r |= frames_is(frames_register(peer, context, peer->socket, at, 4096, 0), 1);
	r |= frames_is(frames_register(peer, context, memory, at + 1, 4096, 0), 1);
	r |= frames_is(frames_register(peer, context, memory, at, 0, 0), 1);
	r |= frames_is(frames_register(peer, context, memory, at, 4095, 0), 1);
	r |= frames_is(frames_register(peer, context, memory, at, 4096, FILE_BYTES), 1);
	r |= frames_is(frames_register(peer, context, memory, at, 2 * FILE_BYTES, 0), 1);
	r |= frames_is(frames_register(peer, context, memory, at, 4096, -(uint64_t)4096), 1);
	r |= frames_is(frames_register(peer, context, memory, at, WIRE_ARENA_BYTES, 0), 1);
	r |= frames_is(frames_register(peer, context, memory, at, FILE_BYTES, 0), 0);
	first = peer_word(peer, 0);
	r |= frames_is(first == at, 1);
	r |= frames_is(frames_register(peer, context, memory, at, FILE_BYTES, 0), 0);
	r |= frames_is(peer_word(peer, 0) != at, 1);
	r |= frames_is(frames_call(peer, WIRE_UNREGISTER, context, peer_word(peer, 0), 0, 0, 0, 1), 0);
	/* Where the server has its own, and where it would grow. */
	r |= frames_is(frames_register(peer, context, memory, own, 4096, 0), 0);
	r |= frames_is(peer_word(peer, 0) != own, 1);
	r |= frames_is(frames_register(peer, context, memory, 65536, 4096, 0), 0);
	r |= frames_is(peer_word(peer, 0) != 65536, 1);
	r |= ftruncate(memory, 0) < 0;
	r |= frames_is(frames_call(peer, WIRE_UNREGISTER, context, first, 0, 0, 0, 1), 0);
	r |= frames_is(frames_call(peer, WIRE_UNREGISTER, context, first, 0, 0, 0, 1), 1);
	r |= frames_is(frames_call(peer, WIRE_UNREGISTER, context, 0, 0, 0, 0, 1), 1);
	r |= frames_is(frames_call(peer, WIRE_SHARE_END, context, 1, 2, 0, 0, 2), 1);
	/* Of several the server keeps none: when ours are closed, nobody writes to the pipe. */
	r |= frames_send_files(peer, pair[1], 2);
	r |= frames_is(frames_call(peer, WIRE_REGISTER, context, at, 4096, 0, 0, 3), 1);
	(void)close(pair[1]);
	r |= poll(&(struct pollfd){.fd = pair[0]}, 1, 0) != 1;
	/* More than one, and nothing that is wanted. */
	r |= frames_send_files(peer, memory, 2) | frames_send_files(peer, memory, 3);
	r |= frames_is(frames_register(peer, context, -1, at, 4096, 0), 1);
	return r;
}

/* The descriptor of a new piece; -1: none. */
static int frames_take_piece(struct control_client *peer, uint64_t context, uint64_t offset, uint64_t bytes)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = {0};
	char byte;
	struct iovec data = {&byte, 1};
	struct msghdr message = {
		.msg_iov = &data, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};
	int fd;

	if (frames_call(peer, WIRE_ARENA_ADD, context, offset, bytes, 0, 0, 3) ||
	    recvmsg(peer->socket, &message, MSG_CMSG_CLOEXEC) != 1 || !CMSG_FIRSTHDR(&message))
		return -1;
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(fd));
	return fd;
}

/* Return: how much memory a descriptor keeps, in blocks; -1: it is none. */
static long frames_kept(int fd)
{
	struct stat st;

	return fstat(fd, &st) < 0 ? -1 : (long)st.st_blocks;
}

/* Memory that was dropped, and that of servers whose clients went, with descriptors of it that are kept. */
static int frames_arena_kept(struct control_client *peer, uint64_t context)
{
	const uint64_t choose[] = {0, (uint64_t)getpid()};
	struct control_client other;
	const long before = frames_kept(peer->shared);
	int dropped, left, r;

	dropped = frames_take_piece(peer, context, 0, 1 << 20);
	if (frames_kept(dropped) < before + 2048 || frames_call(peer, WIRE_ARENA_DROP, context, 0, 0, 0, 0, 1))
		return 1;
	r = frames_is(frames_kept(dropped) >= before + 2048, 0);
	if (!peer_open(&other) || peer_call(&other, 0, WIRE_HELLO, 0, choose, 2, NULL, 0))
		return 1;
	left = frames_take_piece(&other, peer_context(&other), 0, 1 << 20);
	if (frames_kept(left) < 2048 || shutdown(other.socket, SHUT_WR) < 0)
		return 1;
	for (int i = 0; i < 3000 && frames_kept(left) != 0; i++)
		(void)usleep(1000);
	r |= frames_is(frames_kept(left) != 0, 0);
	(void)close(dropped);
	(void)close(left);
	control_client_close(&other);
	return r;
}

/* What is sent and never used, by many threads: it counts as the container's memory on the host. */
static int frames_unused_uploads(struct control_client *peer, uint64_t context)
{
	enum { THREADS = 48, PIECE = 32768, PIECES = 32 };
	static uint8_t piece[PIECE];
	uint64_t kept = 0;

	(void)context;
	for (uint32_t thread = 1; thread <= THREADS; thread++)
		for (uint64_t i = 0; i < PIECES; i++) {
			const uint64_t words[] = {i * PIECE, PIECE};

			if (peer_call(peer, thread, WIRE_UPLOAD, 0, words, 2, piece, PIECE))
				break;
			kept += PIECE;
		}
	printf("# uploads keep %lu\n", (unsigned long)kept);
	return kept == 0;
}

/* What linkers are given and never link. */
static int frames_unlinked(struct control_client *peer, uint64_t context)
{
	enum { ADDED = 300, BYTES = 60000 };
	static char text[BYTES];
	const uint64_t upload[] = {0, sizeof(text)};
	uint64_t kept = 0;
	int r = frames_is(frames_call(peer, OP_cuLinkCreate_v2, context, 0, 0, 0, 0, 3), 0);
	const uint64_t linker = peer_word(peer, 0), add[] = {sizeof(text), 0, 0, linker, 1};

	memset(text, ' ', sizeof(text) - 1);
	memcpy(text, kernels, sizeof(kernels) - 1);
	for (int i = 0; i < ADDED; i++)
		if (peer_call(peer, 0, WIRE_UPLOAD, context, upload, 2, text, sizeof(text)) == 0 &&
		    peer_call(peer, 0, OP_cuLinkAddData_v2, context, add, 5, NULL, 0) == 0)
			kept += sizeof(text);
	printf("# linkers keep %lu\n", (unsigned long)kept);
	/* It is nobody's when they end. */
	r |= frames_is(frames_call(peer, OP_cuLinkDestroy, context, linker, 0, 0, 0, 1), 0);
	r |= frames_is(frames_call(peer, OP_cuLinkCreate_v2, context, 0, 0, 0, 0, 3), 0);
	const uint64_t again[] = {sizeof(text), 0, 0, peer_word(peer, 0), 1};

	r |= frames_is(peer_call(peer, 0, WIRE_UPLOAD, context, upload, 2, text, sizeof(text)), 0);
	return r | frames_is(peer_call(peer, 0, OP_cuLinkAddData_v2, context, again, 5, NULL, 0), 0) | (kept == 0);
}

/* Each call that allocates gets what is left, and with a byte more, or its granularity, nothing. */
static int frames_every_allocation(struct control_client *peer, uint64_t context)
{
	enum { OUT_OF_MEMORY = 2, CONTEXT_LIMITS_HEAP = 2, GRANULARITY = 2 << 20 };
	const CUmemAllocationProp physical = {.type = 1, .location = {1, 0}};
	const CUmemPoolProps any = {.allocType = 1, .location = {1, 0}};
	uint64_t left, pool, words[3];
	int r = 0;

	if (frames_call(peer, OP_cuMemGetInfo_v2, context, 0, 0, 0, 0, 0))
		return 1;
	left = peer_word(peer, 0);
	if (peer->wire->reply[0].word[1] > 1 << 30)
		return 0;
	words[0] = sizeof(any);
	if (peer_call(peer, 0, OP_cuMemPoolCreate, context, words, 1, &any, sizeof(any)))
		return 2;
	pool = peer_word(peer, 0);
	r |= frames_call(peer, OP_cuMemAlloc_v2, context, left + 1, 0, 0, 0, 1) != OUT_OF_MEMORY;
	r |= (frames_call(peer, OP_cuMemAllocPitch_v2, context, 512, left / 512 + 1, 4, 0, 3) != OUT_OF_MEMORY) << 1;
	r |= (frames_call(peer, OP_cuMemAllocAsync, context, left + 1, 0, 0, 0, 2) != OUT_OF_MEMORY) << 2;
	r |= (frames_call(peer, OP_cuMemAllocFromPoolAsync, context, left + 1, pool, 0, 0, 3) != OUT_OF_MEMORY) << 3;
	words[0] = (left / GRANULARITY + 1) * GRANULARITY;
	words[1] = sizeof(physical);
	words[2] = 0;
	r |= (peer_call(peer, 0, OP_cuMemCreate, context, words, 3, &physical, sizeof(physical)) != OUT_OF_MEMORY) << 4;
	r |= (frames_call(peer, OP_cuCtxSetLimit, context, CONTEXT_LIMITS_HEAP, left + 1, 0, 0, 2) != OUT_OF_MEMORY)
	     << 5;
	r |= (frames_call(peer, OP_cuMemAlloc_v2, context, left / PAGE * PAGE, 0, 0, 0, 1) != 0) << 6;
	for (left %= PAGE; left > 0; left -= words[0]) {
		words[0] = left < PAGE / 2 ? left : PAGE / 2;
		r |= (frames_call(peer, OP_cuMemAlloc_v2, context, words[0], 0, 0, 0, 1) != 0) << 6;
	}
	/* Now nothing is left, to any of them. */
	r |= (frames_call(peer, OP_cuMemAllocAsync, context, 1, 0, 0, 0, 2) != OUT_OF_MEMORY) << 7;
	printf("# refused at the byte: %#x of %lu\n", (unsigned)r, (unsigned long)left);
	return r;
}

/* Pools that keep what was freed to them come to no more than the limit; without one, nothing is asked. */
static int frames_pools(struct control_client *peer, uint64_t context)
{
	enum { THRESHOLD = 4, RESERVED = 5, POOLS = 4 };
	const uint64_t properties[] = {sizeof(CUmemPoolProps)};
	const CUmemPoolProps any = {.allocType = 1, .location = {1, 0}};
	uint64_t pools[POOLS] = {0}, limit, kept = 0;

	if (frames_call(peer, OP_cuMemGetInfo_v2, context, 0, 0, 0, 0, 0))
		return 1;
	limit = peer->wire->reply[0].word[1];
	if (limit > 1 << 30)
		return 0;
	for (int i = 0; i < POOLS; i++) {
		if (peer_call(peer, 0, OP_cuMemPoolCreate, context, properties, 1, &any, sizeof(any)))
			return 2;
		pools[i] = peer_word(peer, 0);
		(void)frames_call(peer, OP_cuMemPoolSetAttribute, context, pools[i], THRESHOLD, UINT64_MAX, 0, 3);
		if (frames_call(peer, OP_cuMemAllocFromPoolAsync, context, limit / 2, pools[i], 0, 0, 3) == 0)
			(void)frames_call(peer, OP_cuMemFreeAsync, context, peer_word(peer, 0), 0, 0, 0, 2);
	}
	for (int i = 0; i < POOLS; i++)
		if (frames_call(peer, OP_cuMemPoolGetAttribute, context, pools[i], RESERVED, 0, 0, 2) == 0)
			kept += peer_word(peer, 0);
	printf("# pools keep %lu of %lu\n", (unsigned long)kept, (unsigned long)limit);
	/* The neighbour has a page. */
	return kept > limit || !frames_alloc(peer, context, limit - PAGE);
}

/* Return: how much is left of a limit; 0: there is none. */
static uint64_t frames_left(struct control_client *peer, uint64_t context)
{
	if (frames_call(peer, OP_cuMemGetInfo_v2, context, 0, 0, 0, 0, 0) || peer->wire->reply[0].word[1] > 1 << 30)
		return 0;
	return peer_word(peer, 0);
}

/* A pool that gives nothing back by itself. */
static uint64_t frames_pool(struct control_client *peer, uint64_t context)
{
	enum { THRESHOLD = 4 };
	const uint64_t properties[] = {sizeof(CUmemPoolProps)};
	const CUmemPoolProps any = {.allocType = 1, .location = {1, 0}};
	uint64_t pool;

	if (peer_call(peer, 0, OP_cuMemPoolCreate, context, properties, 1, &any, sizeof(any)))
		return 0;
	pool = peer_word(peer, 0);
	(void)frames_call(peer, OP_cuMemPoolSetAttribute, context, pool, THRESHOLD, UINT64_MAX, 0, 3);
	return pool;
}

static uint64_t frames_alloc_from(struct control_client *peer, uint64_t context, uint64_t pool, uint64_t bytes)
{
	return frames_call(peer, OP_cuMemAllocFromPoolAsync, context, bytes, pool, 0, 0, 3) == 0 ? peer_word(peer, 0)
												 : 0;
}

/* Processes of a container, each of which lets a pool keep half of what there is and frees it. */
static int frames_pools_of_others(struct control_client *peer, uint64_t context)
{
	enum { RESERVED = 5, OTHERS = 3 };
	const uint64_t limit = frames_left(peer, context);
	uint64_t kept = 0, pools[OTHERS], contexts[OTHERS];
	struct control_client others[OTHERS];

	if (limit == 0)
		return 0;
	for (int i = 0; i < OTHERS; i++) {
		if (!peer_open(&others[i]) || peer_hello(&others[i]))
			return 1;
		contexts[i] = peer_context(&others[i]);
		pools[i] = frames_pool(&others[i], contexts[i]);
		const uint64_t memory = frames_alloc_from(&others[i], contexts[i], pools[i], limit / 2);

		if (memory)
			(void)frames_call(&others[i], OP_cuMemFreeAsync, contexts[i], memory, 0, 0, 0, 2);
	}
	for (int i = 0; i < OTHERS; i++)
		if (frames_call(&others[i], OP_cuMemPoolGetAttribute, contexts[i], pools[i], RESERVED, 0, 0, 2) == 0)
			kept += peer_word(&others[i], 0);
	printf("# pools of others keep %lu of %lu\n", (unsigned long)kept, (unsigned long)limit);
	/* The first has memory that it keeps, and gives it back for what it asks itself. */
	if (!frames_alloc(&others[0], contexts[0], limit / 2 / PAGE * PAGE))
		kept = UINT64_MAX;
	for (int i = 0; i < OTHERS; i++)
		control_client_close(&others[i]);
	return kept == 0 || kept > limit;
}

/* Pools that are destroyed while a little of them is in use: what was freed to them is there again. */
static int frames_pools_destroyed(struct control_client *peer, uint64_t context)
{
	enum { POOLS = 12 };
	const uint64_t limit = frames_left(peer, context);
	int r = 0;

	if (limit == 0)
		return 0;
	for (int i = 0; i < POOLS; i++) {
		const uint64_t pool = frames_pool(peer, context),
			       large = frames_alloc_from(peer, context, pool, limit / 4);

		r |= !large || !frames_alloc_from(peer, context, pool, 512);
		r |= frames_is(frames_call(peer, OP_cuDeviceSetMemPool, context, 0, pool, 0, 0, 2), 0);
		r |= frames_is(frames_call(peer, OP_cuMemPoolDestroy, context, pool, 0, 0, 0, 1), 0);
		r |= frames_is(frames_call(peer, OP_cuMemPoolDestroy, context, pool, 0, 0, 0, 1), 1);
		r |= frames_is(frames_call(peer, OP_cuMemFreeAsync, context, large, 0, 0, 0, 2), 0);
	}
	printf("# %d pools destroyed of %lu\n", POOLS, (unsigned long)limit);
	/* The default one again. */
	r |= frames_is(frames_call(peer, OP_cuMemAllocAsync, context, 512, 0, 0, 0, 2), 0);
	return r | !frames_alloc(peer, context, limit / 2);
}

/* What takes more of the GPU than it has bytes. */
static int frames_small(struct control_client *peer, uint64_t context)
{
	enum { PIECES = 1000, PIECE = 512, OUT_OF_MEMORY = 2 };
	const uint64_t left = frames_left(peer, context);
	int r = 0;

	if (left == 0)
		return 0;
	r |= frames_is(frames_call(peer, OP_cuMemAllocPitch_v2, context, 1, left / PIECE + 1, 4, 0, 3), OUT_OF_MEMORY);
	for (int i = 0; i < PIECES; i++)
		r |= !frames_alloc(peer, context, 1);
	r |= left - frames_left(peer, context) < PIECES * PIECE;
	printf("# %d small pieces of %lu\n", PIECES, (unsigned long)left);
	return r;
}

/*
 * Heap, stacks and the buffer of printf: together with what was allocated, no more than the limit. What nobody can
 * count is refused above what the driver has of it at first.
 */
static int frames_limits(struct control_client *peer, uint64_t context)
{
	enum { STACK, PRINT, HEAP, DEPTH, LAUNCHES, OUT_OF_MEMORY = 2, UNSUPPORTED_LIMIT = 215 };
	uint64_t limit, launches;

	if (frames_call(peer, OP_cuMemGetInfo_v2, context, 0, 0, 0, 0, 0))
		return 1;
	limit = peer->wire->reply[0].word[1];
	if (limit > 1 << 30)
		return 0;
	printf("# heap and stacks of %lu\n", (unsigned long)limit);
	if (frames_call(peer, OP_cuCtxSetLimit, context, HEAP, limit / 2, 0, 0, 2) ||
	    frames_call(peer, OP_cuCtxSetLimit, context, HEAP, limit / 4, 0, 0, 2) ||
	    frames_call(peer, OP_cuCtxSetLimit, context, HEAP, limit / 2, 0, 0, 2) ||
	    frames_call(peer, OP_cuCtxSetLimit, context, PRINT, limit / 4, 0, 0, 2))
		return 2;
	/* On a GPU that has 4096 threads at once and more. */
	if (frames_call(peer, OP_cuCtxSetLimit, context, STACK, limit / 4096, 0, 0, 2) != OUT_OF_MEMORY ||
	    frames_call(peer, OP_cuCtxSetLimit, context, STACK, UINT64_MAX, 0, 0, 2) != OUT_OF_MEMORY ||
	    frames_call(peer, OP_cuCtxSetLimit, context, PRINT, limit, 0, 0, 2) != OUT_OF_MEMORY ||
	    frames_call(peer, OP_cuCtxSetLimit, context, 1ULL << 32 | HEAP, limit, 0, 0, 2) != OUT_OF_MEMORY)
		return 3;
	if (frames_call(peer, OP_cuCtxGetLimit, context, LAUNCHES, 0, 0, 0, 1))
		return 4;
	launches = peer_word(peer, 0);
	printf("# launches by kernels: %lu\n", (unsigned long)launches);
	if (frames_call(peer, OP_cuCtxSetLimit, context, DEPTH, 3, 0, 0, 2) != UNSUPPORTED_LIMIT ||
	    frames_call(peer, OP_cuCtxSetLimit, context, LAUNCHES, launches + 1, 0, 0, 2) != OUT_OF_MEMORY ||
	    frames_call(peer, OP_cuCtxSetLimit, context, LAUNCHES, launches / 2, 0, 0, 2) ||
	    frames_call(peer, OP_cuCtxSetLimit, context, LAUNCHES, launches, 0, 0, 2) ||
	    frames_call(peer, OP_cuCtxSetLimit, context, LAUNCHES, launches + 1, 0, 0, 2) != OUT_OF_MEMORY)
		return 5;
	return frames_alloc(peer, context, limit / 2) || !frames_alloc(peer, context, limit / 8);
}

/* Thousands of pieces whose descriptors nobody takes from the socket. */
static int frames_arena_unread(struct control_client *peer, uint64_t context)
{
	int refused = 0;

	for (uint64_t i = 0; i < 600; i++)
		refused += frames_call(peer, WIRE_ARENA_ADD, context, i * 65536, 65536, 0, 0, 3) != 0;
	for (uint64_t i = 0; i < 600; i++)
		(void)frames_call(peer, WIRE_ARENA_DROP, context, i * 65536, 0, 0, 0, 1);
	return frames_alloc(peer, context, 4096) ? 0 : 1 + refused;
}

static int frames_chunks(struct control_client *peer, uint64_t context)
{
	uint64_t memory = frames_alloc(peer, context, 16 << 20);
	int r = 0;

	for (unsigned op = WIRE_STAGE_IN; op <= WIRE_STAGE_OUT; op++) {
		r |= frames_is(frames_call(peer, op, context, memory, 0, WIRE_CHUNKS, 64, 4), 1);
		r |= frames_is(frames_call(peer, op, context, memory, 0, (uint64_t)1 << 32, 64, 4), 1);
		r |= frames_is(frames_call(peer, op, context, memory, 0, UINT64_MAX, 64, 4), 1);
		r |= frames_is(frames_call(peer, op, context, memory, 0, 0, WIRE_SMALL_BYTES + 1, 4), 1);
		r |= frames_is(frames_call(peer, op, context, memory, 0, WIRE_CHUNKS - 1, WIRE_LARGE_BYTES + 1, 4), 1);
		r |= frames_is(frames_call(peer, op, context, memory, 0, 0, UINT64_MAX, 4), 1);
		r |= frames_is(frames_call(peer, op, context, memory, 0, 0, 0, 4), 1);
		r |= frames_is(frames_call(peer, op, context, 16, 0, 0, 64, 4), 1);
		r |= frames_is(frames_call(peer, op, context, memory, UINT64_MAX, 0, 64, 4), 400);
		r |= frames_is(frames_call(peer, op, context, memory, 0, WIRE_CHUNKS - 1, WIRE_LARGE_BYTES, 4), 0);
	}
	r |= frames_is(frames_call(peer, WIRE_STAGE_WAIT, context, WIRE_CHUNKS, 0, 0, 0, 1), 1);
	r |= frames_is(frames_call(peer, WIRE_STAGE_WAIT, context, UINT64_MAX, 0, 0, 0, 1), 1);
	r |= frames_is(frames_call(peer, WIRE_STAGE_WAIT, context, 5, 0, 0, 0, 1), 0);
	return r;
}

/* ---- images and texts ---- */

static int frames_upload(struct control_client *peer, uint64_t context, const void *data, size_t bytes)
{
	const uint64_t words[] = {0, bytes};

	return peer_call(peer, 0, WIRE_UPLOAD, context, words, 2, data, bytes);
}

static int frames_load(struct control_client *peer, uint64_t context, uint64_t bytes)
{
	return frames_call(peer, OP_cuModuleLoadDataEx, context, bytes, 0, 0, 0, 3);
}

enum { MODULES = 100, FUNCTIONS = 30 };

/* A module of so many functions, called k00 and so on. */
static uint64_t frames_load_functions(struct control_client *peer, uint64_t context)
{
	static char text[64 + FUNCTIONS * 48];
	size_t bytes = (size_t)snprintf(text, sizeof(text), ".version 6.0\n.target sm_50\n.address_size 64\n");

	for (int i = 0; i < FUNCTIONS; i++)
		bytes += (size_t)snprintf(text + bytes, sizeof(text) - bytes, ".visible .entry k%02d()\n{\n\tret;\n}\n",
					  i);
	if (frames_upload(peer, context, text, bytes + 1) || frames_load(peer, context, bytes + 1))
		return 0;
	return peer_word(peer, 0);
}

/* A module with an array of so many bytes on the GPU. */
static int frames_load_array(struct control_client *peer, uint64_t context, uint64_t bytes)
{
	char text[128];
	const int length = snprintf(text, sizeof(text),
				    ".version 6.0\n.target sm_50\n.address_size 64\n.global .align 4 .b8 array[%lu];\n",
				    (unsigned long)bytes);

	if (frames_upload(peer, context, text, (size_t)length + 1))
		return -1;
	return frames_load(peer, context, (uint64_t)length + 1);
}

/* Arrays of modules count until these are unloaded, and so do those of modules that are not loaded in the end. */
static int frames_arrays(struct control_client *peer, uint64_t context)
{
	enum { OUT_OF_MEMORY = 2 };
	const uint64_t left = frames_left(peer, context), rest = left % PAGE;
	uint64_t module;
	int r = 0;

	if (left == 0)
		return 0;
	r |= frames_is(frames_load_array(peer, context, left + 1), OUT_OF_MEMORY);
	r |= frames_left(peer, context) != left;
	r |= frames_is(frames_load_array(peer, context, left - rest), 0);
	module = peer_word(peer, 0);
	r |= frames_left(peer, context) != rest;
	r |= frames_is(frames_load_array(peer, context, rest + 1), OUT_OF_MEMORY);
	r |= frames_is(frames_call(peer, OP_cuModuleUnload, context, module, 0, 0, 0, 1), 0);
	r |= frames_left(peer, context) != left;
	printf("# arrays of modules of %lu\n", (unsigned long)left);
	return r;
}

/* What the server knows of many functions. */
static int frames_functions(struct control_client *peer, uint64_t context)
{
	unsigned known = 0;
	char name[16];

	for (int i = 0; i < MODULES * FUNCTIONS; i++) {
		static uint64_t words[2];

		if (i % FUNCTIONS == 0)
			words[0] = frames_load_functions(peer, context);
		words[1] = (uint64_t)snprintf(name, sizeof(name), "k%02d", i % FUNCTIONS);
		if (peer_call(peer, 0, OP_cuModuleGetFunction, context, words, 2, name, 3))
			return 1;
		known += frames_call(peer, WIRE_FUNCTION, context, peer_word(peer, 0), 0, 0, 0, 1) == 0;
	}
	printf("# functions known: %u\n", known);
	return known == 0;
}

static int frames_downloads(struct control_client *peer, uint64_t context)
{
	int r = 0;

	r |= frames_is(frames_call(peer, WIRE_DOWNLOAD, context, 0, 64, 0, 0, 2), 1);
	r |= frames_is(frames_call(peer, WIRE_DOWNLOAD, context, UINT64_MAX, 64, 0, 0, 2), 1);
	r |= frames_is(frames_call(peer, WIRE_DOWNLOAD, context, 0, UINT64_MAX, 0, 0, 2), 1);
	r |= frames_is(frames_call(peer, WIRE_DOWNLOAD, context, 64, UINT64_MAX - 32, 0, 0, 2), 1);
	return r;
}

static int frames_uploads(struct control_client *peer, uint64_t context)
{
	const uint64_t wrong[] = {100, 8}, huge[] = {UINT64_MAX, 8};
	int r = 0;

	r |= frames_is(peer_call(peer, 0, WIRE_UPLOAD, context, wrong, 2, "12345678", 8), 1);
	r |= frames_is(peer_call(peer, 0, WIRE_UPLOAD, context, huge, 2, "12345678", 8), 1);
	/* An upload of another thread, or of another length, is no image. */
	r |= frames_is(frames_upload(peer, context, kernels, sizeof(kernels)), 0);
	r |= frames_load(peer, context, sizeof(kernels) + 1) == 0;
	r |= frames_load(peer, context, 0) == 0;
	r |= frames_load(peer, context, UINT64_MAX) == 0;
	return r;
}

static int frames_images(struct control_client *peer, uint64_t context)
{
	uint8_t noise[4096];
	int r = 0;

	frames_random(noise, sizeof(noise));
	memcpy(noise, "\177ELF\2\1\1", 7);
	r |= frames_is(frames_upload(peer, context, noise, sizeof(noise)), 0);
	r |= frames_load(peer, context, sizeof(noise)) == 0;
	memcpy(noise, "\xb1\x43\x62\x46", 4);
	r |= frames_is(frames_upload(peer, context, noise, sizeof(noise)), 0);
	r |= frames_load(peer, context, sizeof(noise)) == 0;
	r |= frames_is(frames_upload(peer, context, kernels, 1), 0);
	r |= frames_load(peer, context, 1) == 0;
	return r;
}

static int frames_options(struct control_client *peer, uint64_t context)
{
	/* The log's buffer as an option: its value would be an address. */
	const uint64_t words[] = {sizeof(kernels), 0, 1, 5, 0x4141414141414141},
		       many[] = {sizeof(kernels), 0, UINT64_MAX};
	int r = 0;

	r |= frames_is(frames_upload(peer, context, kernels, sizeof(kernels)), 0);
	r |= peer_call(peer, 0, OP_cuModuleLoadDataEx, context, words, 5, NULL, 0) == 0;
	r |= peer_call(peer, 0, OP_cuModuleLoadDataEx, context, many, 3, NULL, 0) == 0;
	return r;
}

static int frames_names(struct control_client *peer, uint64_t context)
{
	char name[70000];
	uint64_t module;
	int r = frames_is(frames_upload(peer, context, kernels, sizeof(kernels)), 0);

	r |= frames_is(frames_load(peer, context, sizeof(kernels)), 0);
	module = peer_word(peer, 0);
	memset(name, 'a', sizeof(name));
	for (uint64_t length = 1; length <= 65000; length = length * 4 + 1) {
		const uint64_t words[] = {module, length};

		r |= frames_is(peer_call(peer, 0, OP_cuModuleGetFunction, context, words, 2, name, length), 500);
	}
	const uint64_t beyond[] = {module, 64}, good[] = {module, 3};

	r |= frames_is(peer_call(peer, 0, OP_cuModuleGetFunction, context, beyond, 2, name, 8), 1);
	r |= frames_is(peer_call(peer, 0, OP_cuModuleGetFunction, context, good, 2, "nop", 3), 0);
	return r;
}

static int frames_launches(struct control_client *peer, uint64_t context)
{
	uint64_t module, function, good[3];
	int r = frames_is(frames_upload(peer, context, kernels, sizeof(kernels)), 0);

	r |= frames_is(frames_load(peer, context, sizeof(kernels)), 0);
	module = peer_word(peer, 0);
	good[0] = module;
	good[1] = 3;
	r |= frames_is(peer_call(peer, 0, OP_cuModuleGetFunction, context, good, 2, "nop", 3), 0);
	function = peer_word(peer, 0);
	const uint64_t launch[7] = {function, 1 | (uint64_t)1 << 32, 1 | (uint64_t)1 << 32, 1 | (uint64_t)1 << 32};
	uint64_t wrong[7];

	r |= frames_is(peer_call(peer, 0, OP_cuLaunchKernel, context, launch, 7, NULL, 0), 0);
	/* The last word: attributes, and bytes of parameters in the upper half. */
	static const struct {
		int word;
		uint64_t value;
	} changes[] = {{0, 0},
		       {0, 0x4141414141414141},
		       {1, 0},
		       {5, UINT64_MAX},
		       {6, 17},
		       {6, UINT64_MAX},
		       {6, 1},
		       {6, (uint64_t)8 << 32},
		       {6, (uint64_t)1 << 63}};

	for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		memcpy(wrong, launch, sizeof(wrong));
		wrong[changes[i].word] = changes[i].value;
		r |= peer_call(peer, 0, OP_cuLaunchKernel, context, wrong, 7, NULL, 0) == 0;
		r |= peer_call(peer, 0, OP_cuLaunchKernelEx, context, wrong, 7, NULL, 0) == 0;
	}
	memcpy(wrong, launch, sizeof(wrong));
	wrong[0] = module;
	r |= peer_call(peer, 0, OP_cuLaunchKernel, context, wrong, 7, NULL, 0) == 0;
	return r;
}

static const char printing[] =
	".version 6.0\n.target sm_50\n.address_size 64\n"
	".extern .func (.param .b32 result) vprintf(.param .b64 format, .param .b64 arguments);\n"
	".visible .entry say(.param .u32 value)\n{\n\tret;\n}\n";

static uint64_t frames_fetch(struct control_client *peer, uint64_t which)
{
	uint64_t bytes = 0;

	while (frames_call(peer, WIRE_PRINT, 0, which, 0, 0, 0, 1) == 0 && peer->wire->reply[0].bytes > 0)
		bytes += peer->wire->reply[0].bytes;
	return bytes;
}

/* What nobody fetches is kept up to some limit, and how much is lost is told. */
static int frames_prints(struct control_client *peer, uint64_t context)
{
	enum { KEPT = 16 << 20, LAUNCHES = 20 };
	uint64_t names[2] = {0, 3}, bytes;
	int r = frames_is(frames_upload(peer, context, printing, sizeof(printing)), 0);

	r |= frames_is(frames_load(peer, context, sizeof(printing)), 0);
	names[0] = peer_word(peer, 0);
	r |= frames_is(peer_call(peer, 0, OP_cuModuleGetFunction, context, names, 2, "say", 3), 0);
	const uint64_t launch[8] = {peer_word(peer, 0),
				    50 | (uint64_t)1 << 32,
				    1 | (uint64_t)1000 << 32,
				    1 | (uint64_t)1 << 32,
				    0,
				    0,
				    (uint64_t)4 << 32,
				    12345};

	for (int i = 0; i < LAUNCHES; i++) {
		r |= frames_is(peer_call(peer, 0, OP_cuLaunchKernel, context, launch, 7, &launch[7], 8), 0);
		r |= frames_is(frames_call(peer, OP_cuCtxSynchronize, context, 0, 0, 0, 0, 0), 0);
	}
	r |= frames_is((int)peer->wire->reply[0].prints, 1 << WIRE_PRINT_OUT);
	r |= frames_is(frames_call(peer, WIRE_PRINT, 0, WIRE_PRINTS, 0, 0, 0, 1), 1);
	r |= frames_is(frames_call(peer, WIRE_PRINT, 0, UINT64_MAX, 0, 0, 0, 1), 1);
	bytes = frames_fetch(peer, WIRE_PRINT_OUT);
	printf("# printed and kept: %lu\n", (unsigned long)bytes);
	r |= bytes > KEPT || bytes == 0;
	r |= frames_fetch(peer, WIRE_PRINT_ERROR) == 0;
	r |= frames_is((int)peer->wire->reply[0].prints, 0);
	return r;
}

/* A library's kernel, the kernel's function, the library's module and the module's: nothing is left of any. */
static int frames_unloaded(struct control_client *peer, uint64_t context)
{
	uint64_t library, names[2], function[3];
	int value, r = frames_is(frames_upload(peer, context, kernels, sizeof(kernels)), 0);

	r |= frames_is(frames_call(peer, OP_cuLibraryLoadData, context, sizeof(kernels), 0, 0, 0, 3), 0);
	library = names[0] = peer_word(peer, 0);
	names[1] = 3;
	r |= frames_is(peer_call(peer, 0, OP_cuLibraryGetKernel, context, names, 2, "nop", 3), 0);
	function[0] = peer_word(peer, 0);
	r |= frames_is(frames_call(peer, OP_cuKernelGetFunction, context, function[0], 0, 0, 0, 1), 0);
	function[1] = peer_word(peer, 0);
	r |= frames_is(frames_call(peer, OP_cuLibraryGetModule, context, library, 0, 0, 0, 1), 0);
	names[0] = peer_word(peer, 0);
	r |= frames_is(peer_call(peer, 0, OP_cuModuleGetFunction, context, names, 2, "nop", 3), 0);
	function[2] = peer_word(peer, 0);
	r |= frames_is(frames_call(peer, OP_cuLibraryUnload, context, library, 0, 0, 0, 1), 0);
	for (int i = 0; i < 3; i++) {
		value = frames_call(peer, OP_cuFuncGetAttribute, context, 0, function[i], 0, 0, 2);
		r |= frames_is(value, CUDA_ERROR_INVALID_HANDLE);
	}
	return r;
}

/* Attributes of streams and memory that is held: what is not the client's to name does not get to the driver. */
static int frames_attributes(struct control_client *peer, uint64_t context)
{
	enum { EVENT = 7, COMPLETION = 12, NODE = 13, BEYOND = 64, INVALID = 1 };
	static const int attributes[] = {EVENT, COMPLETION, NODE, BEYOND, -1};
	const uint64_t stream = frames_stream(peer, context);
	CUstreamAttrValue value;
	int r = 0;

	memset(&value, 0x41, sizeof(value));
	for (size_t i = 0; i < sizeof(attributes) / sizeof(attributes[0]); i++) {
		const uint64_t words[] = {stream, (uint64_t)attributes[i], sizeof(value)};

		r |= frames_is(peer_call(peer, 0, OP_cuStreamSetAttribute, context, words, 3, &value, sizeof(value)),
			       INVALID);
	}
	return r | frames_is(frames_call(peer, OP_cuMemRetainAllocationHandle, context,
					 frames_alloc(peer, context, 4096), 0, 0, 0, 1),
			     INVALID);
}

static int frames_texts(struct control_client *peer, uint64_t context)
{
	char text[200];
	const uint64_t words[] = {START_EVENT_REFUSED, sizeof(text)}, kind[] = {START_EVENT_READY, 4};
	int r = 0;

	memset(text, '\n', sizeof(text));
	r |= frames_is(peer_call(peer, 0, WIRE_REFUSED, context, words, 2, text, sizeof(text)), 0);
	r |= frames_is(peer_call(peer, 0, WIRE_REFUSED, context, kind, 2, "text", 4), 1);
	return r;
}

/* ---- what happens at the same time ---- */

struct flipper {
	volatile uint32_t *word;
	volatile bool stop;
};

static void *frames_flip(void *argument)
{
	struct flipper *flipper = argument;
	static const uint32_t values[] = {0x00010008, 0xffffffff, 0, 65536, 0x00ff0009, 8};

	for (unsigned i = 0; !flipper->stop; i++)
		*flipper->word = values[i % 6];
	return NULL;
}

/* Bytes of an entry change while the server looks at it. */
static int frames_changing(struct control_client *peer, uint64_t context)
{
	for (unsigned round = 0; round < 400 && !peer_is_gone(peer, 0); round++) {
		struct flipper flipper = {
			.word = (volatile uint32_t *)(void *)(peer->wire->command +
							      (size_t)((peer->head + 1) % RING_UNITS) * RING_UNIT +
							      sizeof(struct wire_entry) + 4 * (round % 2))};
		struct wire_entry filler = {.slot = WIRE_SCRATCH};
		pthread_t thread;

		(void)pthread_create(&thread, NULL, frames_flip, &flipper);
		peer_put(peer, &filler, NULL, 0);
		peer_push(peer, 1);
		peer_put(peer,
			 &(struct wire_entry){.op = OP_cuMemAlloc_v2,
					      .words = 1,
					      .bytes = 8,
					      .slot = WIRE_SCRATCH,
					      .context = context},
			 NULL, 0);
		peer_push(peer, 1);
		(void)usleep(200);
		flipper.stop = true;
		(void)pthread_join(thread, NULL);
	}
	return 0;
}

/* A thread that waits already sends more: another wait, and an image while one is compiled. */
static int frames_two_waits(struct control_client *peer, uint64_t context)
{
	uint64_t stream = frames_stream(peer, context), memory = frames_alloc(peer, context, 4096);
	const uint64_t zero[] = {memory, 0, 1, 0}, wait[] = {stream, memory, 1, 1}, synchronize[] = {stream};

	peer_send(peer, 0, OP_cuMemsetD32Async, context, zero, 4, NULL, 0, false);
	(void)frames_call(peer, OP_cuCtxSynchronize, context, 0, 0, 0, 0, 0);
	peer_send(peer, 0, OP_cuStreamWaitValue32_v2, context, wait, 4, NULL, 0, false);
	for (int i = 0; i < 50; i++) {
		peer_send(peer, 0, OP_cuStreamSynchronize, context, synchronize, 1, NULL, 0, true);
		peer_send(peer, 0, OP_cuCtxSynchronize, context, NULL, 0, NULL, 0, true);
		(void)frames_upload(peer, context, kernels, sizeof(kernels));
		peer_send(peer, 0, OP_cuModuleLoadDataEx, context, (const uint64_t[]){sizeof(kernels), 0, 0}, 3, NULL,
			  0, true);
		if (peer_is_gone(peer, 0))
			return 0;
	}
	return 0;
}

static int frames_upload_while_compiling(struct control_client *peer, uint64_t context)
{
	static char text[60000];

	memset(text, ' ', sizeof(text) - 1);
	memcpy(text, kernels, sizeof(kernels) - 1);
	for (int i = 0; i < 200 && !peer_is_gone(peer, 0); i++) {
		const uint64_t words[] = {0, sizeof(text)}, load[] = {sizeof(text), 0, 0};

		peer_send(peer, 0, WIRE_UPLOAD, context, words, 2, text, sizeof(text), false);
		peer_send(peer, 0, OP_cuModuleLoadDataEx, context, load, 3, NULL, 0, true);
		peer_send(peer, 0, WIRE_UPLOAD, context, words, 2, text, sizeof(text), false);
		peer_send(peer, 0, WIRE_DOWNLOAD, context, (const uint64_t[]){0, 64}, 2, NULL, 0, false);
		(void)usleep(500);
	}
	return 0;
}

/* One thread ends a linker while another uses it, and makes the next. */
static int frames_linkers(struct control_client *peer, uint64_t context)
{
	const uint64_t upload[] = {0, sizeof(kernels)};

	for (int i = 0; i < 300; i++) {
		if (frames_call(peer, OP_cuLinkCreate_v2, context, 0, 0, 0, 0, 3))
			return 1;
		const uint64_t linker = peer_word(peer, 0);
		const uint64_t add[] = {sizeof(kernels), 0, 0, linker, 1}, complete[] = {0, 0, 0, linker};
		uint32_t sequence;

		peer_send(peer, 1, WIRE_UPLOAD, context, upload, 2, kernels, sizeof(kernels), false);
		peer_send(peer, 1, OP_cuLinkAddData_v2, context, add, 5, NULL, 0, true);
		sequence = peer->sequence;
		peer_send(peer, 3, OP_cuLinkComplete, context, complete, 4, NULL, 0, true);
		peer_send(peer, 2, OP_cuLinkDestroy, context, &linker, 1, NULL, 0, true);
		if (peer_wait(peer, 2, sequence + 2, 5000) < 0 || peer_wait(peer, 3, sequence + 1, 5000) < 0 ||
		    peer_wait(peer, 1, sequence, 5000) < 0)
			return 2;
		(void)frames_call(peer, OP_cuLinkDestroy, context, linker, 0, 0, 0, 1);
	}
	return 0;
}

/* All threads wait at once; then all are answered. */
static int frames_all_slots(struct control_client *peer, uint64_t context)
{
	uint64_t stream = frames_stream(peer, context), memory = frames_alloc(peer, context, 4096);
	const uint64_t zero[] = {memory, 0, 1, 0}, wait[] = {stream, memory, 1, 1},
		       write[] = {WIRE_STREAM_LEGACY, memory, 1, 0};
	uint32_t first = peer->sequence + 4;
	int r = 0;

	(void)peer_call(peer, 0, OP_cuMemsetD32Async, context, zero, 4, NULL, 0);
	(void)frames_call(peer, OP_cuCtxSynchronize, context, 0, 0, 0, 0, 0);
	(void)peer_call(peer, 0, OP_cuStreamWaitValue32_v2, context, wait, 4, NULL, 0);
	first = peer->sequence + 1;
	for (uint32_t i = 1; i < WIRE_SLOTS; i++)
		peer_send(peer, i, OP_cuStreamSynchronize, context, &stream, 1, NULL, 0, true);
	(void)usleep(20000);
	r |= frames_is(peer_call(peer, 0, OP_cuStreamWriteValue32_v2, context, write, 4, NULL, 0), 0);
	for (uint32_t i = 1; i < WIRE_SLOTS; i++)
		r |= peer_wait(peer, i, first + i - 1, 5000) != 0;
	return r;
}

/* The page of the server's own words is the client's to write, too. */
static int frames_scribble(struct control_client *peer, uint64_t context)
{
	(void)context;
	for (unsigned round = 0; round < 50 && !peer_is_gone(peer, 0); round++) {
		frames_random((uint8_t *)peer->wire + 8, offsetof(struct wire, command) - 8);
		frames_random(peer->wire->reply, sizeof(peer->wire->reply) / 8);
		peer->wire->spin = 0;
		bell_ring(&peer->wire->ring.head, peer->head);
		(void)peer_hello(peer);
	}
	return 0;
}

static int frames_shrink(struct control_client *peer, uint64_t context)
{
	int r = 0;

	r |= ftruncate(peer->shared, 4096) == 0;
	r |= ftruncate(peer->shared, (off_t)1 << 42) == 0;
	return r | (frames_alloc(peer, context, 4096) == 0);
}

static int frames_leave_waiting(struct control_client *peer, uint64_t context)
{
	uint64_t stream = frames_stream(peer, context), memory = frames_alloc(peer, context, 4096);
	const uint64_t zero[] = {memory, 0, 1, 0}, wait[] = {stream, memory, 1, 1};

	(void)peer_call(peer, 0, OP_cuMemsetD32Async, context, zero, 4, NULL, 0);
	(void)peer_call(peer, 0, OP_cuStreamWaitValue32_v2, context, wait, 4, NULL, 0);
	peer_send(peer, 1, OP_cuStreamSynchronize, context, &stream, 1, NULL, 0, true);
	peer_send(peer, 2, OP_cuCtxSynchronize, context, NULL, 0, NULL, 0, true);
	return 0;
}

/* Freed twice, and freed what is another's. */
static int frames_frees(struct control_client *peer, uint64_t context)
{
	uint64_t memory = frames_alloc(peer, context, 1 << 20);
	int r = 0;

	r |= frames_is(frames_call(peer, OP_cuMemFree_v2, context, memory, 0, 0, 0, 1), 0);
	r |= frames_is(frames_call(peer, OP_cuMemFree_v2, context, memory, 0, 0, 0, 1), 1);
	r |= frames_call(peer, OP_cuMemFree_v2, context, neighbour_memory, 0, 0, 0, 1) == 0 &&
	     neighbour_memory != memory;
	r |= frames_is(frames_call(peer, OP_cuMemAlloc_v2, context, UINT64_MAX, 0, 0, 0, 1), 2);
	r |= frames_is(frames_call(peer, OP_cuMemAlloc_v2, context, (uint64_t)1 << 63, 0, 0, 0, 1), 2);
	return r;
}

static uint64_t frames_new_context(struct control_client *peer)
{
	return frames_call(peer, OP_cuCtxCreate_v2, 0, 0, 0, 0, 0, 2) == 0 ? peer_word(peer, 0) : 0;
}

/* One after the other is current, of which the driver refuses one: what is asked then is not answered for another. */
static int frames_not_current(struct control_client *peer, uint64_t context)
{
	const uint64_t contexts[] = {context, frames_new_context(peer)};
	uint64_t id[2] = {0, 0};
	int r = !contexts[1], refused = 0;

	for (unsigned i = 0; i < 16; i++) {
		const int answer = frames_call(peer, OP_cuCtxGetId, contexts[i % 2], 0, 0, 0, 0, 1);

		if (answer) {
			r |= frames_is(answer, 201);
			refused++;
		} else if (!id[i % 2]) {
			id[i % 2] = peer_word(peer, 0);
		}
		r |= !answer && id[i % 2] != peer_word(peer, 0);
	}
	printf("# contexts refused: %d\n", refused);
	return r | (id[0] == id[1]);
}

/* Any operation with any words, some of them handles that there are. */
static void frames_noise(struct control_client *peer, uint64_t context, unsigned seed)
{
	uint64_t known[] = {context, frames_stream(peer, context), frames_alloc(peer, context, 4096), 0, 1, UINT64_MAX};
	uint64_t words[12];
	uint8_t part[256];

	for (int i = 0; i < 3000 && !peer_is_gone(peer, 0); i++) {
		unsigned op = (unsigned)rand_r(&seed) % OP_END, count = (unsigned)rand_r(&seed) % 12;
		uint32_t slot = (uint32_t)rand_r(&seed) % 4;

		/* What waits for ever, or ends all. */
		if (op == WIRE_FILLER || op == OP_cuStreamWaitValue32_v2 || op == OP_cuStreamWaitValue64_v2 ||
		    op == OP_cuLaunchHostFunc)
			continue;
		for (unsigned k = 0; k < 12; k++)
			words[k] =
				rand_r(&seed) % 3 ? known[(unsigned)rand_r(&seed) % 6] : (uint64_t)rand_r(&seed) % 5000;
		memset(part, rand_r(&seed), sizeof(part));
		/* One of another thread while it waits ends the server, rightly; so each is waited for. */
		(void)peer_call(peer, slot, op, rand_r(&seed) % 8 ? context : words[0], words, count, part,
				(size_t)rand_r(&seed) % sizeof(part));
	}
}

static int frames_noise_1(struct control_client *peer, uint64_t context)
{
	frames_noise(peer, context, 1);
	return 0;
}

static int frames_noise_2(struct control_client *peer, uint64_t context)
{
	frames_noise(peer, context, 20261122);
	return 0;
}

static int frames_noise_new(struct control_client *peer, uint64_t context)
{
	unsigned seed;

	frames_random(&seed, sizeof(seed));
	printf("# seed %u\n", seed);
	frames_noise(peer, context, seed);
	return 0;
}

/* The driver's number of the stream that stands for the null stream of @slot's thread. */
static uint64_t frames_own_stream(struct control_client *peer, uint32_t slot, uint64_t context)
{
	const uint64_t word = WIRE_STREAM_THREAD;

	return peer_call(peer, slot, OP_cuStreamGetId, context, &word, 1, NULL, 0) == 0 ? peer_word(peer, slot) : 0;
}

static int frames_own_streams(struct control_client *peer, uint64_t context)
{
	const uint64_t other = frames_call(peer, OP_cuCtxCreate_v2, 0, 0, 0, 0, 0, 2) == 0 ? peer_word(peer, 0) : 0;
	const uint64_t mine = frames_own_stream(peer, 0, context), there = frames_own_stream(peer, 0, other);
	uint64_t later;

	if (!mine || !there || mine == there || frames_own_stream(peer, 1, context) == mine)
		return 1;
	if (frames_own_stream(peer, 0, context) != mine || frames_own_stream(peer, 0, other) != there)
		return 2;
	if (frames_call(peer, OP_cuCtxDestroy_v2, context, other, 0, 0, 0, 1) || frames_own_stream(peer, 0, other))
		return 3;
	if (frames_call(peer, OP_cuCtxCreate_v2, 0, 0, 0, 0, 0, 2))
		return 4;
	later = frames_own_stream(peer, 0, peer_word(peer, 0));
	return !later || later == mine || frames_own_stream(peer, 0, context) != mine;
}

/* Says of itself that it is there, and that it woke the server a millisecond ago. Return: whether the server came. */
static bool frames_come_to(struct control_client *peer, uint64_t context, uint32_t processor)
{
	struct wire_caller *caller = &peer->wire->caller;

	/* Asleep, or woken now and then to look around. */
	for (int i = 0; i < 2000 && !BELL_LOAD(&peer->wire->ring.head.sleeps); i++)
		(void)usleep(1000);
	caller->processor = processor;
	caller->woke = clock_day_ns() - 1000000;
	return frames_call(peer, OP_cuCtxSynchronize, context, 0, 0, 0, 0, 0) == 0 && peer->wire->near;
}

/* Where all processors are taken, the server is on its caller's; not on one that is not there, or that it may not use. */
static int frames_processors(struct control_client *peer, uint64_t context)
{
	static const uint32_t nowhere[] = {UINT32_MAX, INT32_MAX, CPU_SETSIZE, CPU_SETSIZE - 1};
	int came = 0, times = 0;
	cpu_set_t all;

	if (sched_getaffinity(0, sizeof(all), &all) < 0)
		return 1;
	/* Linux may always have another opinion. */
	for (uint32_t i = 0; times < 24; i = (i + 1) % CPU_SETSIZE)
		if (CPU_ISSET((size_t)i, &all)) {
			came += frames_come_to(peer, context, i);
			times++;
		}
	if (came < 21) {
		printf("# %d of %d times\n", came, times);
		return 1;
	}
	for (size_t i = 0; i < sizeof(nowhere) / sizeof(nowhere[0]); i++)
		if (frames_come_to(peer, context, nowhere[i]))
			return 2;
	return 0;
}

static const struct {
	const char *title;
	int (*run)(struct control_client *peer, uint64_t context);
	enum summary verdict;
} cases[] = {
	{"an operation behind the last", frames_op, ENDS},
	{"operation 65535", frames_op_last, ENDS},
	{"an entry that is too long", frames_long, ENDS},
	{"a length that overflows", frames_overflow, ENDS},
	{"a filler whose length overflows", frames_overflow_filler, EITHER},
	{"more words than bytes", frames_words, ENDS},
	{"an entry beyond what was written", frames_beyond_head, ENDS},
	{"an entry beyond the end of the ring", frames_wrap, ENDS},
	{"a head too far ahead", frames_head_far, ENDS},
	{"a head that goes back", frames_head_back, ENDS},
	{"a thread too many", frames_slot, ENDS},
	{"the reply of another thread", frames_slot_of_another, ENDS},
	{"a thread far beyond", frames_slot_huge, ENDS},
	{"50,000 fillers", frames_fillers, SERVES},
	{"too few and too many words", frames_few_words, SERVES},
	{"parts longer than the entry", frames_part, SERVES},
	{"handles: another type, stale, guessed", frames_handles, SERVES},
	{"handles: as many as there may be", frames_full, SERVES},
	{"contexts that the driver refuses", frames_not_current, SERVES},
	{"contexts that are none", frames_contexts, SERVES},
	{"streams of threads' own", frames_own_streams, SERVES},
	{"processors that a caller may be on", frames_processors, SERVES},
	{"devices that are not granted", frames_devices, SERVES},
	{"a choice of devices", frames_chosen, SERVES},
	{"addresses of the host outside of the arena", frames_host_ranges, SERVES},
	{"an address for the arena, chosen later", frames_arena_later, SERVES},
	{"boxes in the arena", frames_boxes, SERVES},
	{"pieces of the arena", frames_arena, SERVES},
	{"pieces of the arena whose descriptors are kept", frames_arena_kept, SERVES},
	{"pieces of the arena that nobody takes", frames_arena_unread, SERVES},
	{"files that are registered", frames_files, SERVES},
	{"pools that keep what was freed", frames_pools, SERVES},
	{"pools of other processes", frames_pools_of_others, SERVES},
	{"pools that are destroyed", frames_pools_destroyed, SERVES},
	{"handles between processes, forged", shares_forged, SERVES},
	{"handles between processes, counted", shares_counted, SERVES},
	{"handles between processes, by descriptors", shares_physical, SERVES},
	{"handles between processes, too many", shares_places, SERVES},
	{"memory in small pieces", frames_small, SERVES},
	{"limits of a context", frames_limits, SERVES},
	{"global arrays of modules", frames_arrays, SERVES},
	{"every call that allocates", frames_every_allocation, SERVES},
	{"chunks of the staging memory", frames_chunks, SERVES},
	{"downloads of nothing", frames_downloads, SERVES},
	{"uploads at the wrong place", frames_uploads, SERVES},
	{"images of noise", frames_images, SERVES},
	{"options that are addresses", frames_options, SERVES},
	{"names too long", frames_names, SERVES},
	{"launches", frames_launches, SERVES},
	{"what kernels print", frames_prints, SERVES},
	{"what was below a library", frames_unloaded, SERVES},
	{"uploads of many threads", frames_unused_uploads, SERVES},
	{"inputs of linkers", frames_unlinked, SERVES},
	{"many functions", frames_functions, SERVES},
	{"attributes with addresses, memory that is none's", frames_attributes, SERVES},
	{"texts for the audit", frames_texts, SERVES},
	{"entries that change", frames_changing, EITHER},
	{"two waits of one thread", frames_two_waits, ENDS},
	{"an upload while the thread compiles", frames_upload_while_compiling, EITHER},
	{"linkers that others use", frames_linkers, SERVES},
	{"all threads wait", frames_all_slots, SERVES},
	{"noise over the server's words", frames_scribble, EITHER},
	{"descriptors made smaller and larger", frames_shrink, SERVES},
	{"gone while two threads wait", frames_leave_waiting, EITHER},
	{"freed twice, and what is another's", frames_frees, SERVES},
	{"events that others wait for", waits_events, SERVES},
	{"streams that others wait for", waits_streams, SERVES},
	{"stacks that kernels have", waits_stacks, SERVES},
	{"contexts that others wait in", waits_contexts, SERVES},
	{"locked memory that others let go while its context ends", waits_locked, SERVES},
	{"a primary context that others wait in", waits_primary, SERVES},
	{"chunks that others wait for", waits_chunks, SERVES},
	{"contexts that others began with", waits_memory, SERVES},
	{"a context that is done", waits_done, SERVES},
	{"room in a ring that is full", waits_room, SERVES},
	{"waits one behind the other", waits_twice, SERVES},
	{"contexts that others compile in", waits_compilers, SERVES},
	{"graphs of captures that failed", waits_captures, SERVES},
	{"what nodes name is gone", waits_nodes, SERVES},
	{"more waits than threads", waits_threads, SERVES},
	{"names that the driver gives again", waits_names, SERVES},
	{"everything that others wait for", waits_everything, SERVES},
	{"arrays", textures_arrays, SERVES},
	{"boxes of arrays", textures_boxes, SERVES},
	{"numbers of textures", textures_numbers, SERVES},
	{"numbers of conditions", textures_conditions, SERVES},
	{"arrays that references keep", textures_references, SERVES},
	{"noise, seed 1", frames_noise_1, EITHER},
	{"noise, seed 20261122", frames_noise_2, EITHER},
	{"noise, a new seed", frames_noise_new, EITHER},
};

static int frames_neighbour_is_well(void)
{
	const uint64_t out[] = {neighbour_memory, 0, 0, 4}, wait[] = {0};

	neighbour.staging[0] = 0;
	if (peer_call(&neighbour, 0, WIRE_STAGE_OUT, neighbour_context, out, 4, NULL, 0) ||
	    peer_call(&neighbour, 0, WIRE_STAGE_WAIT, neighbour_context, wait, 1, NULL, 0))
		return 0;
	return memcmp(neighbour.staging, "NEXT", 4) == 0;
}

static int frames_open_neighbour(void)
{
	const uint64_t in[] = {0, 0, 4};
	uint64_t words[3];

	if (!peer_open(&neighbour) || peer_hello(&neighbour))
		return -1;
	neighbour_context = peer_context(&neighbour);
	neighbour_memory = frames_alloc(&neighbour, neighbour_context, 4096);
	memcpy(words, in, sizeof(words));
	words[0] = neighbour_memory;
	return peer_call(&neighbour, 0, WIRE_COPY_IN, neighbour_context, words, 3, "NEXT", 4);
}

static bool frames_verdict_holds(struct control_client *peer, enum summary verdict, int r)
{
	if (verdict == ENDS)
		return peer_is_gone(peer, 3000);
	if (verdict == EITHER)
		return true;
	return r == 0 && !peer_is_gone(peer, 0) && peer_hello(peer) == 0;
}

static int frames_run(size_t index)
{
	struct control_client peer;
	uint64_t context;
	bool passed;
	int r;

	if (!peer_open(&peer) || peer_hello(&peer)) {
		printf("not ok %zu - hostile: %s: no server\n", index + 1, cases[index].title);
		return 1;
	}
	context = peer_context(&peer);
	r = cases[index].run(&peer, context);
	passed = context && frames_verdict_holds(&peer, cases[index].verdict, r);
	control_client_close(&peer);
	if (!frames_neighbour_is_well()) {
		printf("# the neighbour is not well\n");
		passed = false;
	}
	if (!passed)
		printf("# it returned %d\n", r);
	printf("%s %zu - hostile: %s\n", passed ? "ok" : "not ok", index + 1, cases[index].title);
	(void)fflush(stdout);
	return !passed;
}

/* It was opened before all others, and is the only one that never said hello: the neighbour's server stays. */
static int frames_is_ended_for_silence(struct control_client *silent, size_t number)
{
	const bool passed = peer_is_gone(silent, 40000) && frames_neighbour_is_well();

	printf("%s %zu - hostile: a client that says nothing\n", passed ? "ok" : "not ok", number);
	control_client_close(silent);
	return !passed;
}

int main(int argc, char **argv)
{
	const size_t count = sizeof(cases) / sizeof(cases[0]);
	struct control_client silent;
	int failures = 0;

	if (!peer_open(&silent) || frames_open_neighbour()) {
		printf("Bail out! no neighbour\n");
		return 2;
	}
	for (size_t i = 0; i < count; i++)
		if (argc < 2 || strstr(cases[i].title, argv[1]))
			failures += frames_run(i);
	if (argc < 2 || strcmp(argv[1], "says nothing") == 0)
		failures += frames_is_ended_for_silence(&silent, count + 1);
	printf("1..%zu\n", count + 1);
	return failures > 0;
}

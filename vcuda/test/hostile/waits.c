/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What one thread of a client waits for or works in, another takes away. A simulated driver with STRICT=1 ends a server that
 * uses what is gone, or takes away what one of its threads is in. A gate is a function of the host that has not returned.
 */

#include "waits.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include "vcuda/protocol/descriptors.h"
#include "vcuda/protocol/types.h"

enum { MOMENT = 30000, PATIENCE = 5000 };

static const char kernels[] = ".version 6.0\n.target sm_50\n.address_size 64\n.visible .entry nop()\n{\n\tret;\n}\n";

/* ---- short forms ---- */

static int waits_call(struct control_client *peer, uint32_t thread, unsigned op, uint64_t context, uint64_t a,
		      uint64_t b, unsigned count)
{
	const uint64_t words[] = {a, b};

	return peer_call(peer, thread, op, context, words, count, NULL, 0);
}

static uint64_t waits_new(struct control_client *peer, unsigned op, uint64_t context, uint64_t a, uint64_t b,
			  unsigned count)
{
	return waits_call(peer, 0, op, context, a, b, count) == 0 ? peer_word(peer, 0) : 0;
}

/* Return: the number of the call, whose answer is not waited for. */
static uint32_t waits_begin(struct control_client *peer, uint32_t thread, unsigned op, uint64_t context, uint64_t a,
			    unsigned count)
{
	peer_send(peer, thread, op, context, &a, count, NULL, 0, true);
	return peer->sequence;
}

static bool waits_is_answered(const struct control_client *peer, uint32_t thread, uint32_t sequence)
{
	return atomic_load(&peer->wire->reply[thread].done.value) == sequence;
}

static int waits_are(const char *what, int got, int wanted)
{
	if (got != wanted)
		printf("# %s: %d, not %d\n", what, got, wanted);
	return got != wanted;
}

/* Host functions are numbered in the order in which streams reach them, and one gate is shut at a time. */
static void waits_shut(struct control_client *peer, uint64_t context, uint64_t stream)
{
	(void)waits_call(peer, 0, OP_cuLaunchHostFunc, context, stream, 7, 2);
}

/* The gate of that number, from 1 on. */
static void waits_open(struct control_client *peer, uint32_t number)
{
	for (int i = 0; i < 1000 && atomic_load(&peer->wire->calls.value) < number; i++)
		(void)usleep(1000);
	bell_ring(&peer->wire->callback[(number - 1) % WIRE_CALLBACKS].done, number);
}

static int waits_load(struct control_client *peer, uint32_t thread, uint64_t context, uint32_t *ret_sequence)
{
	const uint64_t upload[] = {0, sizeof(kernels)}, load[] = {sizeof(kernels), 0, 0};
	int r = peer_call(peer, thread, WIRE_UPLOAD, context, upload, 2, kernels, sizeof(kernels));

	peer_send(peer, thread, OP_cuModuleLoadDataEx, context, load, 3, NULL, 0, true);
	*ret_sequence = peer->sequence;
	return r;
}

/* ---- the cases ---- */

int waits_events(struct control_client *peer, uint64_t context)
{
	const uint64_t stream = waits_new(peer, OP_cuStreamCreate, context, 1, 0, 1);
	const uint64_t event = waits_new(peer, OP_cuEventCreate, context, 0, 0, 1);
	uint32_t one, other;
	int r = !stream || !event;

	waits_shut(peer, context, stream);
	r |= waits_call(peer, 0, OP_cuEventRecord, context, event, stream, 2);
	one = waits_begin(peer, 1, OP_cuEventSynchronize, context, event, 1);
	other = waits_begin(peer, 2, OP_cuEventSynchronize, context, event, 1);
	(void)usleep(MOMENT);
	r |= waits_are("it ends at once", waits_call(peer, 0, OP_cuEventDestroy_v2, context, event, 0, 1), 0);
	r |= waits_are("once", waits_call(peer, 0, OP_cuEventDestroy_v2, context, event, 0, 1), 400);
	r |= waits_are("and is nobody's", waits_call(peer, 0, OP_cuEventQuery, context, event, 0, 1), 400);
	(void)usleep(MOMENT);
	r |= waits_is_answered(peer, 1, one) || waits_is_answered(peer, 2, other);
	waits_open(peer, 1);
	r |= waits_are("the wait", peer_wait(peer, 1, one, PATIENCE), 0);
	return r | waits_are("the other", peer_wait(peer, 2, other, PATIENCE), 0);
}

int waits_streams(struct control_client *peer, uint64_t context)
{
	const uint64_t stream = waits_new(peer, OP_cuStreamCreate, context, 1, 0, 1);
	uint32_t one, all;
	int r = !stream;

	waits_shut(peer, context, stream);
	one = waits_begin(peer, 1, OP_cuStreamSynchronize, context, stream, 1);
	(void)usleep(MOMENT);
	r |= waits_are("it ends at once", waits_call(peer, 0, OP_cuStreamDestroy_v2, context, stream, 0, 1), 0);
	r |= waits_are("once", waits_call(peer, 0, OP_cuStreamDestroy_v2, context, stream, 0, 1), 400);
	all = waits_begin(peer, 2, OP_cuCtxSynchronize, context, 0, 0);
	(void)usleep(MOMENT);
	r |= waits_is_answered(peer, 1, one) || waits_is_answered(peer, 2, all);
	waits_open(peer, 1);
	r |= waits_are("the wait", peer_wait(peer, 1, one, PATIENCE), 0);
	return r | waits_are("of the context", peer_wait(peer, 2, all, PATIENCE), 0);
}

/* The driver waits for all work before it makes stacks larger. Other threads do not. */
int waits_stacks(struct control_client *peer, uint64_t context)
{
	const uint64_t stream = waits_new(peer, OP_cuStreamCreate, context, 1, 0, 1), larger[] = {0, 1 << 16};
	uint32_t limit;
	int r = 0;

	waits_shut(peer, context, stream);
	peer_send(peer, 1, OP_cuCtxSetLimit, context, larger, 2, NULL, 0, true);
	limit = peer->sequence;
	r |= waits_are("another thread", waits_call(peer, 0, OP_cuStreamQuery, context, stream, 0, 1), 600);
	(void)usleep(MOMENT);
	r |= waits_are("memory", waits_call(peer, 0, OP_cuMemAlloc_v2, context, 4096, 0, 1), 0);
	r |= waits_is_answered(peer, 1, limit);
	waits_open(peer, 1);
	return r | waits_are("the limit", peer_wait(peer, 1, limit, PATIENCE), 0);
}

int waits_contexts(struct control_client *peer, uint64_t context)
{
	const uint64_t other = waits_new(peer, OP_cuCtxCreate_v2, 0, 0, 0, 2);
	const uint64_t stream = waits_new(peer, OP_cuStreamCreate, other, 1, 0, 1);
	const uint64_t event = waits_new(peer, OP_cuEventCreate, other, 0, 0, 1);
	uint32_t one, all, from, end, load;
	int r = !other || !stream || !event;

	waits_shut(peer, other, stream);
	r |= waits_call(peer, 0, OP_cuEventRecord, other, event, stream, 2);
	one = waits_begin(peer, 1, OP_cuStreamSynchronize, other, stream, 1);
	all = waits_begin(peer, 2, OP_cuCtxSynchronize, other, 0, 0);
	/* With another context current than the event's. */
	from = waits_begin(peer, 3, OP_cuEventSynchronize, context, event, 1);
	(void)usleep(MOMENT);
	end = waits_begin(peer, 4, OP_cuCtxDestroy_v2, context, other, 1);
	(void)usleep(MOMENT);
	waits_open(peer, 1);
	r |= waits_are("a stream's", peer_wait(peer, 1, one, PATIENCE), 0);
	r |= waits_are("the context's", peer_wait(peer, 2, all, PATIENCE), 0);
	r |= waits_are("an event's", peer_wait(peer, 3, from, PATIENCE), 0);
	r |= waits_are("the end", peer_wait(peer, 4, end, PATIENCE), 0);
	r |= waits_are("a stream of it", waits_call(peer, 1, OP_cuStreamSynchronize, context, stream, 0, 1), 400);
	r |= waits_are("in it", waits_call(peer, 1, OP_cuCtxSynchronize, other, 0, 0, 0), 201);
	/* On the thread of the server that last waited in it. */
	(void)waits_load(peer, 1, other, &load);
	return r | waits_are("a module in it", peer_wait(peer, 1, load, PATIENCE), 201);
}

/* What the driver has locked of the host is nobody else's, and counts, until it has ended the context. */
int waits_locked(struct control_client *peer, uint64_t context)
{
	const uint64_t other = waits_new(peer, OP_cuCtxCreate_v2, 0, 0, 0, 2), file[] = {0, 4096, 0},
		       piece[] = {0, 1 << 16, 0};
	const uint64_t stream = waits_new(peer, OP_cuStreamCreate, other, 1, 0, 1);
	const int fd = memfd_create("file", MFD_CLOEXEC);
	uint64_t at;
	int r = !other || !stream || fd < 0 || ftruncate(fd, 4096) < 0, dropped;
	uint32_t end, unregister, drop;

	r |= descriptors_send(peer->socket, "", 1, &fd, 1, 0) != 1;
	(void)close(fd);
	r |= waits_are("a piece", peer_call(peer, 0, WIRE_ARENA_ADD, other, piece, 3, NULL, 0), 0);
	r |= waits_are("a file", peer_call(peer, 0, WIRE_REGISTER, other, file, 3, NULL, 0), 0);
	at = peer_word(peer, 0);
	waits_shut(peer, other, stream);
	end = waits_begin(peer, 1, OP_cuCtxDestroy_v2, context, other, 1);
	(void)usleep(MOMENT);
	unregister = waits_begin(peer, 2, WIRE_UNREGISTER, context, at, 1);
	drop = waits_begin(peer, 3, WIRE_ARENA_DROP, context, 0, 1);
	(void)usleep(MOMENT);
	r |= waits_are("the file is let go", waits_is_answered(peer, 2, unregister), false);
	r |= waits_are("the piece is let go", waits_is_answered(peer, 3, drop), false);
	waits_open(peer, 1);
	r |= waits_are("the end", peer_wait(peer, 1, end, PATIENCE), 0);
	dropped = peer_wait(peer, 3, drop, PATIENCE);
	r |= peer_wait(peer, 2, unregister, PATIENCE) < 0 || dropped < 0;
	/* What the driver refused to let go right before the end is the client's still. */
	r |= dropped > 0 && waits_are("the piece", waits_call(peer, 0, WIRE_ARENA_DROP, context, 0, 0, 1), 0);
	r |= waits_are("the file", waits_call(peer, 0, WIRE_UNREGISTER, context, at, 0, 1), 1);
	return r | waits_are("its place", peer_call(peer, 0, WIRE_ARENA_ADD, context, piece, 3, NULL, 0), 0);
}

int waits_primary(struct control_client *peer, uint64_t context)
{
	static const unsigned ends[] = {OP_cuDevicePrimaryCtxReset_v2, OP_cuDevicePrimaryCtxRelease_v2};
	int r = 0;

	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		const uint64_t stream = waits_new(peer, OP_cuStreamCreate, context, 1, 0, 1);
		uint32_t one, end;

		waits_shut(peer, context, stream);
		one = waits_begin(peer, 1, OP_cuStreamSynchronize, context, stream, 1);
		(void)usleep(MOMENT);
		end = waits_begin(peer, 2, ends[i], context, 0, 1);
		(void)usleep(MOMENT);
		waits_open(peer, (uint32_t)i + 1);
		r |= waits_are("the wait", peer_wait(peer, 1, one, PATIENCE), 0);
		r |= waits_are("the end", peer_wait(peer, 2, end, PATIENCE), 0);
		context = peer_context(peer);
		r |= !context;
	}
	return r;
}

/* The event behind a copy belongs to a context, and the next copy through the chunk has another. */
int waits_chunks(struct control_client *peer, uint64_t context)
{
	enum { CHUNK = 3 };
	const uint64_t other = waits_new(peer, OP_cuCtxCreate_v2, 0, 0, 0, 2);
	const uint64_t stream = waits_new(peer, OP_cuStreamCreate, context, 1, 0, 1);
	const uint64_t memory = waits_new(peer, OP_cuMemAlloc_v2, context, 4096, 0, 1);
	const uint64_t in[] = {memory, stream, CHUNK, 64}, next[] = {memory, 0, CHUNK, 64};
	uint32_t one;
	int r = !other || !stream || !memory;

	waits_shut(peer, context, stream);
	r |= peer_call(peer, 1, WIRE_STAGE_IN, context, in, 4, NULL, 0);
	one = waits_begin(peer, 1, WIRE_STAGE_WAIT, context, CHUNK, 1);
	(void)usleep(MOMENT);
	r |= waits_are("the next copy", peer_call(peer, 0, WIRE_STAGE_IN, other, next, 4, NULL, 0), 0);
	(void)usleep(MOMENT);
	waits_open(peer, 1);
	r |= waits_are("the wait", peer_wait(peer, 1, one, PATIENCE), 0);
	return r | waits_are("its own", waits_call(peer, 0, WIRE_STAGE_WAIT, other, CHUNK, 0, 1), 0);
}

/* Copies and marks of one context go on when the one that was there before them has ended. */
int waits_memory(struct control_client *peer, uint64_t context)
{
	const uint64_t first = waits_new(peer, OP_cuCtxCreate_v2, 0, 0, 0, 2);
	const uint64_t other = waits_new(peer, OP_cuCtxCreate_v2, 0, 0, 0, 2);
	const uint64_t memory = waits_new(peer, OP_cuMemAlloc_v2, other, 4096, 0, 1);
	const uint64_t contexts[] = {first, other};
	uint32_t copy = 0, stream = 0;
	int r = !first || !other || !memory;

	for (uint64_t i = 0; i < 2; i++) {
		const uint64_t gated = waits_new(peer, OP_cuStreamCreate, contexts[i], 1, 0, 1);
		const uint64_t in[] = {memory, gated, i, 64};

		waits_shut(peer, contexts[i], gated);
		r |= peer_call(peer, 1, WIRE_STAGE_IN, contexts[i], in, 4, NULL, 0);
		copy = waits_begin(peer, 1, WIRE_STAGE_WAIT, contexts[i], i, 1);
		stream = waits_begin(peer, 2, OP_cuStreamSynchronize, contexts[i], gated, 1);
		(void)usleep(MOMENT);
		if (i == 1)
			r |= waits_are("the end", waits_call(peer, 0, OP_cuCtxDestroy_v2, context, first, 0, 1), 0);
		r |= waits_is_answered(peer, 1, copy) || waits_is_answered(peer, 2, stream);
		waits_open(peer, (uint32_t)i + 1);
		r |= waits_are("the copy", peer_wait(peer, 1, copy, PATIENCE), 0);
		r |= waits_are("the stream", peer_wait(peer, 2, stream, PATIENCE), 0);
	}
	return r | waits_are("the context", waits_call(peer, 0, OP_cuCtxSynchronize, other, 0, 0, 0), 0);
}

/* Nothing is left to wait for: vcuda/test/tap runs this on a driver whose cuCtxSynchronize() fails, which nobody asks. */
int waits_done(struct control_client *peer, uint64_t context)
{
	const uint64_t stream = waits_new(peer, OP_cuStreamCreate, context, 1, 0, 1);
	const uint64_t memory = waits_new(peer, OP_cuMemAlloc_v2, context, 4096, 0, 1);
	const uint64_t in[] = {memory, stream, 4};
	int r = !stream || !memory;

	for (int i = 0; i < 3; i++) {
		r |= peer_call(peer, 0, WIRE_COPY_IN, context, in, 3, "text", 4);
		r |= waits_are("the stream", waits_call(peer, 0, OP_cuStreamSynchronize, context, stream, 0, 1), 0);
		r |= waits_are("the context", waits_call(peer, 0, OP_cuCtxSynchronize, context, 0, 0, 0), 0);
	}
	return r;
}

/* Waits with nothing between them, and behind something else: vcuda/test/tap has a driver that refuses some questions. */
int waits_twice(struct control_client *peer, uint64_t context)
{
	int r = waits_are("the context", waits_call(peer, 0, OP_cuCtxSynchronize, context, 0, 0, 0), 0);

	r |= waits_are("the null stream", waits_call(peer, 0, OP_cuStreamSynchronize, context, 0, 0, 1), 0);
	printf("# a third wait: %d\n", waits_call(peer, 1, OP_cuCtxSynchronize, context, 0, 0, 0));
	r |= waits_are("the stream first", waits_call(peer, 1, OP_cuStreamSynchronize, context, 0, 0, 1), 0);
	(void)waits_call(peer, 0, OP_cuStreamGetFlags, context, 0, 0, 1);
	printf("# behind something else: %d\n", waits_call(peer, 1, OP_cuCtxSynchronize, context, 0, 0, 0));
	return r;
}

/* Commands that do nothing, written but not yet told of, up to @units of the ring. */
static void waits_fill(struct control_client *peer, uint32_t units)
{
	const struct wire_entry filler = {.slot = WIRE_SCRATCH};

	for (const uint32_t tail = atomic_load(&peer->wire->ring.tail.value); ring_distance(tail, peer->head) < units;
	     peer->head++)
		peer_put(peer, &filler, NULL, 0);
}

/* The server itself waits, since nobody waits for the answer. */
static void waits_stop(struct control_client *peer, uint64_t context, uint64_t stream)
{
	const struct wire_entry entry = {
		.op = OP_cuStreamSynchronize, .words = 1, .bytes = 8, .slot = WIRE_SCRATCH, .context = context};

	peer_put(peer, &entry, &stream, sizeof(stream));
	peer->head++;
}

/*
 * Of a ring that is full half has to be free before a client is woken that waits for room, also of what it wrote after
 * the server had looked. The server stops at its first command, and again at the hundredth or so.
 */
int waits_room(struct control_client *peer, uint64_t context)
{
	const uint64_t first = waits_new(peer, OP_cuStreamCreate, context, 1, 0, 1);
	const uint64_t second = waits_new(peer, OP_cuStreamCreate, context, 1, 0, 1);
	struct ring *ring = &peer->wire->ring;
	const uint32_t begin = peer->head + 2;
	int r = !first || !second;

	peer_send(peer, 0, OP_cuLaunchHostFunc, context, (const uint64_t[]){first, 7}, 2, NULL, 0, false);
	for (int i = 0; i < PATIENCE && atomic_load(&peer->wire->calls.value) < 1; i++)
		(void)usleep(1000);
	peer_send(peer, 0, OP_cuLaunchHostFunc, context, (const uint64_t[]){second, 7}, 2, NULL, 0, false);
	(void)usleep(MOMENT);
	waits_stop(peer, context, first);
	waits_fill(peer, 100);
	waits_stop(peer, context, second);
	waits_fill(peer, RING_UNITS / 2 - 8);
	peer_push(peer, 0);
	(void)usleep(MOMENT);
	waits_fill(peer, RING_UNITS);
	peer_push(peer, 0);
	atomic_store(&ring->tail.sleeps, 1);
	waits_open(peer, 1);
	for (int i = 0; i < PATIENCE && (int)(atomic_load(&ring->tail.value) - begin) < 100; i++)
		(void)usleep(1000);
	(void)usleep(MOMENT);
	r |= waits_are("done before the second", (int)(atomic_load(&ring->tail.value) - begin), 100);
	r |= waits_are("asleep with little room", (int)atomic_load(&ring->tail.sleeps), 1);
	waits_open(peer, 2);
	for (int i = 0; i < PATIENCE && atomic_load(&ring->tail.sleeps); i++)
		(void)usleep(1000);
	r |= waits_are("asleep with room", (int)atomic_load(&ring->tail.sleeps), 0);
	return r | waits_are("a call", waits_call(peer, 0, OP_cuCtxSynchronize, context, 0, 0, 0), 0);
}

/* Threads that compile in a context, and one that links there with another context current, while it ends. */
int waits_compilers(struct control_client *peer, uint64_t context)
{
	const uint64_t upload[] = {0, sizeof(kernels)}, none[] = {0, 0, 0};
	int r = 0;

	for (int i = 0; i < 20 && !r; i++) {
		const uint64_t other = waits_new(peer, OP_cuCtxCreate_v2, 0, 0, 0, 2);
		uint64_t linker, name[2] = {0, 3};
		uint32_t load, link;

		r |= peer_call(peer, 2, OP_cuLinkCreate_v2, other, none, 3, NULL, 0);
		linker = peer_word(peer, 2);
		r |= peer_call(peer, 2, WIRE_UPLOAD, context, upload, 2, kernels, sizeof(kernels));
		r |= waits_load(peer, 1, other, &load);
		peer_send(peer, 2, OP_cuLinkAddData_v2, context, (const uint64_t[]){sizeof(kernels), 0, 0, linker, 1},
			  5, NULL, 0, true);
		link = peer->sequence;
		(void)usleep((useconds_t)(i * 100));
		r |= waits_are("the end", waits_call(peer, 0, OP_cuCtxDestroy_v2, context, other, 0, 1), 0);
		r |= peer_wait(peer, 1, load, PATIENCE) < 0 || peer_wait(peer, 2, link, PATIENCE) < 0;
		name[0] = peer_word(peer, 1);
		r |= waits_are("what was loaded",
			       peer_call(peer, 1, OP_cuModuleGetFunction, context, name, 2, "nop", 3), 400);
		r |= waits_are("what was linked", waits_call(peer, 2, OP_cuLinkDestroy, context, linker, 0, 1), 400);
	}
	return r;
}

/* The graph of a capture that fails is gone with it, and is its stream's until then. */
int waits_captures(struct control_client *peer, uint64_t context)
{
	enum { RELAXED = 2 };
	const uint64_t stream = waits_new(peer, OP_cuStreamCreate, context, 1, 0, 1);
	uint64_t graph;
	int r = waits_call(peer, 0, OP_cuStreamBeginCapture_v2, context, stream, RELAXED, 2);

	r |= waits_call(peer, 0, OP_cuStreamGetCaptureInfo_v2, context, stream, 0, 1);
	graph = peer->wire->reply[0].word[2];
	r |= waits_are("its graph", waits_call(peer, 0, OP_cuGraphGetNodes, context, graph, 0, 2), 0);
	r |= waits_call(peer, 0, OP_cuGraphDestroy, context, graph, 0, 1) == 0;
	(void)waits_call(peer, 0, OP_cuStreamQuery, context, stream, 0, 1);
	r |= waits_are("a capture that fails", waits_call(peer, 0, OP_cuStreamEndCapture, context, stream, 0, 1), 901);
	r |= waits_are("its graph", waits_call(peer, 0, OP_cuGraphGetNodes, context, graph, 0, 2), 1);
	/* One that does not fail is the client's. */
	r |= waits_call(peer, 0, OP_cuStreamBeginCapture_v2, context, stream, RELAXED, 2);
	r |= waits_call(peer, 0, OP_cuStreamGetCaptureInfo_v2, context, stream, 0, 1);
	graph = peer->wire->reply[0].word[2];
	r |= waits_are("the next", waits_call(peer, 0, OP_cuStreamEndCapture, context, stream, 0, 1), 0);
	r |= peer_word(peer, 0) != graph;
	r |= waits_are("its stream", waits_call(peer, 0, OP_cuStreamDestroy_v2, context, stream, 0, 1), 0);
	return r | waits_are("its graph", waits_call(peer, 0, OP_cuGraphDestroy, context, graph, 0, 1), 0);
}

/* What nodes name may be gone: the event of one, the function that a library's kernel became in another. */
int waits_nodes(struct control_client *peer, uint64_t context)
{
	const uint64_t upload[] = {0, sizeof(kernels)}, load[] = {sizeof(kernels), 0, 0};
	const uint64_t graph = waits_new(peer, OP_cuGraphCreate, context, 0, 0, 1);
	const uint64_t event = waits_new(peer, OP_cuEventCreate, context, 0, 0, 1);
	const uint64_t wait[] = {graph, 0, 0, event};
	uint64_t node, function, name[2] = {0, 3},
				 add[7] = {0, 1 | 1ULL << 32, 1 | 1ULL << 32, 1 | 1ULL << 32, 0, 0, graph};
	int r = peer_call(peer, 0, OP_cuGraphAddEventWaitNode, context, wait, 4, NULL, 0);

	node = peer_word(peer, 0);
	r |= waits_are("its event", waits_call(peer, 0, OP_cuGraphEventWaitNodeGetEvent, context, node, 0, 1), 0);
	r |= peer_word(peer, 0) != event;
	r |= waits_are("that ends", waits_call(peer, 0, OP_cuEventDestroy_v2, context, event, 0, 1), 0);
	r |= waits_call(peer, 0, OP_cuGraphEventWaitNodeGetEvent, context, node, 0, 1) == 0;
	r |= peer_call(peer, 0, WIRE_UPLOAD, context, upload, 2, kernels, sizeof(kernels));
	r |= peer_call(peer, 0, OP_cuLibraryLoadData, context, load, 3, NULL, 0);
	name[0] = peer_word(peer, 0);
	r |= peer_call(peer, 0, OP_cuLibraryGetKernel, context, name, 2, "nop", 3);
	add[0] = peer_word(peer, 0);
	r |= peer_call(peer, 0, OP_cuGraphAddKernelNode_v2, context, add, 7, NULL, 0);
	node = peer_word(peer, 0);
	r |= waits_are("its function", waits_call(peer, 0, OP_cuGraphKernelNodeGetParams_v2, context, node, 0, 1), 0);
	function = peer_word(peer, 0);
	r |= waits_are("of a library", waits_call(peer, 0, OP_cuLibraryUnload, context, name[0], 0, 1), 0);
	return r | waits_are("that ends", waits_call(peer, 0, OP_cuFuncGetAttribute, context, 0, function, 2), 400);
}

/* ---- names ---- */

/* One thread makes what another ends meanwhile, whose name the driver gives to what is made. Return: the answer, and the new one. */
static int waits_pass_on(struct control_client *peer, uint64_t context, unsigned load, unsigned end, uint64_t old,
			 uint64_t *ret)
{
	const uint64_t upload[] = {0, sizeof(kernels)}, words[] = {sizeof(kernels), 0, 0};
	uint32_t sequence;
	int r = peer_call(peer, 1, WIRE_UPLOAD, context, upload, 2, kernels, sizeof(kernels));

	peer_send(peer, 1, load, context, words, 3, NULL, 0, true);
	sequence = peer->sequence;
	if (old)
		r |= waits_are("the end", waits_call(peer, 0, end, context, old, 0, 1), 0);
	r |= waits_are("what is made", peer_wait(peer, 1, sequence, PATIENCE), 0);
	*ret = peer_word(peer, 1);
	return r;
}

static int waits_named_code(struct control_client *peer, uint64_t context, const unsigned ops[3])
{
	uint64_t old, name[2] = {0, 3};
	int r = waits_pass_on(peer, context, ops[0], ops[1], 0, &old);

	r |= waits_pass_on(peer, context, ops[0], ops[1], old, &name[0]);
	return r | waits_are("what was made", peer_call(peer, 0, ops[2], context, name, 2, "nop", 3), 0);
}

static int waits_named_module(struct control_client *peer, uint64_t context)
{
	const uint64_t other = waits_new(peer, OP_cuCtxCreate_v2, 0, 0, 0, 2);
	uint64_t old, name[2] = {0, 3};
	int r = waits_pass_on(peer, other, OP_cuModuleLoadDataEx, 0, 0, &old);

	r |= waits_pass_on(peer, context, OP_cuModuleLoadDataEx, OP_cuCtxDestroy_v2, other, &name[0]);
	return r | waits_are("a module", peer_call(peer, 0, OP_cuModuleGetFunction, context, name, 2, "nop", 3), 0);
}

static int waits_named_linker(struct control_client *peer, uint64_t context)
{
	const uint64_t none[] = {0, 0, 0};
	uint64_t linker;
	uint32_t end;
	int r = peer_call(peer, 2, OP_cuLinkCreate_v2, context, none, 3, NULL, 0);

	end = waits_begin(peer, 1, OP_cuLinkDestroy, context, peer_word(peer, 2), 1);
	(void)usleep(MOMENT / 3);
	r |= waits_are("a linker", peer_call(peer, 2, OP_cuLinkCreate_v2, context, none, 3, NULL, 0), 0);
	linker = peer_word(peer, 2);
	r |= waits_are("the end", peer_wait(peer, 1, end, PATIENCE), 0);
	return r | waits_are("its end", waits_call(peer, 2, OP_cuLinkDestroy, context, linker, 0, 1), 0);
}

/*
 * What others open is not what one thread frees meanwhile, and another has at the same address then: @ret_again, if the first one came
 * in time.
 */
static int waits_named_memory(struct control_client *peer, uint64_t context, bool *ret_again)
{
	enum { WORDS = 3, BYTES = 4 << 20 };
	const uint64_t *word = peer->wire->reply[0].word;
	const uint64_t old = waits_new(peer, OP_cuMemAlloc_v2, context, BYTES, 0, 1);
	const bool shared = waits_call(peer, 0, OP_cuIpcGetMemHandle, context, old, 0, 1) == 0;
	uint64_t gone[WORDS], next, name[WORDS];
	uint32_t end;
	int r;

	memcpy(gone, word, sizeof(gone));
	end = waits_begin(peer, 1, OP_cuMemFree_v2, context, old, 1);
	(void)usleep(MOMENT / 3);
	next = waits_new(peer, OP_cuMemAlloc_v2, context, BYTES, 0, 1);
	r = shared && waits_are("memory to share", waits_call(peer, 0, OP_cuIpcGetMemHandle, context, next, 0, 1), 0);
	memcpy(name, word, sizeof(name));
	r |= shared && waits_are("the name of what ends", memcmp(gone, name, sizeof(name)) == 0, false);
	r |= waits_are("the end", peer_wait(peer, 1, end, PATIENCE), 0);
	r |= shared && waits_are("once more", waits_call(peer, 0, OP_cuIpcGetMemHandle, context, next, 0, 1), 0);
	r |= shared && waits_are("another name", memcmp(word, name, sizeof(name)) != 0, false);
	*ret_again = old == next;
	if (shared && old == next)
		printf("# shared at the same address\n");
	return r | waits_are("its end", waits_call(peer, 0, OP_cuMemFree_v2, context, next, 0, 1), 0);
}

/* A primary context is made once, and ended, before another thread has it made. */
static int waits_named_primary(struct control_client *peer, uint64_t context)
{
	const uint64_t stream = waits_new(peer, OP_cuStreamCreate, context, 1, 0, 1);
	uint32_t sequence;
	int r = !stream;

	waits_shut(peer, context, stream);
	sequence = waits_begin(peer, 1, OP_cuDevicePrimaryCtxRelease_v2, 0, 0, 1);
	(void)usleep(MOMENT);
	r |= waits_are("made while it ends", waits_call(peer, 0, OP_cuDevicePrimaryCtxRetain, 0, 0, 0, 1), 1);
	waits_open(peer, 1);
	r |= waits_are("its end", peer_wait(peer, 1, sequence, PATIENCE), 0);
	sequence = waits_begin(peer, 1, OP_cuDevicePrimaryCtxRetain, 0, 0, 1);
	r |= waits_are("made twice", waits_call(peer, 0, OP_cuDevicePrimaryCtxRetain, 0, 0, 0, 1), 1);
	r |= waits_are("made once", peer_wait(peer, 1, sequence, PATIENCE), 0);
	return r | waits_are("ended", waits_call(peer, 0, OP_cuDevicePrimaryCtxRelease_v2, 0, 0, 0, 1), 0);
}

int waits_names(struct control_client *peer, uint64_t context)
{
	static const unsigned module[] = {OP_cuModuleLoadDataEx, OP_cuModuleUnload, OP_cuModuleGetFunction};
	static const unsigned library[] = {OP_cuLibraryLoadData, OP_cuLibraryUnload, OP_cuLibraryGetKernel};
	bool again = false;
	int r = waits_named_code(peer, context, module);

	r |= waits_named_code(peer, context, library);
	r |= waits_named_module(peer, context);
	r |= waits_named_linker(peer, context);
	for (int i = 0; i < 20 && !r && !again; i++)
		r |= waits_named_memory(peer, context, &again);
	return r | waits_named_primary(peer, context);
}

/* More than a server may have threads, where it may have few. */
int waits_threads(struct control_client *peer, uint64_t context)
{
	enum { WAITING = 100 };
	const uint64_t stream = waits_new(peer, OP_cuStreamCreate, context, 1, 0, 1);
	uint32_t sequences[WAITING];
	int r = !stream;

	waits_shut(peer, context, stream);
	for (uint32_t i = 0; i < WAITING; i++)
		sequences[i] = waits_begin(peer, i + 1, OP_cuStreamSynchronize, context, stream, 1);
	(void)usleep(10 * MOMENT);
	waits_open(peer, 1);
	for (uint32_t i = 0; i < WAITING; i++)
		r |= waits_are("a wait", peer_wait(peer, i + 1, sequences[i], PATIENCE), 0);
	return r | waits_are("what comes then", waits_call(peer, 0, OP_cuStreamDestroy_v2, context, stream, 0, 1), 0);
}

/* ---- all at once ---- */

enum { THREADS = 12, OBJECTS = 8, ROUNDS = 4000 };

struct chaos {
	struct control_client *peer;
	uint64_t context[2], stream[OBJECTS], event[OBJECTS], memory;
	uint32_t waits[THREADS]; /* the number of the call; 0: it waits for nothing */
	unsigned seed;
};

static unsigned chaos_random(struct chaos *chaos, unsigned below)
{
	return (unsigned)rand_r(&chaos->seed) % below;
}

/* A thread that does not wait; 0 is never one. */
static uint32_t chaos_thread(struct chaos *chaos)
{
	const uint32_t thread = 1 + chaos_random(chaos, THREADS - 1);

	if (chaos->waits[thread] && !waits_is_answered(chaos->peer, thread, chaos->waits[thread]))
		return 0;
	chaos->waits[thread] = 0;
	return thread;
}

static void chaos_wait(struct chaos *chaos)
{
	static const unsigned ops[] = {OP_cuEventSynchronize, OP_cuStreamSynchronize, OP_cuCtxSynchronize,
				       WIRE_STAGE_WAIT};
	const unsigned kind = chaos_random(chaos, 4), which = chaos_random(chaos, OBJECTS);
	const uint64_t of[] = {chaos->event[which], chaos->stream[which], 0, which};
	const uint32_t thread = chaos_thread(chaos);

	if (thread)
		chaos->waits[thread] = waits_begin(chaos->peer, thread, ops[kind],
						   chaos->context[chaos_random(chaos, 2)], of[kind], kind != 2);
}

/* Work of a quarter of a millisecond and more, from @context, and the event behind it. */
static void chaos_work(struct chaos *chaos, uint64_t context)
{
	const unsigned which = chaos_random(chaos, OBJECTS);
	const uint64_t copy[] = {chaos->memory, chaos->stream[which], WIRE_SMALL + which, 1 << 16};
	const uint64_t record[] = {chaos->event[which], chaos->stream[which]};

	peer_send(chaos->peer, 0, WIRE_STAGE_IN, context, copy, 4, NULL, 0, false);
	peer_send(chaos->peer, 0, OP_cuEventRecord, context, record, 2, NULL, 0, false);
}

static void chaos_renew(struct chaos *chaos, uint64_t context)
{
	const unsigned which = chaos_random(chaos, OBJECTS);

	if (chaos_random(chaos, 2)) {
		(void)waits_call(chaos->peer, 0, OP_cuStreamDestroy_v2, context, chaos->stream[which], 0, 1);
		chaos->stream[which] = waits_new(chaos->peer, OP_cuStreamCreate, context, 1, 0, 1);
	} else {
		(void)waits_call(chaos->peer, 0, OP_cuEventDestroy_v2, context, chaos->event[which], 0, 1);
		chaos->event[which] = waits_new(chaos->peer, OP_cuEventCreate, context, 0, 0, 1);
	}
}

int waits_everything(struct control_client *peer, uint64_t context)
{
	struct chaos chaos = {.peer = peer, .context = {context}};

	if (getrandom(&chaos.seed, sizeof(chaos.seed), 0) < 0)
		return 1;
	printf("# seed %u\n", chaos.seed);
	chaos.memory = waits_new(peer, OP_cuMemAlloc_v2, context, 1 << 16, 0, 1);
	for (int i = 0; i < ROUNDS && !peer_is_gone(peer, 0); i++) {
		if (i % 400 == 0) {
			(void)waits_call(peer, 0, OP_cuCtxDestroy_v2, context, chaos.context[1], 0, 1);
			chaos.context[1] = waits_new(peer, OP_cuCtxCreate_v2, 0, 0, 0, 2);
		}
		const uint64_t where = chaos.context[chaos_random(&chaos, 2)];

		if (chaos_random(&chaos, 3) == 0)
			chaos_wait(&chaos);
		else if (chaos_random(&chaos, 2))
			chaos_work(&chaos, where);
		else
			chaos_renew(&chaos, where);
	}
	for (uint32_t i = 1; i < THREADS; i++)
		if (chaos.waits[i] && peer_wait(peer, i, chaos.waits[i], PATIENCE) < 0)
			return 1;
	return 0;
}

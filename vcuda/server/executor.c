/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What may take long must not hold up other threads' launches. So a command that waits for the GPU is asked for again
 * and again for a while, between the others, which answers short waits without a change of threads; a longer wait, or
 * what the driver does itself for long, goes to a thread of the slot whose reply is waited for.
 */

#include "vcuda/server/executor.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "vcuda/driver_api.h"
#include "vcuda/ops.h"
#include "vcuda/server/driver.h"
#include "vcuda/server/handle.h"
#include "vcuda/server/serve.h"

enum {
	PENDING = 64,
	EXECUTOR_TRIES = 64, /* of a wait, before the others or the time are looked at */
	WAITER_STACK = 64 << 20,
	EXECUTOR_FIRST = RING_UNIT - sizeof(struct wire_entry), /* bytes of arguments in an entry's first unit */
};

static uint32_t executor_seen; /* how much the client has written, when it was last looked at */
static uint32_t executor_next; /* where what is served now ends */

static const struct timespec executor_patience = {.tv_sec = 1};
static __thread uint64_t executor_context; /* the client's handle of what is current */
static __thread uint32_t executor_known;   /* the era in which it was made current; 0: not known */
static _Atomic uint32_t executor_era = 1;  /* each ends with a context, or what it had to do with one */

static int64_t executor_now(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

void executor_forget_context(void)
{
	executor_era++;
}

static bool executor_has_context(uint64_t handle)
{
	return executor_context == handle &&
	       executor_known == atomic_load_explicit(&executor_era, memory_order_relaxed);
}

static void executor_change_context(uint64_t handle)
{
	const uint32_t era = atomic_load_explicit(&executor_era, memory_order_relaxed);
	uint64_t real = 0;

	if (handle && !handle_look(handle, WIRE_CONTEXT, &real))
		real = 0;
	/* Not in another's, in which nothing is counted for this one. */
	if (driver.cuCtxSetCurrent(real))
		(void)driver.cuCtxSetCurrent(0);
	executor_context = handle;
	executor_known = era;
}

static inline void executor_set_context(uint64_t handle)
{
	if (!executor_has_context(handle))
		executor_change_context(handle);
}

/* ---- replies ---- */

/* Failures after which a context is good for nothing. */
static bool executor_is_sticky(CUresult result)
{
	return result == 214 || result == 220 || result == 700 || result == 702 || result == 710 ||
	       (result >= 714 && result <= 719);
}

static void executor_note(CUresult result)
{
	if (!executor_is_sticky(result) || server.wire->sticky)
		return;
	server.wire->sticky = result;
	server_tell(START_EVENT_STICKY, (uint64_t)result, "");
}

/* @busy: cleared before the client can know that it may go on. */
static void executor_reply(const struct request *q, CUresult result, _Atomic bool *busy)
{
	const uint32_t sequence = q->header.sequence; /* read before the next request can be here */
	struct wire_reply *reply;
	int32_t none = 0;

	executor_note(result);
	if (q->header.slot == WIRE_SCRATCH) {
		if (result)
			(void)atomic_compare_exchange_strong(&server.wire->deferred, &none, result);
		return;
	}
	reply = &server.wire->reply[q->header.slot];
	reply->result = result;
	reply->bytes = q->reply_bytes;
	memcpy(reply->word, q->reply, q->reply_bytes);
	if (busy)
		*busy = false;
	bell_ring(&reply->done, sequence);
}

static void executor_finish(const struct request *q, CUresult result)
{
	executor_reply(q, result, NULL);
}

/* ---- threads that wait ---- */

struct waiter {
	_Alignas(64) struct bell bell; /* its value: how many requests it was given */
	bool there;
	_Atomic bool busy; /* its thread of the client waits, and can send nothing */
	struct request request;
};

static struct waiter *waiters[WIRE_SLOTS];

static void executor_copy(struct request *to, const struct request *from)
{
	to->wait = from->wait;
	to->header = from->header;
	memcpy(to->argument, from->argument, from->header.bytes);
	to->part_at = from->part_at;
	to->reply_bytes = 0;
	to->number = from->number;
}

static const struct request_kind *executor_kind(const struct request *q)
{
	return q->header.op < WIRE_OPS ? &serve_kinds[q->header.op] : &request_kinds[q->header.op];
}

static CUresult executor_serve(struct request *q, const struct request_kind *kind)
{
	q->reply_bytes = 0;
	if (kind->makes && !handle_has_room())
		return CUDA_ERROR_OUT_OF_MEMORY;
	executor_set_context(q->header.context);
	return kind->serve(q);
}

static void *executor_wait(void *argument)
{
	struct waiter *waiter = argument;
	struct request *q = &waiter->request;

	for (uint32_t seen = 0;;) {
		CUresult r;

		if (BELL_LOAD(&waiter->bell.value) == seen) {
			bell_sleep(&waiter->bell, seen, NULL);
			continue;
		}
		seen++;
		executor_set_context(q->header.context);
		r = q->wait.block ? q->wait.block(q->wait.object) : executor_serve(q, executor_kind(q));
		request_let_go(q);
		executor_reply(q, r, &waiter->busy);
	}
	return NULL;
}

/* With room for a compiler, whatever the limit of stacks is here. */
static bool executor_start_waiter(struct waiter *waiter)
{
	pthread_attr_t attributes;
	pthread_t thread;
	int r;

	if (pthread_attr_init(&attributes) != 0)
		return false;
	(void)pthread_attr_setstacksize(&attributes, WAITER_STACK);
	r = pthread_create(&thread, &attributes, executor_wait, waiter);
	(void)pthread_attr_destroy(&attributes);
	return r == 0;
}

/* What it waits for or works in is held. */
static bool executor_hand_over(const struct request *q)
{
	struct waiter **waiter = &waiters[q->header.thread];

	if (!*waiter) {
		*waiter = aligned_alloc(64, (sizeof(**waiter) + 63) & ~(size_t)63);
		if (!*waiter)
			return false;
		memset(*waiter, 0, sizeof(**waiter));
	}
	if (!(*waiter)->there) {
		memset(&(*waiter)->bell, 0, sizeof((*waiter)->bell));
		(*waiter)->busy = false;
		if (!executor_start_waiter(*waiter))
			return false;
		(*waiter)->there = true;
	}
	executor_copy(&(*waiter)->request, q);
	(*waiter)->busy = true;
	bell_ring(&(*waiter)->bell, (*waiter)->bell.value + 1);
	return true;
}

/* ---- waits that are asked for ---- */

static struct {
	struct request_wait wait;
	struct wire_entry header;
	int64_t until;
} pending[PENDING];
static unsigned pending_count;

static void executor_remove_pending(unsigned place)
{
	pending[place] = pending[--pending_count];
}

/* The executor itself, during which nobody ends anything. */
static CUresult executor_block(const struct request *q)
{
	executor_set_context(q->header.context);
	return q->wait.block(q->wait.object);
}

/* Where there is no thread to be had, the executor itself waits. */
static void executor_stop_asking(struct request *q)
{
	CUresult r;

	if (executor_hand_over(q))
		return;
	r = executor_block(q);
	request_let_go(q);
	executor_finish(q, r);
}

static void executor_take_pending(unsigned place, struct request *to)
{
	to->header = pending[place].header;
	to->header.bytes = 0;
	to->wait = pending[place].wait;
	executor_remove_pending(place);
}

void executor_await(uint64_t context)
{
	static struct request q;

	while (pending_count) {
		executor_take_pending(pending_count - 1, &q);
		executor_stop_asking(&q);
	}
	object_ref_await((struct object_ref){WIRE_CONTEXT, context});
}

static void executor_ask(void)
{
	static struct request q;

	for (unsigned i = pending_count; i > 0; i--) {
		CUresult r;

		executor_set_context(pending[i - 1].header.context);
		r = pending[i - 1].wait.query(pending[i - 1].wait.object);
		if (r == CUDA_ERROR_NOT_READY && executor_now() < pending[i - 1].until)
			continue;
		executor_take_pending(i - 1, &q);
		if (r == CUDA_ERROR_NOT_READY) {
			executor_stop_asking(&q);
			continue;
		}
		request_let_go(&q);
		executor_finish(&q, r);
	}
}

/* Asks on until something else is to be done. Where others wait, they are not held up for long. */
static CUresult executor_ask_on(const struct request *q, int64_t until)
{
	const struct bell *head = &server.wire->ring.head;
	CUresult r = CUDA_ERROR_NOT_READY;

	for (int tries = 1; r == CUDA_ERROR_NOT_READY && BELL_LOAD(&head->value) == executor_next; tries++) {
		if (tries % EXECUTOR_TRIES == 0 && (pending_count || executor_now() > until))
			break;
		r = q->wait.query(q->wait.object);
	}
	return r;
}

static void executor_begin_wait(struct request *q)
{
	CUresult r = q->wait.query(q->wait.object);
	int64_t until = 0;

	if (r == CUDA_ERROR_NOT_READY && server.wait_spin > 0) {
		until = executor_now() + server.wait_spin;
		r = executor_ask_on(q, until);
	}
	if (r != CUDA_ERROR_NOT_READY) {
		executor_finish(q, r);
		return;
	}
	if (!request_hold(q)) {
		executor_finish(q, executor_block(q));
		return;
	}
	if (server.wait_spin == 0 || pending_count == PENDING) {
		executor_stop_asking(q);
		return;
	}
	pending[pending_count].wait = q->wait;
	pending[pending_count].header = q->header;
	pending[pending_count].until = until;
	pending_count++;
}

/* ---- entries ---- */

static bool executor_is_waiting(uint32_t thread)
{
	for (unsigned i = 0; i < pending_count; i++)
		if (pending[i].header.thread == thread)
			return true;
	return waiters[thread] && waiters[thread]->there && waiters[thread]->busy;
}

static const uint8_t *executor_entry_at(uint32_t tail)
{
	return server.wire->command + (size_t)(tail % RING_UNITS) * RING_UNIT;
}

/* Out of the client's reach. The compiler is kept from reading there again what is here. */
static inline void executor_fetch(uint8_t *to, const uint8_t *at, size_t bytes)
{
	memcpy(to, at, bytes);
	atomic_signal_fence(memory_order_seq_cst);
}

/* Behind its first unit. The second is what a launch has: it is copied whole, too, which needs no call. */
static void executor_take_rest(struct request *q, const uint8_t *at)
{
	uint8_t *to = (uint8_t *)q->argument + EXECUTOR_FIRST;

	executor_fetch(to, at + RING_UNIT, RING_UNIT);
	if (q->header.bytes > EXECUTOR_FIRST + RING_UNIT)
		executor_fetch(to + RING_UNIT, at + 2 * RING_UNIT, q->header.bytes - EXECUTOR_FIRST - RING_UNIT);
}

/* Return: how far the entry at @tail reaches. What the client says of it is read once. */
static uint32_t executor_take(struct request *q, uint32_t tail, uint32_t head)
{
	const uint8_t *at = executor_entry_at(tail);
	const uint32_t rest = RING_UNITS - tail % RING_UNITS;
	uint64_t units;

	/* The first unit whole, with the arguments: all that most entries have. */
	executor_fetch((uint8_t *)q + offsetof(struct request, header), at, RING_UNIT);
	units = wire_units(q->header.bytes);
	if (units > ring_distance(tail, head) || units > rest)
		server_end("an entry reaches beyond what was written");
	if (q->header.op == WIRE_FILLER)
		return (uint32_t)units;
	if (q->header.op >= OP_END || q->header.bytes > WIRE_INLINE || q->header.words * 8U > q->header.bytes)
		server_end("an entry is no operation");
	if (q->header.thread >= WIRE_SLOTS || (q->header.slot != WIRE_SCRATCH && q->header.slot != q->header.thread))
		server_end("an entry is of no thread");
	if (executor_is_waiting(q->header.thread))
		server_end("an entry of a thread that waits");
	if (units > 1)
		executor_take_rest(q, at);
	return (uint32_t)units;
}

/* The next entry comes while the driver works. None wraps, so it is there or a filler. */
static void executor_prefetch(uint32_t tail)
{
	const uint8_t *at = executor_entry_at(tail);

	__builtin_prefetch(at);
	__builtin_prefetch(at + RING_UNIT);
	__builtin_prefetch(at + 2 * RING_UNIT);
}

static void executor_do(struct request *q)
{
	const struct request_kind *kind = executor_kind(q);
	CUresult r;

	if (kind->waits && q->header.slot != WIRE_SCRATCH) {
		request_begin_work(q);
		if (request_hold(q)) {
			if (executor_hand_over(q))
				return;
			request_let_go(q);
		}
	}
	r = executor_serve(q, kind);
	if (r == REQUEST_WAITS && q->header.slot == WIRE_SCRATCH)
		r = q->wait.block(q->wait.object);
	if (r == REQUEST_WAITS)
		executor_begin_wait(q);
	else if (r != CUDA_SUCCESS || q->header.slot != WIRE_SCRATCH)
		executor_finish(q, r);
}

/*
 * Whoever waits for room sleeps until half of the ring is free, or all is done. What was written since the head was
 * last looked at counts, too: else a client would be woken for each entry that is done, fill its place and sleep again.
 */
static void executor_wake_client(struct ring *ring, uint32_t tail)
{
	if (BELL_LOAD(&ring->tail.sleeps) && ring_distance(tail, BELL_LOAD(&ring->head.value)) < RING_UNITS / 2)
		bell_wake(&ring->tail);
}

/* Waits for an entry. */
static void executor_idle(struct bell *head, uint32_t tail)
{
	static long spin;
	int64_t began;

	if (spin < server.spin)
		spin = server.spin;
	if (bell_spin(head, tail, spin))
		return;
	began = executor_now();
	bell_sleep(head, tail, &executor_patience);
	spin = bell_learn(spin + (long)(executor_now() - began), server.spin, server.long_spin);
}

/* Takes a line of the client's cache, so it is done when all that was seen is done. */
static void executor_look(struct ring *ring, uint32_t tail)
{
	executor_seen = BELL_LOAD(&ring->head.value);
	if (ring_distance(tail, executor_seen) > RING_UNITS)
		server_end("the ring has more than its size");
}

void executor_run(void)
{
	static struct request q;
	struct ring *ring = &server.wire->ring;
	uint32_t tail = 0;

	for (;;) {
		if (executor_seen == tail)
			executor_look(ring, tail);
		const uint32_t head = executor_seen;

		if (pending_count)
			executor_ask();
		if (head == tail) {
			if (pending_count)
				continue;
			bell_wake(&ring->tail);
			executor_idle(&ring->head, tail);
			continue;
		}
		const uint32_t units = executor_take(&q, tail, head);

		q.number++;
		/* Not what the client has still to write, which would have to wait for it. */
		executor_next = tail + units;
		if (executor_next != head)
			executor_prefetch(executor_next);
		if (q.header.op != WIRE_FILLER)
			executor_do(&q);
		tail = executor_next;
		BELL_STORE(&ring->tail.value, tail);
		executor_wake_client(ring, tail);
	}
}

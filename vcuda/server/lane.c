/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The client has one ring, in the order of its program, and each of its threads a lane. One lane at a time has the
 * lead: it alone reads the ring and starts what it finds there. An entry of its own thread it carries out; with
 * another's it passes the lead to that one's lane. So as long as one thread calls, nothing is passed.
 *
 * Entries start in their order, and one that the client does not wait for has been given to the driver before the next
 * starts. What the client waits for and the driver may take long for, does not hold up other threads: the lane leaves
 * the lead to another lane. It waits for the GPU with the lead, by asking, until another thread's entry comes.
 *
 * The lane with the lead may use all of the server's data that have no lock of their own.
 *
 * What the manager orders, the lead obeys between two entries. Told to park, it begins nothing more and keeps the lead,
 * so that no other lane does; when the lanes without it have come back, none is in a call of the driver's.
 *
 * The reader is a lane that belongs to no thread of the client. It takes the lead when all other lanes work, and
 * carries out the commands of threads that could get no lane.
 */

#include "vcuda/server/request.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "vcuda/driver_api.h"
#include "vcuda/ops.h"
#include "vcuda/server/driver.h"
#include "vcuda/server/handle.h"

enum {
	LANE_TRIES = 64, /* of a wait, before the time is looked at */
	LANE_STACK = 64 << 20,
	LANE_LATE = 100000,      /* nanoseconds: who goes on so late waited for a processor, */
	LANE_CROWDED = 50000000, /* and would again for so long after that */
	LANE_FIRST = RING_UNIT - sizeof(struct wire_entry), /* bytes of arguments in an entry's first unit */
};

struct lane {
	_Alignas(64) struct bell bell; /* its value: how often it was given the lead, or was told that it is free */
	bool leads;                    /* its own thread's word */
	_Atomic bool given;            /* the lead comes with a request */
	_Atomic int64_t rung;          /* when its bell was rung, by clock_now_ns() */
	_Atomic bool busy; /* it works without the lead, and its thread of the client waits and can send nothing */
	struct request request;
};

static struct lane reader = {.leads = true};
static struct lane *lanes[WIRE_SLOTS];

enum lead { LEAD_TAKEN, LEAD_FREE };
/* Free: any lane may take it; one of them looks at the ring. */
static _Atomic uint32_t lane_lead;

/* The lead's own. */
static uint32_t lane_seen;   /* how much the client has written, when it was last looked at */
static uint32_t lane_tail;   /* how much of it is done, or handed on */
static uint32_t lane_next;   /* where the entry ends that was taken last */
static uint64_t lane_number; /* of requests */
static uint32_t lane_obeyed; /* the manager's order */

/* How many lanes work without the lead. */
static _Atomic uint32_t lane_working;

/* Whether the lane that woke last is on its caller's processor. */
static _Atomic bool lane_near;

static const struct timespec lane_patience = {.tv_sec = 1};
static __thread uint64_t lane_context; /* the client's handle of what is current */
static __thread uint32_t lane_known;   /* the era in which it was made current; 0: not known */
static _Atomic uint32_t lane_era = 1;  /* each ends with a context, or what a lane had to do with one */

void lane_forget_context(void)
{
	lane_era++;
}

static bool lane_has_context(uint64_t handle)
{
	return lane_context == handle && lane_known == atomic_load_explicit(&lane_era, memory_order_relaxed);
}

static void lane_change_context(uint64_t handle)
{
	const uint32_t era = atomic_load_explicit(&lane_era, memory_order_relaxed);
	uint64_t real = 0;

	if (handle && !handle_look(handle, WIRE_CONTEXT, &real))
		real = 0;
	/* Not in another's, in which nothing is counted for this one. */
	if (driver.cuCtxSetCurrent(real))
		(void)driver.cuCtxSetCurrent(0);
	lane_context = handle;
	lane_known = era;
}

static inline void lane_set_context(uint64_t handle)
{
	if (!lane_has_context(handle))
		lane_change_context(handle);
}

static const struct request_kind *lane_own; /* the operations of our own */

static const struct request_kind *lane_kind(const struct request *q)
{
	return q->header.op < WIRE_OPS ? &lane_own[q->header.op] : &request_kinds[q->header.op];
}

static bool lane_is_awaited(const struct request *q)
{
	return q->header.slot != WIRE_SCRATCH;
}

/* ---- processors ---- */

/* The calling thread goes there at once, and may leave at once: so what it starts may run anywhere. */
static void lane_move_to(uint32_t processor)
{
	cpu_set_t allowed, one;

	CPU_ZERO(&one);
	if (processor >= CPU_SETSIZE || sched_getaffinity(0, sizeof(allowed), &allowed) < 0 ||
	    !CPU_ISSET(processor, &allowed))
		return;
	CPU_SET(processor, &one);
	if (sched_setaffinity(0, sizeof(one), &one) == 0)
		(void)sched_setaffinity(0, sizeof(allowed), &allowed);
}

/* Until when lanes would wait for processors, as some just did. */
static _Atomic int64_t lane_crowded;

static bool lane_is_near(void)
{
	return atomic_load_explicit(&server.wire->caller.processor, memory_order_relaxed) == (uint32_t)sched_getcpu();
}

static void lane_note_crowd(void)
{
	lane_crowded = clock_now_ns() + LANE_CROWDED;
}

/* Whether others have had the thread's processor since this was asked last, as Linux counts it. */
static bool lane_was_switched(void)
{
	static __thread long seen;
	const long before = seen;
	struct rusage usage;

	if (getrusage(RUSAGE_THREAD, &usage) < 0)
		return false;
	seen = usage.ru_nivcsw;
	return seen != before;
}

/* Before the lane sleeps: whether it had to share while it worked. */
static void lane_look_back(void)
{
	if (lane_was_switched() && !lane_is_near())
		lane_note_crowd();
}

/*
 * Where all processors are taken, by OpenMP's threads that spin or by others' work, a lane has a part of one, and waits
 * when it has had that. Its caller has one, which it leaves when it waits: natively the driver runs there, too. So a
 * lane that is about to go on goes there; Linux leaves it there until there is an idle processor.
 * @late: for how many nanoseconds it waited for a processor
 */
static void lane_go_near(int64_t late)
{
	bool near = lane_is_near();

	if (!near && late >= LANE_LATE)
		lane_note_crowd();
	if (!near && clock_now_ns() < lane_crowded) {
		lane_move_to(atomic_load_explicit(&server.wire->caller.processor, memory_order_relaxed));
		(void)lane_was_switched(); /* by the move itself */
		near = lane_is_near();
	}
	lane_near = near;
	atomic_store_explicit(&server.wire->near, near, memory_order_relaxed);
}

/* How long to spin for what the client is to write: not at all where that keeps it from writing. */
static long lane_spin_for(long nanoseconds)
{
	return lane_near ? 0 : nanoseconds;
}

/* ---- the ring ---- */

static const uint8_t *lane_entry_at(uint32_t tail)
{
	return server.wire->command + (size_t)(tail % RING_UNITS) * RING_UNIT;
}

/* Out of the client's reach. The compiler is kept from reading there again what is here. */
static inline void lane_fetch(uint8_t *to, const uint8_t *at, size_t bytes)
{
	memcpy(to, at, bytes);
	atomic_signal_fence(memory_order_seq_cst);
}

/* Behind its first unit. The second is what a launch has: it is copied whole, too, which needs no call. */
static void lane_fetch_rest(struct request *q, const uint8_t *at)
{
	uint8_t *to = (uint8_t *)q->argument + LANE_FIRST;

	lane_fetch(to, at + RING_UNIT, RING_UNIT);
	if (q->header.bytes > LANE_FIRST + RING_UNIT)
		lane_fetch(to + RING_UNIT, at + 2 * RING_UNIT, q->header.bytes - LANE_FIRST - RING_UNIT);
}

/* Return: how many units the entry at @tail has. What the client says of it is read once. */
static uint32_t lane_fetch_entry(struct request *q, uint32_t tail, uint32_t head)
{
	const uint8_t *at = lane_entry_at(tail);
	const uint32_t rest = RING_UNITS - tail % RING_UNITS;
	uint64_t units;

	/* The first unit whole, with the arguments: all that most entries have. */
	lane_fetch((uint8_t *)q + offsetof(struct request, header), at, RING_UNIT);
	units = wire_units(q->header.bytes);
	if (units > ring_distance(tail, head) || units > rest)
		server_end("an entry reaches beyond what was written");
	if (q->header.op == WIRE_FILLER)
		return (uint32_t)units;
	if (q->header.op >= OP_END || q->header.bytes > WIRE_INLINE || q->header.words * 8U > q->header.bytes)
		server_end("an entry is no operation");
	if (q->header.thread >= WIRE_SLOTS || (lane_is_awaited(q) && q->header.slot != q->header.thread))
		server_end("an entry is of no thread");
	if (units > 1)
		lane_fetch_rest(q, at);
	return (uint32_t)units;
}

/* The next entry comes while the driver works. None wraps, so it is there or a filler. */
static void lane_prefetch(uint32_t tail)
{
	const uint8_t *at = lane_entry_at(tail);

	__builtin_prefetch(at);
	__builtin_prefetch(at + RING_UNIT);
	__builtin_prefetch(at + 2 * RING_UNIT);
}

/*
 * What was taken is done, or another lane's. Whoever waits for room sleeps until half of the ring is free, or all is
 * done. What was written since the head was last looked at counts, too: else a client would be woken for each entry
 * that is done, fill its place and sleep again.
 */
static inline void lane_advance(void)
{
	struct ring *ring = &server.wire->ring;

	lane_tail = lane_next;
	BELL_STORE(&ring->tail.value, lane_tail);
	if (BELL_LOAD(&ring->tail.sleeps) && ring_distance(lane_tail, BELL_LOAD(&ring->head.value)) < RING_UNITS / 2)
		bell_wake(&ring->tail);
}

/* Takes a line of the client's cache, so it is done when all that was seen is done. */
static void lane_look(void)
{
	lane_seen = BELL_LOAD(&server.wire->ring.head.value);
	if (ring_distance(lane_tail, lane_seen) > RING_UNITS)
		server_end("the ring has more than its size");
}

/* Return: whether there is an entry; fillers do not count. */
static inline bool lane_take(struct request *q)
{
	while (lane_seen != lane_tail || (lane_look(), lane_seen != lane_tail)) {
		lane_next = lane_tail + lane_fetch_entry(q, lane_tail, lane_seen);
		/* Not what the client has still to write, which would have to wait for it. */
		if (lane_next != lane_seen)
			lane_prefetch(lane_next);
		q->number = ++lane_number;
		if (q->header.op != WIRE_FILLER)
			return true;
		lane_advance();
	}
	return false;
}

/* ---- the lead ---- */

static void lane_ring(struct lane *lane)
{
	atomic_store_explicit(&lane->rung, clock_now_ns(), memory_order_relaxed);
	(void)atomic_fetch_add(&lane->bell.value, 1);
	bell_wake(&lane->bell);
}

/* Return: whether it was free, and is the caller's now. */
static bool lane_take_lead(struct lane *lane)
{
	uint32_t was = LEAD_FREE;

	lane->leads = atomic_load_explicit(&lane_lead, memory_order_relaxed) == LEAD_FREE &&
		      atomic_compare_exchange_strong(&lane_lead, &was, LEAD_TAKEN);
	return lane->leads;
}

/* To the lane, which has a request. */
static void lane_pass_lead(struct lane *from, struct lane *to)
{
	to->given = true;
	from->leads = false;
	lane_ring(to);
}

/* Frees the lead for any lane; the reader looks at the ring. */
static void lane_free_lead(struct lane *lane)
{
	lane->leads = false;
	atomic_store(&lane_lead, LEAD_FREE);
	lane_ring(&reader);
}

static void *lane_begin(void *lane);

/* With room for a compiler, whatever the limit of stacks is here. */
static bool lane_start(struct lane *lane)
{
	pthread_attr_t attributes;
	pthread_t thread;
	int r;

	if (pthread_attr_init(&attributes) != 0)
		return false;
	(void)pthread_attr_setstacksize(&attributes, LANE_STACK);
	r = pthread_create(&thread, &attributes, lane_begin, lane);
	(void)pthread_attr_destroy(&attributes);
	return r == 0;
}

/* The lane of a thread of the client, made at its first call. Return: the reader if no lane can be made. */
static struct lane *lane_of(uint32_t thread)
{
	struct lane *lane = lanes[thread];

	if (lane)
		return lane;
	lane = mmap(NULL, sizeof(*lane), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (lane == MAP_FAILED)
		return &reader;
	if (!lane_start(lane)) {
		(void)munmap(lane, sizeof(*lane));
		return &reader;
	}
	lanes[thread] = lane;
	return lane;
}

static void lane_copy(struct request *to, const struct request *from)
{
	to->header = from->header;
	memcpy(to->argument, from->argument, from->header.bytes);
	to->number = from->number;
}

/* Hands the entry that was taken, and the lead, to its lane. Return: whether that is another than @lane. */
static __attribute__((noinline)) bool lane_hand_on(struct lane *lane, const struct request *q)
{
	struct lane *owner = lane_of(q->header.thread);

	if (owner->busy)
		server_end("an entry of a thread that waits");
	if (owner == lane)
		return false;
	if (&owner->request != q)
		lane_copy(&owner->request, q);
	lane_pass_lead(lane, owner);
	return true;
}

static void lane_begin_work(struct lane *lane)
{
	lane->busy = true;
	(void)atomic_fetch_add(&lane_working, 1);
	lane_advance();
}

static bool lane_hold(struct request *q)
{
	unsigned held = 0;

	while (held < REQUEST_HOLDS && object_ref_take(q->wait.hold[held]))
		held++;
	if (held == REQUEST_HOLDS)
		return true;
	while (held > 0)
		object_ref_let_go(q->wait.hold[--held]);
	return false;
}

/* What belongs to a context before the context. */
static void lane_let_go(struct request *q)
{
	for (unsigned i = 0; i < REQUEST_HOLDS; i++)
		object_ref_let_go(q->wait.hold[i]);
	q->wait = (struct request_wait){0};
}

void lane_leave(struct request *q)
{
	struct lane *lane = (struct lane *)((char *)q - offsetof(struct lane, request));
	/* Where the reader works, no lane would look at the ring. */
	const bool may =
		lane->leads && lane != &reader && lane_is_awaited(q) && lane_kind(q)->waits == REQUEST_MAY_WAIT;

	q->wait.hold[HOLD_CURRENT] = handle_context_ref(q->header.context);
	if (!may || !lane_hold(q)) {
		q->wait = (struct request_wait){0};
		return;
	}
	lane_begin_work(lane);
	lane_free_lead(lane);
}

/* ---- replies ---- */

/* Failures after which a context is good for nothing. */
static bool lane_is_sticky(CUresult result)
{
	return result == 214 || result == 220 || result == 700 || result == 702 || result == 710 ||
	       (result >= 714 && result <= 719);
}

/* Of what it was asked for; the current context, if that is of none. */
static uint64_t lane_failed_context(const struct request *q)
{
	const uint64_t context = q->header.words > 0 ? handle_context(q->argument[0]) : 0;

	return context ? context : q->header.context;
}

static void lane_note(const struct request *q, CUresult result)
{
	const uint64_t context = lane_is_sticky(result) ? lane_failed_context(q) : 0;
	struct wire_failed *failed = &server.wire->failed[wire_failed_of(context)];
	uint64_t real;

	if (!handle_look(context, WIRE_CONTEXT, &real) || failed->context == context)
		return;
	failed->result = result;
	failed->context = context;
	server_tell(START_EVENT_STICKY,
		    (uint64_t)result | (uint64_t)(turn_find_gpu(context) + 1) << START_EVENT_GPU_BIT, "");
}

static void lane_reply(struct lane *lane, CUresult result)
{
	const struct request *q = &lane->request;
	const uint32_t sequence = q->header.sequence; /* read before the next request can be here */
	struct wire_reply *reply = &server.wire->reply[q->header.thread];
	int32_t none = 0;

	if (result)
		lane_note(q, result);
	if (!lane_is_awaited(q)) {
		(void)atomic_compare_exchange_strong(&reply->deferred, &none, result);
		return;
	}
	reply->result = result;
	reply->bytes = q->reply_bytes;
	reply->prints = print_waiting();
	memcpy(reply->word, q->reply, q->reply_bytes);
	/* Before the client can know that it may go on. */
	if (!lane->leads) {
		lane->busy = false;
		(void)atomic_fetch_sub(&lane_working, 1);
	}
	bell_ring(&reply->done, sequence);
}

/* ---- waits ---- */

/* Asks on until something else is to be done. */
static CUresult lane_ask_on(const struct request *q)
{
	const struct bell *head = &server.wire->ring.head;
	const int64_t until = clock_now_ns() + server.wait_spin;
	CUresult r = CUDA_ERROR_NOT_READY;

	for (int tries = 1; r == CUDA_ERROR_NOT_READY && BELL_LOAD(&head->value) == lane_next; tries++) {
		if (tries % LANE_TRIES == 0 && clock_now_ns() > until)
			break;
		r = q->wait.query(q->wait.object);
	}
	return r;
}

/* The lane will wait in the driver. The entry that is there already goes to its lane without a detour. */
static void lane_leave_waiting(struct lane *lane)
{
	lane_begin_work(lane);
	if (!lane_take(&reader.request))
		lane_free_lead(lane);
	else
		(void)lane_hand_on(lane, &reader.request);
}

/* What it waits for is held, since others may end it. Where nobody is told, it is done before the next starts. */
static CUresult lane_wait(struct lane *lane)
{
	struct request *q = &lane->request;
	CUresult r = lane_is_awaited(q) ? q->wait.query(q->wait.object) : CUDA_ERROR_NOT_READY;

	if (r == CUDA_ERROR_NOT_READY && lane_is_awaited(q) && server.wait_spin > 0 && !q->header.sleeps)
		r = lane_ask_on(q);
	if (r != CUDA_ERROR_NOT_READY)
		return r;
	if (lane_is_awaited(q) && lane != &reader && lane_hold(q))
		lane_leave_waiting(lane);
	return q->wait.block(q->wait.object);
}

/* ---- lanes ---- */

static void lane_obey(void);

static __attribute__((noinline)) CUresult lane_serve_in_turn(struct request *q, const struct request_kind *kind)
{
	enum turn_answer answer;
	CUresult r;

	/* A thread's own stream is made where it is looked for, in the context that is current. */
	lane_set_context(q->header.context);
	while ((answer = turn_begin(q, kind->stream)) == TURN_ORDERS)
		lane_obey();
	lane_set_context(q->header.context);
	r = kind->serve(q);
	if (answer == TURN_TAKEN && r == CUDA_SUCCESS)
		turn_end();
	return r;
}

static inline CUresult lane_serve(struct request *q)
{
	const struct request_kind *kind = lane_kind(q);

	q->reply_bytes = 0;
	if (kind->makes && !handle_has_room())
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (kind->stream && server_has_rivals())
		return lane_serve_in_turn(q, kind);
	if (atomic_load_explicit(&turn_open_work, memory_order_relaxed) > 0)
		turn_mark();
	lane_set_context(q->header.context);
	return kind->serve(q);
}

/* The request that the lane has, and the lead. */
static inline void lane_do(struct lane *lane)
{
	CUresult r = lane_serve(&lane->request);

	if (r == REQUEST_WAITS) {
		r = lane_wait(lane);
		/* Nothing was taken: nobody else could end it. */
		if (lane->leads)
			lane->request.wait = (struct request_wait){0};
	}
	if (!lane->leads) {
		lane_let_go(&lane->request);
		lane_reply(lane, r);
		(void)lane_take_lead(lane);
		return;
	}
	if (r != CUDA_SUCCESS || lane_is_awaited(&lane->request))
		lane_reply(lane, r);
	lane_advance();
}

/* Spins until something is written. Return: whether it is, or the lead is another's. */
static bool lane_spin(uint32_t tail, long nanoseconds)
{
	struct bell *head = &server.wire->ring.head;
	struct spin spin = spin_begin(nanoseconds);

	while (BELL_LOAD(&head->value) == tail && atomic_load_explicit(&lane_lead, memory_order_relaxed) == LEAD_FREE) {
		if (!spin_goes_on(&spin)) {
			if (spin.late)
				lane_go_near(LANE_LATE);
			return false;
		}
		for (int i = 0; i < 64 && BELL_LOAD(&head->value) == tail; i++)
			spin_pause();
	}
	return true;
}

/* ---- what the manager orders ---- */

static inline uint32_t lane_read_order(void)
{
	return atomic_load_explicit(&server.orders->order[server.start.quota_slot], memory_order_relaxed);
}

static bool lane_is_to_park(uint32_t order)
{
	return (order & ((1U << START_ORDER_BITS) - 1)) == START_PARK;
}

/* Until there is another order. What the client wants meanwhile is said to the manager, which may give another then. */
static void lane_park(uint32_t order)
{
	_Atomic uint32_t *wanted = &server.quota->wanted[server.start.quota_slot];
	const _Atomic uint32_t *at = &server.orders->order[server.start.quota_slot];
	struct bell *head = &server.wire->ring.head;

	while (lane_read_order() == order) {
		const bool wants = BELL_LOAD(&head->value) != lane_tail;

		*wanted = wants;
		if (wants)
			BELL_SLEEP(at, order, &lane_patience);
		else
			bell_sleep(head, lane_tail, &lane_patience);
	}
	*wanted = 0;
}

/* What works without the lead takes none of it when it is done: the lead is not free meanwhile. */
static __attribute__((noinline)) void lane_obey(void)
{
	static const struct timespec moment = {.tv_nsec = 1000000};
	const uint32_t order = lane_read_order();

	while (lane_is_to_park(order) && lane_working > 0 && lane_read_order() == order)
		(void)clock_nanosleep(CLOCK_MONOTONIC, 0, &moment, NULL);
	if (lane_read_order() != order)
		return;
	lane_obeyed = order;
	server.quota->obeyed[server.start.quota_slot] = order;
	if (lane_is_to_park(order))
		lane_park(order);
}

/* A thread that wakes the lane at the ring at each order of the manager. Without it the lane wakes within a second. */
static void *lane_receive_orders(void *nothing)
{
	const _Atomic uint32_t *at = &server.orders->order[server.start.quota_slot];

	for (uint32_t heard = 0;;) {
		const uint32_t order = lane_read_order();

		if (order == heard)
			BELL_SLEEP(at, heard, NULL);
		else
			bell_wake(&server.wire->ring.head);
		heard = order;
	}
	return nothing;
}

/* For the manager, which knows by it how long the client has wanted nothing. */
static void lane_tell_rest(bool rests)
{
	server.quota->rests[server.start.quota_slot] = rests && lane_working == 0 ? lane_number + 1 : 0;
}

/* Waits for an entry. While it spins, others may take the lead. */
static void lane_idle(struct lane *lane)
{
	static long learnt; /* the lead's own */
	struct bell *head = &server.wire->ring.head;
	const uint32_t tail = lane_tail;
	const long spin = lane_spin_for(learnt > server.spin ? learnt : server.spin);
	const _Atomic int64_t *called = &server.wire->caller.woke;
	int64_t before, began;
	bool spun;

	if (turn_open_work > 0)
		turn_mark();
	bell_wake(&server.wire->ring.tail);
	atomic_store_explicit(&lane_lead, LEAD_FREE, memory_order_release);
	spun = lane_spin(tail, spin);
	if (!lane_take_lead(lane) || spun)
		return;
	began = clock_now_ns();
	before = atomic_load_explicit(called, memory_order_relaxed);
	lane_look_back();
	lane_tell_rest(true);
	bell_sleep(head, lane_tail, &lane_patience);
	/* Else nobody has woken it. */
	if (atomic_load_explicit(called, memory_order_relaxed) != before)
		lane_go_near(clock_day_ns() - atomic_load_explicit(called, memory_order_relaxed));
	if (BELL_LOAD(&head->value) != lane_tail)
		lane_tell_rest(false);
	learnt = bell_learn(spin + (long)(clock_now_ns() - began), server.spin, server.long_spin);
}

/* As long as it has the lead. */
static void lane_go_on(struct lane *lane)
{
	if (lane->given) {
		lane->given = false;
		lane_do(lane);
	}
	while (lane->leads) {
		if (lane_read_order() != lane_obeyed)
			lane_obey();
		else if (!lane_take(&lane->request))
			lane_idle(lane);
		/* Most are its own. */
		else if (lanes[lane->request.header.thread] == lane || !lane_hand_on(lane, &lane->request))
			lane_do(lane);
	}
}

/* Until its bell is rung. */
static void lane_sleep(struct lane *lane, uint32_t seen)
{
	lane_look_back();
	bell_sleep(&lane->bell, seen, NULL);
	if (BELL_LOAD(&lane->bell.value) != seen)
		lane_go_near(clock_now_ns() - atomic_load_explicit(&lane->rung, memory_order_relaxed));
}

static _Noreturn void lane_work(struct lane *lane)
{
	for (uint32_t seen = 0;;) {
		const uint32_t value = BELL_LOAD(&lane->bell.value);

		if (value == seen) {
			if (!bell_spin(&lane->bell, seen, lane_spin_for(server.spin)))
				lane_sleep(lane, seen);
			continue;
		}
		seen = value;
		/* The reader is told of a lead that may be another's by now. */
		if (lane->given)
			lane->leads = true;
		else if (!lane_take_lead(lane))
			continue;
		lane_go_on(lane);
	}
}

static void *lane_begin(void *lane)
{
	lane_work(lane);
}

void lane_run(const struct request_kind *own)
{
	pthread_t receiver;

	lane_own = own;
	(void)pthread_create(&receiver, NULL, lane_receive_orders, NULL);
	lane_go_on(&reader);
	lane_work(&reader);
}

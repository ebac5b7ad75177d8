/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Where there is a rival, the GPU has some two milliseconds of work at a time from this server: so much that it always
 * has some, and so little that a turn ends soon. How much that is, is learnt from how long it took. What begins is put
 * into groups, each in one stream; behind its last work stands an event of ours, and right behind it, so that it keeps
 * nothing waiting that would not have waited. Groups begin only in a turn. Who has begun nothing for a moment gives its
 * turn back.
 *
 * A kernel may wait for another that is to begin in a later turn. So a turn that ends is not waited for with anything
 * that the client wants done besides, and a server whose work is not done has turns, too.
 *
 * A thread of its own asks the events: the lanes may be asleep or in the driver. Each time that it does it counts how
 * long the GPU has had work, if it has. Where that is measured and there is no rival, there are groups and events, too,
 * but no turns: nothing waits, and the thread asks seldom and out of step with everything.
 */

#include "vcuda/server/request.h"

#include <pthread.h>

#include "base/clock.h"
#include "vcuda/driver_api.h"
#include "vcuda/server/driver.h"
#include "vcuda/server/handle.h"

enum {
	TURN_GROUPS = 64,
	TURN_ITEMS = 64, /* under way at most, of kernels, graphs and so on */
	TURN_PARTS = 4,  /* groups that these make, in one stream */
	TURN_SOON_US = 1500,
	TURN_LATE_US = 3000,
	TURN_IDLE_US = 200,
	TURN_LOOK_US = 20,
	TURN_MEASURE_US = 500,         /* on an average */
	TURN_MEASURE_QUIET_US = 50000, /* after which it sleeps until there is work */
	TURN_CONTEXTS = 256,
	TURN_RELAXED = 2, /* of captures: other threads' are none of its business */
	TURN_SILENCE_US = 1000000,
	TURN_EVENT_FLAGS = 2, /* without time */
};

struct turn_group {
	CUevent event; /* 0: none yet */
	uint64_t context;
	int64_t began;
	unsigned items;
	bool measured; /* and nothing more */
};

/* Of a GPU of the grant's numbering. With turn_lock, but for what the lead alone reads. */
struct turn {
	struct turn_group groups[TURN_GROUPS]; /* a ring */
	unsigned first, count;
	unsigned items;  /* in these */
	unsigned most;   /* that may be under way */
	bool full;       /* they have been as many since one was done */
	int64_t used_at; /* when work began or ended last; 0: never */
	int64_t looked_at;
	uint32_t number; /* of the turn that is used; 0: none */
};

static struct turn turns[START_GPUS];
static pthread_mutex_t turn_lock = PTHREAD_MUTEX_INITIALIZER;

/* Its value: how many groups were done, or begun from rest. */
static struct bell turn_done, turn_begun;

/* The lead's own: a group that has no event yet. */
_Atomic unsigned turn_open_work;
static struct {
	CUstream stream;
	uint64_t context;
	unsigned gpu;
	unsigned most;
	int64_t began;
	bool measured;
} open_group;

static struct {
	uint64_t context;
	unsigned gpu;
} turn_contexts[TURN_CONTEXTS];

static int turn_hold(void)
{
	return pthread_mutex_lock(&turn_lock);
}

static void turn_let_go(const int *held)
{
	(void)held;
	(void)pthread_mutex_unlock(&turn_lock);
}
#define TURN_HOLD() const int turn_held __attribute__((cleanup(turn_let_go), unused)) = turn_hold()

/* ---- what decider and server say to each other ---- */

/* Nobody decides, as long as the beat stays as it is. */
static bool turn_silent;
static uint32_t turn_silent_beat;

static bool turn_has_rival(unsigned gpu)
{
	return atomic_load_explicit(&server.turns->rivals[server.start.quota_slot], memory_order_relaxed) & 1U << gpu;
}

/* How long it has work, and nothing else is of interest. */
static bool turn_is_measured(unsigned gpu)
{
	return atomic_load_explicit(server.rivals, memory_order_relaxed) & TURN_MEASURED && !turn_has_rival(gpu);
}

static const _Atomic uint32_t *turn_word(unsigned gpu)
{
	return &server.turns->turn[gpu][server.start.quota_slot];
}

static uint32_t turn_needs(unsigned gpu)
{
	return atomic_load_explicit(&server.quota->needs[gpu][server.start.quota_slot], memory_order_relaxed);
}

/* With the lock: both of a server's threads say something. */
static void turn_set_needs(unsigned gpu, uint32_t set, uint32_t clear)
{
	const uint32_t needs = (turn_needs(gpu) & ~clear) | set;

	atomic_store_explicit(&server.quota->needs[gpu][server.start.quota_slot], needs, memory_order_release);
}

/* ---- contexts ---- */

bool turn_add_context(uint64_t context, unsigned gpu)
{
	TURN_HOLD();
	for (unsigned i = 0; i < TURN_CONTEXTS; i++)
		if (!turn_contexts[i].context) {
			turn_contexts[i].context = context;
			turn_contexts[i].gpu = gpu;
			return true;
		}
	return false;
}

unsigned turn_find_gpu(uint64_t context)
{
	for (unsigned i = 0; i < TURN_CONTEXTS; i++)
		if (turn_contexts[i].context == context)
			return turn_contexts[i].gpu;
	return 0;
}

/* Its events end with it. The groups count as done: a context ends only after the work in it. */
void turn_forget_context(uint64_t context)
{
	TURN_HOLD();
	for (unsigned i = 0; i < TURN_CONTEXTS; i++)
		if (turn_contexts[i].context == context)
			turn_contexts[i].context = 0;
	for (unsigned gpu = 0; gpu < START_GPUS; gpu++)
		for (unsigned i = 0; i < TURN_GROUPS; i++)
			if (turns[gpu].groups[i].context == context)
				turns[gpu].groups[i].event = turns[gpu].groups[i].context = 0;
	if (open_group.context == context)
		turn_open_work = 0;
}

/* ---- the thread that sees what is done ---- */

static CUresult turn_ask(const struct turn_group *group)
{
	uint64_t real;

	if (!group->event || !handle_look(group->context, WIRE_CONTEXT, &real))
		return CUDA_SUCCESS;
	(void)driver.cuCtxSetCurrent(real);
	return driver.cuEventQuery(group->event);
}

/* More may be under way if these were done soon, and there would have been more. */
static void turn_learn(struct turn *turn, const struct turn_group *group, int64_t now)
{
	if (now - group->began > TURN_LATE_US)
		turn->most /= 2;
	else if (now - group->began < TURN_SOON_US && turn->full)
		turn->most *= 2;
	turn->most = turn->most < 1 ? 1 : turn->most > TURN_ITEMS ? TURN_ITEMS : turn->most;
	turn->full = false;
}

static void turn_retire(struct turn *turn, int64_t now)
{
	while (turn->count > 0 && turn_ask(&turn->groups[turn->first]) != CUDA_ERROR_NOT_READY) {
		if (!turn->groups[turn->first].measured)
			turn_learn(turn, &turn->groups[turn->first], now);
		turn->items -= turn->groups[turn->first].items;
		turn->used_at = now;
		turn->first = (turn->first + 1) % TURN_GROUPS;
		turn->count--;
		(void)atomic_fetch_add(&turn_done.value, 1);
		bell_wake(&turn_done);
	}
}

static bool turn_is_over(const struct turn *turn, unsigned gpu, int64_t now)
{
	return !turn->number || *turn_word(gpu) != turn->number || now - turn->used_at > TURN_IDLE_US;
}

/* What was the case all the time is not known: it counts as it is now. */
static void turn_count(struct turn *turn, unsigned gpu, bool works, int64_t now)
{
	_Atomic uint64_t *busy = &server.quota->busy[gpu][server.start.quota_slot];
	const int64_t past = now - turn->looked_at;

	turn->looked_at = now;
	if (works && past > 0)
		(void)atomic_fetch_add_explicit(busy, (uint64_t)past * 1000, memory_order_relaxed);
}

enum turn_pace { TURN_SLEEPS, TURN_LOOKS_SELDOM, TURN_LOOKS_OFTEN };

/* Return: when to look again. */
static enum turn_pace turn_look(unsigned gpu)
{
	struct turn *turn = &turns[gpu];
	const bool measured = turn_is_measured(gpu);
	const int64_t now = clock_now_us();
	bool works;

	TURN_HOLD();
	if (!turn->used_at)
		return TURN_SLEEPS;
	turn_retire(turn, now);
	works = turn->count > 0 || (turn_open_work > 0 && open_group.gpu == gpu);
	turn_count(turn, gpu, works, now);
	if (!works && turn_is_over(turn, gpu, now)) {
		turn->number = 0;
		turn_set_needs(gpu, 0, TURN_USED);
	}
	if (turn_needs(gpu) & TURN_USED)
		return measured ? TURN_LOOKS_SELDOM : TURN_LOOKS_OFTEN;
	return measured && now - turn->used_at < TURN_MEASURE_QUIET_US ? TURN_LOOKS_SELDOM : TURN_SLEEPS;
}

static void turn_pause(enum turn_pace pace)
{
	static uint32_t number = 1;
	struct timespec time = {.tv_nsec = TURN_LOOK_US * 1000};

	number = number * 1664525 + 1013904223;
	if (pace == TURN_LOOKS_SELDOM)
		time.tv_nsec = (TURN_MEASURE_US / 2 + (long)(number >> 8) % TURN_MEASURE_US) * 1000;
	(void)clock_nanosleep(CLOCK_MONOTONIC, 0, &time, NULL);
}

static void turn_rest(uint32_t begun)
{
	bell_sleep(&turn_begun, begun, NULL);
	TURN_HOLD();
	for (unsigned gpu = 0; gpu < START_GPUS; gpu++)
		turns[gpu].looked_at = clock_now_us();
}

static void *turn_watch(void *nothing)
{
	CUstreamCaptureMode mode = TURN_RELAXED;

	if (driver.cuThreadExchangeStreamCaptureMode)
		(void)driver.cuThreadExchangeStreamCaptureMode(&mode);
	for (;;) {
		const uint32_t begun = BELL_LOAD(&turn_begun.value);
		enum turn_pace pace = TURN_SLEEPS;

		for (unsigned gpu = 0; gpu < START_GPUS; gpu++) {
			const enum turn_pace wanted = turn_look(gpu);

			pace = wanted > pace ? wanted : pace;
		}
		if (pace)
			turn_pause(pace);
		else
			turn_rest(begun);
	}
	return nothing;
}

static bool turn_start(void)
{
	static bool started;
	pthread_t thread;

	if (!started)
		started = pthread_create(&thread, NULL, turn_watch, NULL) == 0;
	return started;
}

/* ---- marks ---- */

static bool turn_make_event(struct turn_group *group, uint64_t context)
{
	if (group->event && group->context != context)
		(void)driver.cuEventDestroy_v2(group->event);
	if ((!group->event || group->context != context) && driver.cuEventCreate(&group->event, TURN_EVENT_FLAGS))
		group->event = 0;
	group->context = context;
	return group->event;
}

/* What failed is no work of the GPU's. Where there is no room for another group, the last one has more. */
static void turn_put_event(struct turn *turn)
{
	const bool full = turn->count == TURN_GROUPS;
	struct turn_group *group = &turn->groups[(turn->first + turn->count - full) % TURN_GROUPS];

	if (!turn_make_event(group, open_group.context) || driver.cuEventRecord(group->event, open_group.stream))
		return;
	if (!full) {
		group->items = 0;
		group->began = open_group.began;
		turn->count++;
	}
	group->items += turn_open_work;
	group->measured = open_group.measured;
	turn->items += turn_open_work;
}

/* In whatever context the thread is. */
static void turn_put_mark(void)
{
	CUcontext popped;
	uint64_t real;

	if (!handle_look(open_group.context, WIRE_CONTEXT, &real) || driver.cuCtxPushCurrent_v2(real))
		return;
	turn_put_event(&turns[open_group.gpu]);
	(void)driver.cuCtxPopCurrent_v2(&popped);
}

void turn_mark(void)
{
	TURN_HOLD();
	turn_put_mark();
	turns[open_group.gpu].used_at = clock_now_us();
	turn_open_work = 0;
	/* The thread that looks may be asleep: a turn that was given back just now. */
	turn_set_needs(open_group.gpu, TURN_USED, 0);
	(void)atomic_fetch_add(&turn_begun.value, 1);
	bell_wake(&turn_begun);
}

void turn_end(void)
{
	if (atomic_fetch_add_explicit(&turn_open_work, 1, memory_order_relaxed) + 1 >= open_group.most)
		turn_mark();
}

/* ---- turns ---- */

/* What is captured is no work yet. */
static bool turn_is_captured(CUstream stream)
{
	CUstreamCaptureStatus status = 0;

	return driver.cuStreamIsCapturing && (driver.cuStreamIsCapturing(stream, &status) || status);
}

static void turn_want(unsigned gpu, bool wanted)
{
	TURN_HOLD();
	turn_set_needs(gpu, wanted ? TURN_WANTED : 0, wanted ? 0 : TURN_WANTED);
}

static void turn_sleep(unsigned gpu)
{
	static const struct timespec patience = {.tv_nsec = 50000000};

	turn_want(gpu, true);
	BELL_SLEEP(turn_word(gpu), 0, &patience);
}

static void turn_sleep_until_done(uint32_t done)
{
	static const struct timespec patience = {.tv_nsec = 1000000};

	if (!bell_spin(&turn_done, done, server.spin))
		bell_sleep(&turn_done, done, &patience);
}

static unsigned turn_most(const struct turn *turn)
{
	return turn->most ? turn->most : 1;
}

/* Return: whether it is taken: it goes on, and there is room for a group. */
static bool turn_take(unsigned gpu)
{
	struct turn *turn = &turns[gpu];
	const uint32_t number = *turn_word(gpu);
	bool full;

	TURN_HOLD();
	full = turn->count == TURN_GROUPS || turn->items >= turn_most(turn);
	turn->full |= number && full;
	if (!number || full)
		return false;
	turn->number = number;
	turn->used_at = clock_now_us();
	turn_set_needs(gpu, TURN_USED, TURN_WANTED);
	(void)atomic_fetch_add(&turn_begun.value, 1);
	bell_wake(&turn_begun);
	return true;
}

/* The manager's orders come first: a server that is parked, perhaps for long, asks for no turn. */
static bool turn_is_ordered(void)
{
	const uint32_t slot = server.start.quota_slot;

	return atomic_load_explicit(&server.orders->order[slot], memory_order_relaxed) != server.quota->obeyed[slot];
}

/* Whether no decider runs: the beat has not changed for so long. */
static bool turn_is_silent(uint32_t beat, int64_t since)
{
	turn_silent = server.turns->beat == beat && clock_now_us() - since > TURN_SILENCE_US;
	turn_silent_beat = beat;
	return turn_silent;
}

static enum turn_answer turn_await(unsigned gpu)
{
	const uint32_t beat = server.turns->beat;
	const int64_t since = clock_now_us();
	enum turn_answer answer = TURN_NONE;

	while (!answer && turn_has_rival(gpu) && !turn_is_silent(beat, since)) {
		const uint32_t done = BELL_LOAD(&turn_done.value);

		if (turn_is_ordered())
			answer = TURN_ORDERS;
		else if (turn_take(gpu))
			answer = TURN_TAKEN;
		else if (*turn_word(gpu))
			turn_sleep_until_done(done);
		else
			turn_sleep(gpu);
	}
	turn_want(gpu, false);
	return answer;
}

static bool turn_goes_on(unsigned gpu, CUstream stream, uint64_t context)
{
	if (open_group.gpu != gpu || open_group.stream != stream || open_group.context != context)
		return false;
	return open_group.measured ? turn_is_measured(gpu) : turns[gpu].number && *turn_word(gpu) == turns[gpu].number;
}

static bool turn_is_needed(uint64_t context, CUstream stream)
{
	if (!context || !turn_has_rival(turn_find_gpu(context)) || turn_is_captured(stream))
		return false;
	return (!turn_silent || server.turns->beat != turn_silent_beat) && turn_start();
}

enum turn_answer turn_begin(const struct request *q, unsigned word)
{
	const uint64_t value = q->header.words > word ? q->argument[word] : 0;
	const uint64_t context = value >= WIRE_STREAM_NAMES ? handle_context(value) : q->header.context;
	const unsigned gpu = turn_find_gpu(context);
	enum turn_answer answer = TURN_NONE;
	CUstream stream = 0;

	if (!context || handle_find_stream(value, q->header.thread, context, &stream))
		return TURN_NONE;
	if (turn_open_work > 0 && turn_goes_on(gpu, stream, context))
		return TURN_TAKEN;
	if (turn_open_work > 0)
		turn_mark();
	open_group.measured = turn_is_measured(gpu) && !turn_is_captured(stream) && turn_start();
	if (!open_group.measured && turn_is_needed(context, stream))
		answer = turn_await(gpu);
	if (!open_group.measured && answer != TURN_TAKEN)
		return answer;
	open_group.stream = stream;
	open_group.context = context;
	open_group.gpu = gpu;
	open_group.most = open_group.measured ? TURN_ITEMS : turn_most(&turns[gpu]) / TURN_PARTS;
	open_group.began = clock_now_us();
	return TURN_TAKEN;
}

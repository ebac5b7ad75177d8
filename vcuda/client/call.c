/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Calls of the server by the threads of the process: one ring for all of them. CUDA orders what different threads do by
 * what the program does between the calls, and two rings could carry out an event's record before the launch that
 * another thread made first.
 */

#include "vcuda/client/call.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <search.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "vcuda/client/client.h"
#include "vcuda/client/context.h"
#include "vcuda/ops.h"

/* ---- threads ---- */

/*
 * Nobody says when a thread ends: what could, pthread_key_create(), is in a library of its own in older C libraries.
 * So a place is taken over when its thread is found dead, or when a thread comes with the number of one that was.
 */

static struct lock thread_lock;
static struct thread threads[WIRE_SLOTS];
static __thread struct thread *thread_own;

static bool thread_is_dead(int id)
{
	return syscall(SYS_tgkill, syscall(SYS_getpid), id, 0) < 0 && errno == ESRCH;
}

bool thread_has_ended(uint32_t slot)
{
	const int id = threads[slot].id;

	return id != 0 && thread_is_dead(id);
}

/* What a thread that was cancelled waits for may still come. */
static bool thread_has_answer(const struct thread *thread)
{
	return BELL_LOAD(&client.wire->reply[thread->slot].done.value) == thread->sequence;
}

static struct thread *thread_take(int id)
{
	struct thread *dead = NULL;

	for (uint32_t i = 0; i < WIRE_SLOTS; i++) {
		struct thread *thread = &threads[i];

		if (thread->id == 0 || (thread->id == id && thread_has_answer(thread))) {
			thread->slot = i;
			return thread;
		}
	}
	for (uint32_t i = 0; i < WIRE_SLOTS && !dead; i++)
		if (thread_is_dead(threads[i].id) && thread_has_answer(&threads[i]))
			dead = &threads[i];
	return dead;
}

/* What the driver keeps for a thread, and what failed, was the one's that had the place. */
static void thread_renew(struct thread *thread)
{
	client.wire->reply[thread->slot].deferred = 0;
	if (call_begin(thread, WIRE_THREAD, 0, 0, false))
		call_end();
}

/* Once, on stderr: what its calls fail with says nothing of threads. */
static void thread_warn(void)
{
	static const char text[] = "ctr-gpu: vCUDA: more than 1024 threads of this program call CUDA; those above get "
				   "CUDA_ERROR_OUT_OF_MEMORY until others end\n";
	static _Atomic bool said;

	_Static_assert(WIRE_SLOTS == 1024, "as the text says");
	if (!atomic_exchange(&said, true) && write(STDERR_FILENO, text, sizeof(text) - 1) < 0)
		return;
}

/* In its first call. */
static __attribute__((noinline)) struct thread *thread_begin(void)
{
	const int id = (int)syscall(SYS_gettid);
	struct thread *thread;
	bool used;

	lock_take(&thread_lock);
	thread = thread_take(id);
	used = thread && thread->id != 0;
	if (thread) {
		thread->id = id;
		thread->depth = 0;
		thread->calls_back = false;
		thread->unwatched = false;
	}
	lock_release(&thread_lock);
	thread_own = thread;
	if (!thread)
		thread_warn();
	if (used)
		thread_renew(thread);
	return thread;
}

struct thread *thread_self(void)
{
	return thread_own ? thread_own : thread_begin();
}

void thread_forget(void)
{
	thread_lock = (struct lock){0};
	/* The next server's replies count from there. */
	for (uint32_t i = 0; i < WIRE_SLOTS; i++)
		threads[i].sequence = 0;
}

#pragma weak pthread_create

bool background_can_start(void)
{
	return pthread_create != NULL;
}

/* What a thread's own instructions raise ends the process if it is blocked, whatever the program wants done then. */
static void background_fill(sigset_t *ret)
{
	static const int own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS};

	(void)sigfillset(ret);
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		(void)sigdelset(ret, own[i]);
}

bool background_start(void *(*run)(void *data), void *data)
{
	sigset_t all, before;
	pthread_t thread;
	int r;

	if (!background_can_start())
		return false;
	/* Of the calling thread alone; the function of that name is in the library of threads. */
	background_fill(&all);
	(void)sigprocmask(SIG_SETMASK, &all, &before);
	r = pthread_create(&thread, NULL, run, data);
	(void)sigprocmask(SIG_SETMASK, &before, NULL);
	return r == 0;
}

/* ---- calls ---- */

static struct lock call_lock;
static uint32_t call_head;    /* of the ring; the server's memory is only written */
static uint32_t call_pending; /* the end of the entry that is being written */
static uint32_t call_tail;    /* a copy: to read the server's word takes the line from its cache */

static const struct timespec call_patience = {.tv_nsec = 100000000};

CUresult call_context_failure(const struct thread *thread)
{
	const struct context *context = thread_context(thread);
	const struct wire_failed *failed;

	if (!context)
		return CUDA_SUCCESS;
	failed = &client.wire->failed[wire_failed_of(context->handle)];
	if (atomic_load_explicit(&failed->context, memory_order_acquire) != context->handle)
		return CUDA_SUCCESS;
	return client_result(atomic_load_explicit(&failed->result, memory_order_relaxed));
}

CUresult call_lost(void)
{
	const struct thread *thread = thread_self();
	const CUresult r = thread ? call_context_failure(thread) : CUDA_SUCCESS;

	return r ? r : CUDA_ERROR_LAUNCH_FAILED;
}

CUresult call_enter(struct thread **ret)
{
	if (!client.life || !client.life->ready)
		return CUDA_ERROR_NOT_INITIALIZED;
	*ret = thread_self();
	if (!*ret)
		return CUDA_ERROR_OUT_OF_MEMORY;
	return (*ret)->calls_back ? CUDA_ERROR_NOT_PERMITTED : CUDA_SUCCESS;
}

CUresult context_current(struct context **ret)
{
	struct thread *thread;
	CUresult r = call_enter(&thread);

	if (r)
		return r;
	*ret = thread_context(thread);
	if (!*ret)
		return CUDA_ERROR_INVALID_CONTEXT;
	return (*ret)->gone ? CUDA_ERROR_CONTEXT_IS_DESTROYED : CUDA_SUCCESS;
}

CUresult call_fail(CUresult result)
{
	struct thread *thread;
	CUresult r = call_enter(&thread);

	return r ? r : result;
}

CUresult call_failure(const struct thread *thread)
{
	_Atomic int32_t *deferred = &client.wire->reply[thread->slot].deferred;
	const CUresult r = call_context_failure(thread);

	if (r)
		return r;
	/* What is done for the program without its knowledge tells it nothing. */
	if (!thread->unwatched && atomic_load_explicit(deferred, memory_order_relaxed))
		return client_result(atomic_exchange(deferred, 0));
	return CUDA_SUCCESS;
}

/* Waits until the ring has room for @units. Return: whether the server is still there. */
static bool call_make_room(uint32_t units)
{
	struct bell *tail = &client.wire->ring.tail;

	while (RING_UNITS - ring_distance(call_tail, call_head) < units) {
		const uint32_t seen = BELL_LOAD(&tail->value);

		if (ring_distance(seen, call_head) > RING_UNITS)
			return false;
		/* The server wakes us when half of it is free. */
		if (seen == call_tail)
			bell_sleep(tail, seen, &call_patience);
		if (seen == call_tail && BELL_LOAD(&tail->value) == seen && client_is_lost())
			return false;
		call_tail = seen;
	}
	return true;
}

static struct wire_entry *call_entry_at(uint32_t head)
{
	return (struct wire_entry *)(client.wire->command + (size_t)(head % RING_UNITS) * RING_UNIT);
}

/* Whether the program wants threads that wait in the current context to sleep. */
static bool call_sleeps(const struct thread *thread)
{
	enum { SCHEDULE = 7, BLOCKING_SYNC = 4 };
	const struct context *context = thread_context(thread);

	return context && (context->flags & SCHEDULE) == BLOCKING_SYNC;
}

static inline const struct client_watch *call_watch(const struct thread *thread)
{
	const struct client_watch *watch = atomic_load_explicit(&client.watch, memory_order_relaxed);

	return watch && !thread->unwatched ? watch : NULL;
}

struct wire_entry *call_begin(struct thread *thread, unsigned op, unsigned words, size_t bytes, bool waits)
{
	const uint32_t units = (uint32_t)wire_units(bytes);
	const struct context *context = thread_context(thread);
	struct wire_entry *entry;
	uint32_t rest;

	if (client.lost)
		return NULL;
	if (call_watch(thread))
		call_watch(thread)->before(op);
	lock_take(&call_lock);
	rest = RING_UNITS - call_head % RING_UNITS;
	if (!call_make_room(units > rest ? units + rest : units)) {
		lock_release(&call_lock);
		return NULL;
	}
	call_pending = call_head;
	if (units > rest) {
		*call_entry_at(call_pending) =
			(struct wire_entry){.bytes = rest * RING_UNIT - (uint32_t)sizeof(*entry), .slot = WIRE_SCRATCH};
		call_pending += rest;
	}
	entry = call_entry_at(call_pending);
	entry->op = (uint16_t)op;
	entry->words = (uint16_t)words;
	entry->bytes = (uint32_t)bytes;
	entry->slot = waits ? thread->slot : WIRE_SCRATCH;
	entry->sequence = waits ? ++thread->sequence : 0;
	entry->context = context ? context->handle : 0;
	entry->thread = thread->slot;
	entry->sleeps = call_sleeps(thread);
	call_pending += units;
	thread->from = call_head;
	thread->end = call_pending;
	return entry;
}

void call_note_idle(struct thread *thread, uint64_t stream, uint32_t copy)
{
	thread->idle_context = thread->from == copy ? thread_context(thread) : NULL;
	thread->idle_stream = stream == WIRE_STREAM_NULL ? WIRE_STREAM_LEGACY : stream;
	thread->idle_end = thread->end;
}

bool call_is_idle(const struct thread *thread, uint64_t stream)
{
	const struct context *context = thread_context(thread);

	if (stream == WIRE_STREAM_NULL)
		stream = WIRE_STREAM_LEGACY;
	return context && !context->gone && context == thread->idle_context && stream == thread->idle_stream &&
	       *(volatile uint32_t *)&call_head == thread->idle_end;
}

void call_forget(void)
{
	call_head = call_pending = call_tail = 0;
	call_lock = (struct lock){0};
}

/*
 * Where others have all processors, the server goes to its caller's. By when it was called, it knows how long it waited
 * for one.
 */
static void call_record_processor(void)
{
	struct wire_caller *caller = &client.wire->caller;

	atomic_store_explicit(&caller->processor, (uint32_t)sched_getcpu(), memory_order_relaxed);
	if (BELL_LOAD(&client.wire->ring.head.sleeps) != 0)
		atomic_store_explicit(&caller->woke, clock_day_ns(), memory_order_relaxed);
}

void call_end(void)
{
	call_head = call_pending;
	call_record_processor();
	bell_ring(&client.wire->ring.head, call_head);
	lock_release(&call_lock);
}

bool call_server_is_near(void)
{
	return atomic_load_explicit(&client.wire->near, memory_order_relaxed) != 0;
}

CUresult call_wait(struct thread *thread, bool long_wait)
{
	const long most = !long_wait ? client.spin : call_sleeps(thread) ? 0 : client.wait_spin;
	const long spin = call_server_is_near() ? 0 : most;
	struct wire_reply *reply = &client.wire->reply[thread->slot];

	for (;;) {
		const uint32_t seen = BELL_LOAD(&reply->done.value);

		if (seen == thread->sequence)
			return client_result(CLIENT_READ(reply->result));
		if (client.patience && client_is_lost())
			return call_lost();
		if (bell_spin(&reply->done, seen, spin))
			continue;
		bell_sleep(&reply->done, seen, &call_patience);
		if (BELL_LOAD(&reply->done.value) == seen && client_is_lost())
			return call_lost();
	}
}

static size_t call_round(size_t bytes)
{
	return (bytes + 7) & ~(size_t)7;
}

/* Return: CUDA_SUCCESS once the entry is in the ring. */
static CUresult call_push(struct thread *thread, unsigned op, const uint64_t *words, unsigned count,
			  const struct call_part *parts, unsigned part_count, bool waits)
{
	size_t bytes = count * sizeof(*words);
	struct wire_entry *entry;
	uint8_t *at;

	for (unsigned i = 0; i < part_count; i++) {
		if (parts[i].bytes > WIRE_INLINE || bytes > WIRE_INLINE)
			return CUDA_ERROR_INVALID_VALUE;
		bytes += call_round(parts[i].bytes);
	}
	if (bytes > WIRE_INLINE)
		return CUDA_ERROR_INVALID_VALUE;
	entry = call_begin(thread, op, count, bytes, waits);
	if (!entry)
		return call_lost();
	for (unsigned i = 0; i < count; i++)
		wire_arguments(entry)[i] = words[i];
	at = (uint8_t *)(wire_arguments(entry) + count);
	for (unsigned i = 0; i < part_count; i++) {
		memcpy(at, parts[i].data, parts[i].bytes);
		at += call_round(parts[i].bytes);
	}
	call_end();
	return CUDA_SUCCESS;
}

bool call_fits_stream(uint64_t event, uint64_t stream)
{
	const struct thread *thread = thread_self();
	const struct context *context = thread ? thread_context(thread) : NULL;

	if (stream >= WIRE_STREAM_NAMES)
		return wire_handle_tag(event) == wire_handle_tag(stream);
	return context && wire_handle_tag(event) == wire_handle_tag_of(context->handle);
}

/* What kernels have printed goes to the program's own stdout, as the driver writes it there. */
static void call_print(struct thread *thread)
{
	enum { ROUNDS = 16384 }; /* more than a server keeps */
	const struct wire_reply *reply = &client.wire->reply[thread->slot];
	unsigned rounds = 0;

	for (uint64_t which = 0; which < WIRE_PRINTS; which++) {
		FILE *to = which == WIRE_PRINT_OUT ? stdout : stderr;

		while (CLIENT_READ(reply->prints) & 1U << which && rounds++ < ROUNDS) {
			uint32_t bytes;

			if (call_push(thread, WIRE_PRINT, &which, 1, NULL, 0, true) || call_wait(thread, false))
				return;
			bytes = CLIENT_READ(reply->bytes);
			if (bytes == 0 || bytes > WIRE_REPLY)
				return;
			(void)fwrite(reply->word, 1, bytes, to);
		}
		(void)fflush(to);
	}
}

/*
 * What a call returns that has succeeded. Only calls that ask tell of an earlier command's failure: of others, which
 * have made, begun or ended something, the program would think that they have not.
 */
static CUresult call_succeed(const struct thread *thread, unsigned op)
{
	return op == WIRE_STAGE_WAIT || op == WIRE_PROBE || OP_ASKS(op) || op == OP_cuStreamQuery ||
			       op == OP_cuEventQuery
		       ? call_failure(thread)
		       : call_context_failure(thread);
}

/* Of a call in which the driver prints. The result is taken first: to print uses the place of the reply again. */
static CUresult call_end_printing(struct thread *thread, unsigned op, CUresult r)
{
	r = r ? r : call_succeed(thread, op);
	call_print(thread);
	return r;
}

static CUresult call_ask(struct thread *thread, unsigned op, const uint64_t *words, unsigned count,
			 const struct call_part *parts, unsigned part_count, void *out, size_t out_bytes)
{
	CUresult r = call_push(thread, op, words, count, parts, part_count, true);
	const struct wire_reply *reply;

	if (r)
		return r;
	r = call_wait(thread, op == WIRE_STAGE_WAIT || OP_ASKS(op));
	reply = &client.wire->reply[thread->slot];
	if ((op == WIRE_STAGE_WAIT || OP_PRINTS(op)) && CLIENT_READ(reply->prints))
		return call_end_printing(thread, op, r);
	if (r)
		return r;
	if (out_bytes == 0)
		return call_succeed(thread, op);
	if (CLIENT_READ(reply->bytes) < out_bytes || out_bytes > WIRE_REPLY)
		return CUDA_ERROR_UNKNOWN;
	memcpy(out, reply->word, out_bytes);
	return CUDA_SUCCESS;
}

CUresult call_sync(unsigned op, const uint64_t *words, unsigned count, const struct call_part *parts,
		   unsigned part_count, void *out, size_t out_bytes)
{
	struct thread *thread;
	CUresult r = call_enter(&thread);

	/* Functions up to this one, of devices and contexts, need none. */
	if (!r && op > OP_cuCtxDestroy_v2 && thread_context(thread) && thread_context(thread)->gone)
		return CUDA_ERROR_CONTEXT_IS_DESTROYED;
	if (!r)
		r = call_ask(thread, op, words, count, parts, part_count, out, out_bytes);
	if (!r && call_watch(thread))
		call_watch(thread)->behind(op);
	return r;
}

CUresult call_with_handles(unsigned op, const uint64_t *words, unsigned count, const uint64_t *handles,
			   size_t handle_count, const struct call_part *part, void *out, size_t out_bytes)
{
	uint64_t *all;
	CUresult r;

	if (handle_count > CALL_HANDLES)
		return call_fail(CUDA_ERROR_INVALID_VALUE);
	all = malloc((count + handle_count) * sizeof(*all));
	if (!all)
		return call_fail(CUDA_ERROR_OUT_OF_MEMORY);
	memcpy(all, words, count * sizeof(*all));
	if (handle_count)
		memcpy(all + count, handles, handle_count * sizeof(*all));
	r = call_sync(op, all, count + (unsigned)handle_count, part, part ? 1 : 0, out, out_bytes);
	free(all);
	return r;
}

CUresult call_async(unsigned op, const uint64_t *words, unsigned count, const struct call_part *parts,
		    unsigned part_count)
{
	const bool waits = client.waits || client.captures;
	struct thread *thread;
	CUresult r = call_enter(&thread);

	if (!r)
		r = call_failure(thread);
	if (!r)
		r = call_push(thread, op, words, count, parts, part_count, waits);
	return r || !waits ? r : call_wait(thread, false);
}

size_t call_reply_bytes(void)
{
	return CLIENT_READ(client.wire->reply[thread_self()->slot].bytes);
}

CUresult call_download(size_t offset, void *to, size_t bytes)
{
	for (size_t done = 0; done < bytes;) {
		const size_t piece = bytes - done < WIRE_REPLY ? bytes - done : WIRE_REPLY;
		const uint64_t words[] = {offset + done, piece};
		CUresult r = call_sync(WIRE_DOWNLOAD, words, 2, NULL, 0, (char *)to + done, piece);

		if (r)
			return r;
		done += piece;
	}
	return CUDA_SUCCESS;
}

CUresult call_upload(const void *data, size_t bytes)
{
	enum { PIECE = WIRE_INLINE - 64 };

	for (size_t done = 0; done < bytes; done += PIECE) {
		const size_t piece = bytes - done < PIECE ? bytes - done : PIECE;
		const uint64_t words[] = {done, piece};
		const struct call_part part = {(const char *)data + done, piece};
		CUresult r = call_async(WIRE_UPLOAD, words, 2, &part, 1);

		if (r)
			return r;
	}
	return CUDA_SUCCESS;
}

static int call_compare_texts(const void *a, const void *b)
{
	return strcmp(a, b);
}

/* Names stay where they are while the process lives, each once. A program may ask for those of 10,000 kernels. */
static CUresult call_keep_text(const char *text, const char **ret)
{
	static struct lock lock;
	static void *texts;
	char *const *found;
	char *copy;

	LOCK_HOLD(&lock);
	found = tfind(text, &texts, call_compare_texts);
	if (found) {
		*ret = *found;
		return CUDA_SUCCESS;
	}
	copy = strdup(text);
	if (!copy || !tsearch(copy, &texts, call_compare_texts)) {
		free(copy);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*ret = copy;
	return CUDA_SUCCESS;
}

CUresult call_text(unsigned op, const uint64_t *words, unsigned count, const struct call_part *parts,
		   unsigned part_count, const char **ret)
{
	char text[WIRE_REPLY + 1];
	struct thread *thread;
	CUresult r = call_enter(&thread);
	size_t length;

	if (!r)
		r = call_push(thread, op, words, count, parts, part_count, true);
	if (!r)
		r = call_wait(thread, false);
	if (r)
		return r;
	length = CLIENT_READ(client.wire->reply[thread->slot].bytes);
	if (length > WIRE_REPLY)
		return CUDA_ERROR_UNKNOWN;
	memcpy(text, client.wire->reply[thread->slot].word, length);
	text[length] = '\0';
	return call_keep_text(text, ret);
}

CUresult call_tell(uint64_t kind, const char *text)
{
	const uint64_t words[] = {kind, strlen(text)};
	const struct call_part part = {text, strlen(text)};

	return call_sync(WIRE_REFUSED, words, 2, &part, 1, NULL, 0);
}

CUresult call_refuse(const char *name)
{
	CUresult r = call_tell(START_EVENT_REFUSED, name);

	return r == CUDA_ERROR_NOT_INITIALIZED || r == CUDA_ERROR_NOT_PERMITTED ? r : CUDA_ERROR_NOT_SUPPORTED;
}

/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Each server adds to its own number in the shared page, looks at the sum, and takes its own back if that is too
 * large. Of two that do so at once both may be refused what one could have had, so a refusal is tried again some times.
 */

#include "vcuda/server/quota.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/str.h"
#include "vcuda/server/server.h"

enum { QUOTA_HASH = 4096, QUOTA_TRIES = 16 };

struct quota_note {
	struct quota_note *next;
	uint64_t key, bytes, context;
	enum quota_kind kind;
	int holders;
	bool forgotten;
};

static pthread_mutex_t quota_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct quota_note *quota_notes[QUOTA_HASH];
static _Atomic uint64_t quota_of_driver;

/* What a server has added and not taken back yet may be anything, so the sum of several could wrap and be small. */
static uint64_t quota_sum(const _Atomic uint64_t numbers[START_QUOTA_SLOTS])
{
	uint64_t sum = 0;

	for (int i = 0; i < START_QUOTA_SLOTS; i++)
		if (__builtin_add_overflow(sum, numbers[i], &sum))
			return UINT64_MAX;
	return sum;
}

/* What each has, and what they share. */
static uint64_t quota_used(void)
{
	const uint64_t shared = share_sum(&server.quota->shares);
	uint64_t sum = quota_sum(server.quota->used);

	return __builtin_add_overflow(sum, shared, &sum) ? UINT64_MAX : sum;
}

static uint64_t quota_locked(void)
{
	return quota_sum(server.quota->locked);
}

uint64_t quota_limit(void)
{
	const uint64_t limit = server.orders->limit;

	/* Of GPUs that the driver has said nothing of yet, nothing. */
	return limit == UINT64_MAX || limit == 0 ? limit : str_share_of(limit, server.gpu_bytes);
}

bool quota_is_limited(void)
{
	return quota_limit() != UINT64_MAX;
}

uint64_t quota_counted(void)
{
	return server.quota->used[server.start.quota_slot];
}

uint64_t quota_reserved(void)
{
	return quota_of_driver;
}

uint64_t quota_left(void)
{
	const uint64_t sum = quota_used(), limit = quota_limit();

	return sum < limit ? limit - sum : 0;
}

/* Marks the slot as used before the client is served: other servers take back shared memory of slots without it. */
void quota_begin(void)
{
	server.quota->client[server.start.quota_slot] |= START_CLIENT_SERVED;
}

void quota_name_client(uint32_t process)
{
	_Atomic uint64_t *own = &server.quota->client[server.start.quota_slot];

	*own = (*own & ~(uint64_t)UINT32_MAX) | process;
}

void quota_use_gpu(uint64_t ordinal)
{
	server.quota->client[server.start.quota_slot] |= (uint64_t)1 << (32 + ordinal % START_GPUS);
}

void quota_report(uint64_t ordinal, struct wire_usage *to)
{
	to->used = quota_used();
	for (int i = 0; i < START_QUOTA_SLOTS && to->count < WIRE_PROCESSES; i++) {
		const uint64_t client = server.quota->client[i];
		struct wire_process *process = &to->process[to->count];

		if (!(client >> 32 & (uint64_t)1 << ordinal % START_GPUS))
			continue;
		*process = (struct wire_process){(uint32_t)client, client >> 32 & ((1U << START_GPUS) - 1),
						 server.quota->used[i]};
		to->count++;
	}
}

static bool quota_add(_Atomic uint64_t numbers[START_QUOTA_SLOTS], uint64_t (*sum)(void), uint64_t bytes,
		      uint64_t limit)
{
	_Atomic uint64_t *own = &numbers[server.start.quota_slot];

	for (int i = 0; i < QUOTA_TRIES; i++) {
		if (bytes > UINT64_MAX / 2 || bytes > limit)
			break;
		*own += bytes;
		if (sum() <= limit)
			return true;
		*own -= bytes;
	}
	return false;
}

bool quota_lock(uint64_t bytes)
{
	const uint64_t most = server.start.host_memory, limit = server.orders->locked_limit;

	return quota_add(server.quota->locked, quota_locked, bytes, limit && limit < most ? limit : most);
}

void quota_unlock(uint64_t bytes)
{
	server.quota->locked[server.start.quota_slot] -= bytes;
}

bool quota_try(uint64_t bytes)
{
	return quota_add(server.quota->used, quota_used, bytes, quota_limit());
}

bool quota_reap(void)
{
	struct shares *shares = &server.quota->shares;
	const uint64_t before = share_sum(shares);

	for (uint32_t slot = 0; slot < START_QUOTA_SLOTS && share_count(shares) > 0; slot++)
		if (slot != server.start.quota_slot && server.quota->client[slot] == 0)
			share_forget_slot(shares, slot);
	return share_sum(shares) < before;
}

void quota_count(uint64_t bytes)
{
	server.quota->used[server.start.quota_slot] += bytes;
}

bool quota_is_exceeded(void)
{
	return quota_used() > quota_limit();
}

void quota_tell(uint64_t bytes)
{
	enum { APART_MS = 1000 };
	static _Atomic int64_t told;
	const int64_t now = clock_now_ms();
	int64_t last = told;

	if (now - last >= APART_MS && atomic_compare_exchange_strong(&told, &last, now))
		server_tell(START_EVENT_QUOTA, bytes, "");
}

bool quota_take(uint64_t bytes)
{
	if (quota_try(bytes))
		return true;
	quota_tell(bytes);
	return false;
}

void quota_give(uint64_t bytes)
{
	server.quota->used[server.start.quota_slot] -= bytes;
}

static uint64_t quota_hash(uint64_t key)
{
	return (key >> 9 ^ key >> 21 ^ key) % QUOTA_HASH;
}

static struct quota_note **quota_find(enum quota_kind kind, uint64_t key)
{
	struct quota_note **at = &quota_notes[quota_hash(key)];

	while (*at && ((*at)->key != key || (*at)->kind != kind || (*at)->forgotten))
		at = &(*at)->next;
	return at;
}

/* Return: whether there was such a note. */
static bool quota_add_to_note(enum quota_kind kind, uint64_t key, uint64_t bytes)
{
	struct quota_note *note;

	if (kind < QUOTA_CONTEXT)
		return false;
	(void)pthread_mutex_lock(&quota_mutex);
	note = *quota_find(kind, key);
	if (note)
		note->bytes += bytes;
	(void)pthread_mutex_unlock(&quota_mutex);
	return note;
}

bool quota_note(enum quota_kind kind, uint64_t key, uint64_t bytes, uint64_t context)
{
	const bool there = quota_add_to_note(kind, key, bytes);
	struct quota_note *note = there ? NULL : calloc(1, sizeof(*note)), **at;

	if (kind >= QUOTA_CONTEXT && (there || note))
		quota_of_driver += bytes;
	if (!note)
		return there;
	note->kind = kind;
	note->key = key;
	note->bytes = bytes;
	note->context = context;
	(void)pthread_mutex_lock(&quota_mutex);
	at = quota_find(kind, key);
	note->next = *at;
	*at = note;
	(void)pthread_mutex_unlock(&quota_mutex);
	return true;
}

/* A forgotten note is still in the table while it has holders. */
static bool quota_is_of(const struct quota_note *note, enum quota_kind kind, uint64_t key)
{
	return note->key == key && note->kind == kind && (!note->forgotten || note->holders > 0);
}

void quota_empty_note(enum quota_kind kind, uint64_t key)
{
	struct quota_note *note;

	(void)pthread_mutex_lock(&quota_mutex);
	note = quota_notes[quota_hash(key)];
	while (note && !quota_is_of(note, kind, key))
		note = note->next;
	if (note)
		note->bytes = 0;
	(void)pthread_mutex_unlock(&quota_mutex);
}

uint64_t quota_noted(enum quota_kind kind, uint64_t key)
{
	uint64_t sum = 0;

	(void)pthread_mutex_lock(&quota_mutex);
	for (const struct quota_note *note = quota_notes[quota_hash(key)]; note; note = note->next)
		if (quota_is_of(note, kind, key))
			sum += note->bytes;
	(void)pthread_mutex_unlock(&quota_mutex);
	return sum;
}

static void quota_end(struct quota_note **at)
{
	struct quota_note *note = *at;

	if (note->kind >= QUOTA_CONTEXT)
		quota_of_driver -= note->bytes;
	quota_give(note->bytes);
	*at = note->next;
	free(note);
}

bool quota_forget(enum quota_kind kind, uint64_t key)
{
	struct quota_note **at;
	bool found;

	(void)pthread_mutex_lock(&quota_mutex);
	at = quota_find(kind, key);
	found = *at;
	if (found && (*at)->holders > 0)
		(*at)->forgotten = true;
	else if (found)
		quota_end(at);
	(void)pthread_mutex_unlock(&quota_mutex);
	return found;
}

struct quota_note *quota_take_note(enum quota_kind kind, uint64_t key)
{
	struct quota_note **at, *note;

	(void)pthread_mutex_lock(&quota_mutex);
	at = quota_find(kind, key);
	note = *at;
	if (note)
		*at = note->next;
	(void)pthread_mutex_unlock(&quota_mutex);
	return note;
}

void quota_put_note(struct quota_note *note)
{
	struct quota_note **at;

	if (!note)
		return;
	(void)pthread_mutex_lock(&quota_mutex);
	at = &quota_notes[quota_hash(note->key)];
	note->next = *at;
	*at = note;
	(void)pthread_mutex_unlock(&quota_mutex);
}

void quota_end_note(struct quota_note *note)
{
	if (note)
		quota_give(note->bytes);
	free(note);
}

uint64_t quota_note_bytes(const struct quota_note *note)
{
	return note ? note->bytes : 0;
}

void quota_forget_context(uint64_t context)
{
	(void)pthread_mutex_lock(&quota_mutex);
	for (int i = 0; i < QUOTA_HASH; i++)
		for (struct quota_note **at = &quota_notes[i]; *at;)
			if ((*at)->context == context)
				quota_end(at);
			else
				at = &(*at)->next;
	(void)pthread_mutex_unlock(&quota_mutex);
}

bool quota_hold(enum quota_kind kind, uint64_t key, int holders)
{
	struct quota_note **at = &quota_notes[quota_hash(key)];
	bool last = false;

	(void)pthread_mutex_lock(&quota_mutex);
	while (*at && ((*at)->key != key || (*at)->kind != kind))
		at = &(*at)->next;
	if (*at) {
		(*at)->holders += holders;
		last = (*at)->holders <= 0 && (*at)->forgotten;
	}
	if (last)
		quota_end(at);
	(void)pthread_mutex_unlock(&quota_mutex);
	return last;
}

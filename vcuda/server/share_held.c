/* SPDX-License-Identifier: Apache-2.0 */

/* What this server holds of the places that its container shares. */

#include "vcuda/server/share.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "vcuda/server/server.h"

static pthread_mutex_t share_held_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct share_held *share_held_list;
static _Atomic uint64_t share_held_given_bytes;

void share_held_begin(void)
{
	share_forget_slot(&server.quota->shares, server.start.quota_slot);
}

uint64_t share_held_given(void)
{
	return share_held_given_bytes;
}

pthread_mutex_t *share_held_lock(void)
{
	(void)pthread_mutex_lock(&share_held_mutex);
	return &share_held_mutex;
}

void share_held_unlock(pthread_mutex_t *const *mutex)
{
	(void)pthread_mutex_unlock(*mutex);
}

struct share *share_held_take_place(void)
{
	struct shares *shares = &server.quota->shares;

	for (uint32_t i = 0; i < SHARE_PLACES; i++) {
		int32_t none = 0;
		uint32_t used;

		if (!atomic_compare_exchange_strong(&shares->place[i].state, &none,
						    (int32_t)server.start.quota_slot + 1))
			continue;
		used = shares->used;
		while (used <= i && !atomic_compare_exchange_weak(&shares->used, &used, i + 1))
			;
		return &shares->place[i];
	}
	return NULL;
}

struct share_held *share_held_find(enum share_kind kind, uint64_t key)
{
	struct share_held *one = share_held_list;

	while (one && (one->key != key || one->place->kind != kind || one->leaves))
		one = one->next;
	return one;
}

struct share_held *share_held_find_place(const struct share *place)
{
	struct share_held *one = share_held_list;

	while (one && one->place != place)
		one = one->next;
	return one;
}

int share_held_descriptor(const struct share *place)
{
	const struct share_held *one = share_held_list;

	while (one && (one->place != place || one->fd < 0))
		one = one->next;
	return one ? one->fd : -1;
}

struct share_held *share_held_find_token(enum share_kind kind, const uint64_t token[2])
{
	struct share_held *one = share_held_list;

	while (one &&
	       (one->place->kind != kind || one->place->token[0] != token[0] || one->place->token[1] != token[1]))
		one = one->next;
	return one;
}

struct share_held *share_held_add(struct share *place, uint64_t key, uint64_t given, uint64_t context)
{
	struct share_held *one = malloc(sizeof(*one));

	if (!one)
		return NULL;
	*one = (struct share_held){share_held_list, place, key, given, context, 1, -1, false, false};
	share_held_list = one;
	share_held_given_bytes += given;
	return one;
}

void share_held_end(struct share_held *one)
{
	struct share_held **at = &share_held_list;
	struct share *place = one->place;

	while (*at != one)
		at = &(*at)->next;
	*at = one->next;
	share_held_given_bytes -= one->given;
	if (one->fd >= 0)
		(void)close(one->fd);
	free(one);
	/* It may be held a second time, for another context. */
	if (!share_held_find_place(place))
		share_let_go(place, server.start.quota_slot);
}

struct share_held *share_held_begin_end(enum share_kind kind, uint64_t key)
{
	struct share_held *one;

	SHARE_HELD_LOCK();
	one = share_held_find(kind, key);
	if (one)
		one->leaves = true;
	return one;
}

void share_held_end_freed(struct share_held *one)
{
	SHARE_HELD_LOCK();
	if (one)
		share_held_end(one);
}

void share_held_show(struct share_held *one)
{
	SHARE_HELD_LOCK();
	if (one && one->ended)
		share_held_end(one);
	else if (one)
		one->leaves = false;
}

void share_held_end_key(enum share_kind kind, uint64_t key)
{
	struct share_held *one;

	SHARE_HELD_LOCK();
	one = share_held_find(kind, key);
	if (one)
		share_held_end(one);
}

void share_held_end_context(uint64_t context)
{
	struct share_held *next;

	SHARE_HELD_LOCK();
	for (struct share_held *one = share_held_list; one; one = next) {
		next = one->next;
		if (one->context != context)
			continue;
		one->ended = true;
		if (!one->leaves)
			share_held_end(one);
	}
}

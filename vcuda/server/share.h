/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Memory and events that this server shares with others of its container, whether it gave them or took them. */

#include <pthread.h>

#include "vcuda/protocol/share.h"

/* A place that this server holds. */
struct share_held {
	struct share_held *next;
	struct share *place;
	uint64_t key;     /* address of the memory; the driver's event */
	uint64_t given;   /* bytes that are this process's own; 0: another's */
	uint64_t context; /* its handle: with its end, this ends */
	unsigned opened;
};

/** Return: a place to fill in, which others see once it is SHARE_READY; NULL. */
struct share *share_take_place(void);

/** Takes back what a server before this one has left in its slot. */
void share_held_begin(void);

/** Return: how much of what its place counts is this process's for NVML. */
uint64_t share_held_given(void);

/** The memory at that address, or the event, has been freed here; in a context, all of it. */
void share_held_end_key(enum share_kind kind, uint64_t key);
void share_held_end_context(uint64_t context);

/* The rest is with this lock, until the end of the block. */
#define SHARE_HELD_LOCK() \
	pthread_mutex_t *const held __attribute__((cleanup(share_held_unlock), unused)) = share_held_lock()
pthread_mutex_t *share_held_lock(void);
void share_held_unlock(pthread_mutex_t *const *mutex);

/** Return: what is held of that name; NULL. */
struct share_held *share_held_find(enum share_kind kind, uint64_t key);
struct share_held *share_held_find_place(const struct share *place);

/** One more, once the place has this server's bit. Return: NULL if memory is out. */
struct share_held *share_held_add(struct share *place, uint64_t key, uint64_t given, uint64_t context);
void share_held_end(struct share_held *one);

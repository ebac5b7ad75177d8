/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Memory and events that this server shares with others of its container, whether it gave them or took them. */

#include <pthread.h>
#include <stdbool.h>

#include "vcuda/protocol/share.h"

/* A place that this server holds. */
struct share_held {
	struct share_held *next;
	struct share *place;
	uint64_t key;     /* address of the memory; the driver's event */
	uint64_t given;   /* bytes that are this process's own; 0: another's */
	uint64_t context; /* its handle: with its end, this ends */
	unsigned opened;  /* how often; of this process's own, how many descriptors of it the client has or had */
	int fd;           /* the driver's descriptor of it, which keeps it; -1 */
	bool leaves;      /* it is not found by its key, which the driver may give to something else */
	bool ended;       /* its context has ended meanwhile */
};

enum { SHARE_FILE_NAME = 48 };

/* In a place's handle. */
struct share_file {
	uint32_t slot, fd; /* the server that has it, and its number there */
	char name[SHARE_FILE_NAME];
	uint32_t reserved[2];
};
_Static_assert(sizeof(struct share_file) == SHARE_HANDLE, "one is copied to the other");

/** Return: another descriptor of @fd, which other servers of the container may get; -1. */
int share_file_keep(int fd);

/** Return: a descriptor of our own for what a server keeps; -1. Of this one's own, the caller knows that it is one. */
int share_file_get(const struct share_file *file);

/** Return: a place to fill in, which others see once it is SHARE_READY; NULL. */
struct share *share_held_take_place(void);

/** Takes back what a server before this one has left in its slot. */
void share_held_begin(void);

/** Return: how much of what its place counts is this process's for NVML. */
uint64_t share_held_given(void);

/**
 * share_held_begin_end() - hide memory from look-ups by key, before the driver is asked to free it
 *
 * It is shared still until share_held_end_freed(), and is found again after share_held_show(). Return: NULL: it is not.
 */
struct share_held *share_held_begin_end(enum share_kind kind, uint64_t key);
void share_held_end_freed(struct share_held *one);
void share_held_show(struct share_held *one);

/** The memory at that address, or the event, has been freed here with the lead; in a context, all of it. */
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
struct share_held *share_held_find_token(enum share_kind kind, const uint64_t token[2]);

/** Return: the driver's descriptor of what this server has given there, which stays its own; -1. */
int share_held_descriptor(const struct share *place);

/** One more, once the place has this server's bit. Return: NULL if memory is out. */
struct share_held *share_held_add(struct share *place, uint64_t key, uint64_t given, uint64_t context);
void share_held_end(struct share_held *one);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the client holds in place of the driver's pointers. */

#include "vcuda/server/request.h"

/* A place of the table, which never moves, so that looking needs no lock. In a line of the cache: each call looks. */
struct handle {
	_Alignas(64) _Atomic uint64_t handle; /* 0: free; written last when it is given, first when it is taken */
	_Atomic uint64_t real;
	uint64_t parent, context;
	uint32_t generation, next; /* next: place + 1 of another with the same hash, or of the next free one */
	uint64_t hidden, hider;    /* the handle while it is not to be found, and with whose end it would come */
	uint32_t thread, next_own; /* of a stream of a thread's own: its slot + 1, and the place + 1 of the next one */
	uint32_t holders;
	bool busy; /* of a stream: something was asked of it since it was last seen to have no work */
	/* Lists of places, each + 1: of those that have it as their parent, or as their context. */
	uint32_t first_below, first_within;
	struct handle_link {
		uint32_t next, before;
	} below, within;      /* in its parent's list, and in its context's */
	uint32_t next_hidden; /* of those with the same hider, of which this is the first */
};

extern struct handle *handle_table;
extern _Atomic uint32_t handle_count; /* places that were ever used */

/**
 * Return: whether there is room for what every thread and one more entry can make. Otherwise nothing is made: the
 * driver would have it, and no client could end it.
 */
bool handle_has_room(void);

/** Return: the handle of @real, a new one if it has none; 0 if there are too many. */
uint64_t handle_give(enum wire_type type, uint64_t real, uint64_t parent, uint64_t context);

/**
 * The same for what a lane without the lead has just had made. A handle that stands for that name is of something
 * that another thread has ended meanwhile and has not taken from the client yet.
 */
uint64_t handle_make(enum wire_type type, uint64_t real, uint64_t parent, uint64_t context);

/** The same for what is not the client's before handle_show(), and may be dropped instead. It belongs to no context. */
uint64_t handle_make_hidden(enum wire_type type, uint64_t real);

/** Return: the handle of @real, which the client has; 0 if it has none. */
uint64_t handle_known(enum wire_type type, uint64_t real);

/**
 * Return: whether @value is the client's, of this type, and @ret what the driver calls it. A kernel is a function,
 * too.
 */
static inline bool handle_look(uint64_t value, enum wire_type type, uint64_t *ret)
{
	const enum wire_type is = wire_handle_type(value);
	const uint32_t index = wire_handle_index(value);

	if ((is != type && !(type == WIRE_FUNC && is == WIRE_KERNEL)) || index >= handle_count ||
	    handle_table[index].handle != value)
		return false;
	*ret = handle_table[index].real;
	/* Unless it was taken from the client meanwhile. */
	return handle_table[index].handle == value;
}

/** Return: what a handle is of; nothing if it is none. */
static inline struct object_ref handle_ref(uint64_t handle)
{
	struct object_ref ref = {wire_handle_type(handle), 0};

	return handle && handle_look(handle, ref.type, &ref.real) ? ref : (struct object_ref){WIRE_NULL, 0};
}

static inline struct object_ref handle_context_ref(uint64_t handle)
{
	return wire_handle_type(handle) == WIRE_CONTEXT ? handle_ref(handle) : (struct object_ref){WIRE_NULL, 0};
}

/** Return: the context that a handle was given in; 0: none. */
uint64_t handle_context(uint64_t handle);

/** Return: what a handle ends with; 0: nothing but itself, or there is no such handle. */
uint64_t handle_parent(uint64_t handle);

/** The handle ends with nothing but itself and its context from now on. */
void handle_own(uint64_t handle);

/** Takes the graphs of captures, of which one has failed, from the client. */
void handle_drop_captures(void);

/** Takes a handle from the client, and those that end with it. */
void handle_drop(uint64_t handle);

/**
 * The same, until handle_show() gives all of them back, or handle_drop() does not: what it is of is about to end. What
 * belongs to a context or a parent that ends meanwhile stays hidden, or goes with it.
 */
void handle_hide(uint64_t handle);
void handle_show(uint64_t handle);

/** Adds and drops a reference to the handle. The second returns whether that was the last, and the handle is gone. */
void handle_hold(uint64_t handle);
bool handle_let_go(uint64_t handle);

/** Finds what a thread names as a stream: one with a handle, a null stream, or its own. @context: the current one's */
CUresult handle_find_stream(uint64_t value, uint32_t thread, uint64_t context, CUstream *ret);

/** Return: the handle of that stream, if it is what the thread used last as its null stream; 0 otherwise. */
uint64_t handle_of_thread(uint32_t thread, uint64_t context);

/** Something is asked of a stream, by which it may have work. Return: as handle_look(). */
bool handle_look_stream(uint64_t handle, CUstream *ret);

/** Return: the next stream of a context that may have work, as handle_next(). */
uint64_t handle_next_busy(uint64_t context, uint32_t *place, CUstream *ret);

/** The stream has done all that it was asked. Return of the second: whether that is so still. */
void handle_rest(uint64_t handle);
bool handle_rests(uint64_t handle);

/**
 * Goes through the objects of a type that belong to a context, streams of threads among them; *place is 0 first.
 * Return: the handle of the next; 0: that was all.
 */
uint64_t handle_next(enum wire_type type, uint64_t context, uint32_t *place, uint64_t *ret);

/**
 * handle_take() - hold what a handle is of, until object_ref_let_go(); without the lead, too
 *
 * Return: false if it ends, or has ended.
 */
bool handle_take(uint64_t handle, struct object_ref *ret);

/** As handle_next(), of those that are taken. Return: false: that was all. */
bool handle_take_next(enum wire_type type, uint64_t context, uint32_t *place, struct object_ref *ret);

/* SPDX-License-Identifier: Apache-2.0 */

/* What handles point to: one list for each kind, so that a handle that is none is told from one. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim.h"

enum { KINDS = OBJECT_USER + 1, POISON = 0xdb };

static struct object *objects[KINDS];

/*
 * With STRICT=1 in the configuration, as a server is tested: what is gone is filled with POISON and never given out again, and
 * whoever uses it, or takes away what another thread is in, ends the process.
 */
static struct dead {
	struct dead *next;
	const void *handle;
} * dead[KINDS];

/*
 * With AGAIN_US=… what has ended is the next one's name at once, and whoever ends something is told so as many microseconds
 * later, while other threads make what they will. So is who has made a primary context.
 */
static struct object *ended[KINDS];

bool object_strict(void)
{
	static int strict = -1;

	if (strict < 0) {
		strict = config_number("STRICT", 0) != 0;
		if (strict)
			(void)dprintf(STDERR_FILENO, "sim: strict\n");
	}
	return strict;
}

static void object_die(const char *what, const void *handle, enum object_kind kind)
{
	static const char *const names[KINDS] = {"?",
						 "context",
						 "module",
						 "function",
						 "library",
						 "kernel",
						 "stream",
						 "event",
						 "graph",
						 "node",
						 "exec",
						 "linker",
						 "pool",
						 "allocation",
						 "array",
						 "mipmapped array",
						 "texture",
						 "texture reference",
						 "surface reference",
						 "user object"};

	(void)dprintf(STDERR_FILENO, "sim: %s: %s %p\n", what, names[kind], handle);
	abort();
}

void object_tell_late(void)
{
	const unsigned long long time = config_number("AGAIN_US", 0);

	if (!time)
		return;
	(void)pthread_mutex_unlock(&sim_lock);
	(void)usleep((useconds_t)time);
	(void)pthread_mutex_lock(&sim_lock);
}

/* Return: zeroed. */
static struct object *object_allocate(enum object_kind kind, size_t size)
{
	struct object *object = ended[kind];

	if (!object || object->size != size)
		return calloc(1, size);
	ended[kind] = object->next;
	memset(object, 0, size);
	return object;
}

static void *object_link(struct object *object, enum object_kind kind, size_t size, CUcontext context)
{
	object->kind = kind;
	object->context = context;
	object->size = size;
	object->next = objects[kind];
	if (object->next)
		object->next->previous = object;
	objects[kind] = object;
	return object;
}

void *object_new(enum object_kind kind, size_t size, CUcontext context)
{
	struct object *object = object_allocate(kind, size);

	if (!object)
		abort();
	return object_link(object, kind, size, context);
}

void *object_again(void *handle)
{
	struct object *object = handle;
	const enum object_kind kind = object->kind;
	const size_t size = object->size;

	for (struct dead **at = &dead[kind]; *at; at = &(*at)->next)
		if ((*at)->handle == handle) {
			*at = (*at)->next;
			break;
		}
	memset(handle, 0, size);
	return object_link(object, kind, size, NULL);
}

/* Never looks behind the handle before it is known to be one. */
bool object_lives(const void *handle, enum object_kind kind)
{
	for (const struct object *object = objects[kind]; object; object = object->next)
		if (object == handle)
			return true;
	return false;
}

bool object_is(const void *handle, enum object_kind kind)
{
	if (object_lives(handle, kind))
		return true;
	for (const struct dead *gone = dead[kind]; gone; gone = gone->next)
		if (gone->handle == handle)
			object_die("used after its end", handle, kind);
	return false;
}

void object_enter(void *handle)
{
	((struct object *)handle)->users++;
}

void object_leave(void *handle)
{
	((struct object *)handle)->users--;
}

void object_was_used(const void *handle)
{
	if (object_strict())
		object_die("used after its end", handle, ((const struct object *)handle)->kind);
}

void object_ends(const void *handle)
{
	const struct object *object = handle;

	if (object_strict() && object->users > 0)
		object_die("ended while a thread is in it", handle, object->kind);
}

static void object_bury(const struct object *object)
{
	struct dead *gone = malloc(sizeof(*gone));

	if (!gone)
		abort();
	object_ends(object);
	gone->handle = object;
	gone->next = dead[object->kind];
	dead[object->kind] = gone;
}

bool object_take(void *handle, struct device *device, size_t bytes)
{
	struct object *object = handle;

	if (device_charge(device, bytes))
		return false;
	object->device = device;
	object->taken += bytes;
	return true;
}

void object_unlink(void *handle)
{
	struct object *object = handle;

	if (object->taken)
		device_refund(object->device, object->taken);
	object->taken = 0;
	if (object_strict())
		object_bury(object);
	if (object->previous)
		object->previous->next = object->next;
	else
		objects[object->kind] = object->next;
	if (object->next)
		object->next->previous = object->previous;
}

void object_free(void *handle)
{
	struct object *object = handle;

	object_unlink(handle);
	if (object_strict()) {
		memset(handle, POISON, object->size);
	} else if (config_number("AGAIN_US", 0)) {
		object->next = ended[object->kind];
		ended[object->kind] = object;
	} else {
		free(handle);
	}
}

void *object_of(enum object_kind kind, CUcontext context)
{
	for (struct object *object = objects[kind]; object; object = object->next)
		if (object->context == context)
			return object;
	return NULL;
}

void *object_after(const void *handle, enum object_kind kind)
{
	return handle ? ((const struct object *)handle)->next : objects[kind];
}

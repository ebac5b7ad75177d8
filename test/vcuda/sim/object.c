/* SPDX-License-Identifier: Apache-2.0 */

/* What handles point to: one list for each kind, so that a handle that is none is told from one. */

#include <stdlib.h>

#include "sim.h"

enum { KINDS = OBJECT_ALLOCATION + 1 };

static struct object *objects[KINDS];

void *object_new(enum object_kind kind, size_t size, CUcontext context)
{
	struct object *object = calloc(1, size);

	if (!object)
		abort();
	object->kind = kind;
	object->context = context;
	object->next = objects[kind];
	if (object->next)
		object->next->previous = object;
	objects[kind] = object;
	return object;
}

/* Never looks behind the handle before it is known to be one. */
bool object_is(const void *handle, enum object_kind kind)
{
	for (const struct object *object = objects[kind]; object; object = object->next)
		if (object == handle)
			return true;
	return false;
}

void object_unlink(void *handle)
{
	struct object *object = handle;

	if (object->previous)
		object->previous->next = object->next;
	else
		objects[object->kind] = object->next;
	if (object->next)
		object->next->previous = object->previous;
}

void object_free(void *handle)
{
	object_unlink(handle);
	free(handle);
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

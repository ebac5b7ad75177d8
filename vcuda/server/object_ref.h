/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Objects of the driver that are used for longer than the entry that named them: by a wait that is asked for again, by
 * a thread that waits or compiles. What another thread of the client ends meanwhile ends for the client at once, and
 * for the driver when nobody uses it any more.
 */

#include "vcuda/server/server.h"

struct object_ref {
	enum wire_type type; /* WIRE_NULL: nothing */
	uint64_t real;
};

/** One more who uses it. Return: false if it ends, or if memory is out. */
bool object_ref_take(struct object_ref hold);

/** One less. What has ended meanwhile is ended now. */
void object_ref_let_go(struct object_ref hold);

/**
 * object_ref_end() - end an object, or have the last one who uses it do so
 * @context: the driver's, that is current while @end is called later; 0: any
 *
 * Return: what @end returned; CUDA_SUCCESS if it is called later.
 */
CUresult object_ref_end(struct object_ref hold, uint64_t context, CUresult (*end)(uint64_t real));

/** Waits until nobody uses it, and nobody can until object_ref_forget(). */
void object_ref_await(struct object_ref hold);
void object_ref_forget(struct object_ref hold);

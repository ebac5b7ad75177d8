/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the client holds in place of the driver's pointers. */

#include "vcuda/server/server.h"

/** Return: the handle of @real, a new one if it has none; 0 if there are too many. */
uint64_t handle_give(enum wire_type type, uint64_t real, uint64_t parent, uint64_t context);

/**
 * Return: whether @handle is the client's, of this type, and @ret what the driver calls it. A kernel is a function,
 * too.
 */
bool handle_look(uint64_t handle, enum wire_type type, uint64_t *ret);

/** Takes a handle from the client, and those that end with it. */
void handle_drop(uint64_t handle);

/** Return: the stream that stands for the null stream of a thread's own, made when it is first used. */
CUresult handle_thread_stream(uint32_t thread, uint64_t context, CUstream *ret);

/** Return: whether there ever was a stream besides the null stream. */
bool handle_had_streams(void);

/** Lists the streams of the context. Return: how many there are, those of threads among them. */
unsigned handle_list_streams(uint64_t context, CUstream *ret, unsigned most);

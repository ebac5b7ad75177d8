/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Page-locked memory, at the same address in the client. */

#include <stdbool.h>
#include <stdint.h>

#include "vcuda/server/server.h"

/** Reserves the addresses that are offered to the client. */
void arena_offer(uint64_t ret_offers[]);

/** The client has taken the offer of this number; -1: none. Return: the number. */
int32_t arena_choose(int64_t offer);

/** Return: whether all of this is in one piece of page-locked memory. */
bool arena_has(uint64_t at, uint64_t bytes);

/*
 * Pieces of it are added and dropped in two steps, between which other threads' commands go on. @offset: from its
 * beginning; @reached: of no use where the device has no address of it. The second of dropping takes what the first
 * returned.
 */
CUresult arena_begin_add(uint64_t offset, uint64_t bytes, uint64_t context);
CUresult arena_end_add(uint64_t offset, uint64_t bytes, bool reached);
CUresult arena_begin_drop(uint64_t offset, uint64_t *ret_bytes, bool *ret_registered);
CUresult arena_end_drop(uint64_t offset, uint64_t bytes, bool registered);

/** Registers memory with the driver for all contexts, if the driver can. Return: whether it did. */
bool arena_register(void *at, uint64_t bytes);

/** The same in another context than the current one: its end is the end of that. */
bool arena_register_in(uint64_t context, void *at, uint64_t bytes);

/** A context has ended, and its registrations with it. */
void arena_forget_context(uint64_t context);

/** The same for what the client registered of its own. */
void registration_forget_context(uint64_t context);

/** Sends nothing from now on. Does not return while another thread ends the process. */
void arena_stop(void);

/** Frees the pages of all shared memory, also if others have descriptors, and ends the process. After arena_stop(). */
_Noreturn void arena_exit(int exit_status);

/* The staging memory, which copies from and to ordinary memory pass through. */

/** Return: CUDA_SUCCESS if the stream captures nothing. */
CUresult staging_check_capture(CUstream stream);

/** A context is about to end: nobody copies in it any more. Return: what is to be freed when it has. */
struct staging *staging_take_context(uint64_t context);
void staging_free(struct staging *staging);

/* Device memory. */

/** Return: whether memory was ever given back in the order of a stream. */
bool allocation_was_freed_in_streams(void);

/** Counts memory that the driver is about to be asked for. Pools give back what they keep before it is too much. */
bool allocation_take(uint64_t bytes);

/** The same for memory that has pages, or pieces of pages, of its own. Return: whether @ret was counted for it. */
bool allocation_take_pages(uint64_t bytes, uint64_t *ret);

struct request;

/**
 * Replies with a handle of physical memory that the driver has just given, and for which there is a note, perhaps of no
 * bytes: that stays until handles and mappings are gone, once quota_forget() was called.
 */
CUresult allocation_hold(struct request *q, uint64_t real);

/* Texture and surface objects. */

/** A context is about to end: the client has none of its objects any more. */
void texture_forget_context(uint64_t context);

/* The arrays of texture and surface references. */

struct bound;

/** Return: what the reference is about to be bound to; NULL if memory is short. */
struct bound *bound_prepare(uint64_t reference, uint64_t array);

/** The reference is bound to it. @bound: NULL: to no array any more */
void bound_bind(uint64_t reference, struct bound *bound);

/** Return: whether references are bound to the array; it then ends with the last of them, and counts until then. */
bool bound_keeps(uint64_t array);

/** References, or what their handles ended with, are gone: what they alone kept ends. Of a context, it has ended. */
void bound_forget(uint64_t ended);

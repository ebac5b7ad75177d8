/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Calls of the server: an entry in the ring, and for most a reply in the thread's place. */

#include "vcuda/client/client.h"

enum { CALL_HANDLES = 4000 }; /* of one array, so that two have room in an entry */

struct call_part {
	const void *data;
	size_t bytes;
};

/**
 * call_enter() - what every function of the API begins with
 * @ret: the calling thread
 *
 * Return: CUDA_SUCCESS; what the function has to return instead.
 */
CUresult call_enter(struct thread **ret);

/** call_enter()'s failure, or else @result. */
CUresult call_fail(CUresult result);

/**
 * call_tell() - have the audit get a word
 * @kind: START_EVENT_REFUSED or START_EVENT_TABLE
 *
 * It waits: many a program ends at once when it does not get something, and its server with it, whatever is in the
 * ring.
 *
 * Return: as call_sync().
 */
CUresult call_tell(uint64_t kind, const char *text);

/** The answer of a function that is not offered; the audit gets its name. */
CUresult call_refuse(const char *name);

/**
 * call_sync() - have the server do something, and wait
 * @words: the arguments; @parts: bytes behind them, each from a multiple of 8 on
 * @out:   gets the first @out_bytes of the reply; @out_bytes is 0 if there is nothing to get
 *
 * Return: what the driver returned.
 */
CUresult call_sync(unsigned op, const uint64_t *words, unsigned count, const struct call_part *parts,
		   unsigned part_count, void *out, size_t out_bytes);

/** call_sync() with @handle_count words more, behind @count. */
CUresult call_with_handles(unsigned op, const uint64_t *words, unsigned count, const uint64_t *handles,
			   size_t handle_count, const struct call_part *part, void *out, size_t out_bytes);

/**
 * call_async() - the same without waiting, or nothing where an earlier one has failed, of which nobody knows yet
 * Return: what that failed with, or its own failure.
 */
CUresult call_async(unsigned op, const uint64_t *words, unsigned count, const struct call_part *parts,
		    unsigned part_count);

/** Whether any of the data of edges is other than zeros: such are not offered. */
bool graph_has_data(const CUgraphEdgeData *data, size_t count);

/** Whether an event may be of the stream's context; if it is not, the driver has to say so. */
bool call_fits_stream(uint64_t event, uint64_t stream);

/** call_sync() for a reply that is text, which stays for ever. */
CUresult call_text(unsigned op, const uint64_t *words, unsigned count, const struct call_part *parts,
		   unsigned part_count, const char **ret);

/** call_sync() with bytes of any number behind its arguments. The server has them as the thread's upload. */
CUresult call_upload(const void *data, size_t bytes);

/** Return: how many bytes the last reply of the thread had. */
size_t call_reply_bytes(void);

/** Gets bytes of the thread's last reply, of whatever length it was. */
CUresult call_download(size_t offset, void *to, size_t bytes);

/**
 * call_begin() - a place for an entry in the ring, which is locked until call_end()
 *
 * Return: NULL if the server is lost; nothing is locked then.
 */
struct wire_entry *call_begin(struct thread *thread, unsigned op, unsigned words, size_t bytes, bool waits);

/**
 * call_note_idle() - a copy in a stream has been waited for, so that the stream is done
 * @copy: where the copy's entry ended in the ring; what has been asked since is the wait alone, or nothing is noted
 */
void call_note_idle(struct thread *thread, uint64_t stream, uint32_t copy);

/** Whether the thread has seen the stream done, and no thread has sent anything since. */
bool call_is_idle(const struct thread *thread, uint64_t stream);

/** Hands the entry over. */
void call_end(void);

/** Begins at the start of a new ring, whose locks are free. */
void call_forget(void);

/** Waits for the reply to the thread's last entry. @long_wait: it is the GPU that is waited for. */
CUresult call_wait(struct thread *thread, bool long_wait);

/* Whether the server does what it is asked to on the caller's processor, since all others are taken. */
bool call_server_is_near(void);

/** Return: what every call fails with once the server is lost. */
CUresult call_lost(void);

/** Return: what every call in the thread's current context fails with; CUDA_SUCCESS. */
CUresult call_context_failure(const struct thread *thread);

/**
 * Return: the same, or what an earlier command of the thread's failed with, and that no call has returned yet;
 * CUDA_SUCCESS. For calls that have done nothing, or that ask.
 */
CUresult call_failure(const struct thread *thread);

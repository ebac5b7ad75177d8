/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * One entry of the client's, copied out of the shared memory before anything looks at it, and the reply to it. Whatever
 * a function takes out of it has been checked: its length, its kind, whose it is.
 */

#include "vcuda/server/object_ref.h"

/* The object, its context and the current one. */
enum { REQUEST_HOLDS = 3 };

/* What a request waits for after it has been served: asked again and again for a while, then waited for. */
struct request_wait {
	CUresult (*query)(uint64_t object), (*block)(uint64_t object);
	uint64_t object;
	struct object_ref hold[REQUEST_HOLDS];
};

enum { REQUEST_WAITS = -1 }; /* what a function returns that has filled the struct above */

struct request {
	struct request_wait wait;
	_Alignas(64) struct wire_entry header; /* with the arguments right behind it */
	uint64_t argument[WIRE_INLINE / 8];
	uint32_t part_at; /* bytes of @argument that were taken */
	uint32_t reply_bytes;
	uint64_t number; /* which of all that the client has sent it is */
	_Alignas(8) uint8_t reply[WIRE_REPLY];
};
_Static_assert(offsetof(struct request, argument) == offsetof(struct request, header) + sizeof(struct wire_entry),
	       "an entry is copied in one piece");

/* As cuda.def says of each function. */
enum request_time { REQUEST_NOW, REQUEST_MAY_WAIT, REQUEST_ASKS };

struct request_kind {
	CUresult (*serve)(struct request *q);
	const char *name;
	enum request_time waits;
	bool makes; /* what gets a handle */
};

extern const struct request_kind request_kinds[];

/** Whether there are @count arguments; begins with the parts behind them. */
static inline CUresult request_words(struct request *q, unsigned count)
{
	q->part_at = count * 8;
	q->reply_bytes = 0;
	return q->header.words == count && q->header.bytes >= q->part_at ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/** The next part, whose length is argument @word. Return: NULL if it is not there. */
const void *request_part(struct request *q, unsigned word);

/** The request is about to be carried out without the lead, in its context and with @hold. */
void request_begin_work(struct request *q, struct object_ref hold);

/** Holds what it waits for or works in. Return: false if that cannot be. */
bool request_hold(struct request *q);
void request_let_go(struct request *q);

/** The driver's handle for argument @word. */
CUresult request_handle(struct request *q, unsigned word, enum wire_type type, uint64_t *ret);
enum { REQUEST_HANDLES = 512 };

/** The driver's handles for the @count in a part, at most REQUEST_HANDLES. */
CUresult request_handles(struct request *q, unsigned word, enum wire_type type, uint64_t count, uint64_t *ret);
CUresult request_stream(struct request *q, unsigned word, CUstream *ret);

/** Return: the handle of the context that the stream of argument @word belongs to. */
uint64_t request_stream_context(const struct request *q, unsigned word);
CUresult request_device(struct request *q, unsigned word, CUdevice *ret);
CUresult request_string(struct request *q, unsigned word, size_t most, const char **ret);
CUresult request_struct(struct request *q, unsigned word, void *to, size_t bytes);

void request_reply(struct request *q, const void *data, size_t bytes);
void request_reply_text(struct request *q, const char *text);

/**
 * request_reply_handle() - a handle for what the driver has made, or has named before
 * @parent: with whose end it ends; 0: the context's
 *
 * Return: CUDA_SUCCESS; CUDA_ERROR_OUT_OF_MEMORY if there are too many; CUDA_ERROR_INVALID_VALUE for an event that is
 * another object's and that the client does not have any more: it may be gone.
 */
CUresult request_reply_handle(struct request *q, enum wire_type type, uint64_t real, uint64_t parent);

/** Ends the object of argument @word, whose handle is nobody's from now on, unless the driver keeps it. */
CUresult request_end(struct request *q, unsigned word, enum wire_type type, CUresult (*end)(uint64_t real));

/**
 * request_wait() - have the request wait
 * @hold:    what it waits for
 * @context: the handle of the object's context; 0: it has none of its own
 * @object:  what @query and @block are called with
 *
 * Return: REQUEST_WAITS.
 */
CUresult request_wait(struct request *q, struct object_ref hold, uint64_t context, CUresult (*query)(uint64_t object),
		      CUresult (*block)(uint64_t object), uint64_t object);

/** Return: a thread's upload, which counts until request_end_upload(); NULL if it has not @bytes. */
const void *request_upload(const struct request *q, uint64_t bytes);
void request_end_upload(const struct request *q);

/** Keeps a copy for the thread to fetch. Return: CUDA_ERROR_OUT_OF_MEMORY. */
CUresult request_keep_download(struct request *q, const void *data, size_t bytes);

/* Places in structs, whose devices are the client's numbers. */
CUresult request_check_location(CUmemLocation *location);
CUresult request_check_properties(CUmemAllocationProp *properties);
CUresult request_check_pool(CUmemPoolProps *properties);

/* Copies between what is the device's and, but for peers, the client's page-locked memory. */
CUresult request_check_copy(CUDA_MEMCPY3D *copy);
CUresult request_check_peer_copy(CUDA_MEMCPY3D_PEER *copy);

/* A function of the host: ours, which tells the client the number that it was sent. */
CUresult request_check_host(CUDA_HOST_NODE_PARAMS *parameters);
void callback_reached(void *cookie);

/* The driver's numbers of devices become the client's. */
void request_tell_properties(CUmemAllocationProp *properties);

static inline void request_tell_nothing(const void *any)
{
	(void)any;
}

#define STRUCT_TELL(pointer) \
	_Generic((pointer), CUmemAllocationProp * : request_tell_properties, default : request_tell_nothing)(pointer)

static inline CUresult request_check_nothing(const void *any)
{
	(void)any;
	return CUDA_SUCCESS;
}

#define STRUCT_CHECK(pointer)                                       \
	_Generic((pointer), CUmemLocation *                         \
		 : request_check_location, CUmemAllocationProp *    \
		 : request_check_properties, CUmemPoolProps *       \
		 : request_check_pool, CUDA_MEMCPY3D *              \
		 : request_check_copy, CUDA_MEMCPY3D_PEER *         \
		 : request_check_peer_copy, CUDA_HOST_NODE_PARAMS * \
		 : request_check_host, default                      \
		 : request_check_nothing)(pointer)

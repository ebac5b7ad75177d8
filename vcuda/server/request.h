/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * One entry of the client's, copied out of the shared memory before anything looks at it, and the reply to it. Whatever
 * a function takes out of it has been checked: its length, its kind, whose it is.
 */

#include "vcuda/server/server.h"

/*
 * Objects of the driver that are used for longer than the entry that named them: by a wait that is asked for again, by
 * a thread that waits or compiles. What another thread of the client ends meanwhile ends for the client at once, and
 * for the driver when nobody uses it any more.
 */

struct object_ref {
	enum wire_type type; /* WIRE_NULL: nothing */
	uint64_t real;
};

/** Adds a user of the object. Return: false if it is being ended, or without memory. */
bool object_ref_take(struct object_ref hold);

/** Drops a user of the object, and ends it if object_ref_end() was called meanwhile and this was the last. */
void object_ref_let_go(struct object_ref hold);

/**
 * object_ref_end() - end an object, now or when its last user drops it
 * @context: the driver's, that is current while @end is called later; 0: any
 *
 * Return: what @end returned; CUDA_SUCCESS if it is called later.
 */
CUresult object_ref_end(struct object_ref hold, uint64_t context, CUresult (*end)(uint64_t real));

/** Waits until the object has no user; it gets no new one until object_ref_forget(). */
void object_ref_await(struct object_ref hold);
void object_ref_forget(struct object_ref hold);

/* The object, what it ends with, its context and the current one: in the order in which they are let go. */
enum request_hold {
	HOLD_OBJECT,
	HOLD_OWNER,
	HOLD_OWNER_LAST = HOLD_OWNER + 1,
	HOLD_CONTEXT,
	HOLD_CURRENT,
	REQUEST_HOLDS
};

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
	bool makes;     /* what gets a handle */
	uint8_t stream; /* the word with that of the GPU's work, which begins by it; 0: none does */
};

enum { REQUEST_LAUNCH_STREAM = 5 };

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

/** The driver's handle for argument @word. */
CUresult request_handle(struct request *q, unsigned word, enum wire_type type, uint64_t *ret);
enum { REQUEST_HANDLES = 4000 }; /* two arrays of them have room in an entry */

/** The driver's handles for the @count in a part, at most REQUEST_HANDLES. */
CUresult request_handles(struct request *q, unsigned word, enum wire_type type, uint64_t count, uint64_t *ret);
CUresult request_stream(struct request *q, unsigned word, CUstream *ret);

/** Return: the handle of the stream of argument @word; 0: a null stream, or that of a thread which has none yet. */
uint64_t request_stream_handle(const struct request *q, unsigned word);

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
 * request_hold() - say what the driver is about to work with besides the current context
 *
 * Nobody may end it, nor what it ends with, from lane_leave() on to the end of the request.
 */
void request_hold(struct request *q, uint64_t handle);

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

/** Whether it is the host, or one of its nodes. */
bool request_is_host(const CUmemLocation *location);
CUresult request_check_properties(CUmemAllocationProp *properties);
CUresult request_check_pool(CUmemPoolProps *properties);

/* Copies between what is the device's, arrays among it, and, but for peers, the client's page-locked memory. */
CUresult request_check_copy(CUDA_MEMCPY3D *copy);
CUresult request_check_peer_copy(CUDA_MEMCPY3D_PEER *copy);

/* A function of the host becomes ours, which tells the client the number that it was sent. */
CUresult callback_check_host(CUDA_HOST_NODE_PARAMS *parameters);

/* The driver's numbers of devices become the client's. */
void request_tell_properties(CUmemAllocationProp *properties);

/* The driver's names of arrays become the client's. */
void request_tell_copy(CUDA_MEMCPY3D *copy);

static inline void request_tell_nothing(const void *any)
{
	(void)any;
}

#define STRUCT_TELL(pointer)                                \
	_Generic((pointer), CUmemAllocationProp *           \
		 : request_tell_properties, CUDA_MEMCPY3D * \
		 : request_tell_copy, default               \
		 : request_tell_nothing)(pointer)

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
		 : callback_check_host, default                     \
		 : request_check_nothing)(pointer)

/* What kernels print. */

/** stdout and stderr, where the driver writes it, lead to the client from now on. Return: false if memory is short. */
bool print_begin(void);

/** Code is about to be loaded, which may print. */
void print_note_image(const void *image, uint64_t bytes);

/** Whether there was such code: the driver then has to be waited with, since it does not print when it is asked. */
bool print_is_possible(void);

/** Return: what waits to be fetched, a bit for each enum wire_print. */
uint32_t print_waiting(void);

/* The operations of our own. */

extern const struct request_kind serve_kinds[WIRE_OPS];

CUresult serve_wire_upload(struct request *q);
CUresult serve_wire_download(struct request *q);
CUresult serve_wire_function(struct request *q);
CUresult serve_wire_copy_in(struct request *q);
CUresult serve_wire_stage_in(struct request *q);
CUresult serve_wire_stage_out(struct request *q);
CUresult serve_wire_stage_box(struct request *q);
CUresult serve_wire_stage_wait(struct request *q);
CUresult serve_wire_print(struct request *q);
CUresult serve_wire_probe(struct request *q);
CUresult serve_wire_sensor(struct request *q);
CUresult serve_wire_arena_add(struct request *q);
CUresult serve_wire_share_end(struct request *q);
CUresult serve_wire_register(struct request *q);
CUresult serve_wire_unregister(struct request *q);
CUresult serve_wire_arena_drop(struct request *q);

/*
 * Threads that carry out the client's commands: each thread of the client has one here, its lane, which has what the
 * driver keeps for a thread (current context, mode of captures) for it alone.
 */

/** Serves the client until it goes. @own: serve_kinds, WIRE_OPS of them */
void lane_run(const struct request_kind *own) __attribute__((noreturn));

/**
 * lane_leave() - go on without holding up other threads' commands
 *
 * In a request whose operation may wait, before the driver is called. What the lead has for itself (see lane.c) is not
 * to be touched from here on to the end of the request.
 */
void lane_leave(struct request *q);

/** Whether the client has ever asked for a context. With the lead. */
bool contexts_have_begun(void);

/** Lanes have another current context than they know, or none. */
void lane_forget_context(void);

/*
 * Turns on a GPU (vcuda/protocol/turns.h), where another container has work, too. The GPU has some milliseconds of work
 * at most from this server then, so that a turn can end. With the lead, but for turn_forget_context().
 */

/** How much has begun behind the last mark. */
extern _Atomic unsigned turn_open_work;

/**
 * turn_begin() - wait for this server's turn on the GPU that the request has work for
 * @word: that of its stream
 *
 * Return: TURN_TAKEN: turn_end() is to be told when it has begun. TURN_ORDERS: the manager's are to be obeyed, and then
 * it begins anew. TURN_NONE: no turn is needed.
 */
enum turn_answer { TURN_NONE, TURN_TAKEN, TURN_ORDERS };
enum turn_answer turn_begin(const struct request *q, unsigned word);
void turn_end(void);

/** Marks what has begun, so that it is seen when it is done. Before anything else is done with its stream. */
void turn_mark(void);

/**
 * A context is on a GPU of the grant's numbering; and it is about to end, with all that is in it. Return of the first:
 * false: there are so many that it would not be known where its work is.
 */
bool turn_add_context(uint64_t context, unsigned gpu);

/** Return: the GPU of a context that is there. */
unsigned turn_find_gpu(uint64_t context);
void turn_forget_context(uint64_t context);

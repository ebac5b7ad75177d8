/* SPDX-License-Identifier: Apache-2.0 */

/* The linkers of the driver. All calls that use one are made on one thread. */

#include "vcuda/server/code.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "vcuda/driver_api.h"
#include "vcuda/server/driver.h"
#include "vcuda/server/handle.h"
#include "vcuda/server/quota.h"
#include "vcuda/server/request.h"

/* ---- the thread ---- */

/*
 * The thread that has all linkers. NVIDIA's compiler keeps memory for the thread that made a linker: one that another
 * thread completes or ends has the heap corrupted (seen with 580, natively, too), and which of its threads does that is
 * the client's to say. On one thread every order of calls is survived, also after a call that failed.
 */

enum { LINKER_STACK = 64 << 20 };

struct errand {
	CUresult (*work)(void *user);
	void *user;
	uint64_t context;
	CUresult r;
	bool done;
};

static pthread_mutex_t linker_thread_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t linker_thread_changed = PTHREAD_COND_INITIALIZER;
static struct errand *linker_errand; /* until it is done */
static bool linker_thread_runs;

static CUresult linker_thread_run(const struct errand *errand)
{
	CUresult r = driver.cuCtxSetCurrent(errand->context);

	if (r)
		return r;
	r = errand->work(errand->user);
	(void)driver.cuCtxSetCurrent(0);
	return r;
}

static void *linker_thread_serve(void *unused)
{
	(void)pthread_mutex_lock(&linker_thread_mutex);
	for (;;) {
		struct errand *errand = linker_errand;

		if (!errand || errand->done) {
			(void)pthread_cond_wait(&linker_thread_changed, &linker_thread_mutex);
			continue;
		}
		(void)pthread_mutex_unlock(&linker_thread_mutex);
		errand->r = linker_thread_run(errand);
		(void)pthread_mutex_lock(&linker_thread_mutex);
		errand->done = true;
		(void)pthread_cond_broadcast(&linker_thread_changed);
	}
	return unused;
}

static bool linker_thread_start(void)
{
	pthread_attr_t attributes;
	pthread_t thread;

	if (linker_thread_runs)
		return true;
	if (pthread_attr_init(&attributes) != 0)
		return false;
	(void)pthread_attr_setstacksize(&attributes, LINKER_STACK);
	linker_thread_runs = pthread_create(&thread, &attributes, linker_thread_serve, NULL) == 0;
	(void)pthread_attr_destroy(&attributes);
	return linker_thread_runs;
}

/* Has the thread call @work once, with the driver's @context current, and waits. */
static CUresult linker_thread_do(CUresult (*work)(void *user), void *user, uint64_t context)
{
	struct errand errand = {.work = work, .user = user, .context = context, .r = CUDA_ERROR_OUT_OF_MEMORY};

	(void)pthread_mutex_lock(&linker_thread_mutex);
	while (linker_errand)
		(void)pthread_cond_wait(&linker_thread_changed, &linker_thread_mutex);
	if (linker_thread_start()) {
		linker_errand = &errand;
		(void)pthread_cond_broadcast(&linker_thread_changed);
		while (!errand.done)
			(void)pthread_cond_wait(&linker_thread_changed, &linker_thread_mutex);
		linker_errand = NULL;
		(void)pthread_cond_broadcast(&linker_thread_changed);
	}
	(void)pthread_mutex_unlock(&linker_thread_mutex);
	return errand.r;
}

/* The driver writes into the buffers of a linker's creation for as long as it exists. */
struct linker {
	struct linker *next;
	uint64_t state, context; /* the context's handle */
	uint64_t locked;         /* what it was given, which the driver keeps */
	struct object_ref hold;  /* the context, while a thread uses it */
	struct code_options options;
	struct code_answer answer;
};

static pthread_mutex_t linker_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct linker *linkers; /* that no thread uses now */

/* ---- calls of the driver ---- */

/* What the driver is asked, on the compiler's thread. */
struct linker_call {
	struct linker *linker;
	struct code_options *options;
	CUjitInputType type;
	void *data; /* the input, or what was linked */
	size_t bytes;
};

static CUresult linker_call_create(void *user)
{
	struct linker *linker = ((struct linker_call *)user)->linker;

	return driver.cuLinkCreate_v2(linker->options.count, linker->options.name, linker->options.value,
				      &linker->state);
}

static CUresult linker_call_add(void *user)
{
	const struct linker_call *call = user;

	return driver.cuLinkAddData_v2(call->linker->state, call->type, call->data, call->bytes, NULL,
				       call->options->count - CODE_OWN_OPTIONS, call->options->name,
				       call->options->value);
}

static CUresult linker_call_complete(void *user)
{
	struct linker_call *call = user;

	return driver.cuLinkComplete(call->linker->state, &call->data, &call->bytes);
}

static CUresult linker_call_destroy(void *user)
{
	return driver.cuLinkDestroy(((struct linker_call *)user)->linker->state);
}

static CUresult linker_do(CUresult (*work)(void *user), struct linker_call *call)
{
	return linker_thread_do(work, call, call->linker->hold.real);
}

static CUresult linker_end(struct linker *linker)
{
	struct linker_call call = {.linker = linker};

	return linker_do(linker_call_destroy, &call);
}

/* ---- those that there are ---- */

static void linker_release(struct linker *linker)
{
	quota_unlock(linker->locked);
	free(linker);
}

static void linker_keep(struct linker *linker)
{
	const struct object_ref hold = linker->hold;

	(void)pthread_mutex_lock(&linker_mutex);
	linker->next = linkers;
	linkers = linker;
	(void)pthread_mutex_unlock(&linker_mutex);
	object_ref_let_go(hold);
}

/* They have ended with it. */
void linker_forget_context(uint64_t context)
{
	(void)pthread_mutex_lock(&linker_mutex);
	for (struct linker **at = &linkers, *linker = *at; linker; linker = *at)
		if (linker->context == context) {
			*at = linker->next;
			linker_release(linker);
		} else {
			at = &linker->next;
		}
	(void)pthread_mutex_unlock(&linker_mutex);
}

/* Until linker_keep() no other thread finds it, and its context does not end, so no thread ends it while it is used. */
static CUresult linker_take(struct request *q, unsigned word, struct linker **ret)
{
	struct linker **at = &linkers, *linker;
	uint64_t state = 0;
	CUresult r = request_handle(q, word, WIRE_LINKER, &state);

	if (r)
		return r;
	(void)pthread_mutex_lock(&linker_mutex);
	while (*at && (*at)->state != state)
		at = &(*at)->next;
	linker = *at && object_ref_take((*at)->hold) ? *at : NULL;
	if (linker)
		*at = linker->next;
	(void)pthread_mutex_unlock(&linker_mutex);
	*ret = linker;
	return linker ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

/* The logs of each use are those of the linker's creation. */
static CUresult linker_reply(struct request *q, CUresult r, struct linker *linker)
{
	r = code_reply(q, r, &linker->options, &linker->answer);
	linker_keep(linker);
	return r;
}

static CUresult linker_hold_context(struct linker *linker, uint64_t context)
{
	linker->context = context;
	linker->hold.type = WIRE_CONTEXT;
	return handle_look(context, WIRE_CONTEXT, &linker->hold.real) && object_ref_take(linker->hold)
		       ? CUDA_SUCCESS
		       : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult serve_cuLinkCreate_v2(struct request *q)
{
	struct linker *linker = calloc(1, sizeof(*linker));
	struct linker_call call = {.linker = linker};

	lane_leave(q);
	CUresult r = linker ? code_read_options(q, 0, &linker->options, &linker->answer) : CUDA_ERROR_OUT_OF_MEMORY;

	if (!r)
		r = linker_hold_context(linker, q->header.context);
	if (r) {
		free(linker);
		return r;
	}
	r = linker_do(linker_call_create, &call);
	if (r) {
		object_ref_let_go(linker->hold);
		free(linker);
		return r;
	}
	linker->answer.handle = handle_make(WIRE_LINKER, linker->state, 0, linker->context);
	/* Its context is about to end, or there are too many handles. */
	if (!linker->answer.handle) {
		(void)linker_end(linker);
		object_ref_let_go(linker->hold);
		free(linker);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	return linker_reply(q, CUDA_SUCCESS, linker);
}

/* The upload. Its logs go where the linker's do. */
static CUresult linker_add(struct request *q, struct linker *linker, int type, struct code_options *options)
{
	const uint64_t bytes = q->argument[0];
	struct linker_call call = {
		.linker = linker,
		.options = options,
		.type = (CUjitInputType)type,
		.data = (void *)code_image(q),
		.bytes = bytes,
	};
	CUresult r;

	if (!call.data)
		return CUDA_ERROR_INVALID_VALUE;
	if (!quota_lock(bytes))
		return CUDA_ERROR_OUT_OF_MEMORY;
	r = linker_do(linker_call_add, &call);
	if (r)
		quota_unlock(bytes);
	else
		linker->locked += bytes;
	return r;
}

/* The words of the options stand before the linker and the kind of input. */
CUresult serve_cuLinkAddData_v2(struct request *q)
{
	struct code_options options;
	struct code_answer answer;
	CUresult r = code_read_options(q, 2, &options, &answer);
	const unsigned word = r ? 0 : q->header.words - 2;
	struct linker *linker;

	lane_leave(q);
	if (!r)
		r = linker_take(q, word, &linker);
	if (r)
		return r;
	r = linker_add(q, linker, (int)q->argument[word + 1], &options);
	request_end_upload(q);
	return linker_reply(q, r, linker);
}

/* What was linked is the linker's, so the client fetches a copy. */
static CUresult linker_keep_image(struct request *q, struct linker *linker, const void *image, size_t bytes)
{
	if (bytes > WIRE_UPLOAD_MAX)
		return CUDA_ERROR_OUT_OF_MEMORY;
	linker->answer.handle = bytes;
	return request_keep_download(q, image, bytes);
}

CUresult serve_cuLinkComplete(struct request *q)
{
	struct code_options options;
	struct code_answer answer;
	CUresult r = code_read_options(q, 1, &options, &answer);
	struct linker_call call = {0};

	lane_leave(q);
	if (!r)
		r = linker_take(q, q->header.words - 1U, &call.linker);
	if (r)
		return r;
	r = linker_do(linker_call_complete, &call);
	if (!r)
		r = linker_keep_image(q, call.linker, call.data, call.bytes);
	return linker_reply(q, r, call.linker);
}

CUresult serve_cuLinkDestroy(struct request *q)
{
	CUresult r = request_words(q, 1);
	struct linker *linker;

	lane_leave(q);
	if (!r)
		r = linker_take(q, 0, &linker);
	if (r)
		return r;
	r = linker_end(linker);
	handle_drop(q->argument[0]);
	object_ref_let_go(linker->hold);
	linker_release(linker);
	return r;
}

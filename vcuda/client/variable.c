/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The driver makes managed variables in the server's process, by memory that moves between host and device and that no
 * other process can map. So the program has memory of its own at the same address, and what changes is exchanged: what
 * the program has written, before a command that may use it; what the device has, behind a wait. What both had last is
 * kept, so that of what only one of them has changed since, nothing is lost.
 */

#include "vcuda/client/variable.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "vcuda/client/call.h"
#include "vcuda/client/context.h"
#include "vcuda/client/host.h"
#include "vcuda/client_api.h"
#include "vcuda/ops.h"

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

enum {
	VARIABLE_PAGE = 4096,
	VARIABLE_WORD = 8,
	VARIABLE_PIECE = 32760,
	VARIABLE_RELAXED = 2,
	VARIABLE_NON_BLOCKING = 1
};

struct variable {
	struct variable *next;
	uint64_t at, bytes, owner;
	const struct context *context; /* in which the program was told, and the page-locked memory is */
	uint8_t *common;               /* what program and device had last */
	struct range device;           /* page-locked: what the device has now */
};

static struct lock variable_lock;
static struct variable *_Atomic variables;

/* ---- pages ---- */

static uint64_t variable_first_page(uint64_t at)
{
	return at & ~(uint64_t)(VARIABLE_PAGE - 1);
}

static uint64_t variable_end_page(const struct variable *variable)
{
	return variable_first_page(variable->at + variable->bytes + VARIABLE_PAGE - 1);
}

/* With the lock. Whether another variable has something of the page. */
static bool variable_shares_page(const struct variable *variable, uint64_t page)
{
	for (const struct variable *other = variables; other; other = other->next)
		if (other != variable && page >= variable_first_page(other->at) && page < variable_end_page(other))
			return true;
	return false;
}

/* With the lock. Variables lie side by side, so only the first and the last page may be another's, too. */
static void variable_own_pages(const struct variable *variable, uint64_t *ret_begin, uint64_t *ret_end)
{
	uint64_t begin = variable_first_page(variable->at), end = variable_end_page(variable);

	if (variable_shares_page(variable, begin))
		begin += VARIABLE_PAGE;
	if (begin < end && variable_shares_page(variable, end - VARIABLE_PAGE))
		end -= VARIABLE_PAGE;
	*ret_begin = begin;
	*ret_end = end;
}

/* Older kernels take the address for a wish. */
static CUresult variable_map(const struct variable *variable)
{
	uint64_t begin, end;
	void *memory;

	variable_own_pages(variable, &begin, &end);
	if (begin >= end)
		return CUDA_SUCCESS;
	memory = mmap((void *)begin, end - begin, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	if (memory == (void *)begin)
		return CUDA_SUCCESS;
	if (memory != MAP_FAILED)
		(void)munmap(memory, end - begin);
	return call_refuse("a managed variable where the program has other memory");
}

static void variable_unmap(const struct variable *variable)
{
	uint64_t begin, end;

	variable_own_pages(variable, &begin, &end);
	if (begin < end)
		(void)munmap((void *)begin, end - begin);
}

/* ---- what differs ---- */

/* Words of 8 bytes, as they lie in memory; there may be less at both ends. */
static uint64_t variable_word(const struct variable *variable, uint64_t offset)
{
	const uint64_t rest = variable->bytes - offset, word = VARIABLE_WORD - (variable->at + offset) % VARIABLE_WORD;

	return word < rest ? word : rest;
}

/* Return: where from @offset on the first word is in which they differ; the variable's size if there is none. */
static uint64_t variable_differs(const struct variable *variable, const uint8_t *a, const uint8_t *b, uint64_t offset)
{
	while (offset < variable->bytes) {
		const uint64_t rest = variable->bytes - offset, block = rest < VARIABLE_PAGE ? rest : VARIABLE_PAGE;

		if ((variable->at + offset) % VARIABLE_WORD == 0 && memcmp(a + offset, b + offset, block) == 0) {
			offset += block;
			continue;
		}
		for (uint64_t end = offset + block; offset < end;) {
			const uint64_t word = variable_word(variable, offset);

			if (memcmp(a + offset, b + offset, word) != 0)
				return offset;
			offset += word;
		}
	}
	return variable->bytes;
}

/* What the program has written itself stays, and is the device's next. */
static void variable_take_word(struct variable *variable, uint64_t offset, uint64_t bytes)
{
	uint8_t *own = (uint8_t *)variable->at + offset, *common = variable->common + offset;
	const uint8_t *device = (const uint8_t *)variable->device.at + offset;

	if (bytes == VARIABLE_WORD && memcmp(own, common, VARIABLE_WORD) == 0) {
		uint64_t word;

		memcpy(&word, device, VARIABLE_WORD);
		*(volatile uint64_t *)(void *)own = word;
	} else {
		for (uint64_t i = 0; i < bytes; i++)
			if (own[i] == common[i] && own[i] != device[i])
				own[i] = device[i];
	}
	memcpy(common, device, bytes);
}

static void variable_take(struct variable *variable)
{
	const uint8_t *device = (const uint8_t *)variable->device.at;
	uint64_t offset = 0;

	while ((offset = variable_differs(variable, device, variable->common, offset)) < variable->bytes) {
		const uint64_t word = variable_word(variable, offset);

		variable_take_word(variable, offset, word);
		offset += word;
	}
}

/* ---- exchange ---- */

/* What the calling thread does itself is not watched, and has a stream of its own, which waits for no other. */
struct variable_way {
	struct thread *thread;
	CUstream stream;
	CUstreamCaptureMode mode;
	bool captures;
};

static CUresult variable_begin(struct variable_way *way)
{
	struct context *context;
	CUresult r = context_current(&context);

	if (r)
		return r;
	way->thread = thread_self();
	way->thread->unwatched = true;
	way->mode = VARIABLE_RELAXED;
	way->captures = client.captures > 0 && !cuThreadExchangeStreamCaptureMode(&way->mode);
	if (context->exchange_of != context->handle) {
		r = cuStreamCreate(&way->stream, VARIABLE_NON_BLOCKING);
		context->exchange = way->stream;
		context->exchange_of = r ? 0 : context->handle;
	}
	way->stream = context->exchange;
	return r;
}

/* What an earlier command of the program's failed with is still to be told. */
static void variable_keep_failure(const struct thread *thread, CUresult result)
{
	int32_t none = CUDA_SUCCESS;

	if (result && !call_context_failure(thread))
		(void)atomic_compare_exchange_strong(&client.wire->reply[thread->slot].deferred, &none,
						     (int32_t)result);
}

static void variable_end(struct variable_way *way, CUresult result)
{
	if (!way->thread)
		return;
	if (way->captures)
		(void)cuThreadExchangeStreamCaptureMode(&way->mode);
	variable_keep_failure(way->thread, result);
	way->thread->unwatched = false;
}

/* In pieces that go with the command. */
static CUresult variable_send_piece(struct variable *variable, uint64_t offset, uint64_t bytes, CUstream stream)
{
	memcpy(variable->common + offset, (const uint8_t *)variable->at + offset, bytes);
	return cuMemcpyHtoDAsync_v2(variable->at + offset, variable->common + offset, bytes, stream);
}

static CUresult variable_send(struct variable *variable, CUstream stream)
{
	const uint8_t *own = (const uint8_t *)variable->at;
	uint64_t offset = 0;
	CUresult r = CUDA_SUCCESS;

	while (!r && (offset = variable_differs(variable, own, variable->common, offset)) < variable->bytes) {
		uint64_t end = offset;

		while (end < variable->bytes && end - offset < VARIABLE_PIECE &&
		       memcmp(own + end, variable->common + end, variable_word(variable, end)) != 0)
			end += variable_word(variable, end);
		r = variable_send_piece(variable, offset, end - offset, stream);
		offset = end;
	}
	return r;
}

static void variable_send_all(void)
{
	struct variable_way way = {.thread = NULL};
	CUresult r = CUDA_SUCCESS;

	LOCK_HOLD(&variable_lock);
	for (struct variable *variable = variables; variable && !r; variable = variable->next) {
		const uint8_t *own = (const uint8_t *)variable->at;

		if (variable_differs(variable, own, variable->common, 0) == variable->bytes)
			continue;
		if (!way.thread)
			r = variable_begin(&way);
		if (!r)
			r = variable_send(variable, way.stream);
	}
	if (way.thread && !r)
		r = cuStreamSynchronize(way.stream);
	variable_end(&way, r);
}

/* Its own result is waited for: that of a later wait does not tell what an earlier command failed with. */
static CUresult variable_fetch(const struct variable *variable, CUstream stream)
{
	const uint64_t words[] = {variable->device.at, variable->at, variable->bytes, stream};

	return call_sync(OP_cuMemcpyDtoHAsync_v2, words, 4, NULL, 0, NULL, 0);
}

static void variable_fetch_all(void)
{
	struct variable_way way = {.thread = NULL};
	CUresult r;

	LOCK_HOLD(&variable_lock);
	r = variables ? variable_begin(&way) : CUDA_ERROR_NOT_FOUND;
	for (struct variable *variable = variables; variable && !r; variable = variable->next)
		r = variable_fetch(variable, way.stream);
	if (!r)
		r = cuStreamSynchronize(way.stream);
	for (struct variable *variable = variables; variable && !r; variable = variable->next)
		variable_take(variable);
	variable_end(&way, r);
}

/* What may read or write any memory of the device. */
static bool variable_is_used_by(unsigned op)
{
	return (op >= WIRE_COPY_IN && op <= WIRE_STAGE_BOX) ||
	       (op >= OP_cuMemcpyHtoDAsync_v2 && op <= OP_cuMemcpy3DPeerAsync) ||
	       (op >= OP_cuMemsetD8Async && op <= OP_cuLaunchCooperativeKernel) || op == OP_cuGraphLaunch ||
	       (op >= OP_cuStreamWaitValue32_v2 && op <= OP_cuStreamWriteValue64) || op == OP_cuStreamBatchMemOp ||
	       op == OP_cuStreamBatchMemOp_v2;
}

static void variable_before(unsigned op)
{
	if (variables && variable_is_used_by(op))
		variable_send_all();
}

static void variable_behind(unsigned op)
{
	if (variables && (op == WIRE_STAGE_WAIT || OP_ASKS(op) || op == OP_cuStreamQuery || op == OP_cuEventQuery))
		variable_fetch_all();
}

/* ---- variables come and go ---- */

static void variable_free(struct variable *variable)
{
	struct range *device = &variable->device;

	if (device->at && address_map_remove(device->at, 1U << ADDRESS_MAP_HOST, device) && host_give(device)) {
		device->freed = true;
		address_map_put_back(device);
	}
	free(variable->common);
	free(variable);
}

/* With the lock. */
static bool variable_is_known(uint64_t at, uint64_t bytes, uint64_t owner)
{
	const struct variable *variable = variables;

	while (variable && (variable->at != at || variable->bytes != bytes || variable->owner != owner))
		variable = variable->next;
	return variable;
}

/* With the lock. An address is believed where a driver has managed memory, and no other variable is. */
static bool variable_may_be(const struct variable *variable)
{
	const uint64_t lowest = 1 << 20, end = (uint64_t)1 << 47;

	if (variable->at < lowest || variable->at >= end || variable->bytes > end - variable->at)
		return false;
	for (const struct variable *other = variables; other; other = other->next)
		if (variable->at < other->at + other->bytes && other->at < variable->at + variable->bytes)
			return false;
	return true;
}

/* What it begins as. Its first value is in none of the program's memory, which has zeros. */
static CUresult variable_fill(struct variable *variable)
{
	struct variable_way way = {.thread = NULL};
	CUresult r = variable_begin(&way);

	if (!r)
		r = variable_fetch(variable, way.stream);
	if (!r)
		r = cuStreamSynchronize(way.stream);
	variable_end(&way, CUDA_SUCCESS);
	if (r)
		return r;
	memcpy(variable->common, (const void *)variable->device.at, variable->bytes);
	memcpy((void *)variable->at, variable->common, variable->bytes);
	return CUDA_SUCCESS;
}

static CUresult variable_make(uint64_t at, uint64_t bytes, uint64_t owner, struct context *context,
			      struct variable **ret)
{
	struct variable *variable = calloc(1, sizeof(*variable));
	CUresult r;

	if (!variable)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*variable = (struct variable){.at = at, .bytes = bytes, .owner = owner, .context = context};
	variable->device = (struct range){.kind = ADDRESS_MAP_HOST, .context = context};
	r = host_take(&variable->device, bytes);
	if (!r)
		variable->common = malloc(bytes);
	if (!r && !variable->common)
		r = CUDA_ERROR_OUT_OF_MEMORY;
	if (r)
		variable_free(variable);
	else
		*ret = variable;
	return r;
}

/* With the lock. */
static CUresult variable_place(struct variable *variable)
{
	CUresult r = variable_may_be(variable) ? variable_map(variable) : CUDA_ERROR_UNKNOWN;

	if (r)
		return r;
	r = variable_fill(variable);
	if (r) {
		variable_unmap(variable);
		return r;
	}
	variable->next = variables;
	variables = variable;
	return CUDA_SUCCESS;
}

CUresult variable_add(uint64_t at, uint64_t bytes, uint64_t owner, struct context *context)
{
	static const struct client_watch watch = {variable_before, variable_behind};
	struct variable *variable;
	bool known;
	CUresult r;

	if (bytes == 0)
		return CUDA_SUCCESS;
	if (!client.arena)
		return call_refuse("managed variables, where the device reaches no memory of the host");
	r = variable_make(at, bytes, owner, context, &variable);
	if (r)
		return r;
	lock_take(&variable_lock);
	known = variable_is_known(at, bytes, owner);
	r = known ? CUDA_SUCCESS : variable_place(variable);
	if (!r)
		client.watch = &watch;
	lock_release(&variable_lock);
	if (r || known)
		variable_free(variable);
	return r;
}

static void variable_forget(bool (*goes)(const struct variable *variable, uint64_t which), uint64_t which)
{
	struct variable *gone = NULL, *variable = variables, *next, *kept = NULL;

	if (!variable)
		return;
	lock_take(&variable_lock);
	for (variable = variables; variable; variable = next) {
		struct variable **to = goes(variable, which) ? &gone : &kept;

		next = variable->next;
		variable->next = *to;
		*to = variable;
	}
	variables = kept;
	for (variable = gone; variable; variable = variable->next)
		variable_unmap(variable);
	lock_release(&variable_lock);
	for (; gone; gone = next) {
		next = gone->next;
		variable_free(gone);
	}
}

static bool variable_is_of(const struct variable *variable, uint64_t owner)
{
	return variable->owner == owner;
}

static bool variable_is_in(const struct variable *variable, uint64_t context)
{
	return variable->context == (const struct context *)context;
}

void variable_forget_owner(uint64_t owner)
{
	variable_forget(variable_is_of, owner);
}

void variable_forget_context(const struct context *context)
{
	variable_forget(variable_is_in, (uint64_t)context);
}

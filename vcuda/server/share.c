/* SPDX-License-Identifier: Apache-2.0 */

/*
 * CUDA's handles of 64 bytes, by which processes of one user open each other's memory and events, and its descriptors.
 * The driver's own do not leave the servers: they say where things are, and the driver reads what a client would write
 * there; its descriptors are open devices. A client gets a token of 128 random bits, which a server of its container
 * finds among those of this container alone.
 */

#include "vcuda/server/share.h"

#include <fcntl.h>
#include <string.h>
#include <sys/random.h>

#include "base/cleanup.h"
#include "vcuda/driver_api.h"
#include "vcuda/server/arena.h"
#include "vcuda/server/driver.h"
#include "vcuda/server/handle.h"
#include "vcuda/server/quota.h"
#include "vcuda/server/request.h"

/* "ctrgpu" and a number: what begins otherwise is no handle of ours. */
static const uint64_t share_magic = 0x0001757067727463;

enum { LAZY_PEERS = 1 };         /* what memory has to be opened with */
enum { SHARE_DESCRIPTOR = 1 };   /* CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR */
enum { SHARE_OPENED = 1 << 20 }; /* more than a client has descriptors, and far from where a counter begins anew */

/* What a client holds. */
struct share_token {
	uint64_t magic, token[2], bytes, reserved[4];
};
_Static_assert(sizeof(struct share_token) == SHARE_HANDLE && sizeof(CUipcMemHandle) == SHARE_HANDLE &&
		       sizeof(CUipcEventHandle) == SHARE_HANDLE,
	       "one is copied to the other");

/* ---- places ---- */

static bool share_has_token(const struct share *share, enum share_kind kind, const struct share_token *token)
{
	return share->state == SHARE_READY && share->kind == kind && share->token[0] == token->token[0] &&
	       share->token[1] == token->token[1];
}

/* Return: the place of a token, which this server holds from now on; NULL. */
static struct share *share_find_place(enum share_kind kind, const struct share_token *token)
{
	struct shares *shares = &server.quota->shares;

	for (uint32_t i = 0; i < share_count(shares); i++) {
		struct share *share = &shares->place[i];

		if (!share_has_token(share, kind, token))
			continue;
		share_hold(share, server.start.quota_slot);
		if (share_has_token(share, kind, token))
			return share;
		share_let_go(share, server.start.quota_slot);
	}
	return NULL;
}

/* ---- giving ---- */

/* Fills in a place, which is this server's until others hold it, too. Return: CUDA_ERROR_OUT_OF_MEMORY. */
static CUresult share_give(enum share_kind kind, uint64_t key, uint64_t bytes, uint64_t context, const void *handle,
			   struct share_held **ret)
{
	struct share *place = share_held_take_place();

	if (!place && quota_reap())
		place = share_held_take_place();
	if (!place)
		return CUDA_ERROR_OUT_OF_MEMORY;
	place->kind = kind;
	memcpy(place->handle, handle, sizeof(place->handle));
	*ret = share_held_add(place, key, bytes, context);
	if (!*ret || getrandom(place->token, sizeof(place->token), 0) != sizeof(place->token)) {
		if (*ret)
			share_held_end(*ret);
		share_clear(place);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	share_hold(place, server.start.quota_slot);
	place->bytes = bytes;
	place->state = SHARE_READY;
	return CUDA_SUCCESS;
}

static void share_reply(struct request *q, const struct share_held *one)
{
	const struct share_token token = {share_magic, {one->place->token[0], one->place->token[1]}, 0, {0}};

	request_reply(q, &token, sizeof(token));
}

/*
 * The other process has the whole of a page that pieces lie in, and keeps it when this one has freed its piece.
 *
 * Return: what the memory is counted as from now on; 0: that would be too much.
 */
static uint64_t share_count_memory(uint64_t at)
{
	const uint64_t bytes = quota_noted(QUOTA_POINTER, at);

	if (bytes == 0 || bytes >= DRIVER_MEMORY_PAGE)
		return bytes;
	return allocation_take(DRIVER_MEMORY_PAGE - bytes) ? DRIVER_MEMORY_PAGE : 0;
}

static CUresult share_give_memory(struct request *q, uint64_t at, struct share_held **ret)
{
	CUipcMemHandle handle = {{0}};
	uint64_t bytes;
	CUresult r = driver.cuIpcGetMemHandle(&handle, at);
	DRIVER_MEMORY_HOLD;

	if (r)
		return r;
	bytes = share_count_memory(at);
	if (bytes == 0)
		return CUDA_ERROR_OUT_OF_MEMORY;
	r = share_give(SHARE_MEMORY, at, bytes, q->header.context, &handle, ret);
	if (r) {
		quota_give(bytes - quota_noted(QUOTA_POINTER, at));
		return r;
	}
	/* It stands in its place now, and no more in this server's. */
	quota_empty_note(QUOTA_POINTER, at);
	quota_give(bytes);
	return CUDA_SUCCESS;
}

CUresult serve_cuIpcGetMemHandle(struct request *q)
{
	CUresult r = driver.cuIpcGetMemHandle ? request_words(q, 1) : CUDA_ERROR_NOT_SUPPORTED;
	struct share_held *one;
	CUdeviceptr base = 0;
	size_t bytes = 0;

	if (!r)
		r = driver.cuMemGetAddressRange_v2(&base, &bytes, q->argument[0]);
	if (r)
		return r == CUDA_ERROR_NOT_FOUND ? CUDA_ERROR_INVALID_VALUE : r;
	SHARE_HELD_LOCK();
	one = share_held_find(SHARE_MEMORY, base);
	/* What others have opened here is not this process's to give. */
	if ((one && !one->given) || (!one && !quota_noted(QUOTA_POINTER, base)))
		return CUDA_ERROR_INVALID_VALUE;
	if (!one)
		r = share_give_memory(q, base, &one);
	if (!r)
		share_reply(q, one);
	return r;
}

/* @real: memory of this process's own, since another's stands in its place already. */
static CUresult share_give_physical(uint64_t real, struct share_held **ret)
{
	struct share_file file = {.slot = server.start.quota_slot};
	_cleanup_close_ int given = -1, kept = -1;
	const uint64_t bytes = quota_noted(QUOTA_PHYSICAL, real);
	CUresult r = driver.cuMemExportToShareableHandle(&given, real, SHARE_DESCRIPTOR, 0);

	kept = r ? -1 : share_file_keep(given);
	if (r || kept < 0 || bytes == 0)
		return r ? r : CUDA_ERROR_OUT_OF_MEMORY;
	file.fd = (uint32_t)kept;
	r = share_give(SHARE_PHYSICAL, real, bytes, 0, &file, ret);
	if (r)
		return r;
	(*ret)->fd = steal_fd(&kept);
	(*ret)->opened = 0;
	quota_empty_note(QUOTA_PHYSICAL, real);
	quota_give(bytes);
	return CUDA_SUCCESS;
}

CUresult serve_cuMemExportToShareableHandle(struct request *q)
{
	CUresult r = driver.cuMemExportToShareableHandle ? request_words(q, 3) : CUDA_ERROR_NOT_SUPPORTED;
	struct share_held *one;
	uint64_t real = 0;
	DRIVER_MEMORY_HOLD;

	if (!r)
		r = request_handle(q, 0, WIRE_MEMORY, &real);
	if (r || q->argument[1] != SHARE_DESCRIPTOR || q->argument[2])
		return r ? r : CUDA_ERROR_INVALID_VALUE;
	SHARE_HELD_LOCK();
	one = share_held_find(SHARE_PHYSICAL, real);
	if (!one)
		r = share_give_physical(real, &one);
	if (!r && one->opened == SHARE_OPENED)
		r = CUDA_ERROR_OUT_OF_MEMORY;
	if (r)
		return r;
	/* A descriptor keeps the memory, too. */
	one->opened++;
	(void)quota_hold(QUOTA_PHYSICAL, real, 1);
	share_reply(q, one);
	return CUDA_SUCCESS;
}

CUresult serve_wire_share_end(struct request *q)
{
	const struct share_token token = {.token = {q->argument[0], q->argument[1]}};
	CUresult r = request_words(q, 2);
	struct share_held *one;
	DRIVER_MEMORY_HOLD;

	if (r)
		return r;
	SHARE_HELD_LOCK();
	one = share_held_find_token(SHARE_PHYSICAL, token.token);
	if (!one || one->opened == 0)
		return CUDA_ERROR_INVALID_VALUE;
	one->opened--;
	if (quota_hold(QUOTA_PHYSICAL, one->key, -1))
		share_held_end(one);
	return CUDA_SUCCESS;
}

CUresult serve_cuIpcGetEventHandle(struct request *q)
{
	CUresult r = driver.cuIpcGetEventHandle ? request_words(q, 1) : CUDA_ERROR_NOT_SUPPORTED;
	CUipcEventHandle handle = {{0}};
	struct share_held *one;
	uint64_t event = 0;

	if (!r)
		r = request_handle(q, 0, WIRE_EVENT, &event);
	if (!r)
		r = driver.cuIpcGetEventHandle(&handle, event);
	if (r)
		return r;
	SHARE_HELD_LOCK();
	one = share_held_find(SHARE_EVENT, event);
	if (!one)
		r = share_give(SHARE_EVENT, event, 0, handle_context(q->argument[0]), &handle, &one);
	if (!r)
		share_reply(q, one);
	return r;
}

/* ---- taking ---- */

static CUresult share_read(struct request *q, enum share_kind kind, struct share **ret)
{
	/* What the driver says of the event of a handle that is none. */
	enum { EVENT_NOT_MAPPED = 205 };
	struct share_token token;
	CUresult r = request_struct(q, 0, &token, sizeof(token));

	if (r)
		return r;
	*ret = token.magic == share_magic ? share_find_place(kind, &token) : NULL;
	if (*ret)
		return CUDA_SUCCESS;
	if (kind == SHARE_PHYSICAL)
		return CUDA_ERROR_UNKNOWN;
	return kind == SHARE_EVENT ? (CUresult)EVENT_NOT_MAPPED : CUDA_ERROR_INVALID_VALUE;
}

/* @place is held, once more or for the first time. */
static CUresult share_open_memory(struct request *q, struct share *place, CUdeviceptr *ret)
{
	struct share_held *one = share_held_find_place(place);
	CUipcMemHandle handle;
	CUresult r;

	/* As the driver does it, which opens nothing for the process that has it. */
	if (one && one->given)
		return CUDA_ERROR_INVALID_CONTEXT;
	memcpy(&handle, place->handle, sizeof(handle));
	r = driver.cuIpcOpenMemHandle_v2(ret, handle, LAZY_PEERS);
	if (r)
		return r;
	one = share_held_find(SHARE_MEMORY, *ret);
	if (one && one->opened < SHARE_OPENED) {
		one->opened++;
		return CUDA_SUCCESS;
	}
	if (!one && share_held_add(place, *ret, 0, q->header.context))
		return CUDA_SUCCESS;
	(void)driver.cuIpcCloseMemHandle(*ret);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult serve_cuIpcOpenMemHandle_v2(struct request *q)
{
	CUresult r = driver.cuIpcOpenMemHandle_v2 && driver.cuIpcCloseMemHandle ? request_words(q, 2)
										: CUDA_ERROR_NOT_SUPPORTED;
	CUdeviceptr pointer = 0, base;
	struct share *place = NULL;
	size_t bytes = 0;

	if (r || q->argument[1] != LAZY_PEERS)
		return r ? r : CUDA_ERROR_INVALID_VALUE;
	SHARE_HELD_LOCK();
	r = share_read(q, SHARE_MEMORY, &place);
	if (r)
		return r;
	r = share_open_memory(q, place, &pointer);
	if (r) {
		if (!share_held_find_place(place))
			share_let_go(place, server.start.quota_slot);
		return r;
	}
	driver_memory_set_dirty();
	(void)driver.cuMemGetAddressRange_v2(&base, &bytes, pointer);
	request_reply(q, &pointer, sizeof(pointer));
	request_reply(q, &bytes, sizeof(bytes));
	return CUDA_SUCCESS;
}

static bool share_is_opened(uint64_t at)
{
	const struct share_held *one;

	SHARE_HELD_LOCK();
	one = share_held_find(SHARE_MEMORY, at);
	return one && !one->given;
}

/* Return: whether it was opened no more often than it is closed now. */
static bool share_close(uint64_t at)
{
	struct share_held *one;

	SHARE_HELD_LOCK();
	one = share_held_find(SHARE_MEMORY, at);
	if (!one || one->given || --one->opened > 0)
		return false;
	share_held_end(one);
	return true;
}

CUresult serve_cuIpcCloseMemHandle(struct request *q)
{
	CUresult r = driver.cuIpcCloseMemHandle ? request_words(q, 1) : CUDA_ERROR_NOT_SUPPORTED;
	uint64_t last = 0;

	if (r)
		return r;
	if (!share_is_opened(q->argument[0]))
		return CUDA_ERROR_INVALID_VALUE;
	lane_leave(q);
	r = driver.cuIpcCloseMemHandle(q->argument[0]);
	if (!r)
		last = share_close(q->argument[0]);
	request_reply(q, &last, sizeof(last));
	return r;
}

/*
 * Return: a descriptor of what a place has; -1. Of what this server has given, its own list says which that is: another
 * server of the container that was taken over could write the number of any descriptor of this one there.
 */
static int share_import_descriptor(const struct share *place)
{
	struct share_file file;
	int fd;

	memcpy(&file, place->handle, sizeof(file));
	if (file.slot != server.start.quota_slot)
		return share_file_get(&file);
	fd = share_held_descriptor(place);
	return fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0);
}

/* The driver's handle becomes the client's. It counts in its place. */
static CUresult share_keep_import(struct request *q, uint64_t real)
{
	CUresult r;

	if (!quota_note(QUOTA_PHYSICAL, real, 0, 0)) {
		(void)driver.cuMemRelease(real);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	r = allocation_hold(q, real);
	(void)quota_forget(QUOTA_PHYSICAL, real);
	return r;
}

/* @place is held, once more or for the first time. What is imported twice is the same memory, or another name of it. */
static CUresult share_import(struct request *q, struct share *place)
{
	_cleanup_close_ int fd = share_import_descriptor(place);
	CUmemGenericAllocationHandle real = 0;
	struct share_held *one = NULL;
	CUresult r;

	if (fd < 0)
		return CUDA_ERROR_UNKNOWN;
	r = driver.cuMemImportFromShareableHandle(&real, (void *)(intptr_t)fd, SHARE_DESCRIPTOR);
	if (r)
		return r;
	if (!share_held_find(SHARE_PHYSICAL, real)) {
		one = share_held_add(place, real, 0, 0);
		if (!one) {
			(void)driver.cuMemRelease(real);
			return CUDA_ERROR_OUT_OF_MEMORY;
		}
		one->opened = 0; /* the client has a handle of it, and no descriptor */
	}
	r = share_keep_import(q, real);
	if (r && one)
		share_held_end(one);
	driver_memory_set_dirty();
	return r;
}

CUresult serve_cuMemImportFromShareableHandle(struct request *q)
{
	CUresult r = driver.cuMemImportFromShareableHandle && driver.cuMemRelease ? request_words(q, 2)
										  : CUDA_ERROR_NOT_SUPPORTED;
	struct share *place = NULL;

	if (r || q->argument[1] != SHARE_DESCRIPTOR)
		return r ? r : CUDA_ERROR_NOT_SUPPORTED;
	SHARE_HELD_LOCK();
	r = share_read(q, SHARE_PHYSICAL, &place);
	if (r)
		return r;
	r = share_import(q, place);
	if (r && !share_held_find_place(place))
		share_let_go(place, server.start.quota_slot);
	return r;
}

CUresult serve_cuIpcOpenEventHandle(struct request *q)
{
	CUresult r = driver.cuIpcOpenEventHandle ? request_words(q, 1) : CUDA_ERROR_NOT_SUPPORTED;
	struct share *place = NULL;
	CUipcEventHandle handle;
	uint64_t event = 0;

	if (r)
		return r;
	SHARE_HELD_LOCK();
	r = share_read(q, SHARE_EVENT, &place);
	if (r)
		return r;
	memcpy(&handle, place->handle, sizeof(handle));
	r = driver.cuIpcOpenEventHandle(&event, handle);
	/* The driver has what it needs of it. */
	if (!share_held_find_place(place))
		share_let_go(place, server.start.quota_slot);
	return r ? r : request_reply_handle(q, WIRE_EVENT, event, 0);
}

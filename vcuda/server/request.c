/* SPDX-License-Identifier: Apache-2.0 */

#include "vcuda/server/request.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "vcuda/driver_api.h"
#include "vcuda/server/arena.h"
#include "vcuda/server/driver.h"
#include "vcuda/server/handle.h"
#include "vcuda/server/quota.h"
#include "vcuda/server/share.h"

static size_t request_round(size_t bytes)
{
	return (bytes + 7) & ~(size_t)7;
}

const void *request_part(struct request *q, unsigned word)
{
	const uint64_t bytes = q->argument[word];
	const uint8_t *part = (const uint8_t *)q->argument + q->part_at;

	if (bytes > WIRE_INLINE || request_round(bytes) > q->header.bytes - q->part_at)
		return NULL;
	q->part_at += (uint32_t)request_round(bytes);
	return part;
}

/* The driver's error for a handle that names no object of this type. */
static CUresult request_log_none(enum wire_type type)
{
	if (type == WIRE_CONTEXT)
		return CUDA_ERROR_INVALID_CONTEXT;
	return type == WIRE_GRAPH || type == WIRE_NODE || type == WIRE_EXEC || type == WIRE_POOL || type == WIRE_MEMORY
		       ? CUDA_ERROR_INVALID_VALUE
		       : CUDA_ERROR_INVALID_HANDLE;
}

CUresult request_handle(struct request *q, unsigned word, enum wire_type type, uint64_t *ret)
{
	return handle_look(q->argument[word], type, ret) ? CUDA_SUCCESS : request_log_none(type);
}

CUresult request_handles(struct request *q, unsigned word, enum wire_type type, uint64_t count, uint64_t *ret)
{
	const uint64_t *part;

	if (count > REQUEST_HANDLES || q->argument[word] != count * sizeof(*part))
		return CUDA_ERROR_INVALID_VALUE;
	part = request_part(q, word);
	if (!part)
		return CUDA_ERROR_INVALID_VALUE;
	for (uint64_t i = 0; i < count; i++)
		if (!handle_look(part[i], type, &ret[i]))
			return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

CUresult request_stream(struct request *q, unsigned word, CUstream *ret)
{
	return handle_find_stream(q->argument[word], q->header.thread, q->header.context, ret);
}

uint64_t request_stream_handle(const struct request *q, unsigned word)
{
	const uint64_t stream = q->argument[word];

	if (stream == WIRE_STREAM_THREAD)
		return handle_of_thread(q->header.thread, q->header.context);
	return stream >= WIRE_STREAM_NAMES ? stream : 0;
}

uint64_t request_stream_context(const struct request *q, unsigned word)
{
	return q->argument[word] >= WIRE_STREAM_NAMES ? handle_context(q->argument[word]) : q->header.context;
}

CUresult request_device(struct request *q, unsigned word, CUdevice *ret)
{
	if (q->argument[word] >= server.start.gpu_count)
		return CUDA_ERROR_INVALID_DEVICE;
	*ret = server.gpu[q->argument[word]];
	return CUDA_SUCCESS;
}

/* The client writes no NUL; there is room for one behind every part, which ends at a multiple of 8 or gets moved. */
CUresult request_string(struct request *q, unsigned word, size_t most, const char **ret)
{
	static __thread char text[WIRE_INLINE + 1];
	const char *part = request_part(q, word);
	const size_t bytes = part ? q->argument[word] : 0;

	if (!part || bytes > most)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(text, part, bytes);
	text[bytes] = '\0';
	*ret = text;
	return CUDA_SUCCESS;
}

CUresult request_struct(struct request *q, unsigned word, void *to, size_t bytes)
{
	const void *part = q->argument[word] == bytes ? request_part(q, word) : NULL;

	if (!part)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(to, part, bytes);
	return CUDA_SUCCESS;
}

void request_reply(struct request *q, const void *data, size_t bytes)
{
	if (bytes > sizeof(q->reply) - q->reply_bytes)
		return;
	memcpy(q->reply + q->reply_bytes, data, bytes);
	q->reply_bytes += (uint32_t)request_round(bytes);
}

void request_reply_text(struct request *q, const char *text)
{
	const size_t bytes = text ? strlen(text) : 0;

	if (bytes > sizeof(q->reply))
		return;
	memcpy(q->reply, text ? text : "", bytes);
	q->reply_bytes = (uint32_t)bytes;
}

/* Pools, physical memory and libraries are a device's or the process's. */
static bool request_is_of_context(enum wire_type type)
{
	return type != WIRE_POOL && type != WIRE_MEMORY && type != WIRE_LIBRARY && type != WIRE_KERNEL;
}

/*
 * What the driver takes for streams and for graphs that can run is known once they are there. What it takes for code,
 * when that is first used, is little. Return: CUDA_ERROR_OUT_OF_MEMORY, and it is gone.
 */
static CUresult request_count_made(enum wire_type type, uint64_t real)
{
	CUresult (*const end)(uint64_t) = type == WIRE_STREAM ? driver.cuStreamDestroy_v2
					  : type == WIRE_EXEC ? driver.cuGraphExecDestroy
							      : NULL;

	if (type == WIRE_FUNC || type == WIRE_MODULE)
		driver_memory_set_dirty();
	if (!end || driver_memory_fits())
		return CUDA_SUCCESS;
	(void)end(real);
	(void)driver_memory_count();
	return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult request_reply_handle(struct request *q, enum wire_type type, uint64_t real, uint64_t parent)
{
	const uint64_t context = request_is_of_context(type) ? q->header.context : 0;
	const bool made_by_client = type == WIRE_EVENT && parent;
	CUresult r = real ? request_count_made(type, real) : CUDA_SUCCESS;
	uint64_t handle;

	if (r)
		return r;
	handle = !real ? 0 : made_by_client ? handle_known(type, real) : handle_give(type, real, parent, context);
	request_reply(q, &handle, sizeof(handle));
	return handle || !real ? CUDA_SUCCESS : made_by_client ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_OUT_OF_MEMORY;
}

/* A function ends with its module or kernel, and this may with a library. */
void request_hold(struct request *q, uint64_t handle)
{
	uint64_t owner = handle;

	q->wait = (struct request_wait){0};
	q->wait.hold[HOLD_OBJECT] = handle_ref(handle);
	for (int i = HOLD_OWNER; i <= HOLD_OWNER_LAST && owner; i++) {
		owner = handle_parent(owner);
		q->wait.hold[i] = handle_ref(owner);
	}
	q->wait.hold[HOLD_CONTEXT] = handle_ref(handle_context(handle));
}

CUresult request_end(struct request *q, unsigned word, enum wire_type type, CUresult (*end)(uint64_t real))
{
	const uint64_t handle = q->argument[word];
	struct object_ref hold = {type, 0};
	CUresult r = request_handle(q, word, type, &hold.real);
	uint64_t context;

	/* Neither the graph of a node or of a capture, a level of an array nor what a module names is the client's. */
	if (!r && (type == WIRE_GRAPH || type == WIRE_ARRAY || type == WIRE_TEXREF) && handle_parent(handle))
		r = CUDA_ERROR_INVALID_VALUE;
	if (r)
		return r;
	if ((type == WIRE_ARRAY || type == WIRE_MIPMAP) && bound_keeps(handle)) {
		handle_drop(handle);
		return CUDA_SUCCESS;
	}
	request_hold(q, handle);
	context = q->wait.hold[HOLD_CONTEXT].real;
	/* Its own end does not wait for this one. */
	q->wait.hold[HOLD_OBJECT] = (struct object_ref){WIRE_NULL, 0};
	/* While it ends, others may make what gets the same name from the driver. */
	handle_hide(handle);
	lane_leave(q);
	r = object_ref_end(hold, context, end);
	if (r) {
		handle_show(handle);
		return r;
	}
	if (type == WIRE_EVENT)
		share_held_end_key(SHARE_EVENT, hold.real);
	if (type == WIRE_MODULE || type == WIRE_LIBRARY)
		(void)quota_forget(QUOTA_GLOBALS, handle);
	if (type == WIRE_MODULE || type == WIRE_LIBRARY || type == WIRE_TEXREF)
		bound_forget(handle);
	if (type == WIRE_ARRAY || type == WIRE_MIPMAP)
		(void)quota_forget(QUOTA_ARRAY, handle);
	if (type == WIRE_MODULE || type == WIRE_LIBRARY || type == WIRE_STREAM || type == WIRE_EXEC ||
	    type == WIRE_ARRAY || type == WIRE_MIPMAP)
		driver_memory_set_dirty();
	handle_drop(handle);
	return CUDA_SUCCESS;
}

CUresult request_wait(struct request *q, struct object_ref hold, uint64_t context, CUresult (*query)(uint64_t object),
		      CUresult (*block)(uint64_t object), uint64_t object)
{
	q->wait = (struct request_wait){
		.query = query,
		.block = block,
		.object = object,
		.hold = {[HOLD_OBJECT] = hold,
			 [HOLD_CONTEXT] = handle_context_ref(context),
			 [HOLD_CURRENT] = handle_context_ref(q->header.context)},
	};
	return REQUEST_WAITS;
}

/* ---- what is larger than an entry or a reply ---- */

static struct {
	uint8_t *data;
	uint64_t bytes, room;
	void *download;
	uint64_t download_bytes;
} transfers[WIRE_SLOTS];
static _Atomic uint64_t request_uploaded; /* all together */

static CUresult request_append(struct request *q, const void *part, uint64_t bytes)
{
	__typeof__(transfers[0]) *transfer = &transfers[q->header.thread];

	if (bytes > WIRE_UPLOAD_MAX - request_uploaded)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (transfer->bytes + bytes + 1 > transfer->room) {
		const uint64_t room = (transfer->bytes + bytes + 1) * 2;
		const uint64_t more = room - transfer->room;
		uint8_t *larger;

		if (!quota_lock(more))
			return CUDA_ERROR_OUT_OF_MEMORY;
		larger = realloc(transfer->data, room);
		if (!larger) {
			quota_unlock(more);
			return CUDA_ERROR_OUT_OF_MEMORY;
		}
		transfer->data = larger;
		transfer->room = room;
	}
	memcpy(transfer->data + transfer->bytes, part, bytes);
	transfer->bytes += bytes;
	transfer->data[transfer->bytes] = '\0';
	request_uploaded += bytes;
	return CUDA_SUCCESS;
}

static void request_forget_upload(uint32_t thread)
{
	request_uploaded -= transfers[thread].bytes;
	quota_unlock(transfers[thread].room);
	free(transfers[thread].data);
	transfers[thread].data = NULL;
	transfers[thread].bytes = transfers[thread].room = 0;
}

/* Each says where its bytes belong, so that what a failed call left behind does not get into the next one's. */
CUresult serve_wire_upload(struct request *q)
{
	CUresult r = request_words(q, 2);
	const void *part = r ? NULL : request_part(q, 1);

	if (!part)
		return CUDA_ERROR_INVALID_VALUE;
	if (q->argument[0] == 0)
		request_forget_upload(q->header.thread);
	if (q->argument[0] != transfers[q->header.thread].bytes)
		return CUDA_ERROR_INVALID_VALUE;
	return request_append(q, part, q->argument[1]);
}

const void *request_upload(const struct request *q, uint64_t bytes)
{
	const __typeof__(transfers[0]) *transfer = &transfers[q->header.thread];

	return transfer->bytes == bytes && bytes > 0 ? transfer->data : NULL;
}

void request_end_upload(const struct request *q)
{
	request_forget_upload(q->header.thread);
}

CUresult request_keep_download(struct request *q, const void *data, size_t bytes)
{
	__typeof__(transfers[0]) *transfer = &transfers[q->header.thread];

	quota_unlock(transfer->download_bytes);
	free(transfer->download);
	transfer->download = NULL;
	transfer->download_bytes = 0;
	if (!quota_lock(bytes))
		return CUDA_ERROR_OUT_OF_MEMORY;
	transfer->download = malloc(bytes + 1);
	if (!transfer->download) {
		quota_unlock(bytes);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	memcpy(transfer->download, data, bytes);
	transfer->download_bytes = bytes;
	return CUDA_SUCCESS;
}

CUresult serve_wire_download(struct request *q)
{
	const __typeof__(transfers[0]) *transfer = &transfers[q->header.thread];
	CUresult r = request_words(q, 2);

	if (r || q->argument[1] > WIRE_REPLY || q->argument[0] > transfer->download_bytes ||
	    q->argument[1] > transfer->download_bytes - q->argument[0])
		return CUDA_ERROR_INVALID_VALUE;
	if (q->argument[1] > 0)
		request_reply(q, (const uint8_t *)transfer->download + q->argument[0], q->argument[1]);
	return CUDA_SUCCESS;
}

/* ---- structs ---- */

/* Managed memory lies on the host as well, where it would not count, and keeps a process from being suspended. */
enum { ALLOCATION_MANAGED = 2 };

enum { LOCATION_DEVICE = 1, LOCATION_HOST_LAST = 4, SIDE_HOST = 1, SIDE_DEVICE = 2, SIDE_ARRAY = 3 };

bool request_is_host(const CUmemLocation *location)
{
	return location->type > LOCATION_DEVICE && location->type <= LOCATION_HOST_LAST;
}

CUresult request_check_location(CUmemLocation *location)
{
	if (location->type != LOCATION_DEVICE)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (location->id < 0 || (unsigned)location->id >= server.start.gpu_count)
		return CUDA_ERROR_INVALID_DEVICE;
	location->id = server.gpu[location->id];
	return CUDA_SUCCESS;
}

CUresult request_check_properties(CUmemAllocationProp *properties)
{
	enum { HANDLE_DESCRIPTOR = 1 };

	properties->win32HandleMetaData = NULL;
	if (properties->requestedHandleTypes & ~HANDLE_DESCRIPTOR || properties->type == ALLOCATION_MANAGED)
		return CUDA_ERROR_NOT_SUPPORTED;
	/* PyTorch wants memory that it could share by descriptors, whether the driver makes any or not. */
	if (!driver.cuMemExportToShareableHandle)
		properties->requestedHandleTypes = 0;
	return request_check_location(&properties->location);
}

void request_tell_properties(CUmemAllocationProp *properties)
{
	properties->win32HandleMetaData = NULL;
	for (unsigned i = 0; i < server.start.gpu_count; i++)
		if (properties->location.type == LOCATION_DEVICE && properties->location.id == server.gpu[i]) {
			properties->location.id = (int)i;
			return;
		}
}

CUresult request_check_pool(CUmemPoolProps *properties)
{
	properties->win32SecurityAttributes = NULL;
	if (properties->handleTypes || properties->allocType == ALLOCATION_MANAGED)
		return CUDA_ERROR_NOT_SUPPORTED;
	return request_check_location(&properties->location) == CUDA_SUCCESS ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/*
 * Rows and planes that lie in one another the driver may place otherwise, and by a pitch or a height of its own where
 * there is none. Before the first ones there is nothing to be placed.
 */
static bool request_lies_apart(size_t pitch, size_t height, const size_t corner[3], const CUDA_MEMCPY3D *copy)
{
	const bool first_plane = corner[2] == 0 && copy->Depth == 1,
		   first_row = first_plane && corner[1] == 0 && copy->Height == 1;
	uint64_t width, rows;

	if (__builtin_add_overflow(corner[0], copy->WidthInBytes, &width) ||
	    __builtin_add_overflow(corner[1], copy->Height, &rows))
		return false;
	return (pitch >= width || first_row) && (height >= rows || first_plane);
}

/* Memory of the host that the GPU may read and write is what the client shares. */
static bool request_has_box(uint64_t at, size_t pitch, size_t height, const size_t corner[3], const CUDA_MEMCPY3D *copy)
{
	uint64_t plane, planes, last, row, rows;

	if (copy->Depth == 0 || copy->Height == 0 || copy->WidthInBytes == 0)
		return true;
	if (__builtin_mul_overflow(pitch, height, &plane) ||
	    __builtin_add_overflow(corner[2], copy->Depth - 1, &planes) ||
	    __builtin_mul_overflow(plane, planes, &last) ||
	    __builtin_add_overflow(corner[1], copy->Height - 1, &rows) || __builtin_mul_overflow(pitch, rows, &row) ||
	    __builtin_add_overflow(last, row, &last) || __builtin_add_overflow(last, corner[0], &last) ||
	    __builtin_add_overflow(last, copy->WidthInBytes, &last))
		return false;
	return request_lies_apart(pitch, height, corner, copy) && arena_has(at, last);
}

/* An array, which the driver then calls by its own name, or none. */
static CUresult request_check_array(int type, CUarray *array)
{
	if (type != SIDE_ARRAY)
		*array = 0;
	return type != SIDE_ARRAY || handle_look(*array, WIRE_ARRAY, array) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult request_check_side(int type, uint64_t host, size_t pitch, size_t height, const size_t corner[3],
				   const CUDA_MEMCPY3D *copy)
{
	if (type == SIDE_DEVICE || type == SIDE_ARRAY)
		return CUDA_SUCCESS;
	if (type != SIDE_HOST)
		return CUDA_ERROR_NOT_SUPPORTED;
	return request_has_box(host, pitch, height, corner, copy) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult request_check_copy(CUDA_MEMCPY3D *copy)
{
	const size_t from[] = {copy->srcXInBytes, copy->srcY, copy->srcZ};
	const size_t to[] = {copy->dstXInBytes, copy->dstY, copy->dstZ};
	CUresult r = request_check_side(copy->srcMemoryType, (uint64_t)copy->srcHost, copy->srcPitch, copy->srcHeight,
					from, copy);

	copy->reserved0 = copy->reserved1 = NULL;
	if (!r)
		r = request_check_side(copy->dstMemoryType, (uint64_t)copy->dstHost, copy->dstPitch, copy->dstHeight,
				       to, copy);
	if (!r)
		r = request_check_array(copy->srcMemoryType, &copy->srcArray);
	return r ? r : request_check_array(copy->dstMemoryType, &copy->dstArray);
}

void request_tell_copy(CUDA_MEMCPY3D *copy)
{
	copy->srcArray = copy->srcMemoryType == SIDE_ARRAY ? handle_known(WIRE_ARRAY, copy->srcArray) : 0;
	copy->dstArray = copy->dstMemoryType == SIDE_ARRAY ? handle_known(WIRE_ARRAY, copy->dstArray) : 0;
}

CUresult request_check_peer_copy(CUDA_MEMCPY3D_PEER *copy)
{
	if ((copy->srcMemoryType != SIDE_DEVICE && copy->srcMemoryType != SIDE_ARRAY) ||
	    (copy->dstMemoryType != SIDE_DEVICE && copy->dstMemoryType != SIDE_ARRAY))
		return CUDA_ERROR_NOT_SUPPORTED;
	if (request_check_array(copy->srcMemoryType, &copy->srcArray) ||
	    request_check_array(copy->dstMemoryType, &copy->dstArray))
		return CUDA_ERROR_INVALID_VALUE;
	if (!handle_look(copy->srcContext, WIRE_CONTEXT, &copy->srcContext) ||
	    !handle_look(copy->dstContext, WIRE_CONTEXT, &copy->dstContext))
		return CUDA_ERROR_INVALID_CONTEXT;
	return CUDA_SUCCESS;
}

/* SPDX-License-Identifier: Apache-2.0 */

/* Copies: through the staging memory, with the command, and from and to page-locked memory. */

#include "vcuda/server/arena.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "vcuda/driver_api.h"
#include "vcuda/server/driver.h"
#include "vcuda/server/handle.h"
#include "vcuda/server/request.h"

enum { EVENT_WITHOUT_TIME = 2 };

/*
 * A context's view of the staging memory, registered in it, and the event behind its last copy through each chunk. All
 * of it ends with the context, and nothing else does: what copies of others are at is theirs.
 */
struct staging {
	struct staging *next;
	uint64_t context;
	uint8_t *memory;
	uint64_t event[WIRE_CHUNKS];
};

static struct staging *stages;

/* Whose the last copy through a chunk was; NULL: nobody waits for one. */
static struct staging *chunks[WIRE_CHUNKS];

/* By a context that has not ended yet. */
static _Atomic bool staging_original_is_used;

/* The same pages once more, which the driver then takes for others. Return: NULL if they are not to be had. */
static uint8_t *staging_map(void)
{
	void *memory;

	if (!atomic_exchange(&staging_original_is_used, true))
		return server.staging;
	memory = mremap(server.staging, 0, WIRE_STAGING_BYTES, MREMAP_MAYMOVE);
	return memory == MAP_FAILED ? NULL : memory;
}

/* Not before it is needed: it takes milliseconds. Where the driver cannot, copies are slower. */
static struct staging *staging_of(uint64_t context)
{
	static bool cannot;
	struct staging *stage = stages;
	uint64_t real = 0;

	while (stage && stage->context != context)
		stage = stage->next;
	if (stage || !handle_look(context, WIRE_CONTEXT, &real))
		return stage;
	stage = calloc(1, sizeof(*stage));
	if (stage)
		stage->memory = staging_map();
	if (!stage || !stage->memory) {
		free(stage);
		return NULL;
	}
	stage->context = context;
	stage->next = stages;
	stages = stage;
	cannot = cannot || !arena_register_in(context, stage->memory, WIRE_STAGING_BYTES);
	return stage;
}

struct staging *staging_take_context(uint64_t context)
{
	struct staging **at = &stages, *stage;

	while (*at && (*at)->context != context)
		at = &(*at)->next;
	stage = *at;
	if (!stage)
		return NULL;
	for (int i = 0; i < WIRE_CHUNKS; i++)
		if (chunks[i] == stage)
			chunks[i] = NULL;
	*at = stage->next;
	return stage;
}

void staging_free(struct staging *stage)
{
	if (stage && stage->memory != server.staging)
		(void)munmap(stage->memory, WIRE_STAGING_BYTES);
	if (stage && stage->memory == server.staging)
		staging_original_is_used = false;
	free(stage);
}

/* A graph would keep the address of what is here now, and copy what is there when it runs. */
CUresult staging_check_capture(CUstream stream)
{
	CUstreamCaptureStatus status = 0;

	if (!driver.cuStreamIsCapturing || driver.cuStreamIsCapturing(stream, &status) != CUDA_SUCCESS)
		return CUDA_SUCCESS;
	return status ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;
}

static CUresult staging_make_event(struct staging *stage, uint64_t chunk)
{
	CUcontext real = 0, popped;
	CUresult r;

	if (!handle_look(stage->context, WIRE_CONTEXT, &real))
		return CUDA_ERROR_INVALID_CONTEXT;
	r = driver.cuCtxPushCurrent_v2(real);
	if (r)
		return r;
	r = driver.cuEventCreate(&stage->event[chunk], EVENT_WITHOUT_TIME);
	(void)driver.cuCtxPopCurrent_v2(&popped);
	return r;
}

/* @word: of the stream; of a chunk that there is */
static CUresult staging_enter(struct request *q, unsigned word, uint64_t chunk, CUstream *stream, struct staging **ret)
{
	CUresult r = request_stream(q, word, stream);
	struct staging *stage;

	if (!r)
		r = staging_check_capture(*stream);
	if (r)
		return r;
	/* The stream's, whichever is current. */
	stage = staging_of(request_stream_context(q, word));
	if (!stage)
		return CUDA_ERROR_INVALID_CONTEXT;
	*ret = stage;
	return stage->event[chunk] ? CUDA_SUCCESS : staging_make_event(stage, chunk);
}

static CUresult staging_begin(struct request *q, CUstream *stream, struct staging **ret)
{
	CUresult r = request_words(q, 4);
	const uint64_t chunk = q->argument[2], bytes = q->argument[3];

	if (r || chunk >= WIRE_CHUNKS || bytes == 0 || bytes > wire_chunk_bytes((uint32_t)chunk))
		return CUDA_ERROR_INVALID_VALUE;
	return staging_enter(q, 1, chunk, stream, ret);
}

static uint8_t *staging_chunk(const struct request *q, const struct staging *stage)
{
	return stage->memory + wire_chunk_offset((uint32_t)q->argument[2]);
}

static CUresult staging_end(uint64_t chunk, CUstream stream, struct staging *stage, enum start_copy way, uint64_t bytes)
{
	chunks[chunk] = stage;
	server_count_copy(way, bytes);
	return driver.cuEventRecord(stage->event[chunk], stream);
}

CUresult serve_wire_stage_in(struct request *q)
{
	struct staging *stage = NULL;
	CUstream stream = 0;
	CUresult r = staging_begin(q, &stream, &stage);

	if (!r)
		r = driver.cuMemcpyHtoDAsync_v2(q->argument[0], staging_chunk(q, stage), q->argument[3], stream);
	return r ? r : staging_end(q->argument[2], stream, stage, START_COPY_IN, q->argument[3]);
}

CUresult serve_wire_stage_out(struct request *q)
{
	struct staging *stage = NULL;
	CUstream stream = 0;
	CUresult r = staging_begin(q, &stream, &stage);

	if (!r)
		r = driver.cuMemcpyDtoHAsync_v2(staging_chunk(q, stage), q->argument[0], q->argument[3], stream);
	return r ? r : staging_end(q->argument[2], stream, stage, START_COPY_OUT, q->argument[3]);
}

/* Rows lie one behind the other in the chunk, without gaps. */
static CUresult staging_place_box(struct request *q, struct staging *stage, CUDA_MEMCPY3D *copy)
{
	enum { HOST = 1, ARRAY = 3 };
	uint8_t *chunk = stage->memory + wire_chunk_offset((uint32_t)q->argument[1]);
	const bool in = copy->srcMemoryType == HOST;
	uint64_t bytes;

	if (copy->srcMemoryType != (in ? HOST : ARRAY) || copy->dstMemoryType != (in ? ARRAY : HOST))
		return CUDA_ERROR_INVALID_VALUE;
	if (__builtin_mul_overflow(copy->WidthInBytes, copy->Height, &bytes) ||
	    __builtin_mul_overflow(bytes, copy->Depth, &bytes) || bytes == 0 ||
	    bytes > wire_chunk_bytes((uint32_t)q->argument[1]))
		return CUDA_ERROR_INVALID_VALUE;
	copy->reserved0 = copy->reserved1 = NULL;
	if (in) {
		copy->srcHost = chunk;
		copy->srcPitch = copy->WidthInBytes;
		copy->srcHeight = copy->Height;
		copy->srcXInBytes = copy->srcY = copy->srcZ = copy->srcLOD = 0;
		copy->srcArray = 0;
		return handle_look(copy->dstArray, WIRE_ARRAY, &copy->dstArray) ? CUDA_SUCCESS
										: CUDA_ERROR_INVALID_VALUE;
	}
	copy->dstHost = chunk;
	copy->dstPitch = copy->WidthInBytes;
	copy->dstHeight = copy->Height;
	copy->dstXInBytes = copy->dstY = copy->dstZ = copy->dstLOD = 0;
	copy->dstArray = 0;
	return handle_look(copy->srcArray, WIRE_ARRAY, &copy->srcArray) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult serve_wire_stage_box(struct request *q)
{
	CUresult r = driver.cuMemcpy3DAsync_v2 ? request_words(q, 3) : CUDA_ERROR_NOT_SUPPORTED;
	struct staging *stage = NULL;
	CUDA_MEMCPY3D copy = {0};
	CUstream stream = 0;

	if (!r && q->argument[1] >= WIRE_CHUNKS)
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		r = request_struct(q, 2, &copy, sizeof(copy));
	if (!r)
		r = staging_enter(q, 0, q->argument[1], &stream, &stage);
	if (!r)
		r = staging_place_box(q, stage, &copy);
	if (!r)
		r = driver.cuMemcpy3DAsync_v2(&copy, stream);
	return r ? r
		 : staging_end(q->argument[1], stream, stage, copy.srcHost ? START_COPY_IN : START_COPY_OUT,
			       copy.WidthInBytes * copy.Height * copy.Depth);
}

/* A copy that is waited for has the driver print, too, for which asking is not enough. */
static CUresult staging_query(uint64_t event)
{
	const CUresult r = driver.cuEventQuery(event);

	if (r != CUDA_ERROR_NOT_READY && print_is_possible())
		(void)driver.cuEventSynchronize(event);
	return r;
}

static CUresult staging_block(uint64_t event)
{
	return driver.cuEventSynchronize(event);
}

CUresult serve_wire_stage_wait(struct request *q)
{
	CUresult r = request_words(q, 1);
	const struct staging *stage;
	uint64_t event;

	if (r || q->argument[0] >= WIRE_CHUNKS)
		return CUDA_ERROR_INVALID_VALUE;
	stage = chunks[q->argument[0]];
	if (!stage)
		return CUDA_SUCCESS;
	chunks[q->argument[0]] = NULL;
	event = stage->event[q->argument[0]];
	return request_wait(q, (struct object_ref){WIRE_EVENT, event}, stage->context, staging_query, staging_block,
			    event);
}

CUresult serve_wire_copy_in(struct request *q)
{
	CUresult r = request_words(q, 3);
	const void *part = r ? NULL : request_part(q, 2);
	CUstream stream = 0;

	if (!part)
		return CUDA_ERROR_INVALID_VALUE;
	r = request_stream(q, 1, &stream);
	if (!r)
		r = staging_check_capture(stream);
	if (!r)
		server_count_copy(START_COPY_IN, q->argument[2]);
	/* Up to 64 KiB of ordinary memory are taken before the driver returns. */
	return r ? r : driver.cuMemcpyHtoDAsync_v2(q->argument[0], part, q->argument[2], stream);
}

CUresult serve_wire_probe(struct request *q)
{
	CUresult r = request_words(q, 2);
	CUdeviceptr base = 0;
	size_t bytes = 0;

	if (!r)
		r = driver.cuMemGetAddressRange_v2(&base, &bytes, q->argument[0]);
	if (r)
		return r == CUDA_ERROR_NOT_FOUND ? CUDA_ERROR_INVALID_VALUE : r;
	return q->argument[0] - base <= bytes && q->argument[1] <= bytes - (q->argument[0] - base)
		       ? CUDA_SUCCESS
		       : CUDA_ERROR_INVALID_VALUE;
}

CUresult serve_cuMemcpyHtoDAsync_v2(struct request *q)
{
	CUresult r = request_words(q, 4);
	CUstream stream = 0;

	if (!r)
		r = request_stream(q, 3, &stream);
	if (r || !arena_has(q->argument[1], q->argument[2]))
		return r ? r : CUDA_ERROR_INVALID_VALUE;
	server_count_copy(START_COPY_IN, q->argument[2]);
	return driver.cuMemcpyHtoDAsync_v2(q->argument[0], (const void *)q->argument[1], q->argument[2], stream);
}

CUresult serve_cuMemcpyDtoHAsync_v2(struct request *q)
{
	CUresult r = request_words(q, 4);
	CUstream stream = 0;

	if (!r)
		r = request_stream(q, 3, &stream);
	if (r || !arena_has(q->argument[0], q->argument[2]))
		return r ? r : CUDA_ERROR_INVALID_VALUE;
	server_count_copy(START_COPY_OUT, q->argument[2]);
	return driver.cuMemcpyDtoHAsync_v2((void *)q->argument[0], q->argument[1], q->argument[2], stream);
}

CUresult serve_cuMemcpy2DAsync_v2(struct request *q)
{
	CUresult r = request_words(q, 7);
	CUDA_MEMCPY2D copy = {.srcMemoryType = 2, .dstMemoryType = 2};
	CUstream stream = 0;

	if (!r)
		r = request_stream(q, 6, &stream);
	if (r)
		return r;
	copy.dstDevice = q->argument[0];
	copy.dstPitch = q->argument[1];
	copy.srcDevice = q->argument[2];
	copy.srcPitch = q->argument[3];
	copy.WidthInBytes = q->argument[4];
	copy.Height = q->argument[5];
	return driver.cuMemcpy2DAsync_v2(&copy, stream);
}

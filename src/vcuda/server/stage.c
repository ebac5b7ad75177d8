/* SPDX-License-Identifier: Apache-2.0 */

/* Copies: through the staging memory, with the command, and from and to page-locked memory. */

#include "vcuda/server/stage.h"
#include "vcuda/driver_api.h"
#include "vcuda/server/arena.h"
#include "vcuda/server/driver.h"
#include "vcuda/server/handle.h"
#include "vcuda/server/serve.h"

enum { EVENT_WITHOUT_TIME = 2 };

/* The last copy through a chunk. An event belongs to a context. */
static struct {
	uint64_t event, context;
	bool busy;
} chunks[WIRE_CHUNKS];

static uint64_t stage_context; /* that the memory is registered in; 0: none */

/* Not before it is needed: it takes milliseconds. Where the driver cannot, copies are slower. */
static void stage_register(uint64_t context)
{
	static bool cannot;

	if (stage_context || cannot)
		return;
	if (arena_register(server.staging, WIRE_STAGING_BYTES))
		stage_context = context;
	else
		cannot = true;
}

void stage_forget_context(uint64_t context)
{
	if (stage_context == context)
		stage_context = 0;
	for (int i = 0; i < WIRE_CHUNKS; i++)
		if (chunks[i].context == context) {
			chunks[i].event = chunks[i].context = 0;
			chunks[i].busy = false;
		}
}

/* A graph would keep the address of what is here now, and copy what is there when it runs. */
CUresult stage_check_capture(CUstream stream)
{
	CUstreamCaptureStatus status = 0;

	if (!driver.cuStreamIsCapturing || driver.cuStreamIsCapturing(stream, &status) != CUDA_SUCCESS)
		return CUDA_SUCCESS;
	return status ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;
}

/* Somebody may wait for it. */
static void stage_end_event(uint64_t event, uint64_t context)
{
	uint64_t real = 0;

	(void)handle_look(context, WIRE_CONTEXT, &real);
	(void)hold_end((struct hold){WIRE_EVENT, event}, real, driver.cuEventDestroy_v2);
}

static CUresult stage_begin(struct request *q, CUstream *stream)
{
	CUresult r = request_words(q, 4);
	const uint64_t chunk = q->argument[2], bytes = q->argument[3];

	if (r || chunk >= WIRE_CHUNKS || bytes == 0 || bytes > wire_chunk_bytes((uint32_t)chunk))
		return CUDA_ERROR_INVALID_VALUE;
	stage_register(q->header.context);
	r = request_stream(q, 1, stream);
	if (!r)
		r = stage_check_capture(*stream);
	if (r || (chunks[chunk].event && chunks[chunk].context == q->header.context))
		return r;
	if (chunks[chunk].event)
		stage_end_event(chunks[chunk].event, chunks[chunk].context);
	chunks[chunk].event = 0;
	chunks[chunk].context = q->header.context;
	return driver.cuEventCreate(&chunks[chunk].event, EVENT_WITHOUT_TIME);
}

static CUresult stage_end(struct request *q, CUstream stream)
{
	const uint64_t chunk = q->argument[2];

	chunks[chunk].busy = true;
	return driver.cuEventRecord(chunks[chunk].event, stream);
}

CUresult serve_wire_stage_in(struct request *q)
{
	CUstream stream = 0;
	CUresult r = stage_begin(q, &stream);

	if (!r)
		r = driver.cuMemcpyHtoDAsync_v2(q->argument[0],
						server.staging + wire_chunk_offset((uint32_t)q->argument[2]),
						q->argument[3], stream);
	return r ? r : stage_end(q, stream);
}

CUresult serve_wire_stage_out(struct request *q)
{
	CUstream stream = 0;
	CUresult r = stage_begin(q, &stream);

	if (!r)
		r = driver.cuMemcpyDtoHAsync_v2(server.staging + wire_chunk_offset((uint32_t)q->argument[2]),
						q->argument[0], q->argument[3], stream);
	return r ? r : stage_end(q, stream);
}

static CUresult stage_query(uint64_t event)
{
	return driver.cuEventQuery(event);
}

static CUresult stage_block(uint64_t event)
{
	return driver.cuEventSynchronize(event);
}

CUresult serve_wire_stage_wait(struct request *q)
{
	CUresult r = request_words(q, 1);

	if (r || q->argument[0] >= WIRE_CHUNKS)
		return CUDA_ERROR_INVALID_VALUE;
	if (!chunks[q->argument[0]].busy)
		return CUDA_SUCCESS;
	chunks[q->argument[0]].busy = false;
	return request_wait(q, (struct hold){WIRE_EVENT, chunks[q->argument[0]].event}, chunks[q->argument[0]].context,
			    stage_query, stage_block, chunks[q->argument[0]].event);
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
		r = stage_check_capture(stream);
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

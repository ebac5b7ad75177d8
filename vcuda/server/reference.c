/* SPDX-License-Identifier: Apache-2.0 */

/* Texture and surface references: what a module names, or the client has made, and binds to an array or to memory. */

#include <stdlib.h>
#include <string.h>

#include "vcuda/driver_api.h"
#include "vcuda/server/arena.h"
#include "vcuda/server/driver.h"
#include "vcuda/server/handle.h"
#include "vcuda/server/request.h"

static CUresult reference_read(struct request *q, bool offered, unsigned words, enum wire_type type, uint64_t *ret)
{
	CUresult r = offered ? request_words(q, words) : CUDA_ERROR_NOT_SUPPORTED;

	return r ? r : request_handle(q, 0, type, ret);
}

/* Both must be of one context, with which both end. */
static CUresult reference_set(struct request *q, enum wire_type type, enum wire_type array_type,
			      CUresult (*set)(uint64_t reference, uint64_t array, unsigned flags))
{
	uint64_t reference = 0, array = 0;
	CUresult r = reference_read(q, set, 3, type, &reference);
	struct bound *bound;

	if (!r && (!handle_look(q->argument[1], array_type, &array) ||
		   handle_context(q->argument[0]) != handle_context(q->argument[1])))
		r = CUDA_ERROR_INVALID_VALUE;
	if (r)
		return r;
	bound = bound_prepare(q->argument[0], q->argument[1]);
	r = bound ? set(reference, array, (unsigned)q->argument[2]) : CUDA_ERROR_OUT_OF_MEMORY;
	if (r)
		free(bound);
	else
		bound_bind(q->argument[0], bound);
	return r;
}

CUresult serve_cuTexRefSetArray(struct request *q)
{
	return reference_set(q, WIRE_TEXREF, WIRE_ARRAY, driver.cuTexRefSetArray);
}

CUresult serve_cuTexRefSetMipmappedArray(struct request *q)
{
	return reference_set(q, WIRE_TEXREF, WIRE_MIPMAP, driver.cuTexRefSetMipmappedArray);
}

CUresult serve_cuSurfRefSetArray(struct request *q)
{
	return reference_set(q, WIRE_SURFREF, WIRE_ARRAY, driver.cuSurfRefSetArray);
}

/* An array that the client has ended is none. */
static CUresult reference_get(struct request *q, enum wire_type type, enum wire_type array_type,
			      CUresult (*get)(uint64_t *ret, uint64_t reference))
{
	uint64_t reference = 0, array = 0, handle;
	CUresult r = reference_read(q, get, 1, type, &reference);

	if (!r)
		r = get(&array, reference);
	handle = !r && array ? handle_known(array_type, array) : 0;
	if (!r && array && !handle)
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		request_reply(q, &handle, sizeof(handle));
	return r;
}

CUresult serve_cuTexRefGetArray(struct request *q)
{
	return reference_get(q, WIRE_TEXREF, WIRE_ARRAY, driver.cuTexRefGetArray);
}

CUresult serve_cuTexRefGetMipmappedArray(struct request *q)
{
	return reference_get(q, WIRE_TEXREF, WIRE_MIPMAP, driver.cuTexRefGetMipmappedArray);
}

CUresult serve_cuSurfRefGetArray(struct request *q)
{
	return reference_get(q, WIRE_SURFREF, WIRE_ARRAY, driver.cuSurfRefGetArray);
}

CUresult serve_cuTexRefSetAddress_v2(struct request *q)
{
	uint64_t reference = 0;
	CUresult r = reference_read(q, driver.cuTexRefSetAddress_v2, 4, WIRE_TEXREF, &reference);
	size_t offset = 0;

	if (!r)
		r = driver.cuTexRefSetAddress_v2(q->argument[3] ? &offset : NULL, reference, q->argument[1],
						 q->argument[2]);
	if (r)
		return r;
	bound_bind(q->argument[0], NULL);
	request_reply(q, &offset, sizeof(offset));
	return CUDA_SUCCESS;
}

static CUresult reference_set_plane(struct request *q,
				    CUresult (*set)(CUtexref reference, const CUDA_ARRAY_DESCRIPTOR *descriptor,
						    CUdeviceptr pointer, size_t pitch))
{
	uint64_t reference = 0;
	CUresult r = reference_read(q, set, 4, WIRE_TEXREF, &reference);
	CUDA_ARRAY_DESCRIPTOR descriptor = {0};

	if (!r)
		r = request_struct(q, 1, &descriptor, sizeof(descriptor));
	if (!r)
		r = set(reference, &descriptor, q->argument[2], q->argument[3]);
	if (!r)
		bound_bind(q->argument[0], NULL);
	return r;
}

CUresult serve_cuTexRefSetAddress2D_v2(struct request *q)
{
	return reference_set_plane(q, driver.cuTexRefSetAddress2D_v2);
}

CUresult serve_cuTexRefSetAddress2D_v3(struct request *q)
{
	return reference_set_plane(q, driver.cuTexRefSetAddress2D_v3);
}

/* ---- fractions ---- */

static float reference_fraction(uint64_t word)
{
	const uint32_t bits = (uint32_t)word;
	float value;

	memcpy(&value, &bits, sizeof(value));
	return value;
}

CUresult serve_cuTexRefSetMipmapLevelBias(struct request *q)
{
	uint64_t reference = 0;
	CUresult r = reference_read(q, driver.cuTexRefSetMipmapLevelBias, 2, WIRE_TEXREF, &reference);

	return r ? r : driver.cuTexRefSetMipmapLevelBias(reference, reference_fraction(q->argument[1]));
}

CUresult serve_cuTexRefSetMipmapLevelClamp(struct request *q)
{
	uint64_t reference = 0;
	CUresult r = reference_read(q, driver.cuTexRefSetMipmapLevelClamp, 3, WIRE_TEXREF, &reference);

	return r ? r
		 : driver.cuTexRefSetMipmapLevelClamp(reference, reference_fraction(q->argument[1]),
						      reference_fraction(q->argument[2]));
}

CUresult serve_cuTexRefSetBorderColor(struct request *q)
{
	uint64_t reference = 0;
	CUresult r = reference_read(q, driver.cuTexRefSetBorderColor, 2, WIRE_TEXREF, &reference);
	float color[4] = {0};

	_Static_assert(sizeof(color) == sizeof(struct wire_color), "four fractions");
	if (!r)
		r = request_struct(q, 1, color, sizeof(color));
	return r ? r : driver.cuTexRefSetBorderColor(reference, color);
}

CUresult serve_cuTexRefGetBorderColor(struct request *q)
{
	uint64_t reference = 0;
	CUresult r = reference_read(q, driver.cuTexRefGetBorderColor, 1, WIRE_TEXREF, &reference);
	float color[4] = {0};

	if (!r)
		r = driver.cuTexRefGetBorderColor(color, reference);
	if (!r)
		request_reply(q, color, sizeof(color));
	return r;
}

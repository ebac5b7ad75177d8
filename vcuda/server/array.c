/* SPDX-License-Identifier: Apache-2.0 */

/* What kernels read by other means than its address: arrays, textures and surfaces of them, and maps of tensors. */

#include <stdlib.h>
#include <string.h>

#include "vcuda/driver_api.h"
#include "vcuda/server/arena.h"
#include "vcuda/server/driver.h"
#include "vcuda/server/handle.h"
#include "vcuda/server/quota.h"
#include "vcuda/server/request.h"

/* ---- arrays ---- */

/*
 * Memory in a layout of the GPU's own. The bytes of the elements are counted before the driver is asked; what it takes
 * besides, afterwards.
 */

/* Of an array that gets its memory later, by a function that is not offered. */
enum { ARRAY_SPARSE = 0x40, ARRAY_DEFERRED = 0x80 };

/* Bytes of one channel of an element. Formats that are packed or compressed have no more than 2. */
static uint64_t array_channel_bytes(CUarray_format format)
{
	enum { U8 = 1, U32 = 3, S8 = 8, S32 = 0xa, FLOAT = 0x20 };

	if (format == U8 || format == S8)
		return 1;
	return format == U32 || format == S32 || format == FLOAT ? 4 : 2;
}

/* Return: whether the bytes of all elements, with those of the smaller levels, are a number at all. */
static bool array_bytes(const CUDA_ARRAY3D_DESCRIPTOR *array, unsigned levels, uint64_t *ret)
{
	uint64_t bytes = array_channel_bytes(array->Format) * array->NumChannels;

	if (__builtin_mul_overflow(bytes, array->Width, &bytes) ||
	    __builtin_mul_overflow(bytes, array->Height ? array->Height : 1, &bytes) ||
	    __builtin_mul_overflow(bytes, array->Depth ? array->Depth : 1, &bytes))
		return false;
	/* Each level has a quarter of the one before, or, of a line, half. */
	*ret = bytes;
	return levels <= 1 || !__builtin_add_overflow(bytes, array->Height > 1 ? bytes / 3 : bytes, ret);
}

static CUresult array_check(const CUDA_ARRAY3D_DESCRIPTOR *array)
{
	return array->Flags & (ARRAY_SPARSE | ARRAY_DEFERRED) ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;
}

static CUresult array_end(enum wire_type type, uint64_t real)
{
	return type == WIRE_ARRAY ? driver.cuArrayDestroy(real) : driver.cuMipmappedArrayDestroy(real);
}

/* The bytes that were counted become the array's, or are given back. */
static CUresult array_keep(struct request *q, CUresult r, enum wire_type type, uint64_t real, uint64_t bytes)
{
	uint64_t handle = 0;

	if (!r && driver_memory_fits())
		handle = handle_give(type, real, 0, q->header.context);
	if (handle && !quota_note(QUOTA_ARRAY, handle, bytes, q->header.context)) {
		handle_drop(handle);
		handle = 0;
	}
	if (handle) {
		request_reply(q, &handle, sizeof(handle));
		return CUDA_SUCCESS;
	}
	if (!r)
		(void)array_end(type, real);
	quota_give(bytes);
	return r ? r : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult serve_cuArrayCreate_v2(struct request *q)
{
	CUresult r = driver.cuArrayCreate_v2 ? request_words(q, 1) : CUDA_ERROR_NOT_SUPPORTED;
	CUDA_ARRAY_DESCRIPTOR array = {0};
	CUDA_ARRAY3D_DESCRIPTOR box;
	uint64_t real = 0, bytes;
	DRIVER_MEMORY_HOLD;

	if (!r)
		r = request_struct(q, 0, &array, sizeof(array));
	box = (CUDA_ARRAY3D_DESCRIPTOR){
		.Width = array.Width, .Height = array.Height, .Format = array.Format, .NumChannels = array.NumChannels};
	if (r)
		return r;
	if (!array_bytes(&box, 1, &bytes))
		return CUDA_ERROR_INVALID_VALUE;
	if (!allocation_take_pages(bytes, &bytes))
		return CUDA_ERROR_OUT_OF_MEMORY;
	r = driver.cuArrayCreate_v2(&real, &array);
	return array_keep(q, r, WIRE_ARRAY, real, bytes);
}

/* A struct, and for a mipmapped one the number of its levels. */
static CUresult array_read(struct request *q, unsigned words, CUDA_ARRAY3D_DESCRIPTOR *ret)
{
	CUresult r = request_words(q, words);

	if (!r)
		r = request_struct(q, 0, ret, sizeof(*ret));
	return r ? r : array_check(ret);
}

CUresult serve_cuArray3DCreate_v2(struct request *q)
{
	CUDA_ARRAY3D_DESCRIPTOR array = {0};
	CUresult r = driver.cuArray3DCreate_v2 ? array_read(q, 1, &array) : CUDA_ERROR_NOT_SUPPORTED;
	uint64_t real = 0, bytes;
	DRIVER_MEMORY_HOLD;

	if (r)
		return r;
	if (!array_bytes(&array, 1, &bytes))
		return CUDA_ERROR_INVALID_VALUE;
	if (!allocation_take_pages(bytes, &bytes))
		return CUDA_ERROR_OUT_OF_MEMORY;
	r = driver.cuArray3DCreate_v2(&real, &array);
	return array_keep(q, r, WIRE_ARRAY, real, bytes);
}

CUresult serve_cuMipmappedArrayCreate(struct request *q)
{
	CUDA_ARRAY3D_DESCRIPTOR array = {0};
	CUresult r = driver.cuMipmappedArrayCreate ? array_read(q, 2, &array) : CUDA_ERROR_NOT_SUPPORTED;
	const uint64_t levels = q->argument[1];
	uint64_t real = 0, bytes;
	DRIVER_MEMORY_HOLD;

	if (r)
		return r;
	if (levels > UINT32_MAX || !array_bytes(&array, (unsigned)levels, &bytes))
		return CUDA_ERROR_INVALID_VALUE;
	if (!allocation_take_pages(bytes, &bytes))
		return CUDA_ERROR_OUT_OF_MEMORY;
	r = driver.cuMipmappedArrayCreate(&real, &array, (unsigned)levels);
	return array_keep(q, r, WIRE_MIPMAP, real, bytes);
}

/* ---- texture and surface objects ---- */

/*
 * Kernels get the driver's numbers of them as they are, so the client has these, and here stands which of them it was
 * given: the driver looks for others where they would be.
 */

/* A GPU has descriptors for a million. */
enum { TEXTURE_HASH = 4096, TEXTURES = 1 << 20 };

enum texture_kind { TEXTURE, SURFACE };

struct texture {
	struct texture *next;
	uint64_t context, number;
	enum texture_kind kind;
};

static struct texture *textures[TEXTURE_HASH];
static uint32_t texture_count;

static struct texture **texture_find(enum texture_kind kind, uint64_t context, uint64_t number)
{
	struct texture **at = &textures[(number ^ number >> 20) % TEXTURE_HASH];

	while (*at && ((*at)->number != number || (*at)->context != context || (*at)->kind != kind))
		at = &(*at)->next;
	return at;
}

static bool texture_add(enum texture_kind kind, uint64_t context, uint64_t number)
{
	struct texture **at = texture_find(kind, context, number), *texture;

	if (*at)
		return true;
	texture = texture_count < TEXTURES ? calloc(1, sizeof(*texture)) : NULL;
	if (!texture)
		return false;
	*texture = (struct texture){NULL, context, number, kind};
	*at = texture;
	texture_count++;
	return true;
}

static void texture_drop(struct texture **at)
{
	struct texture *texture = *at;

	*at = texture->next;
	free(texture);
	texture_count--;
}

void texture_forget_context(uint64_t context)
{
	for (int i = 0; i < TEXTURE_HASH && texture_count > 0; i++)
		for (struct texture **at = &textures[i]; *at;)
			if ((*at)->context == context)
				texture_drop(at);
			else
				at = &(*at)->next;
}

/* ---- texture and surface objects: what they are made of ---- */

enum { RESOURCE_ARRAY, RESOURCE_MIPMAP, RESOURCE_LINEAR, RESOURCE_PITCH };

static CUresult texture_check_resource(CUDA_RESOURCE_DESC *resource)
{
	if (resource->resType < RESOURCE_ARRAY || resource->resType > RESOURCE_PITCH)
		return CUDA_ERROR_INVALID_VALUE;
	if (resource->resType >= RESOURCE_LINEAR)
		return CUDA_SUCCESS;
	return handle_look(resource->res.array.hArray, resource->resType == RESOURCE_ARRAY ? WIRE_ARRAY : WIRE_MIPMAP,
			   &resource->res.array.hArray)
		       ? CUDA_SUCCESS
		       : CUDA_ERROR_INVALID_VALUE;
}

/* An array that is gone is none. */
static void texture_tell_resource(CUDA_RESOURCE_DESC *resource)
{
	const enum wire_type type = resource->resType == RESOURCE_ARRAY ? WIRE_ARRAY : WIRE_MIPMAP;

	if (resource->resType == RESOURCE_ARRAY || resource->resType == RESOURCE_MIPMAP)
		resource->res.array.hArray = handle_known(type, resource->res.array.hArray);
}

/* ---- texture and surface objects: calls ---- */

static CUresult texture_keep(struct request *q, enum texture_kind kind, uint64_t number,
			     CUresult (*end)(unsigned long long number))
{
	if (!texture_add(kind, q->header.context, number)) {
		(void)end(number);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	request_reply(q, &number, sizeof(number));
	return CUDA_SUCCESS;
}

CUresult serve_cuTexObjectCreate(struct request *q)
{
	CUresult r = driver.cuTexObjectCreate ? request_words(q, 3) : CUDA_ERROR_NOT_SUPPORTED;
	CUDA_RESOURCE_VIEW_DESC view = {0};
	CUDA_RESOURCE_DESC resource = {0};
	CUDA_TEXTURE_DESC how = {0};
	CUtexObject texture = 0;

	if (!r)
		r = request_struct(q, 0, &resource, sizeof(resource));
	if (!r)
		r = texture_check_resource(&resource);
	if (!r)
		r = request_struct(q, 1, &how, sizeof(how));
	if (!r && q->argument[2])
		r = request_struct(q, 2, &view, sizeof(view));
	if (!r)
		r = driver.cuTexObjectCreate(&texture, &resource, &how, q->argument[2] ? &view : NULL);
	return r ? r : texture_keep(q, TEXTURE, texture, driver.cuTexObjectDestroy);
}

CUresult serve_cuSurfObjectCreate(struct request *q)
{
	CUresult r = driver.cuSurfObjectCreate ? request_words(q, 1) : CUDA_ERROR_NOT_SUPPORTED;
	CUDA_RESOURCE_DESC resource = {0};
	CUsurfObject surface = 0;

	if (!r)
		r = request_struct(q, 0, &resource, sizeof(resource));
	if (!r)
		r = texture_check_resource(&resource);
	if (!r)
		r = driver.cuSurfObjectCreate(&surface, &resource);
	return r ? r : texture_keep(q, SURFACE, surface, driver.cuSurfObjectDestroy);
}

/* One that the client has, in its current context. */
static CUresult texture_read(struct request *q, enum texture_kind kind)
{
	CUresult r = request_words(q, 1);

	return r || *texture_find(kind, q->header.context, q->argument[0]) ? r : CUDA_ERROR_INVALID_VALUE;
}

static CUresult texture_end(struct request *q, enum texture_kind kind, CUresult (*end)(unsigned long long number))
{
	CUresult r = end ? texture_read(q, kind) : CUDA_ERROR_NOT_SUPPORTED;

	if (!r)
		r = end(q->argument[0]);
	if (!r)
		texture_drop(texture_find(kind, q->header.context, q->argument[0]));
	return r;
}

CUresult serve_cuTexObjectDestroy(struct request *q)
{
	return texture_end(q, TEXTURE, driver.cuTexObjectDestroy);
}

CUresult serve_cuSurfObjectDestroy(struct request *q)
{
	return texture_end(q, SURFACE, driver.cuSurfObjectDestroy);
}

static CUresult texture_show_resource(struct request *q, enum texture_kind kind,
				      CUresult (*show)(CUDA_RESOURCE_DESC *resource, unsigned long long number))
{
	CUresult r = show ? texture_read(q, kind) : CUDA_ERROR_NOT_SUPPORTED;
	CUDA_RESOURCE_DESC resource = {0};

	if (!r)
		r = show(&resource, q->argument[0]);
	if (r)
		return r;
	texture_tell_resource(&resource);
	request_reply(q, &resource, sizeof(resource));
	return CUDA_SUCCESS;
}

CUresult serve_cuTexObjectGetResourceDesc(struct request *q)
{
	return texture_show_resource(q, TEXTURE, driver.cuTexObjectGetResourceDesc);
}

CUresult serve_cuSurfObjectGetResourceDesc(struct request *q)
{
	return texture_show_resource(q, SURFACE, driver.cuSurfObjectGetResourceDesc);
}

CUresult serve_cuTexObjectGetTextureDesc(struct request *q)
{
	CUresult r = driver.cuTexObjectGetTextureDesc ? texture_read(q, TEXTURE) : CUDA_ERROR_NOT_SUPPORTED;
	CUDA_TEXTURE_DESC how = {0};

	if (!r)
		r = driver.cuTexObjectGetTextureDesc(&how, q->argument[0]);
	if (!r)
		request_reply(q, &how, sizeof(how));
	return r;
}

CUresult serve_cuTexObjectGetResourceViewDesc(struct request *q)
{
	CUresult r = driver.cuTexObjectGetResourceViewDesc ? texture_read(q, TEXTURE) : CUDA_ERROR_NOT_SUPPORTED;
	CUDA_RESOURCE_VIEW_DESC view = {0};

	if (!r)
		r = driver.cuTexObjectGetResourceViewDesc(&view, q->argument[0]);
	if (!r)
		request_reply(q, &view, sizeof(view));
	return r;
}

/* ---- texture and surface references ---- */

/* Texture and surface references: what a module names, or the client has made, and binds to an array or to memory. */

static CUresult texture_reference_read(struct request *q, bool offered, unsigned words, enum wire_type type,
				       uint64_t *ret)
{
	CUresult r = offered ? request_words(q, words) : CUDA_ERROR_NOT_SUPPORTED;

	return r ? r : request_handle(q, 0, type, ret);
}

/* Both must be of one context, with which both end. */
static CUresult texture_reference_set(struct request *q, enum wire_type type, enum wire_type array_type,
				      CUresult (*set)(uint64_t reference, uint64_t array, unsigned flags))
{
	uint64_t reference = 0, array = 0;
	CUresult r = texture_reference_read(q, set, 3, type, &reference);
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
	return texture_reference_set(q, WIRE_TEXREF, WIRE_ARRAY, driver.cuTexRefSetArray);
}

CUresult serve_cuTexRefSetMipmappedArray(struct request *q)
{
	return texture_reference_set(q, WIRE_TEXREF, WIRE_MIPMAP, driver.cuTexRefSetMipmappedArray);
}

CUresult serve_cuSurfRefSetArray(struct request *q)
{
	return texture_reference_set(q, WIRE_SURFREF, WIRE_ARRAY, driver.cuSurfRefSetArray);
}

/* An array that the client has ended is none. */
static CUresult texture_reference_get(struct request *q, enum wire_type type, enum wire_type array_type,
				      CUresult (*get)(uint64_t *ret, uint64_t reference))
{
	uint64_t reference = 0, array = 0, handle;
	CUresult r = texture_reference_read(q, get, 1, type, &reference);

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
	return texture_reference_get(q, WIRE_TEXREF, WIRE_ARRAY, driver.cuTexRefGetArray);
}

CUresult serve_cuTexRefGetMipmappedArray(struct request *q)
{
	return texture_reference_get(q, WIRE_TEXREF, WIRE_MIPMAP, driver.cuTexRefGetMipmappedArray);
}

CUresult serve_cuSurfRefGetArray(struct request *q)
{
	return texture_reference_get(q, WIRE_SURFREF, WIRE_ARRAY, driver.cuSurfRefGetArray);
}

CUresult serve_cuTexRefSetAddress_v2(struct request *q)
{
	uint64_t reference = 0;
	CUresult r = texture_reference_read(q, driver.cuTexRefSetAddress_v2, 4, WIRE_TEXREF, &reference);
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

static CUresult texture_reference_set_plane(struct request *q,
					    CUresult (*set)(CUtexref reference, const CUDA_ARRAY_DESCRIPTOR *descriptor,
							    CUdeviceptr pointer, size_t pitch))
{
	uint64_t reference = 0;
	CUresult r = texture_reference_read(q, set, 4, WIRE_TEXREF, &reference);
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
	return texture_reference_set_plane(q, driver.cuTexRefSetAddress2D_v2);
}

CUresult serve_cuTexRefSetAddress2D_v3(struct request *q)
{
	return texture_reference_set_plane(q, driver.cuTexRefSetAddress2D_v3);
}

/* ---- texture references: fractions ---- */

static float texture_reference_fraction(uint64_t word)
{
	const uint32_t bits = (uint32_t)word;
	float value;

	memcpy(&value, &bits, sizeof(value));
	return value;
}

CUresult serve_cuTexRefSetMipmapLevelBias(struct request *q)
{
	uint64_t reference = 0;
	CUresult r = texture_reference_read(q, driver.cuTexRefSetMipmapLevelBias, 2, WIRE_TEXREF, &reference);

	return r ? r : driver.cuTexRefSetMipmapLevelBias(reference, texture_reference_fraction(q->argument[1]));
}

CUresult serve_cuTexRefSetMipmapLevelClamp(struct request *q)
{
	uint64_t reference = 0;
	CUresult r = texture_reference_read(q, driver.cuTexRefSetMipmapLevelClamp, 3, WIRE_TEXREF, &reference);

	return r ? r
		 : driver.cuTexRefSetMipmapLevelClamp(reference, texture_reference_fraction(q->argument[1]),
						      texture_reference_fraction(q->argument[2]));
}

CUresult serve_cuTexRefSetBorderColor(struct request *q)
{
	uint64_t reference = 0;
	CUresult r = texture_reference_read(q, driver.cuTexRefSetBorderColor, 2, WIRE_TEXREF, &reference);
	float color[4] = {0};

	_Static_assert(sizeof(color) == sizeof(struct wire_color), "four fractions");
	if (!r)
		r = request_struct(q, 1, color, sizeof(color));
	return r ? r : driver.cuTexRefSetBorderColor(reference, color);
}

CUresult serve_cuTexRefGetBorderColor(struct request *q)
{
	uint64_t reference = 0;
	CUresult r = texture_reference_read(q, driver.cuTexRefGetBorderColor, 1, WIRE_TEXREF, &reference);
	float color[4] = {0};

	if (!r)
		r = driver.cuTexRefGetBorderColor(color, reference);
	if (!r)
		request_reply(q, color, sizeof(color));
	return r;
}

/* ---- maps of tensors ---- */

/* Numbers that the driver makes of other numbers, and which kernels are given. */

/* What all kinds of maps have, with arrays as the driver takes them. */
struct tensor {
	void *address;
	const cuuint64_t *dimensions, *strides;
	cuuint32_t rank, element[TENSOR_RANKS];
	const uint64_t *own; /* words of the kind */
};

static CUresult tensor_read(struct request *q, bool offered, unsigned own, struct tensor *ret)
{
	CUresult r = offered ? request_words(q, TENSOR_OWN + own) : CUDA_ERROR_NOT_SUPPORTED;
	const uint64_t *word = q->argument;

	if (r || word[TENSOR_RANK] == 0 || word[TENSOR_RANK] > TENSOR_RANKS)
		return r ? r : CUDA_ERROR_INVALID_VALUE;
	ret->rank = (cuuint32_t)word[TENSOR_RANK];
	ret->address = (void *)word[TENSOR_ADDRESS];
	ret->dimensions = (const cuuint64_t *)&word[TENSOR_DIMENSIONS];
	ret->strides = (const cuuint64_t *)&word[TENSOR_STRIDES];
	for (unsigned i = 0; i < TENSOR_RANKS; i++)
		ret->element[i] = (cuuint32_t)word[TENSOR_ELEMENT + i];
	ret->own = &word[TENSOR_OWN];
	return CUDA_SUCCESS;
}

CUresult serve_cuTensorMapEncodeTiled(struct request *q)
{
	cuuint32_t box[TENSOR_RANKS];
	struct tensor tensor;
	CUresult r = tensor_read(q, driver.cuTensorMapEncodeTiled, TENSOR_RANKS, &tensor);
	const uint64_t *word = q->argument;
	CUtensorMap map = {0};

	if (r)
		return r;
	for (unsigned i = 0; i < TENSOR_RANKS; i++)
		box[i] = (cuuint32_t)tensor.own[i];
	r = driver.cuTensorMapEncodeTiled(&map, (int)word[TENSOR_TYPE], tensor.rank, tensor.address, tensor.dimensions,
					  tensor.strides, box, tensor.element, (int)word[TENSOR_INTERLEAVE],
					  (int)word[TENSOR_SWIZZLE], (int)word[TENSOR_PROMOTION],
					  (int)word[TENSOR_FILL]);
	request_reply(q, &map, sizeof(map));
	return r;
}

CUresult serve_cuTensorMapEncodeIm2col(struct request *q)
{
	int lower[TENSOR_RANKS], upper[TENSOR_RANKS];
	struct tensor tensor;
	CUresult r = tensor_read(q, driver.cuTensorMapEncodeIm2col, 2 + 2 * TENSOR_RANKS, &tensor);
	const uint64_t *word = q->argument;
	CUtensorMap map = {0};

	if (r)
		return r;
	for (unsigned i = 0; i < TENSOR_RANKS; i++) {
		lower[i] = (int)tensor.own[2 + i];
		upper[i] = (int)tensor.own[2 + TENSOR_RANKS + i];
	}
	r = driver.cuTensorMapEncodeIm2col(&map, (int)word[TENSOR_TYPE], tensor.rank, tensor.address, tensor.dimensions,
					   tensor.strides, lower, upper, (cuuint32_t)tensor.own[0],
					   (cuuint32_t)tensor.own[1], tensor.element, (int)word[TENSOR_INTERLEAVE],
					   (int)word[TENSOR_SWIZZLE], (int)word[TENSOR_PROMOTION],
					   (int)word[TENSOR_FILL]);
	request_reply(q, &map, sizeof(map));
	return r;
}

CUresult serve_cuTensorMapEncodeIm2colWide(struct request *q)
{
	enum { WIDE_WORDS = 5 };
	struct tensor tensor;
	CUresult r = tensor_read(q, driver.cuTensorMapEncodeIm2colWide, WIDE_WORDS, &tensor);
	const uint64_t *word = q->argument;
	CUtensorMap map = {0};

	if (r)
		return r;
	r = driver.cuTensorMapEncodeIm2colWide(
		&map, (int)word[TENSOR_TYPE], tensor.rank, tensor.address, tensor.dimensions, tensor.strides,
		(int)tensor.own[2], (int)tensor.own[3], (cuuint32_t)tensor.own[0], (cuuint32_t)tensor.own[1],
		tensor.element, (int)word[TENSOR_INTERLEAVE], (int)tensor.own[4], (int)word[TENSOR_SWIZZLE],
		(int)word[TENSOR_PROMOTION], (int)word[TENSOR_FILL]);
	request_reply(q, &map, sizeof(map));
	return r;
}

CUresult serve_cuTensorMapReplaceAddress(struct request *q)
{
	CUresult r = driver.cuTensorMapReplaceAddress ? request_words(q, 2) : CUDA_ERROR_NOT_SUPPORTED;
	CUtensorMap map;

	if (!r)
		r = request_struct(q, 1, &map, sizeof(map));
	if (!r)
		r = driver.cuTensorMapReplaceAddress(&map, (void *)q->argument[0]);
	if (!r)
		request_reply(q, &map, sizeof(map));
	return r;
}

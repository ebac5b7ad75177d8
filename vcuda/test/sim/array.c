/* SPDX-License-Identifier: Apache-2.0 */

/* Arrays, which lie here as any memory does; textures and surfaces, whose numbers kernels are given. */

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "sim.h"

enum { LEVELS_MAX = 16, WIDTH_MAX = 131072, LAYERED = 1 };

struct CUmipmappedArray_st {
	struct object object;
	unsigned count;
	CUarray level[LEVELS_MAX];
};

struct texture {
	struct object object;
	unsigned long long number;
	bool surface;
	CUDA_RESOURCE_DESC resource;
	CUDA_TEXTURE_DESC how;
	CUDA_RESOURCE_VIEW_DESC view;
};

/* Bytes of an element; 0: there is no such format. */
size_t array_element(int format, unsigned channels)
{
	const size_t channel = format == CU_ARRAY_U8 || format == CU_ARRAY_S8                                 ? 1
			       : format == CU_ARRAY_U16                                                       ? 2
			       : format == CU_ARRAY_U32 || format == CU_ARRAY_S32 || format == CU_ARRAY_FLOAT ? 4
													      : 0;

	return channels == 1 || channels == 2 || channels == 4 ? channel * channels : 0;
}

static CUresult array_new(CUcontext context, const CUDA_ARRAY3D_DESCRIPTOR *what, CUarray *ret)
{
	const size_t element = array_element(what->format, what->channels);
	CUdeviceptr memory;
	CUarray array;
	CUresult r;

	if (!element || !what->width || what->width > WIDTH_MAX || what->height > WIDTH_MAX || what->depth > WIDTH_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	array = object_new(OBJECT_ARRAY, sizeof(*array), context);
	array->what = *what;
	array->element = element;
	array->pitch = element * what->width;
	array->rows = what->height ? what->height : 1;
	array->planes = what->depth ? what->depth : 1;
	array->slice = array->pitch * array->rows;
	r = memory_alloc(context, array->slice * array->planes, &memory);
	if (r) {
		object_free(array);
		return r;
	}
	(void)object_take(array, context->device, config_number("ARRAY_BYTES", 0));
	array->memory = memory;
	*ret = array;
	return CUDA_SUCCESS;
}

static void array_free(CUarray array)
{
	struct range *range = address_map_find(array->memory);

	if (range && range->charged)
		device_refund(range->device, range->charged);
	if (range) {
		(void)munmap((void *)range->start, range->size);
		address_map_remove(range);
	}
	object_free(array);
}

static void array_free_levels(CUmipmappedArray mipmap)
{
	for (unsigned i = 0; i < mipmap->count; i++)
		array_free(mipmap->level[i]);
	object_free(mipmap);
}

void array_free_all(CUcontext context)
{
	void *object;

	reference_free_all(context);
	while ((object = object_of(OBJECT_TEXTURE, context)))
		object_free(object);
	while ((object = object_of(OBJECT_MIPMAP, context)))
		array_free_levels(object);
	while ((object = object_of(OBJECT_ARRAY, context)))
		array_free(object);
}

CUresult array_box(CUarray array, const size_t corner[3], const size_t extent[3], uintptr_t *ret)
{
	const size_t size[] = {array->pitch, array->rows, array->planes};

	for (int i = 0; i < 3; i++)
		if (corner[i] > size[i] || extent[i] > size[i] - corner[i])
			return CUDA_ERROR_INVALID_VALUE;
	*ret = array->memory + corner[2] * array->slice + corner[1] * array->pitch + corner[0];
	return CUDA_SUCCESS;
}

CUresult cuArray3DCreate_v2(CUarray *ret, const CUDA_ARRAY3D_DESCRIPTOR *what)
{
	CUcontext context;
	CUresult r;

	CALL_CONTEXT(context);
	LEAVE_IF(!ret || !what, CUDA_ERROR_INVALID_VALUE);
	r = capture_forbids_any();
	LEAVE_IF(r, r);
	LEAVE(array_new(context, what, ret));
}

CUresult cuArrayCreate_v2(CUarray *ret, const CUDA_ARRAY_DESCRIPTOR *what)
{
	CUDA_ARRAY3D_DESCRIPTOR box;
	CUresult r = call_fault(__func__);

	if (r || !what)
		return r ? r : CUDA_ERROR_INVALID_VALUE;
	box = (CUDA_ARRAY3D_DESCRIPTOR){what->width, what->height, 0, what->format, what->channels, 0};
	return cuArray3DCreate_v2(ret, &box);
}

CUresult cuArrayGetDescriptor_v2(CUDA_ARRAY_DESCRIPTOR *ret, CUarray array)
{
	CALL(__func__);
	LEAVE_IF(!object_is(array, OBJECT_ARRAY), CUDA_ERROR_INVALID_HANDLE);
	LEAVE_IF(!ret, CUDA_ERROR_INVALID_VALUE);
	*ret = (CUDA_ARRAY_DESCRIPTOR){array->what.width, array->what.height, array->what.format, array->what.channels};
	LEAVE(CUDA_SUCCESS);
}

CUresult cuArray3DGetDescriptor_v2(CUDA_ARRAY3D_DESCRIPTOR *ret, CUarray array)
{
	CALL(__func__);
	LEAVE_IF(!object_is(array, OBJECT_ARRAY), CUDA_ERROR_INVALID_HANDLE);
	LEAVE_IF(!ret, CUDA_ERROR_INVALID_VALUE);
	*ret = array->what;
	LEAVE(CUDA_SUCCESS);
}

CUresult cuArrayDestroy(CUarray array)
{
	CALL(__func__);
	LEAVE_IF(!object_is(array, OBJECT_ARRAY) || array->levels, CUDA_ERROR_INVALID_HANDLE);
	context_drain(array->object.context);
	array_free(array);
	LEAVE(CUDA_SUCCESS);
}

/* None has planes, nor is any filled later. */
CUresult cuArrayGetPlane(CUarray *ret, CUarray array, unsigned index)
{
	CALL(__func__);
	(void)ret;
	(void)index;
	LEAVE(object_is(array, OBJECT_ARRAY) ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE);
}

CUresult cuArrayGetSparseProperties(CUDA_ARRAY_SPARSE_PROPERTIES *ret, CUarray array)
{
	CALL(__func__);
	(void)ret;
	LEAVE(object_is(array, OBJECT_ARRAY) ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE);
}

CUresult cuMipmappedArrayGetSparseProperties(CUDA_ARRAY_SPARSE_PROPERTIES *ret, CUmipmappedArray mipmap)
{
	CALL(__func__);
	(void)ret;
	LEAVE(object_is(mipmap, OBJECT_MIPMAP) ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE);
}

CUresult cuArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *ret, CUarray array, CUdevice device)
{
	CALL(__func__);
	LEAVE_IF(!object_is(array, OBJECT_ARRAY), CUDA_ERROR_INVALID_HANDLE);
	LEAVE_IF(!ret || !device_get(device), CUDA_ERROR_INVALID_VALUE);
	LEAVE(CUDA_ERROR_INVALID_VALUE);
}

CUresult cuMipmappedArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *ret, CUmipmappedArray mipmap,
					       CUdevice device)
{
	CALL(__func__);
	LEAVE_IF(!object_is(mipmap, OBJECT_MIPMAP), CUDA_ERROR_INVALID_HANDLE);
	LEAVE_IF(!ret || !device_get(device), CUDA_ERROR_INVALID_VALUE);
	LEAVE(CUDA_ERROR_INVALID_VALUE);
}

/* ---- with levels ---- */

static size_t array_halve(size_t size)
{
	return size > 1 ? size / 2 : size;
}

CUresult cuMipmappedArrayCreate(CUmipmappedArray *ret, const CUDA_ARRAY3D_DESCRIPTOR *what, unsigned levels)
{
	CUDA_ARRAY3D_DESCRIPTOR level;
	CUmipmappedArray mipmap;
	CUcontext context;
	CUresult r = CUDA_SUCCESS;

	CALL_CONTEXT(context);
	LEAVE_IF(!ret || !what || levels > LEVELS_MAX, CUDA_ERROR_INVALID_VALUE);
	mipmap = object_new(OBJECT_MIPMAP, sizeof(*mipmap), context);
	level = *what;
	for (unsigned i = 0; (i == 0 || i < levels) && !r; i++) {
		r = array_new(context, &level, &mipmap->level[i]);
		if (!r) {
			mipmap->level[i]->levels = mipmap;
			mipmap->count++;
		}
		level.width = array_halve(level.width);
		level.height = array_halve(level.height);
		if (!(level.flags & LAYERED))
			level.depth = array_halve(level.depth);
	}
	if (r)
		array_free_levels(mipmap);
	else
		*ret = mipmap;
	LEAVE(r);
}

CUresult cuMipmappedArrayGetLevel(CUarray *ret, CUmipmappedArray mipmap, unsigned level)
{
	CALL(__func__);
	LEAVE_IF(!object_is(mipmap, OBJECT_MIPMAP), CUDA_ERROR_INVALID_HANDLE);
	LEAVE_IF(!ret || level >= mipmap->count, CUDA_ERROR_INVALID_VALUE);
	*ret = mipmap->level[level];
	LEAVE(CUDA_SUCCESS);
}

CUresult cuMipmappedArrayDestroy(CUmipmappedArray mipmap)
{
	CALL(__func__);
	LEAVE_IF(!object_is(mipmap, OBJECT_MIPMAP), CUDA_ERROR_INVALID_HANDLE);
	context_drain(mipmap->object.context);
	array_free_levels(mipmap);
	LEAVE(CUDA_SUCCESS);
}

/* ---- textures and surfaces ---- */

enum { RESOURCE_ARRAY, RESOURCE_MIPMAP, RESOURCE_LINE, RESOURCE_PLANE };

static struct texture *texture_find(unsigned long long number, bool surface, CUcontext context)
{
	for (struct texture *texture = object_after(NULL, OBJECT_TEXTURE); texture;
	     texture = object_after(texture, OBJECT_TEXTURE))
		if (texture->number == number && texture->surface == surface && texture->object.context == context)
			return texture;
	/* It would be looked for where there is nothing. */
	if (object_strict())
		abort();
	return NULL;
}

static CUresult texture_check(const CUDA_RESOURCE_DESC *resource)
{
	if (resource->flags)
		return CUDA_ERROR_INVALID_VALUE;
	if (resource->type == RESOURCE_ARRAY)
		return object_is(resource->of.array, OBJECT_ARRAY) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	if (resource->type == RESOURCE_MIPMAP)
		return object_is(resource->of.mipmap, OBJECT_MIPMAP) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	if (resource->type != RESOURCE_LINE && resource->type != RESOURCE_PLANE)
		return CUDA_ERROR_INVALID_VALUE;
	return array_element(resource->of.memory.format, resource->of.memory.channels) && resource->of.memory.pointer
		       ? CUDA_SUCCESS
		       : CUDA_ERROR_INVALID_VALUE;
}

static struct texture *texture_new(CUcontext context, const CUDA_RESOURCE_DESC *resource, bool surface)
{
	static unsigned long long numbers;
	struct texture *texture = object_new(OBJECT_TEXTURE, sizeof(*texture), context);

	texture->number = ++numbers;
	texture->surface = surface;
	texture->resource = *resource;
	return texture;
}

CUresult cuTexObjectCreate(CUtexObject *ret, const CUDA_RESOURCE_DESC *resource, const CUDA_TEXTURE_DESC *how,
			   const CUDA_RESOURCE_VIEW_DESC *view)
{
	struct texture *texture;
	CUcontext context;
	CUresult r;

	CALL_CONTEXT(context);
	LEAVE_IF(!ret || !resource || !how, CUDA_ERROR_INVALID_VALUE);
	r = texture_check(resource);
	LEAVE_IF(r, r);
	texture = texture_new(context, resource, false);
	texture->how = *how;
	if (view)
		texture->view = *view;
	*ret = texture->number;
	LEAVE(CUDA_SUCCESS);
}

CUresult cuSurfObjectCreate(CUsurfObject *ret, const CUDA_RESOURCE_DESC *resource)
{
	CUcontext context;
	CUresult r;

	CALL_CONTEXT(context);
	LEAVE_IF(!ret || !resource || resource->type != RESOURCE_ARRAY, CUDA_ERROR_INVALID_VALUE);
	r = texture_check(resource);
	LEAVE_IF(r, r);
	*ret = texture_new(context, resource, true)->number;
	LEAVE(CUDA_SUCCESS);
}

static CUresult texture_end(CUcontext context, unsigned long long number, bool surface)
{
	struct texture *texture = texture_find(number, surface, context);

	if (!texture)
		return CUDA_ERROR_INVALID_VALUE;
	object_free(texture);
	return CUDA_SUCCESS;
}

CUresult cuTexObjectDestroy(CUtexObject number)
{
	CUcontext context;

	CALL_CONTEXT(context);
	LEAVE(texture_end(context, number, false));
}

CUresult cuSurfObjectDestroy(CUsurfObject number)
{
	CUcontext context;

	CALL_CONTEXT(context);
	LEAVE(texture_end(context, number, true));
}

CUresult cuTexObjectGetResourceDesc(CUDA_RESOURCE_DESC *ret, CUtexObject number)
{
	const struct texture *texture;
	CUcontext context;

	CALL_CONTEXT(context);
	texture = texture_find(number, false, context);
	LEAVE_IF(!ret || !texture, CUDA_ERROR_INVALID_VALUE);
	*ret = texture->resource;
	LEAVE(CUDA_SUCCESS);
}

CUresult cuSurfObjectGetResourceDesc(CUDA_RESOURCE_DESC *ret, CUsurfObject number)
{
	const struct texture *surface;
	CUcontext context;

	CALL_CONTEXT(context);
	surface = texture_find(number, true, context);
	LEAVE_IF(!ret || !surface, CUDA_ERROR_INVALID_VALUE);
	*ret = surface->resource;
	LEAVE(CUDA_SUCCESS);
}

CUresult cuTexObjectGetTextureDesc(CUDA_TEXTURE_DESC *ret, CUtexObject number)
{
	const struct texture *texture;
	CUcontext context;

	CALL_CONTEXT(context);
	texture = texture_find(number, false, context);
	LEAVE_IF(!ret || !texture, CUDA_ERROR_INVALID_VALUE);
	*ret = texture->how;
	LEAVE(CUDA_SUCCESS);
}

CUresult cuTexObjectGetResourceViewDesc(CUDA_RESOURCE_VIEW_DESC *ret, CUtexObject number)
{
	const struct texture *texture;
	CUcontext context;

	CALL_CONTEXT(context);
	texture = texture_find(number, false, context);
	LEAVE_IF(!ret || !texture, CUDA_ERROR_INVALID_VALUE);
	*ret = texture->view;
	LEAVE(CUDA_SUCCESS);
}

/* ---- what kernels do with them ---- */

struct texels {
	uintptr_t at;
	size_t element, pitch;
	long width, height;
};

static struct texels texture_texels(const CUDA_RESOURCE_DESC *resource)
{
	const CUarray array = resource->type == RESOURCE_ARRAY    ? resource->of.array
			      : resource->type == RESOURCE_MIPMAP ? resource->of.mipmap->level[0]
								  : NULL;
	const size_t element = array ? 0 : array_element(resource->of.memory.format, resource->of.memory.channels);

	if (array)
		return (struct texels){array->memory, array->element, array->pitch, (long)array->what.width,
				       (long)array->rows};
	if (resource->type == RESOURCE_LINE)
		return (struct texels){resource->of.memory.pointer, element, resource->of.memory.width,
				       (long)(resource->of.memory.width / element), 1};
	return (struct texels){resource->of.memory.pointer, element, resource->of.memory.pitch,
			       (long)resource->of.memory.width, (long)resource->of.memory.height};
}

static uint8_t *texture_at(const CUDA_RESOURCE_DESC *resource, long x, long y, size_t *ret_element)
{
	const struct texels texels = texture_texels(resource);

	*ret_element = texels.element < sizeof(uint32_t) ? texels.element : sizeof(uint32_t);
	/* Of whole numbers, whatever is to be done with others. */
	if (x < 0 || y < 0 || x >= texels.width || y >= texels.height)
		return NULL;
	return (uint8_t *)(texels.at + (size_t)y * texels.pitch + (size_t)x * texels.element);
}

static bool texture_fetch(const CUDA_RESOURCE_DESC *resource, long x, long y, uint32_t *ret)
{
	size_t element;
	const uint8_t *at = resource ? texture_at(resource, x, y, &element) : NULL;

	*ret = 0;
	if (at)
		memcpy(ret, at, element);
	return resource;
}

static bool texture_store(const CUDA_RESOURCE_DESC *resource, long x, long y, uint32_t value)
{
	size_t element;
	uint8_t *at = resource ? texture_at(resource, x, y, &element) : NULL;

	if (at)
		memcpy(at, &value, element);
	return at;
}

bool array_fetch(CUcontext context, CUtexObject number, long x, long y, uint32_t *ret)
{
	const struct texture *texture = texture_find(number, false, context);

	return texture_fetch(texture ? &texture->resource : NULL, x, y, ret);
}

bool array_store(CUcontext context, CUsurfObject number, long x, long y, uint32_t value)
{
	const struct texture *surface = texture_find(number, true, context);

	return texture_store(surface ? &surface->resource : NULL, x, y, value);
}

bool array_fetch_named(const struct launch *launch, const char *name, long x, long y, uint32_t *ret)
{
	return texture_fetch(reference_resource(launch->function->module, name, false), x, y, ret);
}

bool array_store_named(const struct launch *launch, const char *name, long x, long y, uint32_t value)
{
	return texture_store(reference_resource(launch->function->module, name, true), x, y, value);
}

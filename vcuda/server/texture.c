/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Texture and surface objects. Kernels get the driver's numbers of them as they are, so the client has these, and here
 * stands which of them it was given: the driver looks for others where they would be.
 */

#include <stdlib.h>

#include "vcuda/driver_api.h"
#include "vcuda/server/arena.h"
#include "vcuda/server/driver.h"
#include "vcuda/server/handle.h"
#include "vcuda/server/request.h"

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

/* ---- what they are made of ---- */

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

/* ---- calls ---- */

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

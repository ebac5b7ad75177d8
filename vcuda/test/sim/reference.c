/* SPDX-License-Identifier: Apache-2.0 */

/* Texture and surface references: of a module, by name, or made by the program; what each is bound to, and how it is read. */

#include <stdlib.h>
#include <string.h>

#include "sim.h"

enum { DIMENSIONS = 3, CLAMP = 1, FLAGS_ALL = 0x37, ALIGNMENT = 512, ROW_ALIGNMENT = 32 };
enum { ARRAY, MIPMAP, LINE, PLANE };

struct CUtexref_st *reference_new(CUcontext context, CUmodule module, const char *name, bool surface)
{
	struct CUtexref_st *ref = object_new(surface ? OBJECT_SURFREF : OBJECT_TEXREF, sizeof(*ref), context);

	ref->module = module;
	ref->format = CU_ARRAY_FLOAT;
	ref->channels = 1;
	for (int i = 0; i < DIMENSIONS; i++)
		ref->address[i] = CLAMP;
	memcpy(ref->name, name, strnlen(name, sizeof(ref->name) - 1));
	return ref;
}

void reference_free_all(CUcontext context)
{
	static const enum object_kind kinds[] = {OBJECT_TEXREF, OBJECT_SURFREF};
	void *object;

	for (int i = 0; i < 2; i++)
		while ((object = object_of(kinds[i], context)))
			object_free(object);
}

static struct CUtexref_st *reference_find(CUmodule module, const char *name, enum object_kind kind)
{
	for (struct CUtexref_st *ref = object_after(NULL, kind); ref; ref = object_after(ref, kind))
		if (ref->module == module && strcmp(ref->name, name) == 0)
			return ref;
	return NULL;
}

void reference_free_of(CUmodule module)
{
	static const enum object_kind kinds[] = {OBJECT_TEXREF, OBJECT_SURFREF};

	for (int i = 0; i < 2; i++)
		for (struct CUtexref_st *ref = object_after(NULL, kinds[i]), *next; ref; ref = next) {
			next = object_after(ref, kinds[i]);
			if (ref->module == module)
				object_free(ref);
		}
}

const CUDA_RESOURCE_DESC *reference_resource(CUmodule module, const char *name, bool surface)
{
	const struct CUtexref_st *ref = reference_find(module, name, surface ? OBJECT_SURFREF : OBJECT_TEXREF);

	if (!ref || !ref->bound)
		return NULL;
	/* What a kernel reads is looked for where it was. */
	if (ref->resource.type == ARRAY && !object_is(ref->resource.of.array, OBJECT_ARRAY))
		return NULL;
	if (ref->resource.type == MIPMAP && !object_is(ref->resource.of.mipmap, OBJECT_MIPMAP))
		return NULL;
	return &ref->resource;
}

static CUresult reference_get(CUmodule module, const char *name, enum object_kind kind, bool wanted, void **ret)
{
	CUcontext context;
	void *ref;

	CALL_CONTEXT(context);
	LEAVE_IF(!object_is(module, OBJECT_MODULE), CUDA_ERROR_INVALID_HANDLE);
	LEAVE_IF(!wanted || !name, CUDA_ERROR_INVALID_VALUE);
	ref = reference_find(module, name, kind);
	LEAVE_IF(!ref, CUDA_ERROR_NOT_FOUND);
	*ret = ref;
	LEAVE(CUDA_SUCCESS);
}

CUresult cuModuleGetTexRef(CUtexref *ret, CUmodule module, const char *name)
{
	void *ref = NULL;
	CUresult r = reference_get(module, name, OBJECT_TEXREF, ret, &ref);

	if (!r)
		*ret = ref;
	return r;
}

CUresult cuModuleGetSurfRef(CUsurfref *ret, CUmodule module, const char *name)
{
	void *ref = NULL;
	CUresult r = reference_get(module, name, OBJECT_SURFREF, ret, &ref);

	if (!r)
		*ret = ref;
	return r;
}

CUresult cuTexRefCreate(CUtexref *ret)
{
	CUcontext context;

	CALL_CONTEXT(context);
	LEAVE_IF(!ret, CUDA_ERROR_INVALID_VALUE);
	*ret = reference_new(context, NULL, "", false);
	LEAVE(CUDA_SUCCESS);
}

/* What it is bound to is looked at with each call. */
static bool reference_lives(const struct CUtexref_st *ref, enum object_kind kind)
{
	if (!object_is(ref, kind))
		return false;
	if (ref->bound && ref->resource.type == ARRAY)
		(void)object_is(ref->resource.of.array, OBJECT_ARRAY);
	if (ref->bound && ref->resource.type == MIPMAP)
		(void)object_is(ref->resource.of.mipmap, OBJECT_MIPMAP);
	return true;
}

#define CALL_REFERENCE(ref, kind)                                                 \
	do {                                                                      \
		CUcontext context_;                                               \
		CALL_CONTEXT(context_);                                           \
		LEAVE_IF(!reference_lives(ref, kind), CUDA_ERROR_INVALID_HANDLE); \
	} while (0)

CUresult cuTexRefDestroy(CUtexref ref)
{
	CALL_REFERENCE(ref, OBJECT_TEXREF);
	/* The module would still have it. */
	if (ref->module)
		abort();
	object_free(ref);
	LEAVE(CUDA_SUCCESS);
}

/* ---- what it is bound to ---- */

static void reference_bind(struct CUtexref_st *ref, const CUDA_RESOURCE_DESC *resource)
{
	ref->resource = *resource;
	ref->bound = true;
}

CUresult cuTexRefSetArray(CUtexref ref, CUarray array, unsigned flags)
{
	CALL_REFERENCE(ref, OBJECT_TEXREF);
	(void)flags;
	LEAVE_IF(!object_is(array, OBJECT_ARRAY), CUDA_ERROR_INVALID_VALUE);
	reference_bind(ref, &(CUDA_RESOURCE_DESC){.type = ARRAY, .of = {.array = array}});
	ref->format = array->what.format;
	ref->channels = (int)array->what.channels;
	LEAVE(CUDA_SUCCESS);
}

CUresult cuTexRefSetMipmappedArray(CUtexref ref, CUmipmappedArray mipmap, unsigned flags)
{
	CALL_REFERENCE(ref, OBJECT_TEXREF);
	(void)flags;
	LEAVE_IF(!object_is(mipmap, OBJECT_MIPMAP), CUDA_ERROR_INVALID_VALUE);
	reference_bind(ref, &(CUDA_RESOURCE_DESC){.type = MIPMAP, .of = {.mipmap = mipmap}});
	LEAVE(CUDA_SUCCESS);
}

CUresult cuSurfRefSetArray(CUsurfref surface, CUarray array, unsigned flags)
{
	struct CUtexref_st *ref = (void *)surface;

	CALL_REFERENCE(ref, OBJECT_SURFREF);
	LEAVE_IF(flags, CUDA_ERROR_INVALID_VALUE);
	LEAVE_IF(!object_is(array, OBJECT_ARRAY), CUDA_ERROR_INVALID_VALUE);
	LEAVE_IF(!(array->what.flags & ARRAY_SURFACE), CUDA_ERROR_INVALID_VALUE);
	reference_bind(ref, &(CUDA_RESOURCE_DESC){.type = ARRAY, .of = {.array = array}});
	LEAVE(CUDA_SUCCESS);
}

CUresult cuTexRefSetAddress_v2(size_t *ret_offset, CUtexref ref, CUdeviceptr at, size_t bytes)
{
	const size_t offset = at % ALIGNMENT,
		     element = array_element(ref ? ref->format : 0, ref ? (unsigned)ref->channels : 0);

	CALL_REFERENCE(ref, OBJECT_TEXREF);
	LEAVE_IF(offset && !ret_offset, CUDA_ERROR_INVALID_VALUE);
	LEAVE_IF(at && !range_holds(at, bytes), CUDA_ERROR_INVALID_VALUE);
	if (ret_offset)
		*ret_offset = offset;
	reference_bind(ref, &(CUDA_RESOURCE_DESC){.type = LINE,
						  .of = {.memory = {at - offset, ref->format, (unsigned)ref->channels,
								    bytes + offset, 0, 0}}});
	ref->bound = at != 0 && element != 0;
	ref->at = at;
	LEAVE(CUDA_SUCCESS);
}

CUresult cuTexRefSetAddress2D_v3(CUtexref ref, const CUDA_ARRAY_DESCRIPTOR *what, CUdeviceptr at, size_t pitch)
{
	CALL_REFERENCE(ref, OBJECT_TEXREF);
	LEAVE_IF(!what || !array_element(what->format, what->channels), CUDA_ERROR_INVALID_VALUE);
	LEAVE_IF(at % ALIGNMENT || pitch % ROW_ALIGNMENT, CUDA_ERROR_INVALID_VALUE);
	reference_bind(ref, &(CUDA_RESOURCE_DESC){.type = PLANE,
						  .of = {.memory = {at, what->format, what->channels, what->width,
								    what->height, pitch}}});
	ref->at = at;
	LEAVE(CUDA_SUCCESS);
}

CUresult cuTexRefSetAddress2D_v2(CUtexref ref, const CUDA_ARRAY_DESCRIPTOR *what, CUdeviceptr at, size_t pitch)
{
	CUresult r = call_fault(__func__);

	return r ? r : cuTexRefSetAddress2D_v3(ref, what, at, pitch);
}

CUresult cuTexRefGetArray(CUarray *ret, CUtexref ref)
{
	CALL_REFERENCE(ref, OBJECT_TEXREF);
	LEAVE_IF(!ret || !ref->bound || ref->resource.type != ARRAY, CUDA_ERROR_INVALID_VALUE);
	*ret = ref->resource.of.array;
	LEAVE(CUDA_SUCCESS);
}

CUresult cuTexRefGetMipmappedArray(CUmipmappedArray *ret, CUtexref ref)
{
	CALL_REFERENCE(ref, OBJECT_TEXREF);
	LEAVE_IF(!ret || !ref->bound || ref->resource.type != MIPMAP, CUDA_ERROR_INVALID_VALUE);
	*ret = ref->resource.of.mipmap;
	LEAVE(CUDA_SUCCESS);
}

CUresult cuSurfRefGetArray(CUarray *ret, CUsurfref surface)
{
	const struct CUtexref_st *ref = (const void *)surface;

	CALL_REFERENCE(ref, OBJECT_SURFREF);
	LEAVE_IF(!ret || !ref->bound, CUDA_ERROR_INVALID_VALUE);
	*ret = ref->resource.of.array;
	LEAVE(CUDA_SUCCESS);
}

CUresult cuTexRefGetAddress_v2(CUdeviceptr *ret, CUtexref ref)
{
	CALL_REFERENCE(ref, OBJECT_TEXREF);
	LEAVE_IF(!ret || !ref->bound || ref->resource.type < LINE, CUDA_ERROR_INVALID_VALUE);
	*ret = ref->at;
	LEAVE(CUDA_SUCCESS);
}

/* ---- how it is read ---- */

CUresult cuTexRefSetFormat(CUtexref ref, int format, int channels)
{
	CALL_REFERENCE(ref, OBJECT_TEXREF);
	LEAVE_IF(channels != 1 && channels != 2 && channels != 4, CUDA_ERROR_INVALID_VALUE);
	ref->format = format;
	ref->channels = channels;
	LEAVE(CUDA_SUCCESS);
}

CUresult cuTexRefGetFormat(int *ret_format, int *ret_channels, CUtexref ref)
{
	CALL_REFERENCE(ref, OBJECT_TEXREF);
	LEAVE_IF(!ret_format || !ret_channels, CUDA_ERROR_INVALID_VALUE);
	*ret_format = ref->format;
	*ret_channels = ref->channels;
	LEAVE(CUDA_SUCCESS);
}

CUresult cuTexRefSetAddressMode(CUtexref ref, int dimension, int mode)
{
	CALL_REFERENCE(ref, OBJECT_TEXREF);
	LEAVE_IF(dimension < 0 || dimension >= DIMENSIONS, CUDA_ERROR_INVALID_VALUE);
	ref->address[dimension] = mode;
	LEAVE(CUDA_SUCCESS);
}

CUresult cuTexRefGetAddressMode(int *ret, CUtexref ref, int dimension)
{
	CALL_REFERENCE(ref, OBJECT_TEXREF);
	LEAVE_IF(!ret || dimension < 0 || dimension >= DIMENSIONS, CUDA_ERROR_INVALID_VALUE);
	*ret = ref->address[dimension];
	LEAVE(CUDA_SUCCESS);
}

CUresult cuTexRefSetMipmapLevelClamp(CUtexref ref, float least, float most)
{
	CALL_REFERENCE(ref, OBJECT_TEXREF);
	ref->least = least;
	ref->most = most;
	LEAVE(CUDA_SUCCESS);
}

CUresult cuTexRefGetMipmapLevelClamp(float *ret_least, float *ret_most, CUtexref ref)
{
	CALL_REFERENCE(ref, OBJECT_TEXREF);
	LEAVE_IF(!ret_least || !ret_most, CUDA_ERROR_INVALID_VALUE);
	*ret_least = ref->least;
	*ret_most = ref->most;
	LEAVE(CUDA_SUCCESS);
}

CUresult cuTexRefSetBorderColor(CUtexref ref, float *color)
{
	CALL_REFERENCE(ref, OBJECT_TEXREF);
	LEAVE_IF(!color, CUDA_ERROR_INVALID_VALUE);
	memcpy(ref->border, color, sizeof(ref->border));
	LEAVE(CUDA_SUCCESS);
}

CUresult cuTexRefGetBorderColor(float *ret, CUtexref ref)
{
	CALL_REFERENCE(ref, OBJECT_TEXREF);
	LEAVE_IF(!ret, CUDA_ERROR_INVALID_VALUE);
	memcpy(ret, ref->border, sizeof(ref->border));
	LEAVE(CUDA_SUCCESS);
}

/* What is one number, and which it may be. */
#define REFERENCE_NUMBER(Name, member, type, got, may_be)      \
	CUresult cuTexRefSet##Name(CUtexref ref, type value)   \
	{                                                      \
		CALL_REFERENCE(ref, OBJECT_TEXREF);            \
		LEAVE_IF(!(may_be), CUDA_ERROR_INVALID_VALUE); \
		ref->member = value;                           \
		LEAVE(CUDA_SUCCESS);                           \
	}                                                      \
	CUresult cuTexRefGet##Name(got *ret, CUtexref ref)     \
	{                                                      \
		CALL_REFERENCE(ref, OBJECT_TEXREF);            \
		LEAVE_IF(!ret, CUDA_ERROR_INVALID_VALUE);      \
		*ret = (got)ref->member;                       \
		LEAVE(CUDA_SUCCESS);                           \
	}

REFERENCE_NUMBER(FilterMode, filter, int, int, true)
REFERENCE_NUMBER(MipmapFilterMode, level_filter, int, int, true)
REFERENCE_NUMBER(MipmapLevelBias, bias, float, float, true)
REFERENCE_NUMBER(MaxAnisotropy, anisotropy, unsigned, int, true)
REFERENCE_NUMBER(Flags, flags, unsigned, unsigned, !(value & ~(unsigned)FLAGS_ALL))

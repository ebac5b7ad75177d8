/* SPDX-License-Identifier: Apache-2.0 */

/* Of textures and texture references, what may be left out and what has fractions. */

#include <string.h>

#include "vcuda/client/call.h"
#include "vcuda/client_api.h"
#include "vcuda/ops.h"

CUresult cuTexObjectCreate(CUtexObject *texture, const CUDA_RESOURCE_DESC *resource, const CUDA_TEXTURE_DESC *how,
			   const CUDA_RESOURCE_VIEW_DESC *view)
{
	const size_t bytes = view ? sizeof(*view) : 0;
	const uint64_t words[] = {sizeof(*resource), sizeof(*how), bytes};
	const struct call_part parts[] = {{resource, sizeof(*resource)}, {how, sizeof(*how)}, {view, bytes}};

	if (!texture || !resource || !how)
		return call_fail(CUDA_ERROR_INVALID_VALUE);
	return call_sync(OP_cuTexObjectCreate, words, 3, parts, view ? 3 : 2, texture, sizeof(*texture));
}

static uint64_t texture_bits(float value)
{
	uint32_t bits;

	memcpy(&bits, &value, sizeof(bits));
	return bits;
}

CUresult cuTexRefSetMipmapLevelBias(CUtexref reference, float bias)
{
	const uint64_t words[] = {reference, texture_bits(bias)};

	return call_sync(OP_cuTexRefSetMipmapLevelBias, words, 2, NULL, 0, NULL, 0);
}

CUresult cuTexRefSetMipmapLevelClamp(CUtexref reference, float least, float most)
{
	const uint64_t words[] = {reference, texture_bits(least), texture_bits(most)};

	return call_sync(OP_cuTexRefSetMipmapLevelClamp, words, 3, NULL, 0, NULL, 0);
}

CUresult cuTexRefSetBorderColor(CUtexref reference, float *color)
{
	const uint64_t words[] = {reference, sizeof(struct wire_color)};
	const struct call_part part = {color, sizeof(struct wire_color)};

	if (!color)
		return call_fail(CUDA_ERROR_INVALID_VALUE);
	return call_sync(OP_cuTexRefSetBorderColor, words, 2, &part, 1, NULL, 0);
}

CUresult cuTexRefGetBorderColor(float *color, CUtexref reference)
{
	const uint64_t words[] = {reference};

	if (!color)
		return call_fail(CUDA_ERROR_INVALID_VALUE);
	return call_sync(OP_cuTexRefGetBorderColor, words, 1, NULL, 0, color, sizeof(struct wire_color));
}

CUresult cuTexRefSetAddress_v2(size_t *offset, CUtexref reference, CUdeviceptr pointer, size_t bytes)
{
	const uint64_t words[] = {reference, pointer, bytes, offset != NULL};

	return call_sync(OP_cuTexRefSetAddress_v2, words, 4, NULL, 0, offset, offset ? sizeof(*offset) : 0);
}

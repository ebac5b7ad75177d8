/* SPDX-License-Identifier: Apache-2.0 */

/* A simulated driver with STRICT=1 ends a server that hands it an array or a texture that is gone, or that never was. */

#include "textures.h"

#include <stdio.h>
#include <string.h>

#include "vcuda/protocol/types.h"

enum { SPARSE = 0x40, DEFERRED = 0x80, HOST = 1, ARRAY = 3, U32 = 3, NOWHERE = 0x4141 };

static int textures_are(const char *what, int got, int wanted)
{
	if (got != wanted)
		printf("# %s: %d, not %d\n", what, got, wanted);
	return got != wanted;
}

static int textures_call(struct control_client *peer, unsigned op, uint64_t context, uint64_t a, uint64_t b,
			 unsigned count)
{
	const uint64_t words[] = {a, b};

	return peer_call(peer, 0, op, context, words, count, NULL, 0);
}

static int textures_create(struct control_client *peer, uint64_t context, size_t width, size_t height, unsigned flags,
			   uint64_t *ret)
{
	const CUDA_ARRAY3D_DESCRIPTOR array = {
		.Width = width, .Height = height, .Format = U32, .NumChannels = 1, .Flags = flags};
	const uint64_t words[] = {sizeof(array)};
	int r = peer_call(peer, 0, OP_cuArray3DCreate_v2, context, words, 1, &array, sizeof(array));

	*ret = r ? 0 : peer_word(peer, 0);
	return r;
}

static uint64_t textures_left(struct control_client *peer, uint64_t context)
{
	return textures_call(peer, OP_cuMemGetInfo_v2, context, 0, 0, 0) == 0 ? peer_word(peer, 0) : 0;
}

/* They count to the byte and no longer than they are there; a level of one is not the client's to end. */
int textures_arrays(struct control_client *peer, uint64_t context)
{
	const CUDA_ARRAY3D_DESCRIPTOR levels = {.Width = 64, .Height = 64, .Format = U32, .NumChannels = 1};
	const uint64_t left = textures_left(peer, context), words[] = {sizeof(levels), 3};
	uint64_t array, other, mipmap, level;
	int r = 0;

	r |= textures_are("sparse", textures_create(peer, context, 64, 64, SPARSE, &array), 801);
	r |= textures_are("deferred", textures_create(peer, context, 64, 64, DEFERRED, &array), 801);
	r |= textures_are("more than a number", textures_create(peer, context, SIZE_MAX, 8, 0, &array), 1);
	if (left < 1 << 30)
		r |= textures_are("too large", textures_create(peer, context, 65536, left / 65536, 0, &array), 2);
	r |= textures_are("large", textures_create(peer, context, 2048, 1024, 0, &array), 0);
	r |= textures_are("counts", left - textures_left(peer, context) == 8 << 20, 1);
	r |= textures_are("end", textures_call(peer, OP_cuArrayDestroy, context, array, 0, 1), 0);
	r |= textures_are("counts no more", textures_left(peer, context) == left, 1);
	r |= textures_are("end again", textures_call(peer, OP_cuArrayDestroy, context, array, 0, 1), 400);
	r |= textures_are("asked when gone", textures_call(peer, OP_cuArrayGetDescriptor_v2, context, array, 0, 1),
			  400);
	r |= textures_are("levels",
			  peer_call(peer, 0, OP_cuMipmappedArrayCreate, context, words, 2, &levels, sizeof(levels)), 0);
	mipmap = peer_word(peer, 0);
	r |= textures_are("as an array", textures_call(peer, OP_cuArrayDestroy, context, mipmap, 0, 1), 400);
	r |= textures_are("level", textures_call(peer, OP_cuMipmappedArrayGetLevel, context, mipmap, 1, 2), 0);
	level = peer_word(peer, 0);
	r |= textures_are("a level's end", textures_call(peer, OP_cuArrayDestroy, context, level, 0, 1), 1);
	r |= textures_are("end of all", textures_call(peer, OP_cuMipmappedArrayDestroy, context, mipmap, 0, 1), 0);
	r |= textures_are("a level that is gone", textures_call(peer, OP_cuArrayGetDescriptor_v2, context, level, 0, 1),
			  400);
	/* Arrays go with the context. */
	r |= textures_are("one more", textures_create(peer, context, 64, 64, 0, &other), 0);
	r |= textures_are("reset", textures_call(peer, OP_cuDevicePrimaryCtxReset_v2, 0, 0, 0, 1), 0);
	return r | textures_are("after the reset", textures_call(peer, OP_cuArrayDestroy, 0, other, 0, 1), 400);
}

static int textures_send(struct control_client *peer, uint64_t context, uint64_t chunk, const CUDA_MEMCPY3D *copy)
{
	const uint64_t words[] = {0, chunk, sizeof(*copy)};

	return peer_call(peer, 0, WIRE_STAGE_BOX, context, words, 3, copy, sizeof(*copy));
}

/* What a box has must be in the chunk, and its other side an array of the client's. */
int textures_boxes(struct control_client *peer, uint64_t context)
{
	CUDA_MEMCPY3D good = {.srcMemoryType = HOST,
			      .srcHost = (const void *)NOWHERE,
			      .srcPitch = SIZE_MAX,
			      .srcY = SIZE_MAX,
			      .dstMemoryType = ARRAY,
			      .WidthInBytes = 256,
			      .Height = 64,
			      .Depth = 1},
		      copy;
	uint64_t array, words[] = {sizeof(good), 0};
	int r = textures_are("an array", textures_create(peer, context, 64, 4096, 0, &array), 0);

	good.dstArray = array;
	r |= textures_are("into it", textures_send(peer, context, 0, &good), 0);
	r |= textures_are("no chunk", textures_send(peer, context, WIRE_CHUNKS, &good), 1);
	r |= textures_are("far beyond", textures_send(peer, context, UINT64_MAX, &good), 1);
	copy = good;
	copy.Height = WIRE_SMALL_BYTES / 256 + 1;
	r |= textures_are("more than a chunk", textures_send(peer, context, 0, &copy), 1);
	copy.Height = (size_t)1 << 62;
	r |= textures_are("more than a number", textures_send(peer, context, 0, &copy), 1);
	copy.Height = 0;
	r |= textures_are("nothing", textures_send(peer, context, 0, &copy), 1);
	copy = good;
	copy.dstMemoryType = HOST;
	r |= textures_are("two hosts", textures_send(peer, context, 0, &copy), 1);
	copy = good;
	copy.srcMemoryType = ARRAY;
	r |= textures_are("two arrays", textures_send(peer, context, 0, &copy), 1);
	copy = good;
	copy.dstArray = NOWHERE;
	r |= textures_are("an array of nobody", textures_send(peer, context, 0, &copy), 1);
	copy = good;
	copy.srcMemoryType = copy.dstMemoryType = ARRAY;
	copy.srcArray = context;
	r |= textures_are("a context as an array",
			  peer_call(peer, 0, OP_cuMemcpy3DAsync_v2, context, words, 2, &copy, sizeof(copy)), 1);
	copy.srcMemoryType = HOST;
	r |= textures_are("the host's own",
			  peer_call(peer, 0, OP_cuMemcpy3DAsync_v2, context, words, 2, &copy, sizeof(copy)), 1);
	r |= textures_are("end", textures_call(peer, OP_cuArrayDestroy, context, array, 0, 1), 0);
	return r | textures_are("into what is gone", textures_send(peer, context, 0, &good), 1);
}

static int textures_make(struct control_client *peer, unsigned op, uint64_t context, const CUDA_RESOURCE_DESC *resource,
			 uint64_t *ret)
{
	struct {
		CUDA_RESOURCE_DESC resource;
		CUDA_TEXTURE_DESC how;
	} parts = {.resource = *resource};
	const uint64_t words[] = {sizeof(parts.resource), sizeof(parts.how), 0};
	const bool texture = op == OP_cuTexObjectCreate;
	int r = peer_call(peer, 0, op, context, words, texture ? 3 : 1, &parts,
			  texture ? sizeof(parts) : sizeof(parts.resource));

	*ret = r ? 0 : peer_word(peer, 0);
	return r;
}

/* Numbers that the client was not given, or had once, and arrays that are not its own. */
int textures_numbers(struct control_client *peer, uint64_t context)
{
	static const unsigned asks[] = {OP_cuTexObjectDestroy,        OP_cuTexObjectGetResourceDesc,
					OP_cuTexObjectGetTextureDesc, OP_cuTexObjectGetResourceViewDesc,
					OP_cuSurfObjectDestroy,       OP_cuSurfObjectGetResourceDesc};
	CUDA_RESOURCE_DESC resource = {0};
	uint64_t array, texture, surface;
	int r = textures_are("an array", textures_create(peer, context, 64, 64, 0, &array), 0);

	resource.res.array.hArray = array;
	r |= textures_are("a texture", textures_make(peer, OP_cuTexObjectCreate, context, &resource, &texture), 0);
	r |= textures_are("a surface", textures_make(peer, OP_cuSurfObjectCreate, context, &resource, &surface), 0);
	for (size_t i = 0; i < sizeof(asks) / sizeof(asks[0]); i++) {
		r |= textures_are("a guess", textures_call(peer, asks[i], context, 0x7fffffffff, 0, 1), 1);
		r |= textures_are("without a context", textures_call(peer, asks[i], 0, i < 4 ? texture : surface, 0, 1),
				  1);
		r |= textures_are("the other kind",
				  textures_call(peer, asks[i], context, i < 4 ? surface : texture, 0, 1), 1);
	}
	r |= textures_are("end of its array", textures_call(peer, OP_cuArrayDestroy, context, array, 0, 1), 0);
	r |= textures_are("its resource", textures_call(peer, OP_cuTexObjectGetResourceDesc, context, texture, 0, 1),
			  0);
	r |= textures_are("has no array",
			  ((const CUDA_RESOURCE_DESC *)peer->wire->reply[0].word)->res.array.hArray != 0, 0);
	r |= textures_are("end", textures_call(peer, OP_cuTexObjectDestroy, context, texture, 0, 1), 0);
	r |= textures_are("end again", textures_call(peer, OP_cuTexObjectDestroy, context, texture, 0, 1), 1);
	r |= textures_are("of what is gone", textures_make(peer, OP_cuTexObjectCreate, context, &resource, &texture),
			  1);
	resource.resType = 1;
	r |= textures_are("of another type", textures_make(peer, OP_cuSurfObjectCreate, context, &resource, &texture),
			  1);
	resource.resType = 77;
	r |= textures_are("of none", textures_make(peer, OP_cuTexObjectCreate, context, &resource, &texture), 1);
	r |= textures_are("reset", textures_call(peer, OP_cuDevicePrimaryCtxReset_v2, 0, 0, 0, 1), 0);
	context = peer_context(peer);
	return r |
	       textures_are("after the reset", textures_call(peer, OP_cuSurfObjectDestroy, context, surface, 0, 1), 1);
}

static int textures_add_condition(struct control_client *peer, uint64_t context, uint64_t graph, uint64_t number,
				  uint64_t size)
{
	const uint64_t words[] = {graph, number, 0, size, 0};

	return peer_call(peer, 0, OP_cuGraphAddNode_v2, context, words, 5, NULL, 0);
}

/* Conditions are numbers of the driver's, too, each of one graph; what a node runs is not the client's to end. */
int textures_conditions(struct control_client *peer, uint64_t context)
{
	uint64_t graph, other, number, body, words[] = {0, 0, 1, 1};
	int r = textures_are("a graph", textures_call(peer, OP_cuGraphCreate, context, 0, 0, 1), 0);

	graph = words[0] = peer_word(peer, 0);
	r |= textures_are("another", textures_call(peer, OP_cuGraphCreate, context, 0, 0, 1), 0);
	other = peer_word(peer, 0);
	r |= textures_are("a condition",
			  peer_call(peer, 0, OP_cuGraphConditionalHandleCreate, context, words, 4, NULL, 0), 0);
	number = peer_word(peer, 0);
	r |= textures_are("a guess", textures_add_condition(peer, context, graph, number + 1, 1), 1);
	r |= textures_are("of another graph", textures_add_condition(peer, context, other, number, 1), 1);
	r |= textures_are("of none", textures_add_condition(peer, context, number, number, 1), 1);
	r |= textures_are("without graphs", textures_add_condition(peer, context, graph, number, 0), 1);
	r |= textures_are("with too many", textures_add_condition(peer, context, graph, number, UINT64_MAX), 1);
	r |= textures_are("a node", textures_add_condition(peer, context, graph, number, 1), 0);
	body = peer->wire->reply[0].word[1];
	r |= textures_are("its graph's end", textures_call(peer, OP_cuGraphDestroy, context, body, 0, 1), 1);
	r |= textures_are("a node in it", textures_add_condition(peer, context, body, number, 1), 1);
	r |= textures_are("the graph's end", textures_call(peer, OP_cuGraphDestroy, context, graph, 0, 1), 0);
	r |= textures_are("its graph is gone", textures_call(peer, OP_cuGraphDestroy, context, body, 0, 1), 1);
	return r | textures_are("its condition, too", textures_add_condition(peer, context, graph, number, 1), 1);
}

static uint64_t textures_load(struct control_client *peer, uint64_t context)
{
	static const char text[] = ".version 6.0\n.target sm_50\n.address_size 64\n.global .texref plane;\n"
				   ".global .surfref canvas;\n";
	const uint64_t upload[] = {0, sizeof(text)};

	if (peer_call(peer, 0, WIRE_UPLOAD, context, upload, 2, text, sizeof(text)) ||
	    peer_call(peer, 0, OP_cuModuleLoadDataEx, context, (const uint64_t[]){sizeof(text), 0, 0}, 3, NULL, 0))
		return 0;
	return peer_word(peer, 0);
}

static uint64_t textures_refer(struct control_client *peer, uint64_t context, uint64_t module)
{
	const uint64_t words[] = {module, 5};

	return peer_call(peer, 0, OP_cuModuleGetTexRef, context, words, 2, "plane", 5) ? 0 : peer_word(peer, 0);
}

static int textures_bind(struct control_client *peer, uint64_t context, uint64_t reference, uint64_t array)
{
	const uint64_t words[] = {reference, array, 1};

	return peer_call(peer, 0, OP_cuTexRefSetArray, context, words, 3, NULL, 0);
}

/* Of an array that ended: it is no handle any more, and counts. */
static int textures_is_kept(struct control_client *peer, uint64_t context, uint64_t reference, uint64_t array,
			    uint64_t left)
{
	int r = textures_are("ends", textures_call(peer, OP_cuArrayDestroy, context, array, 0, 1), 0);

	r |= textures_are("has ended", textures_call(peer, OP_cuArrayGetDescriptor_v2, context, array, 0, 1), 400);
	r |= textures_are("ends again", textures_call(peer, OP_cuArrayDestroy, context, array, 0, 1), 400);
	r |= textures_are("bound when gone", textures_bind(peer, context, reference, array), 1);
	r |= textures_are("is looked at", textures_call(peer, OP_cuTexRefGetFlags, context, reference, 0, 1), 0);
	r |= textures_are("is not named", textures_call(peer, OP_cuTexRefGetArray, context, reference, 0, 1), 1);
	return r | textures_are("counts", left - textures_left(peer, context) >= 8 << 20, 1);
}

static int textures_level(struct control_client *peer, uint64_t context, uint64_t reference, uint64_t *ret)
{
	const CUDA_ARRAY3D_DESCRIPTOR levels = {.Width = 2048, .Height = 1024, .Format = U32, .NumChannels = 1};
	const uint64_t words[] = {sizeof(levels), 3};
	int r = peer_call(peer, 0, OP_cuMipmappedArrayCreate, context, words, 2, &levels, sizeof(levels));

	*ret = peer_word(peer, 0);
	r |= textures_call(peer, OP_cuMipmappedArrayGetLevel, context, *ret, 1, 2);
	return r | textures_bind(peer, context, reference, peer_word(peer, 0));
}

/*
 * The driver looks at the array of a reference, so what the client ends stays, and counts, until no reference has it:
 * when it is bound to something else, when its module is unloaded, when the program's own ends.
 */
int textures_references(struct control_client *peer, uint64_t context)
{
	uint64_t module = textures_load(peer, context), reference = textures_refer(peer, context, module), own, array,
		 other, mipmap, left = textures_left(peer, context);
	int r = textures_are("its own", textures_call(peer, OP_cuTexRefCreate, context, 0, 0, 0), 0);

	own = peer_word(peer, 0);
	r |= textures_are("an array", textures_create(peer, context, 2048, 1024, 0, &array), 0);
	r |= textures_are("another", textures_create(peer, context, 2048, 1024, 0, &other), 0);
	r |= textures_are("bound", textures_bind(peer, context, reference, array), 0);
	r |= textures_are("an array as one", textures_bind(peer, context, array, array), 400);
	r |= textures_are("a context as an array", textures_bind(peer, context, reference, context), 1);
	r |= textures_are("a module's", textures_call(peer, OP_cuTexRefDestroy, context, reference, 0, 1), 1);
	r |= textures_is_kept(peer, context, reference, array, left - (8 << 20));
	r |= textures_are("bound to another", textures_bind(peer, context, reference, other), 0);
	r |= textures_are("counts no more", left - textures_left(peer, context) == 8 << 20, 1);
	r |= textures_are("by both", textures_bind(peer, context, own, other), 0);
	r |= textures_is_kept(peer, context, own, other, left);
	r |= textures_are("a module", textures_call(peer, OP_cuModuleUnload, context, module, 0, 1), 0);
	r |= textures_are("its reference", textures_call(peer, OP_cuTexRefGetFlags, context, reference, 0, 1), 400);
	r |= textures_are("counts for one", left - textures_left(peer, context) == 8 << 20, 1);
	r |= textures_are("a level", textures_level(peer, context, own, &mipmap), 0);
	r |= textures_are("the levels", textures_call(peer, OP_cuMipmappedArrayDestroy, context, mipmap, 0, 1), 0);
	r |= textures_are("is looked at", textures_call(peer, OP_cuTexRefGetFlags, context, own, 0, 1), 0);
	r |= textures_are("count", left - textures_left(peer, context) > 8 << 20, 1);
	r |= textures_are("the last", textures_call(peer, OP_cuTexRefDestroy, context, own, 0, 1), 0);
	r |= textures_are("counts nothing", left == textures_left(peer, context), 1);
	module = textures_load(peer, context);
	reference = textures_refer(peer, context, module);
	r |= textures_are("one more", textures_create(peer, context, 64, 64, 0, &array), 0);
	r |= textures_are("bound again", textures_bind(peer, context, reference, array), 0);
	r |= textures_are("ends", textures_call(peer, OP_cuArrayDestroy, context, array, 0, 1), 0);
	r |= textures_are("reset", textures_call(peer, OP_cuDevicePrimaryCtxReset_v2, 0, 0, 0, 1), 0);
	context = peer_context(peer);
	return r | textures_are("gone", textures_call(peer, OP_cuTexRefGetFlags, context, reference, 0, 1), 400);
}

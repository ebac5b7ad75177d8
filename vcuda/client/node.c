/* SPDX-License-Identifier: Apache-2.0 */

/* Nodes of graphs: copies, of ordinary memory, too; and nodes by what they are of. */

#include <stdlib.h>
#include <string.h>

#include "vcuda/client/address_map.h"
#include "vcuda/client/call.h"
#include "vcuda/client/context.h"
#include "vcuda/client/copy.h"
#include "vcuda/client/host.h"
#include "vcuda/client_api.h"
#include "vcuda/ops.h"

/* ---- copies ---- */

/*
 * In graphs from and to ordinary memory, which a graph reads or writes each time it runs, and which the server does not
 * have. Such a copy is a graph of two nodes in place of the one: a copy of page-locked memory, and a function of ours
 * before or behind it, which copies between that and the program's. What they need lives as long as a graph that has
 * them, by an object of the driver's.
 */

enum { PAGED_NODES = 2, PAGED_MOVE = 1, PAGED_NOT_SYNCHRONIZED = 1, PAGED_RELAXED = 2 };

struct paged {
	struct paged *next;
	CUDA_MEMCPY3D copy; /* what is the host's is by its address in srcHost, dstHost */
	bool from_host, to_host;
	char *staging; /* page-locked; its rows lie side by side */
	size_t room;
	CUgraphNode node; /* of the program's graph, whose copies have others */
};

static struct lock paged_lock;
static struct paged *_Atomic paged_used;
static struct paged *paged_free;

/* ---- copies: what one is ---- */

static bool paged_is_host(int type, CUdeviceptr device)
{
	return type == COPY_HOST || (type == COPY_UNIFIED && !address_map_is_device(device));
}

static bool paged_is_plain(int type, const void *host, CUdeviceptr device)
{
	const void *at = type == COPY_UNIFIED ? (const void *)device : host;

	return paged_is_host(type, device) && at && !address_map_is_locked(at, 1) &&
	       address_map_has_host((uint64_t)at, 1);
}

static bool paged_is(const CUDA_MEMCPY3D *copy)
{
	return copy && copy->WidthInBytes && copy->Height && copy->Depth &&
	       (paged_is_plain(copy->srcMemoryType, copy->srcHost, copy->srcDevice) ||
		paged_is_plain(copy->dstMemoryType, copy->dstHost, copy->dstDevice));
}

/* Whether it is the host's, page-locked or not. */
static bool paged_is_there(int type, const void *host, CUdeviceptr device)
{
	const uint64_t at = type == COPY_UNIFIED ? device : (uint64_t)host;

	return paged_is_host(type, device) && address_map_has_host(at, 1);
}

/* A stream that captures has it copied later, which the client does then. */
static bool paged_is_within_host(const CUDA_MEMCPY3D *copy)
{
	return copy->WidthInBytes && copy->Height && copy->Depth &&
	       paged_is_there(copy->srcMemoryType, copy->srcHost, copy->srcDevice) &&
	       paged_is_there(copy->dstMemoryType, copy->dstHost, copy->dstDevice);
}

struct paged_rows {
	char *at;
	size_t pitch, plane;
};

static struct paged_rows paged_rows_of(const CUDA_MEMCPY3D *copy, const void *host, size_t pitch, size_t height,
				       const size_t corner[3])
{
	struct paged_rows rows = {.pitch = pitch ? pitch : copy->WidthInBytes};

	rows.plane = rows.pitch * (height ? height : copy->Height);
	rows.at = (char *)(uintptr_t)host + corner[2] * rows.plane + corner[1] * rows.pitch + corner[0];
	return rows;
}

/* What the graph has reached: it runs in the thread of host functions. */
static void paged_run(void *argument)
{
	const struct paged *paged = argument;
	const CUDA_MEMCPY3D *copy = &paged->copy;
	const size_t from_corner[] = {copy->srcXInBytes, copy->srcY, copy->srcZ},
		     to_corner[] = {copy->dstXInBytes, copy->dstY, copy->dstZ};
	const struct paged_rows staging = {paged->staging, copy->WidthInBytes, copy->WidthInBytes * copy->Height},
				from = paged->from_host ? paged_rows_of(copy, copy->srcHost, copy->srcPitch,
									copy->srcHeight, from_corner)
							: staging,
				to = paged->to_host ? paged_rows_of(copy, copy->dstHost, copy->dstPitch,
								    copy->dstHeight, to_corner)
						    : staging;

	for (size_t z = 0; z < copy->Depth; z++)
		for (size_t y = 0; y < copy->Height; y++)
			memmove(to.at + z * to.plane + y * to.pitch, from.at + z * from.plane + y * from.pitch,
				copy->WidthInBytes);
}

/* ---- copies: what is kept of one ---- */

static void paged_unlink(struct paged *paged)
{
	struct paged *before = paged_used;

	if (before == paged) {
		paged_used = paged->next;
		return;
	}
	while (before->next != paged)
		before = before->next;
	before->next = paged->next;
}

/*
 * No graph has it any more. This is the thread that the GPU may wait for, so it asks the server for nothing: memory is
 * kept for the next.
 */
static void paged_end(void *argument)
{
	struct paged *paged = argument;

	LOCK_HOLD(&paged_lock);
	paged_unlink(paged);
	paged->node = 0;
	paged->next = paged_free;
	paged_free = paged;
}

static struct paged *paged_take_free(size_t bytes)
{
	struct paged **place = &paged_free, *found;

	LOCK_HOLD(&paged_lock);
	while (*place && ((*place)->room < bytes || (*place)->room / 4 > bytes))
		place = &(*place)->next;
	found = *place;
	if (found)
		*place = found->next;
	return found;
}

/* Nothing of it is in the capture that may be going on, which memory of a program's own would end. */
static CUresult paged_take_memory(struct paged *paged, size_t bytes)
{
	struct range range = {.kind = ADDRESS_MAP_HOST};
	CUstreamCaptureMode mode = PAGED_RELAXED;
	const bool captures = client.captures > 0 && !cuThreadExchangeStreamCaptureMode(&mode);
	CUresult r = context_current(&range.context);

	if (!r)
		r = host_take(&range, bytes);
	if (captures)
		(void)cuThreadExchangeStreamCaptureMode(&mode);
	paged->staging = (char *)range.at;
	paged->room = bytes;
	return r;
}

static CUresult paged_make(size_t bytes, struct paged **ret)
{
	struct paged *paged = paged_take_free(bytes);
	CUresult r = CUDA_SUCCESS;

	if (!paged) {
		paged = calloc(1, sizeof(*paged));
		r = !paged ? CUDA_ERROR_OUT_OF_MEMORY : bytes ? paged_take_memory(paged, bytes) : CUDA_SUCCESS;
	}
	if (r) {
		free(paged);
		return r;
	}
	LOCK_HOLD(&paged_lock);
	paged->next = paged_used;
	paged_used = paged;
	*ret = paged;
	return CUDA_SUCCESS;
}

/* As paged_run() wants it. */
static void paged_describe(struct paged *paged, const CUDA_MEMCPY3D *copy)
{
	paged->copy = *copy;
	paged->from_host = paged_is_host(copy->srcMemoryType, copy->srcDevice);
	paged->to_host = paged_is_host(copy->dstMemoryType, copy->dstDevice);
	if (paged->from_host && copy->srcMemoryType == COPY_UNIFIED)
		paged->copy.srcHost = (const void *)copy->srcDevice;
	if (paged->to_host && copy->dstMemoryType == COPY_UNIFIED)
		paged->copy.dstHost = (void *)copy->dstDevice;
}

/* With the page-locked memory where the program has its own. */
static CUDA_MEMCPY3D paged_inner(const struct paged *paged)
{
	CUDA_MEMCPY3D inner = paged->copy;

	if (paged->from_host) {
		inner.srcMemoryType = COPY_HOST;
		inner.srcHost = paged->staging;
		inner.srcXInBytes = inner.srcY = inner.srcZ = 0;
		inner.srcPitch = inner.WidthInBytes;
		inner.srcHeight = inner.Height;
	} else {
		inner.dstMemoryType = COPY_HOST;
		inner.dstHost = paged->staging;
		inner.dstXInBytes = inner.dstY = inner.dstZ = 0;
		inner.dstPitch = inner.WidthInBytes;
		inner.dstHeight = inner.Height;
	}
	return inner;
}

/* The graph has it from now on. Whatever comes of it, it ends with a graph, or has ended. */
static CUresult paged_give(struct paged *paged, CUgraph graph)
{
	CUuserObject object = 0;
	CUresult r = cuUserObjectCreate(&object, paged, paged_end, 1, PAGED_NOT_SYNCHRONIZED);

	if (r) {
		paged_end(paged);
		return r;
	}
	r = cuGraphRetainUserObject(graph, object, 1, PAGED_MOVE);
	if (r)
		(void)cuUserObjectRelease(object, 1);
	return r;
}

/* ---- copies: the graph in place of a node ---- */

static CUresult paged_fill(CUgraph graph, struct paged *paged, CUcontext context)
{
	const CUDA_HOST_NODE_PARAMS function = {paged_run, paged};
	const CUDA_MEMCPY3D inner = paged_inner(paged);
	CUgraphNode first, second;
	CUresult r;

	if (paged->from_host && paged->to_host)
		return cuGraphAddHostNode(&first, graph, NULL, 0, &function);
	if (paged->from_host) {
		r = cuGraphAddHostNode(&first, graph, NULL, 0, &function);
		return r ? r : cuGraphAddMemcpyNode(&second, graph, &first, 1, &inner, context);
	}
	r = cuGraphAddMemcpyNode(&first, graph, NULL, 0, &inner, context);
	return r ? r : cuGraphAddHostNode(&second, graph, &first, 1, &function);
}

static CUresult paged_take(const CUDA_MEMCPY3D *copy, struct paged **ret)
{
	size_t bytes;
	CUresult r;

	if (__builtin_mul_overflow(copy->WidthInBytes, copy->Height, &bytes) ||
	    __builtin_mul_overflow(bytes, copy->Depth, &bytes))
		return CUDA_ERROR_INVALID_VALUE;
	/* From the host to the host nothing is between them. */
	if (paged_is_host(copy->srcMemoryType, copy->srcDevice) && paged_is_host(copy->dstMemoryType, copy->dstDevice))
		bytes = 0;
	r = paged_make(bytes, ret);
	if (!r)
		paged_describe(*ret, copy);
	return r;
}

static CUresult paged_build(const CUDA_MEMCPY3D *copy, CUcontext context, CUgraph *ret, struct paged **ret_paged)
{
	CUgraph graph = 0;
	CUresult r = cuGraphCreate(&graph, 0);

	if (!r)
		r = paged_take(copy, ret_paged);
	if (!r)
		r = paged_give(*ret_paged, graph);
	if (!r)
		r = paged_fill(graph, *ret_paged, context);
	if (r && graph)
		(void)cuGraphDestroy(graph);
	*ret = graph;
	return r;
}

/* With the lock. */
static struct paged *paged_of(CUgraphNode node)
{
	struct paged *paged = paged_used;

	while (paged && paged->node != node)
		paged = paged->next;
	return paged;
}

static void paged_move_node(struct paged *paged, CUgraphNode node)
{
	struct paged *old;

	LOCK_HOLD(&paged_lock);
	old = paged_of(node);
	if (old)
		old->node = 0;
	paged->node = node;
}

static bool paged_find(CUgraphNode node, CUDA_MEMCPY3D *ret)
{
	const struct paged *paged;

	if (!paged_used || !node)
		return false;
	LOCK_HOLD(&paged_lock);
	paged = paged_of(node);
	if (paged)
		*ret = paged->copy;
	return paged;
}

static CUresult paged_add(CUgraphNode *node, CUgraph graph, const CUgraphNode *before, size_t count,
			  const CUDA_MEMCPY3D *copy, CUcontext context)
{
	struct paged *paged;
	CUgraph child;
	CUresult r = paged_build(copy, context, &child, &paged);

	if (r)
		return r;
	r = cuGraphAddChildGraphNode(node, graph, before, count, child);
	if (!r)
		paged_move_node(paged, *node);
	(void)cuGraphDestroy(child);
	return r;
}

static CUresult paged_set_exec(CUgraphExec exec, CUgraphNode node, const CUDA_MEMCPY3D *copy, CUcontext context)
{
	struct paged *paged;
	CUDA_MEMCPY3D old;
	CUgraph child;
	CUresult r;

	/* As the driver has it, of all copies. */
	if (!paged_find(node, &old) || old.Height != 1 || old.Depth != 1 || copy->Height != 1 || copy->Depth != 1)
		return call_fail(CUDA_ERROR_INVALID_VALUE);
	r = paged_build(copy, context, &child, &paged);
	if (r)
		return r;
	r = cuGraphExecChildGraphNodeSetParams(exec, node, child);
	(void)cuGraphDestroy(child);
	return r;
}

/* ---- copies: nodes that are such ---- */

/* The other node is the function. */
static CUresult paged_set_nodes(CUgraph graph, struct paged *paged, const CUgraphNode *nodes, size_t count)
{
	const CUDA_HOST_NODE_PARAMS function = {paged_run, paged};
	const CUDA_MEMCPY3D inner = paged_inner(paged);
	CUresult r = paged_give(paged, graph);

	for (size_t i = 0; i < count && !r; i++) {
		CUgraphNodeType type = 0;

		r = cuGraphNodeGetType(nodes[i], &type);
		if (!r)
			r = type == 1 ? cuGraphMemcpyNodeSetParams(nodes[i], &inner)
				      : cuGraphHostNodeSetParams(nodes[i], &function);
	}
	return r;
}

static CUresult paged_set(CUgraphNode node, const CUDA_MEMCPY3D *copy)
{
	CUgraphNode nodes[PAGED_NODES];
	size_t count = PAGED_NODES;
	struct paged *paged;
	CUDA_MEMCPY3D old;
	CUgraph graph = 0;
	CUresult r;

	/* Which way it goes stays. */
	if (!paged_find(node, &old) ||
	    paged_is_host(old.srcMemoryType, old.srcDevice) != paged_is_host(copy->srcMemoryType, copy->srcDevice) ||
	    paged_is_host(old.dstMemoryType, old.dstDevice) != paged_is_host(copy->dstMemoryType, copy->dstDevice))
		return CUDA_ERROR_NOT_SUPPORTED;
	r = cuGraphChildGraphNodeGetGraph(node, &graph);
	if (!r)
		r = cuGraphGetNodes(graph, nodes, &count);
	if (!r)
		r = paged_take(copy, &paged);
	if (!r)
		r = paged_set_nodes(graph, paged, nodes, count);
	if (!r)
		paged_move_node(paged, node);
	return r;
}

/* ---- copies: nodes of all ---- */

/* A graph may run at any time, so the memory of the host must be what the server shares. */
static CUresult paged_read_side(int *type, const void **host, CUdeviceptr device)
{
	struct range range;

	if (*type == COPY_UNIFIED) {
		*type = address_map_find(device, &range) && address_map_is_host(&range) ? COPY_HOST : COPY_DEVICE;
		*host = (const void *)device;
	}
	return *type == COPY_HOST && !address_map_is_locked(*host, 1) ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;
}

static void paged_name_side(int *type, const void *host, CUdeviceptr *device, size_t bytes)
{
	if (*type != COPY_HOST || !address_map_is_device_alone((uint64_t)host, bytes))
		return;
	*type = COPY_DEVICE;
	*device = (CUdeviceptr)host;
}

/* With one address space for all, a program may call the host's what is a device's: then it is named so. */
static const CUDA_MEMCPY3D *paged_name(const CUDA_MEMCPY3D *copy, CUDA_MEMCPY3D *ret)
{
	if (!copy || !copy->WidthInBytes)
		return copy;
	*ret = *copy;
	paged_name_side(&ret->srcMemoryType, ret->srcHost, &ret->srcDevice, copy->WidthInBytes);
	paged_name_side(&ret->dstMemoryType, ret->dstHost, &ret->dstDevice, copy->WidthInBytes);
	return ret;
}

static CUresult paged_read_copy(const CUDA_MEMCPY3D *copy, CUDA_MEMCPY3D *ret)
{
	const void *to;
	CUresult r;

	if (!copy)
		return call_fail(CUDA_ERROR_INVALID_VALUE);
	*ret = *copy;
	to = ret->dstHost;
	r = paged_read_side(&ret->srcMemoryType, &ret->srcHost, ret->srcDevice);
	if (!r)
		r = paged_read_side(&ret->dstMemoryType, &to, ret->dstDevice);
	ret->dstHost = (void *)(uintptr_t)to;
	return r;
}

CUresult cuGraphAddMemcpyNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *before, size_t count,
			      const CUDA_MEMCPY3D *copy, CUcontext context)
{
	const uint64_t words[] = {graph, count * sizeof(*before), count, sizeof(*copy), context_handle(context)};
	CUDA_MEMCPY3D ready, named;
	const struct call_part parts[] = {{before, count * sizeof(*before)}, {&ready, sizeof(ready)}};
	CUresult r;

	if (!node || (count && !before) || count > CALL_HANDLES)
		return call_fail(CUDA_ERROR_INVALID_VALUE);
	copy = paged_name(copy, &named);
	if (paged_is(copy))
		return paged_add(node, graph, before, count, copy, context);
	r = paged_read_copy(copy, &ready);
	return r ? r : call_sync(OP_cuGraphAddMemcpyNode, words, 5, parts, 2, node, sizeof(*node));
}

CUresult cuGraphMemcpyNodeSetParams(CUgraphNode node, const CUDA_MEMCPY3D *copy)
{
	const uint64_t words[] = {node, sizeof(*copy)};
	CUDA_MEMCPY3D ready, named;
	const struct call_part part = {&ready, sizeof(ready)};
	CUresult r;

	copy = paged_name(copy, &named);
	if (copy && (paged_is(copy) || paged_find(node, &ready)))
		return paged_set(node, copy);
	r = paged_read_copy(copy, &ready);
	return r ? r : call_sync(OP_cuGraphMemcpyNodeSetParams, words, 2, &part, 1, NULL, 0);
}

CUresult cuGraphMemcpyNodeGetParams(CUgraphNode node, CUDA_MEMCPY3D *copy)
{
	if (!copy)
		return call_fail(CUDA_ERROR_INVALID_VALUE);
	return paged_find(node, copy)
		       ? call_fail(CUDA_SUCCESS)
		       : call_sync(OP_cuGraphMemcpyNodeGetParams, &node, 1, NULL, 0, copy, sizeof(*copy));
}

CUresult cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType *type)
{
	enum { TYPE_COPY = 1 };
	CUDA_MEMCPY3D copy;

	if (!type)
		return call_fail(CUDA_ERROR_INVALID_VALUE);
	if (!paged_find(node, &copy))
		return call_sync(OP_cuGraphNodeGetType, &node, 1, NULL, 0, type, sizeof(*type));
	*type = TYPE_COPY;
	return call_fail(CUDA_SUCCESS);
}

CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec exec, CUgraphNode node, const CUDA_MEMCPY3D *copy,
					CUcontext context)
{
	const uint64_t words[] = {exec, node, sizeof(*copy), context_handle(context)};
	CUDA_MEMCPY3D ready, named;
	const struct call_part part = {&ready, sizeof(ready)};
	CUresult r;

	copy = paged_name(copy, &named);
	if (copy && (paged_is(copy) || paged_find(node, &ready)))
		return paged_set_exec(exec, node, copy, context);
	r = paged_read_copy(copy, &ready);
	return r ? r : call_sync(OP_cuGraphExecMemcpyNodeSetParams, words, 4, &part, 1, NULL, 0);
}

/* ---- copies: in captures ---- */

bool paged_captures(CUstream stream, const CUDA_MEMCPY3D *copy)
{
	CUstreamCaptureStatus status = 0;
	CUDA_MEMCPY3D named;

	if (client.captures == 0 || cuStreamIsCapturing(stream, &status) || status != 1 || !copy)
		return false;
	copy = paged_name(copy, &named);
	return paged_is(copy) || paged_is_within_host(copy);
}

CUresult paged_capture(CUstream stream, const CUDA_MEMCPY3D *copy)
{
	enum { SET = 1 };
	CUstreamCaptureStatus status = 0;
	const CUgraphNode *before = NULL;
	CUDA_MEMCPY3D named;
	CUgraphNode node = 0;
	CUcontext context = 0;
	CUgraph graph = 0;
	size_t count = 0;
	CUresult r = on_cuStreamGetCaptureInfo_v2(stream, &status, NULL, &graph, &before, &count);

	if (!r)
		r = cuCtxGetCurrent(&context);
	if (!r)
		r = paged_add(&node, graph, before, count, paged_name(copy, &named), context);
	return r ? r : cuStreamUpdateCaptureDependencies(stream, &node, 1, SET);
}

bool paged_captures_row(CUstream stream, CUdeviceptr device, const void *host, size_t bytes, bool in,
			CUDA_MEMCPY3D *ret)
{
	*ret = (CUDA_MEMCPY3D){.srcMemoryType = in ? COPY_HOST : COPY_DEVICE,
			       .dstMemoryType = in ? COPY_DEVICE : COPY_HOST,
			       .srcHost = in ? host : NULL,
			       .srcDevice = in ? 0 : device,
			       .dstHost = in ? NULL : (void *)(uintptr_t)host,
			       .dstDevice = in ? device : 0,
			       .srcPitch = bytes,
			       .dstPitch = bytes,
			       .srcHeight = 1,
			       .dstHeight = 1,
			       .WidthInBytes = bytes,
			       .Height = 1,
			       .Depth = 1};
	return paged_captures(stream, ret);
}

/* ---- nodes in one struct: each has a function of its own, but those with a condition ---- */

enum node_type {
	NODE_KERNEL,
	NODE_COPY,
	NODE_FILL,
	NODE_HOST,
	NODE_GRAPH,
	NODE_EMPTY,
	NODE_WAIT,
	NODE_RECORD,
	NODE_ALLOC = 10,
	NODE_FREE = 11,
	NODE_CONDITION = 13,
};

/* None of its own is the current one. */
static CUcontext node_context(CUcontext context)
{
	CUcontext current = 0;

	return context || cuCtxGetCurrent(&current) ? context : current;
}

static CUDA_MEMSET_NODE_PARAMS node_fill(const CUgraphNodeParams *parameters)
{
	CUDA_MEMSET_NODE_PARAMS fill;

	memcpy(&fill, &parameters->memset, sizeof(fill));
	return fill;
}

/* ---- nodes with a condition ---- */

/* Where the graphs stand that it runs is the program's to read as long as the node is there. */
static CUresult node_keep_graphs(CUDA_CONDITIONAL_NODE_PARAMS *condition, const uint64_t *graphs)
{
	condition->phGraph_out = calloc(condition->size, sizeof(*condition->phGraph_out));
	if (!condition->phGraph_out)
		return CUDA_ERROR_OUT_OF_MEMORY;
	memcpy(condition->phGraph_out, graphs, condition->size * sizeof(*graphs));
	return CUDA_SUCCESS;
}

static CUresult node_add_condition(CUgraphNode *node, CUgraph graph, const CUgraphNode *before, size_t count,
				   CUDA_CONDITIONAL_NODE_PARAMS *condition)
{
	enum { FIXED = 5, GRAPHS = 64 };
	const uint64_t words[FIXED] = {graph, condition->handle, (uint64_t)condition->type, condition->size,
				       context_handle(condition->ctx)};
	uint64_t out[1 + GRAPHS];
	CUresult r;

	if (condition->size == 0 || condition->size > GRAPHS)
		return call_fail(CUDA_ERROR_INVALID_VALUE);
	r = call_with_handles(OP_cuGraphAddNode_v2, words, FIXED, before, count, NULL, out,
			      (1 + condition->size) * sizeof(*out));
	if (!r)
		r = node_keep_graphs(condition, &out[1]);
	if (!r)
		*node = out[0];
	return r;
}

/* ---- nodes of memory ---- */

CUresult cuGraphAddMemAllocNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *before, size_t count,
				CUDA_MEM_ALLOC_NODE_PARAMS *parameters)
{
	enum { FIXED = 3, ON_DEVICE = 1 };
	uint64_t words[FIXED] = {graph}, out[2];
	struct context *context;
	struct range range;
	CUresult r = context_current(&context);

	if (r)
		return r;
	if (!node || !parameters || (count && !before) || count > CALL_HANDLES || parameters->bytesize == 0)
		return CUDA_ERROR_INVALID_VALUE;
	/* Of a device, for itself alone, and not to be shared. */
	if (parameters->poolProps.location.type != ON_DEVICE || parameters->poolProps.handleTypes)
		return call_refuse("cuGraphAddMemAllocNode");
	for (size_t i = 0; i < parameters->accessDescCount; i++)
		if (parameters->accessDescs[i].location.id != parameters->poolProps.location.id)
			return call_refuse("cuGraphAddMemAllocNode");
	words[1] = (uint64_t)parameters->poolProps.location.id;
	words[2] = parameters->bytesize;
	r = call_with_handles(OP_cuGraphAddMemAllocNode, words, FIXED, before, count, NULL, out, sizeof(out));
	if (r)
		return r;
	*node = out[0];
	parameters->dptr = out[1];
	range = (struct range){
		.at = out[1], .bytes = parameters->bytesize, .kind = ADDRESS_MAP_GRAPH, .ordinal = (CUdevice)words[1]};
	return address_map_add(&range);
}

CUresult cuDeviceGetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attribute, void *value)
{
	const uint64_t words[] = {(uint64_t)device, (uint64_t)attribute};

	return value ? call_sync(OP_cuDeviceGetGraphMemAttribute, words, 2, NULL, 0, value, sizeof(uint64_t))
		     : call_fail(CUDA_ERROR_INVALID_VALUE);
}

CUresult cuDeviceSetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attribute, void *value)
{
	uint64_t words[] = {(uint64_t)device, (uint64_t)attribute, 0};

	if (!value)
		return call_fail(CUDA_ERROR_INVALID_VALUE);
	memcpy(&words[2], value, sizeof(words[2]));
	return call_sync(OP_cuDeviceSetGraphMemAttribute, words, 3, NULL, 0, NULL, 0);
}

/* ---- nodes of any type ---- */

static CUresult node_add(CUgraphNode *node, CUgraph graph, const CUgraphNode *before, size_t count,
			 CUgraphNodeParams *parameters)
{
	const CUDA_MEMSET_NODE_PARAMS fill = node_fill(parameters);

	switch ((enum node_type)parameters->type) {
	case NODE_KERNEL:
		return cuGraphAddKernelNode_v2(node, graph, before, count, &parameters->kernel);
	case NODE_COPY:
		return cuGraphAddMemcpyNode(node, graph, before, count, &parameters->memcpy.copyParams,
					    node_context(parameters->memcpy.copyCtx));
	case NODE_FILL:
		return cuGraphAddMemsetNode(node, graph, before, count, &fill, node_context(parameters->memset.ctx));
	case NODE_HOST:
		return cuGraphAddHostNode(node, graph, before, count, &parameters->host);
	case NODE_GRAPH:
		return cuGraphAddChildGraphNode(node, graph, before, count, parameters->graph.graph);
	case NODE_EMPTY:
		return cuGraphAddEmptyNode(node, graph, before, count);
	case NODE_WAIT:
		return cuGraphAddEventWaitNode(node, graph, before, count, parameters->eventRecord.event);
	case NODE_RECORD:
		return cuGraphAddEventRecordNode(node, graph, before, count, parameters->eventRecord.event);
	case NODE_ALLOC:
		return cuGraphAddMemAllocNode(node, graph, before, count, &parameters->alloc);
	case NODE_FREE:
		return cuGraphAddMemFreeNode(node, graph, before, count, parameters->free.dptr);
	case NODE_CONDITION:
		return node_add_condition(node, graph, before, count, &parameters->conditional);
	}
	return call_refuse("cuGraphAddNode");
}

CUresult cuGraphAddNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *before, size_t count,
			CUgraphNodeParams *parameters)
{
	if (!node || !parameters || (count && !before) || count > CALL_HANDLES)
		return call_fail(CUDA_ERROR_INVALID_VALUE);
	return node_add(node, graph, before, count, parameters);
}

CUresult cuGraphAddNode_v2(CUgraphNode *node, CUgraph graph, const CUgraphNode *before, const CUgraphEdgeData *data,
			   size_t count, CUgraphNodeParams *parameters)
{
	return graph_has_data(data, count) ? call_refuse("cuGraphAddNode_v2")
					   : cuGraphAddNode(node, graph, before, count, parameters);
}

CUresult cuGraphNodeSetParams(CUgraphNode node, CUgraphNodeParams *parameters)
{
	CUDA_MEMSET_NODE_PARAMS fill;

	if (!parameters)
		return call_fail(CUDA_ERROR_INVALID_VALUE);
	fill = node_fill(parameters);
	switch ((enum node_type)parameters->type) {
	case NODE_KERNEL:
		return cuGraphKernelNodeSetParams_v2(node, &parameters->kernel);
	case NODE_COPY:
		return cuGraphMemcpyNodeSetParams(node, &parameters->memcpy.copyParams);
	case NODE_FILL:
		return cuGraphMemsetNodeSetParams(node, &fill);
	case NODE_HOST:
		return cuGraphHostNodeSetParams(node, &parameters->host);
	case NODE_WAIT:
		return cuGraphEventWaitNodeSetEvent(node, parameters->eventRecord.event);
	case NODE_RECORD:
		return cuGraphEventRecordNodeSetEvent(node, parameters->eventRecord.event);
	default:
		return call_refuse("cuGraphNodeSetParams");
	}
}

CUresult cuGraphExecNodeSetParams(CUgraphExec exec, CUgraphNode node, CUgraphNodeParams *parameters)
{
	CUDA_MEMSET_NODE_PARAMS fill;

	if (!parameters)
		return call_fail(CUDA_ERROR_INVALID_VALUE);
	fill = node_fill(parameters);
	switch ((enum node_type)parameters->type) {
	case NODE_KERNEL:
		return cuGraphExecKernelNodeSetParams_v2(exec, node, &parameters->kernel);
	case NODE_COPY:
		return cuGraphExecMemcpyNodeSetParams(exec, node, &parameters->memcpy.copyParams,
						      node_context(parameters->memcpy.copyCtx));
	case NODE_FILL:
		return cuGraphExecMemsetNodeSetParams(exec, node, &fill, node_context(parameters->memset.ctx));
	case NODE_HOST:
		return cuGraphExecHostNodeSetParams(exec, node, &parameters->host);
	case NODE_GRAPH:
		return cuGraphExecChildGraphNodeSetParams(exec, node, parameters->graph.graph);
	case NODE_WAIT:
		return cuGraphExecEventWaitNodeSetEvent(exec, node, parameters->eventRecord.event);
	case NODE_RECORD:
		return cuGraphExecEventRecordNodeSetEvent(exec, node, parameters->eventRecord.event);
	default:
		return call_refuse("cuGraphExecNodeSetParams");
	}
}

/* SPDX-License-Identifier: Apache-2.0 */

/* Nodes by what they are of; graphs that nodes run on a condition; memory that graphs take. */

#include <string.h>

#include "check.h"

enum { KERNEL, COPY, FILL, HOST, CHILD, EMPTY, WAIT, RECORD, ALLOC = 10, FREE = 11, CONDITION = 13 };
enum { IF, WHILE, SWITCH, DEFAULT = 1 };

static CUgraphNodeParams condition_fill(CUdeviceptr to, unsigned value)
{
	return (CUgraphNodeParams){.type = FILL,
				   .fill = {.fill = {.to = to, .value = value, .element = 4, .width = 1, .height = 1}}};
}

static CUgraphNode condition_add(CUgraph graph, CUgraphNodeParams *what)
{
	CUgraphNode node = NULL;

	OK(cu.cuGraphAddNode_v2(&node, graph, NULL, NULL, 0, what));
	return node;
}

/* Adds a node that runs graphs, each of which writes its number to @to. */
static CUgraphNode condition_make(CUgraph graph, int type, unsigned size, unsigned value, CUdeviceptr to)
{
	CUgraphNodeParams what = {.type = CONDITION, .conditional = {.type = type, .size = size, .context = context}};
	CUgraphNode node;

	OK(cu.cuGraphConditionalHandleCreate(&what.conditional.handle, graph, context, value, DEFAULT));
	node = condition_add(graph, &what);
	for (unsigned i = 0; i < size && what.conditional.graphs; i++) {
		CUgraphNodeParams fill = condition_fill(to, 100 + i);

		(void)condition_add(what.conditional.graphs[i], &fill);
	}
	return node;
}

/* Return: what the word is after the graph has run. */
static uint32_t condition_run(CUgraph graph, CUdeviceptr word)
{
	CUgraphExec exec = NULL;
	uint32_t is;

	OK(cu.cuMemsetD32_v2(word, 0, 1));
	OK(cu.cuGraphInstantiateWithFlags(&exec, graph, 0));
	OK(cu.cuGraphLaunch(exec, NULL));
	OK(cu.cuCtxSynchronize());
	is = check_word(word);
	OK(cu.cuGraphExecDestroy(exec));
	return is;
}

static uint32_t condition_of(int type, unsigned size, unsigned value)
{
	CUdeviceptr word = check_alloc(4);
	CUgraph graph = NULL;
	CUgraphNode node;
	int is = 0;
	uint32_t r;

	OK(cu.cuGraphCreate(&graph, 0));
	node = condition_make(graph, type, size, value, word);
	OK(cu.cuGraphNodeGetType(node, &is));
	IS(CONDITION, is);
	r = condition_run(graph, word);
	OK(cu.cuGraphDestroy(graph));
	OK(cu.cuMemFree_v2(word));
	return r;
}

static void condition_if(void)
{
	IS(100, condition_of(IF, 1, 1));
	IS(0, condition_of(IF, 1, 0));
	IS(0, condition_of(WHILE, 1, 0));
}

static void condition_switch(void)
{
	IS(101, condition_of(SWITCH, 3, 1));
	IS(0, condition_of(SWITCH, 3, 3));
	IS(101, condition_of(IF, 2, 0));
}

static void condition_wrong(void)
{
	CUgraph graph = NULL, other = NULL;
	CUgraphNodeParams what = {.type = CONDITION, .conditional = {.type = IF, .size = 1, .context = context}};
	CUgraphConditionalHandle handle = 0;
	CUgraphNode node = NULL;

	OK(cu.cuGraphCreate(&graph, 0));
	OK(cu.cuGraphCreate(&other, 0));
	IS(1, cu.cuGraphConditionalHandleCreate(NULL, graph, context, 0, 0));
	OK(cu.cuGraphConditionalHandleCreate(&handle, graph, context, 0, 0));
	what.conditional.handle = handle;
	IS(1, cu.cuGraphAddNode_v2(&node, other, NULL, NULL, 0, &what));
	what.conditional.size = 0;
	IS(1, cu.cuGraphAddNode_v2(&node, graph, NULL, NULL, 0, &what));
	IS(1, cu.cuGraphAddNode_v2(NULL, graph, NULL, NULL, 0, &what));
	IS(1, cu.cuGraphAddNode_v2(&node, graph, NULL, NULL, 0, NULL));
	OK(cu.cuGraphDestroy(graph));
	OK(cu.cuGraphDestroy(other));
}

/* What a stream does is captured into the graph that a condition runs. */
static void condition_captured(void)
{
	CUdeviceptr word = check_alloc(4);
	CUgraphNodeParams what = {.type = CONDITION, .conditional = {.type = IF, .size = 1, .context = context}};
	CUstream stream = NULL;
	CUgraph graph = NULL, ended = NULL;

	OK(cu.cuStreamCreate(&stream, 1));
	OK(cu.cuGraphCreate(&graph, 0));
	OK(cu.cuGraphConditionalHandleCreate(&what.conditional.handle, graph, context, 1, DEFAULT));
	(void)condition_add(graph, &what);
	OK(cu.cuStreamBeginCaptureToGraph(stream, what.conditional.graphs[0], NULL, NULL, 0, 2));
	OK(cu.cuMemsetD32Async(word, 55, 1, stream));
	OK(cu.cuStreamEndCapture(stream, &ended));
	TRUE(ended == what.conditional.graphs[0]);
	IS(55, condition_run(graph, word));
	OK(cu.cuGraphDestroy(graph));
	OK(cu.cuStreamDestroy_v2(stream));
	OK(cu.cuMemFree_v2(word));
}

/* Behind a node that is there. */
static void condition_capture_behind(void)
{
	CUdeviceptr word = check_alloc(4);
	CUgraphNodeParams fill = condition_fill(word, 1);
	CUgraphNode first, nodes[4];
	CUstream stream = NULL;
	CUgraph graph = NULL, ended = NULL;
	size_t count = 4;

	OK(cu.cuStreamCreate(&stream, 1));
	OK(cu.cuGraphCreate(&graph, 0));
	first = condition_add(graph, &fill);
	OK(cu.cuStreamBeginCaptureToGraph(stream, graph, &first, NULL, 1, 2));
	OK(cu.cuMemsetD32Async(word, 2, 1, stream));
	OK(cu.cuStreamEndCapture(stream, &ended));
	TRUE(ended == graph);
	OK(cu.cuGraphGetNodes(graph, nodes, &count));
	IS(2, (int)count);
	IS(2, condition_run(graph, word));
	OK(cu.cuGraphDestroy(graph));
	OK(cu.cuStreamDestroy_v2(stream));
	OK(cu.cuMemFree_v2(word));
}

/* ---- nodes by what they are of ---- */

static int called;

static void condition_call(void *data)
{
	called += *(int *)data;
}

static void condition_every(void)
{
	CUdeviceptr word = check_alloc(8);
	int three = 3, type = 0;
	CUevent event = NULL;
	CUgraph graph = NULL, child = NULL;
	CUgraphNodeParams fill = condition_fill(word, 7), other = condition_fill(word, 8);
	CUgraphNodeParams host = {.type = HOST, .host = {condition_call, &three}}, empty = {.type = EMPTY};
	CUgraphNodeParams copy = {.type = COPY}, in, record = {.type = RECORD}, wait = {.type = WAIT};
	CUgraphNode first, second = NULL;
	CUgraphExec exec = NULL;

	OK(cu.cuEventCreate(&event, 0));
	OK(cu.cuGraphCreate(&graph, 0));
	OK(cu.cuGraphCreate(&child, 0));
	first = condition_add(graph, &fill);
	copy.copy.context = context;
	copy.copy.copy = (CUDA_MEMCPY3D){.src_type = 2,
					 .src_device = word,
					 .src_pitch = 4,
					 .src_height = 1,
					 .dst_type = 2,
					 .dst_device = word + 4,
					 .dst_pitch = 4,
					 .dst_height = 1,
					 .width = 4,
					 .height = 1,
					 .depth = 1};
	OK(cu.cuGraphAddNode_v2(&second, graph, &first, NULL, 1, &copy));
	(void)condition_add(graph, &host);
	(void)condition_add(graph, &empty);
	record.event = event;
	(void)condition_add(graph, &record);
	wait.event = event;
	(void)condition_add(graph, &wait);
	in = (CUgraphNodeParams){.type = CHILD, .child = child};
	OK(cu.cuGraphNodeGetType(condition_add(graph, &in), &type));
	IS(CHILD, type);
	IS(7, condition_run(graph, word));
	IS(7, check_word(word + 4));
	IS(3, called);
	OK(cu.cuGraphNodeSetParams(first, &other));
	IS(8, condition_run(graph, word));
	OK(cu.cuGraphInstantiateWithFlags(&exec, graph, 0));
	OK(cu.cuGraphExecNodeSetParams(exec, first, &fill));
	OK(cu.cuGraphLaunch(exec, NULL));
	IS(7, check_word(word + 4));
	OK(cu.cuGraphExecDestroy(exec));
	OK(cu.cuGraphAddNode(&second, graph, &first, 1, &empty));
	OK(cu.cuGraphDestroy(child));
	OK(cu.cuGraphDestroy(graph));
	OK(cu.cuEventDestroy_v2(event));
	OK(cu.cuMemFree_v2(word));
}

/* A kernel's, by itself and by that of another. */
static void condition_attributes(void)
{
	enum { PRIORITY = 8 };
	CUgraphNodeParams what = {.type = KERNEL,
				  .kernel = {.function = check_function("nop"),
					     .grid_x = 1,
					     .grid_y = 1,
					     .grid_z = 1,
					     .block_x = 1,
					     .block_y = 1,
					     .block_z = 1}};
	CUstreamAttrValue value = {.priority = -1}, is = {.priority = 7};
	CUgraph graph = NULL;
	CUgraphNode node, other;

	OK(cu.cuGraphCreate(&graph, 0));
	node = condition_add(graph, &what);
	other = condition_add(graph, &what);
	OK(cu.cuGraphKernelNodeSetAttribute(node, PRIORITY, &value));
	OK(cu.cuGraphKernelNodeGetAttribute(node, PRIORITY, &is));
	IS(-1, is.priority);
	OK(cu.cuGraphKernelNodeCopyAttributes(other, node));
	OK(cu.cuGraphKernelNodeGetAttribute(other, PRIORITY, &is));
	IS(-1, is.priority);
	OK(cu.cuGraphDestroy(graph));
}

static void condition_instantiate(void)
{
	CUdeviceptr word = check_alloc(4);
	CUgraphNodeParams fill = condition_fill(word, 21);
	CUDA_GRAPH_INSTANTIATE_PARAMS how = {.flags = 2, .result = 9};
	CUgraphExec exec = NULL;
	CUgraph graph = NULL;

	OK(cu.cuGraphCreate(&graph, 0));
	(void)condition_add(graph, &fill);
	OK(cu.cuGraphInstantiateWithParams(&exec, graph, &how));
	IS(0, how.result);
	OK(cu.cuGraphLaunch(exec, NULL));
	IS(21, check_word(word));
	OK(cu.cuGraphExecDestroy(exec));
	OK(cu.cuGraphDestroy(graph));
	OK(cu.cuMemFree_v2(word));
}

/* ---- memory ---- */

static void condition_memory(void)
{
	CUgraphNodeParams alloc = {.type = ALLOC,
				   .alloc = {.pool = {.alloc_type = 1, .location = {1, 0}}, .bytes = 4096}};
	CUgraphNodeParams free = {.type = FREE};
	CUDA_MEM_ALLOC_NODE_PARAMS again = alloc.alloc;
	CUgraphNode first, second = NULL, third = NULL;
	CUgraphExec exec = NULL;
	CUgraph graph = NULL;
	CUdeviceptr is = 0;
	cuuint64_t bytes = 1;

	OK(cu.cuGraphCreate(&graph, 0));
	first = condition_add(graph, &alloc);
	TRUE(alloc.alloc.pointer != 0);
	free.pointer = alloc.alloc.pointer;
	OK(cu.cuGraphAddNode_v2(&third, graph, &first, NULL, 1, &free));
	OK(cu.cuGraphMemFreeNodeGetParams(third, &is));
	TRUE(is == alloc.alloc.pointer);
	OK(cu.cuGraphAddMemAllocNode(&first, graph, &third, 1, &again));
	OK(cu.cuGraphAddMemFreeNode(&second, graph, &first, 1, again.pointer));
	OK(cu.cuGraphInstantiateWithFlags(&exec, graph, 0));
	OK(cu.cuGraphLaunch(exec, NULL));
	OK(cu.cuCtxSynchronize());
	OK(cu.cuGraphExecDestroy(exec));
	OK(cu.cuGraphDestroy(graph));
	OK(cu.cuDeviceGetGraphMemAttribute(0, 0, &bytes));
	bytes = 0;
	OK(cu.cuDeviceSetGraphMemAttribute(0, 1, &bytes));
	IS(1, cu.cuDeviceGetGraphMemAttribute(0, 77, &bytes));
	OK(cu.cuDeviceGraphMemTrim(0));
	IS(101, cu.cuDeviceGraphMemTrim(77));
}

/* It is there each time that the graph has run, and the program frees it. */
static void condition_memory_kept(void)
{
	CUDA_MEM_ALLOC_NODE_PARAMS alloc = {.pool = {.alloc_type = 1, .location = {1, 0}}, .bytes = 4096};
	CUDA_MEMSET_NODE_PARAMS fill = {.value = 5, .element = 4, .width = 16, .height = 1};
	CUgraphNode first = NULL, second = NULL;
	CUgraphExec exec = NULL;
	CUgraph graph = NULL;

	OK(cu.cuGraphCreate(&graph, 0));
	OK(cu.cuGraphAddMemAllocNode(&first, graph, NULL, 0, &alloc));
	fill.to = alloc.pointer;
	OK(cu.cuGraphAddMemsetNode(&second, graph, &first, 1, &fill, context));
	OK(cu.cuGraphInstantiateWithFlags(&exec, graph, 0));
	for (int i = 0; i < 3; i++) {
		OK(cu.cuGraphLaunch(exec, NULL));
		IS(5, check_word(alloc.pointer + 8));
		OK(i == 1 ? cu.cuMemFree_v2(alloc.pointer) : cu.cuMemFreeAsync(alloc.pointer, NULL));
		OK(cu.cuCtxSynchronize());
	}
	OK(cu.cuGraphExecDestroy(exec));
	OK(cu.cuGraphDestroy(graph));
}

/* The same of a capture. */
static void condition_memory_captured(void)
{
	CUdeviceptr pointer = 0;
	CUgraphExec exec = NULL;
	CUstream stream = NULL;
	CUgraph graph = NULL;

	OK(cu.cuStreamCreate(&stream, 1));
	OK(cu.cuStreamBeginCapture_v2(stream, 2));
	OK(cu.cuMemAllocAsync(&pointer, 1 << 20, stream));
	OK(cu.cuMemsetD32Async(pointer, 7, 1024, stream));
	OK(cu.cuStreamEndCapture(stream, &graph));
	OK(cu.cuGraphInstantiateWithFlags(&exec, graph, 0));
	for (int i = 0; i < 3; i++) {
		OK(cu.cuGraphLaunch(exec, stream));
		OK(cu.cuStreamSynchronize(stream));
		IS(7, check_word(pointer + 4));
		OK(i == 1 ? cu.cuMemFree_v2(pointer) : cu.cuMemFreeAsync(pointer, stream));
		OK(cu.cuStreamSynchronize(stream));
	}
	OK(cu.cuGraphExecDestroy(exec));
	OK(cu.cuGraphDestroy(graph));
	OK(cu.cuStreamDestroy_v2(stream));
}

const struct check condition_checks[] = {
	{"if, or not", condition_if, false},
	{"one of several", condition_switch, false},
	{"made wrongly", condition_wrong, false},
	{"captured", condition_captured, false},
	{"captured behind a node", condition_capture_behind, false},
	{"nodes of every kind", condition_every, false},
	{"attributes of kernels", condition_attributes, false},
	{"instantiated with parameters", condition_instantiate, false},
	{"memory of a graph", condition_memory, false},
	{"memory that a graph leaves to the program", condition_memory_kept, false},
	{"memory that a captured graph leaves to it", condition_memory_captured, false},
	END,
};

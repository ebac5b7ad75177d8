/* SPDX-License-Identifier: Apache-2.0 */

/* Graphs made by calls. */

#include <stdatomic.h>
#include <string.h>

#include <time.h>

#include "check.h"

static uint32_t graph_value, graph_count;
static CUdeviceptr graph_out;

static CUDA_KERNEL_NODE_PARAMS graph_fill(uint32_t value)
{
	static void *parameters[3];

	graph_value = value;
	graph_count = 4;
	parameters[0] = &graph_out;
	parameters[1] = &graph_value;
	parameters[2] = &graph_count;
	return (CUDA_KERNEL_NODE_PARAMS){.function = check_function("fill"),
					 .grid_x = 1,
					 .grid_y = 1,
					 .grid_z = 1,
					 .block_x = 32,
					 .block_y = 1,
					 .block_z = 1,
					 .parameters = parameters};
}

static CUgraph graph_make(void)
{
	CUgraph graph = NULL;

	OK(cu.cuGraphCreate(&graph, 0));
	if (!graph_out)
		graph_out = check_alloc(4096);
	OK(cu.cuMemsetD32_v2(graph_out, 0, 1024));
	return graph;
}

static CUgraphExec graph_instantiate(CUgraph graph)
{
	CUgraphExec exec = NULL;

	OK(cu.cuGraphInstantiateWithFlags(&exec, graph, 0));
	return exec;
}

static void graph_run(CUgraph graph)
{
	CUgraphExec exec = graph_instantiate(graph);

	OK(cu.cuGraphLaunch(exec, NULL));
	OK(cu.cuStreamSynchronize(NULL));
	OK(cu.cuGraphExecDestroy(exec));
	OK(cu.cuGraphDestroy(graph));
}

static void graph_empty(void)
{
	CUgraph graph = graph_make();
	CUgraphNode node = NULL;
	int type = -1;

	OK(cu.cuGraphAddEmptyNode(&node, graph, NULL, 0));
	OK(cu.cuGraphNodeGetType(node, &type));
	NOTE(type);
	graph_run(graph);
	IS(1, cu.cuGraphCreate(NULL, 0));
	IS(1, cu.cuGraphCreate(&graph, 5));
}

static void graph_kernel(void)
{
	CUgraph graph = graph_make();
	CUDA_KERNEL_NODE_PARAMS parameters = graph_fill(5);
	CUgraphNode node = NULL;
	CUgraphExec exec;
	cuuint64_t flags = 9;
	int type = -1;

	OK(cu.cuGraphAddKernelNode_v2(&node, graph, NULL, 0, &parameters));
	graph_value = 99;
	OK(cu.cuGraphNodeGetType(node, &type));
	IS(0, type);
	exec = graph_instantiate(graph);
	OK(cu.cuGraphExecGetFlags(exec, &flags));
	IS(0, (long long)flags);
	OK(cu.cuGraphUpload(exec, NULL));
	OK(cu.cuGraphLaunch(exec, NULL));
	IS(5, check_word(graph_out + 12));
	OK(cu.cuMemsetD32_v2(graph_out, 0, 4));
	OK(cu.cuGraphLaunch(exec, NULL));
	IS(5, check_word(graph_out));
	OK(cu.cuGraphDestroy(graph));
	OK(cu.cuMemsetD32_v2(graph_out, 0, 4));
	OK(cu.cuGraphLaunch(exec, NULL));
	IS(5, check_word(graph_out));
	OK(cu.cuGraphExecDestroy(exec));
}

static void graph_kernel_parameters(void)
{
	CUgraph graph = graph_make();
	CUDA_KERNEL_NODE_PARAMS parameters = graph_fill(5), found;
	CUgraphNode node = NULL;
	CUgraphExec exec;

	memset(&found, 0, sizeof(found));
	OK(cu.cuGraphAddKernelNode_v2(&node, graph, NULL, 0, &parameters));
	OK(cu.cuGraphKernelNodeGetParams_v2(node, &found));
	IS(32, found.block_x);
	TRUE(found.function == parameters.function);
	IS(5, found.parameters ? *(uint32_t *)found.parameters[1] : 0);
	parameters = graph_fill(6);
	OK(cu.cuGraphKernelNodeSetParams_v2(node, &parameters));
	exec = graph_instantiate(graph);
	OK(cu.cuGraphLaunch(exec, NULL));
	IS(6, check_word(graph_out));
	parameters = graph_fill(7);
	OK(cu.cuGraphExecKernelNodeSetParams_v2(exec, node, &parameters));
	OK(cu.cuGraphLaunch(exec, NULL));
	IS(7, check_word(graph_out));
	OK(cu.cuGraphExecDestroy(exec));
	OK(cu.cuGraphDestroy(graph));
}

static CUDA_KERNEL_NODE_PARAMS_v1 graph_fill_v1(uint32_t value)
{
	const CUDA_KERNEL_NODE_PARAMS wide = graph_fill(value);
	CUDA_KERNEL_NODE_PARAMS_v1 narrow;

	memcpy(&narrow, &wide, sizeof(narrow));
	return narrow;
}

/* Before CUDA 12, whose forms have a kernel of a library and a context, too. */
static void graph_kernel_before_12(void)
{
	CUgraph graph = graph_make();
	CUDA_KERNEL_NODE_PARAMS_v1 parameters = graph_fill_v1(5), found;
	CUgraphNode node = NULL;
	CUgraphExec exec;

	memset(&found, 0, sizeof(found));
	OK(cu.cuGraphAddKernelNode(&node, graph, NULL, 0, &parameters));
	OK(cu.cuGraphKernelNodeGetParams(node, &found));
	TRUE(found.function == parameters.function);
	IS(5, found.parameters ? *(uint32_t *)found.parameters[1] : 0);
	parameters = graph_fill_v1(6);
	OK(cu.cuGraphKernelNodeSetParams(node, &parameters));
	exec = graph_instantiate(graph);
	OK(cu.cuGraphLaunch(exec, NULL));
	IS(6, check_word(graph_out));
	parameters = graph_fill_v1(7);
	OK(cu.cuGraphExecKernelNodeSetParams(exec, node, &parameters));
	OK(cu.cuGraphLaunch(exec, NULL));
	IS(7, check_word(graph_out));
	IS(1, cu.cuGraphAddKernelNode(&node, graph, NULL, 0, NULL));
	IS(1, cu.cuGraphKernelNodeGetParams(node, NULL));
	IS(1, cu.cuGraphKernelNodeSetParams(node, NULL));
	OK(cu.cuGraphExecDestroy(exec));
	OK(cu.cuGraphDestroy(graph));
}

static _Atomic int graph_called;

static void graph_function(void *data)
{
	atomic_fetch_add(&graph_called, *(int *)data);
}

/* Set, then copy, then a function: in that order. */
static void graph_chain(void)
{
	CUgraph graph = graph_make();
	CUDA_MEMSET_NODE_PARAMS set = {.to = graph_out, .value = 9, .element = 4, .width = 8, .height = 1};
	CUDA_MEMCPY3D copy = {.src_type = 2,
			      .src_device = graph_out,
			      .src_pitch = 32,
			      .src_height = 1,
			      .dst_type = 2,
			      .dst_device = graph_out + 1024,
			      .dst_pitch = 32,
			      .dst_height = 1,
			      .width = 32,
			      .height = 1,
			      .depth = 1};
	int add = 4;
	CUDA_HOST_NODE_PARAMS host = {graph_function, &add};
	CUgraphNode first = NULL, second = NULL, third = NULL;
	int type = -1;

	atomic_store(&graph_called, 0);
	OK(cu.cuGraphAddMemsetNode(&first, graph, NULL, 0, &set, context));
	OK(cu.cuGraphAddMemcpyNode(&second, graph, &first, 1, &copy, context));
	OK(cu.cuGraphAddHostNode(&third, graph, &second, 1, &host));
	OK(cu.cuGraphNodeGetType(first, &type));
	NOTE(type);
	OK(cu.cuGraphNodeGetType(second, &type));
	NOTE(type);
	OK(cu.cuGraphNodeGetType(third, &type));
	NOTE(type);
	graph_run(graph);
	IS(9, check_word(graph_out + 1024 + 28));
	IS(4, atomic_load(&graph_called));
}

static void graph_edges(void)
{
	CUgraphNode nodes[4] = {NULL}, found[8] = {NULL}, from[8], to[8];
	CUgraph graph = graph_make();
	size_t count = 0;

	for (int i = 0; i < 4; i++)
		OK(cu.cuGraphAddEmptyNode(&nodes[i], graph, i == 1 ? nodes : NULL, i == 1));
	OK(cu.cuGraphAddDependencies(graph, &nodes[1], &nodes[2], 1));
	NOTE(cu.cuGraphAddDependencies(graph, &nodes[2], &nodes[0], 1));
	OK(cu.cuGraphGetNodes(graph, NULL, &count));
	IS(4, (long long)count);
	count = 8;
	OK(cu.cuGraphGetNodes(graph, found, &count));
	IS(4, (long long)count);
	OK(cu.cuGraphGetRootNodes(graph, NULL, &count));
	NOTE(count);
	OK(cu.cuGraphGetEdges(graph, NULL, NULL, &count));
	NOTE(count);
	count = 8;
	OK(cu.cuGraphGetEdges(graph, from, to, &count));
	NOTE(count);
	OK(cu.cuGraphDestroyNode(nodes[3]));
	OK(cu.cuGraphGetNodes(graph, NULL, &count));
	IS(3, (long long)count);
	OK(cu.cuGraphDestroy(graph));
}

static void graph_clone(void)
{
	CUgraph graph = graph_make(), clone = NULL;
	CUDA_KERNEL_NODE_PARAMS parameters = graph_fill(12);
	CUgraphNode node = NULL;
	size_t count = 0;

	OK(cu.cuGraphAddKernelNode_v2(&node, graph, NULL, 0, &parameters));
	OK(cu.cuGraphClone(&clone, graph));
	OK(cu.cuGraphDestroy(graph));
	OK(cu.cuGraphGetNodes(clone, NULL, &count));
	IS(1, (long long)count);
	graph_run(clone);
	IS(12, check_word(graph_out));
}

static void graph_child(void)
{
	CUgraph graph = graph_make(), child = graph_make();
	CUDA_KERNEL_NODE_PARAMS parameters = graph_fill(13);
	CUgraphNode node = NULL;
	int type = -1;

	OK(cu.cuGraphAddKernelNode_v2(&node, child, NULL, 0, &parameters));
	OK(cu.cuGraphAddChildGraphNode(&node, graph, NULL, 0, child));
	OK(cu.cuGraphNodeGetType(node, &type));
	NOTE(type);
	OK(cu.cuGraphDestroy(child));
	graph_run(graph);
	IS(13, check_word(graph_out));
}

static void graph_events(void)
{
	CUgraph graph = graph_make();
	CUgraphNode first = NULL, second = NULL;
	CUevent event = NULL;
	int type = -1;

	OK(cu.cuEventCreate(&event, 0));
	OK(cu.cuGraphAddEventRecordNode(&first, graph, NULL, 0, event));
	OK(cu.cuGraphAddEventWaitNode(&second, graph, &first, 1, event));
	OK(cu.cuGraphNodeGetType(first, &type));
	NOTE(type);
	OK(cu.cuGraphNodeGetType(second, &type));
	NOTE(type);
	graph_run(graph);
	OK(cu.cuEventQuery(event));
	OK(cu.cuEventDestroy_v2(event));
}

static void graph_update(void)
{
	CUgraph first = graph_make(), second = graph_make(), third = graph_make();
	CUDA_KERNEL_NODE_PARAMS parameters = graph_fill(20);
	CUgraphExecUpdateResultInfo result;
	CUgraphNode node = NULL;
	CUgraphExec exec;

	OK(cu.cuGraphAddKernelNode_v2(&node, first, NULL, 0, &parameters));
	exec = graph_instantiate(first);
	parameters = graph_fill(21);
	OK(cu.cuGraphAddKernelNode_v2(&node, second, NULL, 0, &parameters));
	OK(cu.cuGraphExecUpdate_v2(exec, second, &result));
	IS(0, result.result);
	OK(cu.cuGraphLaunch(exec, NULL));
	IS(21, check_word(graph_out));
	OK(cu.cuGraphAddEmptyNode(&node, third, NULL, 0));
	IS(910, cu.cuGraphExecUpdate_v2(exec, third, &result));
	NOTE(result.result != 0);
	OK(cu.cuGraphExecDestroy(exec));
	OK(cu.cuGraphDestroy(first));
	OK(cu.cuGraphDestroy(second));
	OK(cu.cuGraphDestroy(third));
}

static void graph_neighbours(void)
{
	CUgraphNode nodes[3] = {NULL}, found[4] = {NULL};
	CUgraph graph = graph_make(), clone = NULL;
	size_t count = 4;

	for (int i = 0; i < 3; i++)
		OK(cu.cuGraphAddEmptyNode(&nodes[i], graph, nodes, (size_t)i));
	OK(cu.cuGraphNodeGetDependencies(nodes[2], found, &count));
	IS(2, (long long)count);
	count = 4;
	OK(cu.cuGraphNodeGetDependentNodes(nodes[0], found, &count));
	IS(2, (long long)count);
	OK(cu.cuGraphRemoveDependencies(graph, &nodes[0], &nodes[2], 1));
	OK(cu.cuGraphNodeGetDependentNodes(nodes[0], NULL, &count));
	IS(1, (long long)count);
	OK(cu.cuGraphClone(&clone, graph));
	OK(cu.cuGraphNodeFindInClone(&found[0], nodes[1], clone));
	TRUE(found[0] != NULL && found[0] != nodes[1]);
	OK(cu.cuGraphDestroy(clone));
	OK(cu.cuGraphDestroy(graph));
}

static void graph_set(void)
{
	CUgraph graph = graph_make();
	CUDA_MEMSET_NODE_PARAMS set = {.to = graph_out, .value = 9, .element = 4, .width = 8, .height = 1}, found = {0};
	CUgraphNode node = NULL;
	unsigned enabled = 9;
	CUgraphExec exec;

	OK(cu.cuGraphAddMemsetNode(&node, graph, NULL, 0, &set, context));
	OK(cu.cuGraphMemsetNodeGetParams(node, &found));
	IS(9, found.value);
	set.value = 10;
	OK(cu.cuGraphMemsetNodeSetParams(node, &set));
	exec = graph_instantiate(graph);
	OK(cu.cuGraphLaunch(exec, NULL));
	IS(10, check_word(graph_out));
	set.value = 11;
	OK(cu.cuGraphExecMemsetNodeSetParams(exec, node, &set, context));
	OK(cu.cuGraphLaunch(exec, NULL));
	IS(11, check_word(graph_out));
	OK(cu.cuGraphNodeSetEnabled(exec, node, 0));
	OK(cu.cuGraphNodeGetEnabled(exec, node, &enabled));
	IS(0, enabled);
	OK(cu.cuMemsetD32_v2(graph_out, 0, 1));
	OK(cu.cuGraphLaunch(exec, NULL));
	IS(0, check_word(graph_out));
	OK(cu.cuGraphExecDestroy(exec));
	OK(cu.cuGraphDestroy(graph));
}

static void graph_other_events(void)
{
	CUgraph graph = graph_make();
	CUgraphNode record = NULL, wait = NULL;
	CUevent first = NULL, second = NULL, found = NULL;
	CUgraphExec exec;

	OK(cu.cuEventCreate(&first, 0));
	OK(cu.cuEventCreate(&second, 0));
	OK(cu.cuGraphAddEventRecordNode(&record, graph, NULL, 0, first));
	OK(cu.cuGraphAddEventWaitNode(&wait, graph, &record, 1, first));
	OK(cu.cuGraphEventRecordNodeGetEvent(record, &found));
	TRUE(found == first);
	OK(cu.cuGraphEventRecordNodeSetEvent(record, second));
	OK(cu.cuGraphEventWaitNodeSetEvent(wait, second));
	OK(cu.cuGraphEventWaitNodeGetEvent(wait, &found));
	TRUE(found == second);
	exec = graph_instantiate(graph);
	OK(cu.cuGraphExecEventRecordNodeSetEvent(exec, record, first));
	OK(cu.cuGraphExecEventWaitNodeSetEvent(exec, wait, first));
	OK(cu.cuGraphLaunch(exec, NULL));
	OK(cu.cuStreamSynchronize(NULL));
	OK(cu.cuEventQuery(first));
	OK(cu.cuGraphExecDestroy(exec));
	OK(cu.cuGraphDestroy(graph));
	OK(cu.cuEventDestroy_v2(first));
	OK(cu.cuEventDestroy_v2(second));
}

static void graph_other_child(void)
{
	CUgraph graph = graph_make(), child = graph_make(), inner = NULL;
	CUDA_KERNEL_NODE_PARAMS parameters = graph_fill(13);
	CUgraphNode node = NULL, fill = NULL;
	CUgraphExec exec;

	OK(cu.cuGraphAddKernelNode_v2(&fill, child, NULL, 0, &parameters));
	OK(cu.cuGraphAddChildGraphNode(&node, graph, NULL, 0, child));
	OK(cu.cuGraphChildGraphNodeGetGraph(node, &inner));
	TRUE(inner != NULL && inner != child);
	exec = graph_instantiate(graph);
	parameters = graph_fill(14);
	OK(cu.cuGraphKernelNodeSetParams_v2(fill, &parameters));
	OK(cu.cuGraphExecChildGraphNodeSetParams(exec, node, child));
	OK(cu.cuGraphLaunch(exec, NULL));
	IS(14, check_word(graph_out));
	OK(cu.cuGraphExecDestroy(exec));
	OK(cu.cuGraphDestroy(child));
	OK(cu.cuGraphDestroy(graph));
}

static void graph_other_copy(void)
{
	CUgraph graph = graph_make();
	CUDA_MEMCPY3D copy = {.src_type = 2,
			      .src_device = graph_out,
			      .src_pitch = 32,
			      .src_height = 1,
			      .dst_type = 2,
			      .dst_device = graph_out + 1024,
			      .dst_pitch = 32,
			      .dst_height = 1,
			      .width = 32,
			      .height = 1,
			      .depth = 1},
		      found;
	uint32_t *pinned = check_pinned(4096);
	CUgraphNode node = NULL;
	CUgraphExec exec;

	memset(&found, 0, sizeof(found));
	OK(cu.cuMemsetD32_v2(graph_out, 5, 8));
	OK(cu.cuGraphAddMemcpyNode(&node, graph, NULL, 0, &copy, context));
	OK(cu.cuGraphMemcpyNodeGetParams(node, &found));
	TRUE(found.dst_device == graph_out + 1024 && found.width == 32);
	copy.dst_device = graph_out + 2048;
	OK(cu.cuGraphMemcpyNodeSetParams(node, &copy));
	exec = graph_instantiate(graph);
	OK(cu.cuGraphLaunch(exec, NULL));
	IS(0, check_word(graph_out + 1024));
	IS(5, check_word(graph_out + 2048));
	copy.dst_type = 1;
	copy.dst_host = pinned;
	copy.dst_device = 0;
	NOTE(cu.cuGraphExecMemcpyNodeSetParams(exec, node, &copy, context));
	copy.dst_type = 2;
	copy.dst_device = graph_out + 3072;
	OK(cu.cuGraphExecMemcpyNodeSetParams(exec, node, &copy, context));
	OK(cu.cuGraphLaunch(exec, NULL));
	IS(5, check_word(graph_out + 3072));
	OK(cu.cuGraphExecDestroy(exec));
	OK(cu.cuGraphDestroy(graph));
	OK(cu.cuMemFreeHost(pinned));
}

/* From memory of the host, twice with other contents. */
static void graph_copy_host(void)
{
	CUgraph graph = graph_make();
	uint32_t *pinned = check_pinned(4096);
	CUDA_MEMCPY3D copy = {.src_type = 1,
			      .src_host = pinned,
			      .src_pitch = 64,
			      .src_height = 2,
			      .dst_type = 2,
			      .dst_device = graph_out,
			      .dst_pitch = 64,
			      .dst_height = 2,
			      .width = 32,
			      .height = 2,
			      .depth = 1};
	CUgraphNode node = NULL;
	CUgraphExec exec;

	OK(cu.cuGraphAddMemcpyNode(&node, graph, NULL, 0, &copy, context));
	exec = graph_instantiate(graph);
	for (uint32_t i = 1; i < 3; i++) {
		pinned[16] = i;
		OK(cu.cuGraphLaunch(exec, NULL));
		OK(cu.cuStreamSynchronize(NULL));
		IS(i, check_word(graph_out + 64));
	}
	OK(cu.cuGraphExecDestroy(exec));
	OK(cu.cuGraphDestroy(graph));
	OK(cu.cuMemFreeHost(pinned));
}

/* Ordinary memory, which is read and written each time. */
static uint32_t graph_from[2][64], graph_to[2][64];

static CUDA_MEMCPY3D graph_copy_in(void)
{
	return (CUDA_MEMCPY3D){.src_type = 1,
			       .src_host = graph_from[0],
			       .src_pitch = 64,
			       .src_height = 2,
			       .dst_type = 2,
			       .dst_device = graph_out,
			       .dst_pitch = 128,
			       .dst_height = 2,
			       .width = 32,
			       .height = 2,
			       .depth = 1};
}

static CUDA_MEMCPY3D graph_copy_out(void)
{
	return (CUDA_MEMCPY3D){.src_type = 2,
			       .src_device = graph_out,
			       .src_pitch = 128,
			       .src_height = 2,
			       .dst_type = 1,
			       .dst_host = graph_to[0],
			       .dst_pitch = 32,
			       .dst_height = 2,
			       .width = 32,
			       .height = 2,
			       .depth = 1};
}

static void graph_launch_plain(CUgraphExec exec)
{
	OK(cu.cuGraphLaunch(exec, NULL));
	OK(cu.cuStreamSynchronize(NULL));
}

/* Other memory, of the graph that runs, which has to be in a row. */
static void graph_change_running(CUgraphExec exec, CUgraphNode node)
{
	CUDA_MEMCPY3D in = graph_copy_in();

	in.src_host = graph_from[1];
	graph_from[1][0] = 7;
	NOTE(cu.cuGraphExecMemcpyNodeSetParams(exec, node, &in, context));
	graph_launch_plain(exec);
	IS(2, graph_to[0][0]);
}

/* And then of the one that it was made of. */
static void graph_change_plain(CUgraph graph, CUgraphNode node)
{
	CUDA_MEMCPY3D out = graph_copy_out(), found = {0};
	CUgraphExec exec;

	out.dst_host = graph_to[1];
	OK(cu.cuGraphMemcpyNodeSetParams(node, &out));
	OK(cu.cuGraphMemcpyNodeGetParams(node, &found));
	TRUE(found.dst_host == graph_to[1]);
	exec = graph_instantiate(graph);
	graph_to[0][0] = 0;
	graph_launch_plain(exec);
	IS(2, graph_to[1][0]);
	IS(0, graph_to[0][0]);
	OK(cu.cuGraphDestroy(graph));
	graph_from[0][0] = 3;
	graph_launch_plain(exec);
	IS(3, graph_to[1][0]);
	OK(cu.cuGraphExecDestroy(exec));
}

static void graph_copy_plain(void)
{
	CUgraph graph = graph_make();
	const CUDA_MEMCPY3D in = graph_copy_in(), out = graph_copy_out();
	CUDA_MEMCPY3D found = {0};
	CUgraphNode nodes[2];
	CUgraphExec exec;
	size_t count = 0;
	int type = -1;

	OK(cu.cuGraphAddMemcpyNode(&nodes[0], graph, NULL, 0, &in, context));
	OK(cu.cuGraphAddMemcpyNode(&nodes[1], graph, nodes, 1, &out, context));
	OK(cu.cuGraphGetNodes(graph, NULL, &count));
	IS(2, (long long)count);
	OK(cu.cuGraphNodeGetType(nodes[1], &type));
	IS(1, type);
	OK(cu.cuGraphMemcpyNodeGetParams(nodes[0], &found));
	TRUE(found.src_host == graph_from[0] && found.dst_device == graph_out && found.width == 32);
	exec = graph_instantiate(graph);
	for (uint32_t i = 1; i < 3; i++) {
		graph_from[0][0] = graph_from[0][16] = i;
		graph_from[0][8] = 99;
		graph_launch_plain(exec);
		IS(i, graph_to[0][0]);
		IS(i, graph_to[0][8]);
		IS(0, graph_to[0][16]);
	}
	graph_change_running(exec, nodes[0]);
	OK(cu.cuGraphExecDestroy(exec));
	graph_change_plain(graph, nodes[1]);
}

static void graph_row_plain(void)
{
	static uint32_t from[2][64];
	CUgraph graph = graph_make();
	CUDA_MEMCPY3D row = {.src_type = 1,
			     .src_host = from[0],
			     .src_pitch = 64,
			     .src_height = 1,
			     .dst_type = 2,
			     .dst_device = graph_out,
			     .dst_pitch = 64,
			     .dst_height = 1,
			     .width = 64,
			     .height = 1,
			     .depth = 1};
	CUgraphNode node = NULL;
	CUgraphExec exec;

	OK(cu.cuGraphAddMemcpyNode(&node, graph, NULL, 0, &row, context));
	exec = graph_instantiate(graph);
	from[0][0] = 3;
	from[1][0] = 4;
	OK(cu.cuGraphLaunch(exec, NULL));
	IS(3, check_word(graph_out));
	row.src_host = from[1];
	NOTE(cu.cuGraphExecMemcpyNodeSetParams(exec, node, &row, context));
	OK(cu.cuGraphLaunch(exec, NULL));
	NOTE(check_word(graph_out));
	OK(cu.cuGraphExecDestroy(exec));
	OK(cu.cuGraphDestroy(graph));
}

/* The same by captures, of which the second takes the place of the first. */
static void graph_capture_plain(void)
{
	static uint32_t from[16384], to[16384];
	CUgraph graph = graph_make();
	CUgraphExec exec = NULL;
	CUstream stream = NULL;

	OK(cu.cuGraphDestroy(graph));
	OK(cu.cuStreamCreate(&stream, 1));
	for (uint32_t round = 0; round < 3; round++) {
		CUgraphExecUpdateResultInfo info = {0};
		size_t count = 0;

		OK(cu.cuStreamBeginCapture_v2(stream, 0));
		OK(cu.cuMemcpyHtoDAsync_v2(graph_out, from + round, 8, stream));
		OK(cu.cuMemcpyHtoDAsync_v2(graph_out + 8, from + 8, 2048, stream));
		OK(cu.cuMemsetD32Async(graph_out + 4, 5 + round, 1, stream));
		OK(cu.cuMemcpyDtoHAsync_v2(to + round, graph_out, 8, stream));
		OK(cu.cuStreamEndCapture(stream, &graph));
		OK(cu.cuGraphGetNodes(graph, NULL, &count));
		IS(4, (long long)count);
		if (!exec)
			exec = graph_instantiate(graph);
		else
			OK(cu.cuGraphExecUpdate_v2(exec, graph, &info));
		OK(cu.cuGraphDestroy(graph));
		from[round] = 100 + round;
		OK(cu.cuGraphLaunch(exec, stream));
		OK(cu.cuStreamSynchronize(stream));
		IS(100 + round, to[round]);
		IS(5 + round, to[round + 1]);
	}
	OK(cu.cuGraphExecDestroy(exec));
	OK(cu.cuStreamDestroy_v2(stream));
}

static void graph_count_end(void *data)
{
	__atomic_fetch_add((int *)data, 1, __ATOMIC_SEQ_CST);
}

/* When it is called is not said, only that it is. */
static int graph_ended(int *ended, int wanted)
{
	for (int i = 0; i < 2000 && __atomic_load_n(ended, __ATOMIC_SEQ_CST) < wanted; i++)
		(void)nanosleep(&(const struct timespec){.tv_nsec = 1000000}, NULL);
	return __atomic_load_n(ended, __ATOMIC_SEQ_CST);
}

static void graph_user_object(void)
{
	CUgraph graph = graph_make(), clone = NULL;
	CUuserObject object = NULL, other = NULL;
	int ended = 0, others = 0;
	CUgraphExec exec;

	IS(1, cu.cuUserObjectCreate(NULL, &ended, graph_count_end, 1, 1));
	NOTE(cu.cuUserObjectCreate(&object, &ended, NULL, 1, 1));
	NOTE(cu.cuUserObjectCreate(&object, &ended, graph_count_end, 0, 1));
	NOTE(cu.cuUserObjectCreate(&object, &ended, graph_count_end, 1, 0));
	OK(cu.cuUserObjectCreate(&object, &ended, graph_count_end, 1, 1));
	OK(cu.cuUserObjectRetain(object, 2));
	NOTE(cu.cuUserObjectRetain(object, 0));
	OK(cu.cuUserObjectRelease(object, 2));
	IS(0, ended);
	OK(cu.cuUserObjectRelease(object, 1));
	IS(1, graph_ended(&ended, 1));
	OK(cu.cuUserObjectCreate(&object, &ended, graph_count_end, 1, 1));
	OK(cu.cuUserObjectCreate(&other, &others, graph_count_end, 1, 1));
	NOTE(cu.cuGraphRetainUserObject(graph, object, 1, 2));
	OK(cu.cuGraphRetainUserObject(graph, object, 1, 1));
	OK(cu.cuGraphRetainUserObject(graph, other, 2, 0));
	OK(cu.cuGraphReleaseUserObject(graph, other, 1));
	OK(cu.cuUserObjectRelease(other, 1));
	OK(cu.cuGraphClone(&clone, graph));
	exec = graph_instantiate(graph);
	OK(cu.cuGraphDestroy(graph));
	OK(cu.cuGraphDestroy(clone));
	IS(1, ended);
	IS(0, others);
	OK(cu.cuGraphLaunch(exec, NULL));
	OK(cu.cuStreamSynchronize(NULL));
	OK(cu.cuGraphExecDestroy(exec));
	IS(2, graph_ended(&ended, 2));
	IS(1, graph_ended(&others, 1));
}

static void graph_other_function(void)
{
	CUgraph graph = graph_make();
	int one = 1, ten = 10;
	CUDA_HOST_NODE_PARAMS host = {graph_function, &one}, found = {NULL, NULL};
	CUgraphNode node = NULL;
	CUgraphExec exec;

	atomic_store(&graph_called, 0);
	OK(cu.cuGraphAddHostNode(&node, graph, NULL, 0, &host));
	OK(cu.cuGraphHostNodeGetParams(node, &found));
	TRUE(found.function == graph_function && found.data == &one);
	exec = graph_instantiate(graph);
	OK(cu.cuGraphLaunch(exec, NULL));
	OK(cu.cuGraphLaunch(exec, NULL));
	OK(cu.cuStreamSynchronize(NULL));
	IS(2, atomic_load(&graph_called));
	host.data = &ten;
	OK(cu.cuGraphHostNodeSetParams(node, &host));
	OK(cu.cuGraphExecHostNodeSetParams(exec, node, &host));
	OK(cu.cuGraphLaunch(exec, NULL));
	OK(cu.cuStreamSynchronize(NULL));
	IS(12, atomic_load(&graph_called));
	host.function = NULL;
	IS(1, cu.cuGraphHostNodeSetParams(node, &host));
	OK(cu.cuGraphExecDestroy(exec));
	OK(cu.cuGraphDestroy(graph));
}

static void graph_edge_data(void)
{
	CUgraphNode nodes[3] = {NULL}, found[4] = {NULL}, from[4], to[4];
	CUgraph graph = graph_make();
	CUgraphEdgeData data[4];
	size_t count = 4;

	for (int i = 0; i < 3; i++)
		OK(cu.cuGraphAddEmptyNode(&nodes[i], graph, NULL, 0));
	memset(data, 0, sizeof(data));
	OK(cu.cuGraphAddDependencies_v2(graph, nodes, nodes + 1, NULL, 1));
	OK(cu.cuGraphAddDependencies_v2(graph, nodes, nodes + 2, data, 1));
	memset(data, 255, sizeof(data));
	OK(cu.cuGraphGetEdges_v2(graph, from, to, data, &count));
	IS(2, (long long)count);
	IS(0, data[0].type + data[1].to_port);
	count = 4;
	OK(cu.cuGraphNodeGetDependentNodes_v2(nodes[0], found, data, &count));
	IS(2, (long long)count);
	count = 4;
	OK(cu.cuGraphNodeGetDependencies_v2(nodes[2], found, data, &count));
	IS(1, (long long)count);
	TRUE(found[0] == nodes[0]);
	OK(cu.cuGraphRemoveDependencies_v2(graph, nodes, nodes + 2, data, 1));
	OK(cu.cuGraphDestroy(graph));
}

/* The documentation knows no other error for what is no graph, no node and nothing that can run. */
static void graph_none(void)
{
	CUgraphExec exec = NULL;
	CUgraphNode node = NULL;
	CUgraph graph = NULL;
	int type = 0;

	IS(1, cu.cuGraphDestroy(NULL));
	IS(1, cu.cuGraphExecDestroy(NULL));
	IS(1, cu.cuGraphLaunch(NULL, NULL));
	IS(1, cu.cuGraphInstantiateWithFlags(&exec, NULL, 0));
	IS(1, cu.cuGraphClone(&graph, NULL));
	IS(1, cu.cuGraphNodeGetType(NULL, &type));
	IS(1, cu.cuGraphAddEmptyNode(&node, NULL, NULL, 0));
}

const struct check graph_checks[] = {
	{"an empty node", graph_empty, false},
	{"a kernel, launched three times", graph_kernel, false},
	{"parameters of a kernel", graph_kernel_parameters, false},
	{"a kernel before CUDA 12", graph_kernel_before_12, false},
	{"set, copy and a function, one after the other", graph_chain, false},
	{"nodes and edges", graph_edges, false},
	{"a clone", graph_clone, false},
	{"a graph in a graph", graph_child, false},
	{"events", graph_events, false},
	{"an update", graph_update, false},
	{"neighbours of a node", graph_neighbours, false},
	{"a set, changed and switched off", graph_set, false},
	{"other events", graph_other_events, false},
	{"another graph in a graph", graph_other_child, true},
	{"another copy", graph_other_copy, true},
	{"a copy from memory of the host", graph_copy_host, true},
	{"copies of ordinary memory", graph_copy_plain, true},
	{"other ordinary memory", graph_row_plain, true},
	{"captured copies of ordinary memory", graph_capture_plain, true},
	{"objects that graphs keep", graph_user_object, true},
	{"another function", graph_other_function, true},
	{"data of edges", graph_edge_data, true},
	{"none at all", graph_none, true},
	END,
};

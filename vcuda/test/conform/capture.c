/* SPDX-License-Identifier: Apache-2.0 */

/* Graphs made by capturing a stream. */

#include <stdlib.h>

#include "check.h"

static CUstream capture_stream(void)
{
	CUstream stream = NULL;

	check_load();
	OK(cu.cuStreamCreate(&stream, 1));
	return stream;
}

static void capture_simple(void)
{
	CUstream stream = capture_stream();
	CUdeviceptr out = check_alloc(4096);
	uint32_t value = 8, count = 4;
	CUgraph graph = NULL;
	CUgraphExec exec = NULL;
	size_t nodes = 0;

	OK(cu.cuMemsetD32_v2(out, 0, 1024));
	OK(cu.cuStreamBeginCapture_v2(stream, 2));
	OK(cu.cuMemsetD32Async(out + 64, 1, 4, stream));
	OK(check_launch("fill", 32, stream, PARAMETERS(&out, &value, &count)));
	OK(cu.cuMemcpyDtoDAsync_v2(out + 128, out, 16, stream));
	OK(cu.cuStreamEndCapture(stream, &graph));
	IS(0, check_word(out));
	OK(cu.cuGraphGetNodes(graph, NULL, &nodes));
	IS(3, (long long)nodes);
	OK(cu.cuGraphInstantiateWithFlags(&exec, graph, 0));
	OK(cu.cuGraphLaunch(exec, stream));
	OK(cu.cuStreamSynchronize(stream));
	IS(8, check_word(out + 128));
	IS(1, check_word(out + 64));
	OK(cu.cuGraphExecDestroy(exec));
	OK(cu.cuGraphDestroy(graph));
	OK(cu.cuStreamDestroy_v2(stream));
	OK(cu.cuMemFree_v2(out));
}

static void capture_status(void)
{
	CUstream stream = capture_stream();
	const CUgraphNode *dependencies = NULL;
	cuuint64_t id = 0;
	CUgraph graph = NULL, found = NULL;
	size_t count = 99;
	int status = 9;

	OK(cu.cuStreamIsCapturing(stream, &status));
	IS(0, status);
	OK(cu.cuStreamBeginCapture_v2(stream, 0));
	OK(cu.cuStreamIsCapturing(stream, &status));
	IS(1, status);
	OK(cu.cuStreamGetCaptureInfo_v2(stream, &status, &id, &found, &dependencies, &count));
	IS(1, status);
	TRUE(id != 0 && found != NULL);
	IS(0, (long long)count);
	OK(check_launch("nop", 1, stream, NULL));
	OK(cu.cuStreamGetCaptureInfo_v2(stream, &status, &id, &found, &dependencies, &count));
	IS(1, (long long)count);
	OK(cu.cuStreamUpdateCaptureDependencies(stream, NULL, 0, 1));
	OK(cu.cuStreamGetCaptureInfo_v2(stream, &status, &id, &found, &dependencies, &count));
	IS(0, (long long)count);
	OK(cu.cuStreamEndCapture(stream, &graph));
	TRUE(graph == found);
	OK(cu.cuStreamIsCapturing(NULL, &status));
	IS(0, status);
	OK(cu.cuGraphDestroy(graph));
	OK(cu.cuStreamDestroy_v2(stream));
}

static void capture_unmatched(void)
{
	CUstream stream = capture_stream();
	CUgraph graph = NULL;

	IS(401, cu.cuStreamEndCapture(stream, &graph));
	NOTE(cu.cuStreamBeginCapture_v2(NULL, 0));
	NOTE(cu.cuStreamBeginCapture_v2(stream, 9));
	OK(cu.cuStreamBeginCapture_v2(stream, 2));
	IS(401, cu.cuStreamBeginCapture_v2(stream, 2));
	OK(cu.cuStreamEndCapture(stream, &graph));
	OK(cu.cuGraphDestroy(graph));
	OK(cu.cuStreamDestroy_v2(stream));
}

static void capture_forbidden(void)
{
	CUstream stream = capture_stream();
	CUgraph graph = (CUgraph)1;
	int status = 9;

	OK(cu.cuStreamBeginCapture_v2(stream, 2));
	NOTE(cu.cuStreamSynchronize(stream));
	OK(cu.cuStreamIsCapturing(stream, &status));
	NOTE(status);
	NOTE(check_launch("nop", 1, stream, NULL));
	IS(901, cu.cuStreamEndCapture(stream, &graph));
	TRUE(graph == NULL);
	OK(cu.cuStreamSynchronize(stream));
	OK(cu.cuStreamBeginCapture_v2(stream, 2));
	NOTE(cu.cuStreamQuery(stream));
	IS(901, cu.cuStreamEndCapture(stream, &graph));
	OK(cu.cuStreamDestroy_v2(stream));
}

/* In the global mode, what may wait is forbidden to all. */
static void capture_global(void)
{
	CUstream stream = capture_stream();
	CUdeviceptr pointer = 0;
	CUgraph graph = NULL;

	OK(cu.cuStreamBeginCapture_v2(stream, 0));
	NOTE(cu.cuMemAlloc_v2(&pointer, 4096));
	NOTE(cu.cuStreamEndCapture(stream, &graph));
	OK(cu.cuStreamBeginCapture_v2(stream, 2));
	NOTE(cu.cuMemAlloc_v2(&pointer, 4096));
	NOTE(cu.cuStreamEndCapture(stream, &graph));
	OK(cu.cuGraphDestroy(graph));
	OK(cu.cuStreamDestroy_v2(stream));
}

static void capture_mode(void)
{
	CUstream stream = capture_stream();
	CUdeviceptr pointer = 0;
	CUgraph graph = NULL;
	int mode = 2;

	OK(cu.cuThreadExchangeStreamCaptureMode(&mode));
	IS(0, mode);
	OK(cu.cuStreamBeginCapture_v2(stream, 0));
	NOTE(cu.cuMemAlloc_v2(&pointer, 4096));
	OK(cu.cuStreamEndCapture(stream, &graph));
	mode = 0;
	OK(cu.cuThreadExchangeStreamCaptureMode(&mode));
	IS(2, mode);
	mode = 77;
	NOTE(cu.cuThreadExchangeStreamCaptureMode(&mode));
	OK(cu.cuGraphDestroy(graph));
	OK(cu.cuStreamDestroy_v2(stream));
}

static void capture_fork(void)
{
	CUstream first = capture_stream(), second = capture_stream();
	CUevent out = NULL, back = NULL;
	CUgraph graph = NULL;
	size_t count = 0;
	int status = 0;

	OK(cu.cuEventCreate(&out, 2));
	OK(cu.cuEventCreate(&back, 2));
	OK(cu.cuStreamBeginCapture_v2(first, 2));
	OK(check_launch("nop", 1, first, NULL));
	OK(cu.cuEventRecord(out, first));
	OK(cu.cuStreamWaitEvent(second, out, 0));
	OK(cu.cuStreamIsCapturing(second, &status));
	IS(1, status);
	OK(check_launch("nop", 1, second, NULL));
	OK(cu.cuEventRecord(back, second));
	OK(check_launch("nop", 1, first, NULL));
	OK(cu.cuStreamWaitEvent(first, back, 0));
	OK(check_launch("nop", 1, first, NULL));
	NOTE(cu.cuStreamEndCapture(first, &graph));
	if (graph) {
		OK(cu.cuGraphGetNodes(graph, NULL, &count));
		NOTE(count);
		OK(cu.cuGraphGetEdges(graph, NULL, NULL, &count));
		NOTE(count);
		OK(cu.cuGraphDestroy(graph));
	}
	OK(cu.cuStreamDestroy_v2(first));
	OK(cu.cuStreamDestroy_v2(second));
}

/* It has come back. */
static void capture_destroyed(void)
{
	CUstream first = capture_stream(), second = capture_stream();
	CUevent out = NULL, back = NULL;
	CUgraph graph = NULL;
	size_t count = 0;

	OK(cu.cuEventCreate(&out, 2));
	OK(cu.cuEventCreate(&back, 2));
	OK(cu.cuStreamBeginCapture_v2(first, 0));
	OK(cu.cuEventRecord(out, first));
	OK(cu.cuStreamWaitEvent(second, out, 0));
	OK(check_launch("nop", 1, second, NULL));
	OK(cu.cuEventRecord(back, second));
	OK(cu.cuStreamWaitEvent(first, back, 0));
	OK(cu.cuStreamDestroy_v2(second));
	OK(cu.cuEventDestroy_v2(out));
	OK(cu.cuEventDestroy_v2(back));
	OK(check_launch("nop", 1, first, NULL));
	OK(cu.cuStreamEndCapture(first, &graph));
	if (graph) {
		OK(cu.cuGraphGetNodes(graph, NULL, &count));
		IS(2, (long long)count);
		OK(cu.cuGraphDestroy(graph));
	}
	OK(cu.cuStreamDestroy_v2(first));
}

static void capture_unjoined(void)
{
	CUstream first = capture_stream(), second = capture_stream();
	CUevent out = NULL;
	CUgraph graph = NULL;

	OK(cu.cuEventCreate(&out, 2));
	OK(cu.cuStreamBeginCapture_v2(first, 2));
	OK(cu.cuEventRecord(out, first));
	OK(cu.cuStreamWaitEvent(second, out, 0));
	OK(check_launch("nop", 1, second, NULL));
	IS(903, cu.cuStreamEndCapture(second, &graph));
	IS(901, cu.cuStreamEndCapture(first, &graph));
	OK(cu.cuStreamBeginCapture_v2(first, 2));
	OK(cu.cuEventRecord(out, first));
	OK(cu.cuStreamWaitEvent(second, out, 0));
	OK(check_launch("nop", 1, second, NULL));
	IS(904, cu.cuStreamEndCapture(first, &graph));
}

/* It goes on where it began, though it is broken. */
static void capture_ended_elsewhere(void)
{
	CUstream first = capture_stream(), second = capture_stream();
	CUevent out = NULL;
	CUgraph graph = NULL;
	int status = 9;

	OK(cu.cuEventCreate(&out, 2));
	OK(cu.cuStreamBeginCapture_v2(first, 2));
	OK(cu.cuEventRecord(out, first));
	OK(cu.cuStreamWaitEvent(second, out, 0));
	IS(903, cu.cuStreamEndCapture(second, &graph));
	OK(cu.cuStreamIsCapturing(first, &status));
	IS(2, status);
	IS(901, cu.cuStreamEndCapture(first, &graph));
	OK(cu.cuStreamIsCapturing(first, &status));
	IS(0, status);
}

/* What was not freed can be freed later. */
static void capture_freeing(void)
{
	CUstream stream = capture_stream();
	CUdeviceptr pointer = check_alloc(4096), pooled = 0, base = 0;
	CUgraph graph = NULL;
	size_t bytes = 0;
	uint64_t before = 0, after = 1;

	OK(cu.cuMemAllocAsync(&pooled, 4096, NULL));
	OK(cu.cuStreamSynchronize(NULL));
	OK(cu.cuPointerGetAttribute(&before, 7, pointer));
	OK(cu.cuStreamBeginCapture_v2(stream, 0));
	IS(900, cu.cuMemFree_v2(pointer));
	IS(901, cu.cuMemFreeAsync(pooled, stream));
	IS(901, cu.cuStreamEndCapture(stream, &graph));
	OK(cu.cuMemGetAddressRange_v2(&base, &bytes, pointer));
	TRUE(base == pointer && bytes == 4096);
	OK(cu.cuPointerGetAttribute(&after, 7, pointer));
	TRUE(before == after);
	OK(cu.cuMemFree_v2(pointer));
	OK(cu.cuMemFreeAsync(pooled, NULL));
	IS(1, cu.cuMemFree_v2(pointer));
}

/* An event of a capture is asked for. */
static void capture_event_query(void)
{
	CUstream stream = capture_stream();
	CUevent event = NULL;
	CUgraph graph = NULL;
	int status = 9;

	OK(cu.cuEventCreate(&event, 2));
	OK(cu.cuStreamBeginCapture_v2(stream, 2));
	OK(cu.cuEventRecord(event, stream));
	NOTE(cu.cuEventQuery(event));
	OK(cu.cuStreamIsCapturing(stream, &status));
	NOTE(status);
	NOTE(cu.cuStreamEndCapture(stream, &graph));
}

static void capture_isolation(void)
{
	CUstream stream = capture_stream();
	CUevent outside = NULL;
	CUgraph graph = NULL;

	OK(cu.cuEventCreate(&outside, 2));
	OK(cu.cuEventRecord(outside, NULL));
	OK(cu.cuStreamBeginCapture_v2(stream, 2));
	NOTE(cu.cuStreamWaitEvent(stream, outside, 0));
	NOTE(cu.cuStreamEndCapture(stream, &graph));
}

static void capture_implicit(void)
{
	CUstream blocking = NULL;
	CUgraph graph = NULL;

	check_load();
	OK(cu.cuStreamCreate(&blocking, 0));
	OK(cu.cuStreamBeginCapture_v2(blocking, 2));
	OK(check_launch("nop", 1, blocking, NULL));
	NOTE(check_launch("nop", 1, NULL, NULL));
	NOTE(cu.cuStreamEndCapture(blocking, &graph));
}

static void capture_host(void *data)
{
	*(volatile int *)data = 77;
}

static void capture_host_function(void)
{
	CUstream stream = capture_stream();
	static volatile int called;
	CUgraph graph = NULL;
	CUgraphExec exec = NULL;

	OK(cu.cuStreamBeginCapture_v2(stream, 2));
	OK(cu.cuLaunchHostFunc(stream, capture_host, (void *)&called));
	OK(cu.cuStreamEndCapture(stream, &graph));
	IS(0, called);
	OK(cu.cuGraphInstantiateWithFlags(&exec, graph, 0));
	OK(cu.cuGraphLaunch(exec, stream));
	OK(cu.cuStreamSynchronize(stream));
	IS(77, called);
	OK(cu.cuGraphExecDestroy(exec));
	OK(cu.cuGraphDestroy(graph));
	OK(cu.cuStreamDestroy_v2(stream));
}

static void capture_host_twice(void)
{
	CUstream stream = capture_stream();
	static volatile int called;
	CUgraph graph = NULL;
	CUgraphExec exec = NULL;

	OK(cu.cuStreamBeginCapture_v2(stream, 2));
	OK(cu.cuLaunchHostFunc(stream, capture_host, (void *)&called));
	OK(cu.cuStreamEndCapture(stream, &graph));
	OK(cu.cuGraphInstantiateWithFlags(&exec, graph, 0));
	for (int i = 0; i < 3; i++) {
		called = 0;
		OK(cu.cuGraphLaunch(exec, stream));
		OK(cu.cuStreamSynchronize(stream));
		IS(77, called);
	}
	OK(cu.cuGraphExecDestroy(exec));
	OK(cu.cuGraphDestroy(graph));
	OK(cu.cuStreamDestroy_v2(stream));
}

static void capture_older(CUstream stream, CUresult status, void *data)
{
	(void)stream, (void)status, (void)data;
}

static void capture_callback(void)
{
	CUstream stream = capture_stream();
	CUgraph graph = NULL;

	OK(cu.cuStreamBeginCapture_v2(stream, 2));
	NOTE(cu.cuStreamAddCallback(stream, capture_older, NULL, 0));
	NOTE(cu.cuStreamEndCapture(stream, &graph));
}

/* Memory that the graph has while it runs. */
static void capture_memory(void)
{
	CUstream stream = capture_stream();
	CUdeviceptr pointer = 0, out = check_alloc(4096);
	CUgraphExec exec = NULL;
	CUgraph graph = NULL;
	size_t nodes = 0;

	OK(cu.cuMemsetD32_v2(out, 0, 1024));
	(void)cu.cuCtxSynchronize();
	OK(cu.cuStreamBeginCapture_v2(stream, 2));
	NOTE(cu.cuMemAllocAsync(&pointer, 1 << 20, stream));
	NOTE(cu.cuMemsetD32Async(pointer, 7, 1024, stream));
	NOTE(cu.cuMemcpyDtoDAsync_v2(out, pointer, 4096, stream));
	NOTE(cu.cuMemFreeAsync(pointer, stream));
	NOTE(cu.cuStreamEndCapture(stream, &graph));
	NOTE(cu.cuGraphGetNodes(graph, NULL, &nodes));
	NOTE(nodes);
	NOTE(cu.cuGraphInstantiateWithFlags(&exec, graph, 0));
	NOTE(cu.cuGraphLaunch(exec, stream));
	NOTE(cu.cuStreamSynchronize(stream));
	NOTE(check_word(out));
}

/* Memory of the host that is not page-locked, and its copies of a graph's later runs. */
static void capture_ordinary(void)
{
	static uint32_t from[65536 / 4], large[262144 / 4];
	CUstream stream = capture_stream();
	CUdeviceptr out = check_alloc(sizeof(large));
	CUgraphExec exec = NULL;
	CUgraph graph = NULL;

	OK(cu.cuStreamBeginCapture_v2(stream, 2));
	NOTE(cu.cuMemcpyHtoDAsync_v2(out, from, 4096, stream));
	NOTE(cu.cuMemcpyHtoDAsync_v2(out, large, sizeof(large), stream));
	NOTE(cu.cuMemcpyDtoHAsync_v2(from, out, 4096, stream));
	NOTE(cu.cuStreamEndCapture(stream, &graph));
	NOTE(cu.cuGraphInstantiateWithFlags(&exec, graph, 0));
}

static void capture_status_data(void)
{
	CUstream stream = capture_stream();
	const CUgraphEdgeData *data = (const CUgraphEdgeData *)1;
	const CUgraphNode *nodes = NULL;
	CUgraph graph = NULL;
	CUcontext found = NULL;
	void *green = (void *)1;
	cuuint64_t id = 0;
	size_t count = 99;
	int status = 9;

	OK(cu.cuStreamGetCtx_v2(stream, &found, &green));
	TRUE(found == context && !green);
	OK(cu.cuStreamBeginCapture_v2(stream, 2));
	OK(check_launch("nop", 1, stream, NULL));
	OK(cu.cuStreamGetCaptureInfo_v3(stream, &status, &id, &graph, &nodes, &data, &count));
	IS(1, (long long)count);
	NOTE(!data || data->type != 0);
	OK(cu.cuStreamUpdateCaptureDependencies_v2(stream, NULL, NULL, 0, 1));
	OK(cu.cuStreamEndCapture(stream, &graph));
	OK(cu.cuGraphDestroy(graph));
	OK(cu.cuStreamDestroy_v2(stream));
}

/* As before CUDA 11 and 12: without a mode, with the status alone, with a log. */
static void capture_first_forms(void)
{
	CUstream stream = capture_stream();
	CUgraphExec exec = NULL, other = NULL;
	CUgraphNode node = (CUgraphNode)1;
	CUgraph graph = NULL;
	char log[64] = "log";
	cuuint64_t id = 0;
	int status = 9, result = 9;

	OK(cu.cuStreamBeginCapture(stream));
	OK(check_launch("nop", 1, stream, NULL));
	OK(cu.cuStreamGetCaptureInfo(stream, &status, &id));
	IS(1, status);
	TRUE(id != 0);
	OK(cu.cuStreamEndCapture(stream, &graph));
	OK(cu.cuStreamGetCaptureInfo(stream, &status, &id));
	IS(0, status);
	OK(cu.cuGraphInstantiate(&exec, graph, &node, log, sizeof(log)));
	OK(cu.cuGraphInstantiate_v2(&other, graph, NULL, NULL, 0));
	OK(cu.cuGraphExecUpdate(exec, graph, &node, &result));
	IS(0, result);
	TRUE(!node);
	OK(cu.cuGraphLaunch(exec, stream));
	OK(cu.cuGraphLaunch(other, stream));
	OK(cu.cuStreamSynchronize(stream));
	OK(cu.cuGraphExecDestroy(exec));
	OK(cu.cuGraphExecDestroy(other));
	OK(cu.cuGraphDestroy(graph));
	OK(cu.cuStreamDestroy_v2(stream));
}

/* Copied each time that the graph runs. */
static void capture_within_host(void)
{
	CUstream stream = capture_stream();
	uint32_t *pinned = check_pinned(4096);
	CUDA_MEMCPY2D plane = {.src_type = 1,
			       .src_host = pinned,
			       .src_pitch = 16,
			       .dst_type = 1,
			       .dst_host = pinned + 512,
			       .dst_pitch = 16,
			       .width = 8,
			       .height = 2};
	CUgraphExec exec = NULL;
	CUgraph graph = NULL;

	OK(cu.cuStreamBeginCapture_v2(stream, 0));
	OK(cu.cuMemcpyAsync((uintptr_t)(pinned + 256), (uintptr_t)pinned, 16, stream));
	OK(cu.cuMemcpy2DAsync_v2(&plane, stream));
	OK(cu.cuStreamEndCapture(stream, &graph));
	OK(cu.cuGraphInstantiateWithFlags(&exec, graph, 0));
	for (uint32_t i = 1; i < 3; i++) {
		pinned[3] = pinned[5] = i;
		OK(cu.cuGraphLaunch(exec, stream));
		OK(cu.cuStreamSynchronize(stream));
		IS(i, pinned[256 + 3]);
		IS(i, pinned[512 + 5]);
	}
	OK(cu.cuGraphExecDestroy(exec));
	OK(cu.cuGraphDestroy(graph));
	OK(cu.cuMemFreeHost(pinned));
	OK(cu.cuStreamDestroy_v2(stream));
}

/* More than a container may have of page-locked memory, of which nothing is needed. */
static void capture_much_within_host(void)
{
	enum { BYTES = 16 << 20 };
	CUstream stream = capture_stream();
	char *from = calloc(1, BYTES), *to = calloc(1, BYTES);
	CUgraphExec exec = NULL;
	CUgraph graph = NULL;

	OK(cu.cuStreamBeginCapture_v2(stream, 0));
	OK(cu.cuMemcpyAsync((uintptr_t)to, (uintptr_t)from, BYTES, stream));
	OK(cu.cuStreamEndCapture(stream, &graph));
	OK(cu.cuGraphInstantiateWithFlags(&exec, graph, 0));
	from[BYTES - 1] = 7;
	OK(cu.cuGraphLaunch(exec, stream));
	OK(cu.cuStreamSynchronize(stream));
	IS(7, to[BYTES - 1]);
	OK(cu.cuGraphExecDestroy(exec));
	OK(cu.cuGraphDestroy(graph));
	OK(cu.cuStreamDestroy_v2(stream));
	free(from);
	free(to);
}

const struct check capture_checks[] = {
	{"first forms", capture_first_forms, true},
	{"set, kernel and copy", capture_simple, false},
	{"status", capture_status, false},
	{"begun and ended wrongly", capture_unmatched, false},
	{"waiting for the stream", capture_forbidden, true},
	{"allocating in two modes", capture_global, true},
	{"a thread's own mode", capture_mode, true},
	{"two streams", capture_fork, true},
	{"two streams, of which one is destroyed meanwhile", capture_destroyed, true},
	{"a stream that does not come back", capture_unjoined, true},
	{"ended in a stream that joined it", capture_ended_elsewhere, true},
	{"freeing meanwhile", capture_freeing, true},
	{"an event of it is asked for", capture_event_query, true},
	{"an event from outside", capture_isolation, true},
	{"the legacy stream meanwhile", capture_implicit, true},
	{"a function of the host", capture_host_function, false},
	{"a function of the host, three times", capture_host_twice, false},
	{"status, and data of edges", capture_status_data, true},
	{"a callback", capture_callback, true},
	{"memory of the graph's own", capture_memory, true},
	{"memory that is not page-locked", capture_ordinary, true},
	{"copies within the host", capture_within_host, true},
	{"a large copy within the host", capture_much_within_host, true},
	END,
};

/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a program of NVIDIA's CUDA runtime does, a line for each thing with what was returned, so that what it prints natively and
 * through vCUDA can be compared. The kernels are those that the simulated driver knows, too. For nvcc from 11.8 on.
 */

#include <cuda_runtime.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { COUNT = 1 << 16, BLOCK = 256 };

extern "C" __global__ void vectorAdd(const float *a, const float *b, float *c, unsigned n)
{
	const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		c[i] = a[i] + b[i];
}

extern "C" __global__ void nop(void)
{
}

extern "C" {
__device__ unsigned counter = 7;
__constant__ unsigned table[4] = {11, 22, 33, 44};
}

static int failures;

static void say(const char *what, cudaError_t r)
{
	printf("%s: %d\n", what, (int)r);
	(void)fflush(stdout);
	failures += r != cudaSuccess;
	(void)cudaGetLastError();
}

static void say_value(const char *what, cudaError_t r, long long value)
{
	printf("%s: %d, %lld\n", what, (int)r, value);
	(void)fflush(stdout);
	failures += r != cudaSuccess;
	(void)cudaGetLastError();
}

static float host_a[COUNT], host_b[COUNT], host_c[COUNT];
static float *a, *b, *c;

static int wrong(const float *values)
{
	int count = 0;

	for (int i = 0; i < COUNT; i++)
		count += values[i] != 3 * (float)i;
	return count;
}

static void begin(void)
{
	cudaDeviceProp properties;
	int count = 0, version = 0;

	cudaError_t r = cudaDriverGetVersion(&version);

	say_value("cudaDriverGetVersion", r, version);
	r = cudaGetDeviceCount(&count);
	say_value("cudaGetDeviceCount", r, count);
	say("cudaSetDevice", cudaSetDevice(0));
	memset(&properties, 0, sizeof(properties));
	r = cudaGetDeviceProperties(&properties, 0);
	say_value("cudaGetDeviceProperties", r, properties.major * 10 + properties.minor);
	for (int i = 0; i < COUNT; i++) {
		host_a[i] = (float)i;
		host_b[i] = 2 * (float)i;
	}
}

static void memory(void)
{
	cudaPointerAttributes attributes;
	size_t free_bytes, total;
	cudaError_t r;

	say("cudaMalloc", cudaMalloc(&a, sizeof(host_a)));
	say("cudaMalloc", cudaMalloc(&b, sizeof(host_b)));
	say("cudaMalloc", cudaMalloc(&c, sizeof(host_c)));
	r = cudaMemGetInfo(&free_bytes, &total);
	say_value("cudaMemGetInfo", r, free_bytes < total);
	say("cudaMemcpy to the device", cudaMemcpy(a, host_a, sizeof(host_a), cudaMemcpyHostToDevice));
	say("cudaMemcpy to the device", cudaMemcpy(b, host_b, sizeof(host_b), cudaMemcpyHostToDevice));
	say("cudaMemset", cudaMemset(c, 0, sizeof(host_c)));
	r = cudaPointerGetAttributes(&attributes, a);
	say_value("cudaPointerGetAttributes", r, attributes.type);
}

static void kernels(void)
{
	cudaFuncAttributes attributes;
	void *arguments[] = {NULL};
	int blocks = 0;
	cudaError_t r;

	vectorAdd<<<COUNT / BLOCK, BLOCK>>>(a, b, c, COUNT);
	say("a launch", cudaGetLastError());
	say("cudaDeviceSynchronize", cudaDeviceSynchronize());
	r = cudaMemcpy(host_c, c, sizeof(host_c), cudaMemcpyDeviceToHost);
	say_value("sums that are wrong", r, wrong(host_c));
	memset(&attributes, 0, sizeof(attributes));
	r = cudaFuncGetAttributes(&attributes, (const void *)vectorAdd);
	say_value("cudaFuncGetAttributes", r, attributes.maxThreadsPerBlock);
	r = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, (const void *)vectorAdd, BLOCK, 0);
	say_value("cudaOccupancyMaxActiveBlocksPerMultiprocessor", r, blocks);
	r = cudaLaunchCooperativeKernel((const void *)nop, dim3(1), dim3(32), arguments, 0, 0);
	say("cudaLaunchCooperativeKernel", r);
	nop<<<1, 4096>>>();
	printf("too many threads: %d\n", (int)cudaGetLastError());
	say("cudaDeviceSynchronize behind it", cudaDeviceSynchronize());
}

static void symbols(void)
{
	unsigned value = 0, values[4] = {0};
	void *address = NULL;
	cudaError_t r = cudaMemcpyFromSymbol(&value, counter, sizeof(value));

	say_value("cudaMemcpyFromSymbol", r, value);
	value = 9;
	say("cudaMemcpyToSymbol", cudaMemcpyToSymbol(counter, &value, sizeof(value)));
	value = 0;
	r = cudaMemcpyFromSymbol(&value, counter, sizeof(value));
	say_value("cudaMemcpyFromSymbol behind it", r, value);
	r = cudaMemcpyFromSymbol(values, table, sizeof(values));
	say_value("cudaMemcpyFromSymbol of a constant", r, values[3]);
	r = cudaGetSymbolAddress(&address, counter);
	say_value("cudaGetSymbolAddress", r, address != NULL);
}

static void called(void *data)
{
	*(int *)data += 1;
}

static void streams(void)
{
	float *pinned = NULL, milliseconds = -1;
	cudaEvent_t first, second;
	cudaStream_t stream;
	int calls = 0;
	cudaError_t r;

	say("cudaStreamCreate", cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	say("cudaEventCreate", cudaEventCreate(&first));
	say("cudaEventCreate", cudaEventCreate(&second));
	say("cudaMallocHost", cudaMallocHost((void **)&pinned, sizeof(host_c)));
	say("cudaEventRecord", cudaEventRecord(first, stream));
	say("cudaMemsetAsync", cudaMemsetAsync(c, 0, sizeof(host_c), stream));
	vectorAdd<<<COUNT / BLOCK, BLOCK, 0, stream>>>(a, b, c, COUNT);
	say("cudaMemcpyAsync", cudaMemcpyAsync(pinned, c, sizeof(host_c), cudaMemcpyDeviceToHost, stream));
	say("cudaLaunchHostFunc", cudaLaunchHostFunc(stream, called, &calls));
	say("cudaEventRecord", cudaEventRecord(second, stream));
	say("cudaStreamSynchronize", cudaStreamSynchronize(stream));
	say_value("sums that are wrong", cudaEventQuery(second), pinned ? wrong(pinned) : -1);
	say_value("host functions", cudaStreamQuery(stream), calls);
	r = cudaEventElapsedTime(&milliseconds, first, second);
	say_value("cudaEventElapsedTime", r, milliseconds >= 0);
	say("cudaFreeHost", cudaFreeHost(pinned));
	say("cudaEventDestroy", cudaEventDestroy(first));
	say("cudaEventDestroy", cudaEventDestroy(second));
	say("cudaStreamDestroy", cudaStreamDestroy(stream));
}

static void pools(void)
{
	cudaStream_t stream;
	float *memory = NULL;

	say("cudaStreamCreate", cudaStreamCreate(&stream));
	say("cudaMallocAsync", cudaMallocAsync((void **)&memory, 1 << 20, stream));
	say("cudaMemsetAsync", cudaMemsetAsync(memory, 1, 1 << 20, stream));
	say("cudaFreeAsync", cudaFreeAsync(memory, stream));
	say("cudaStreamSynchronize", cudaStreamSynchronize(stream));
	say("cudaStreamDestroy", cudaStreamDestroy(stream));
}

static void graphs(void)
{
	cudaGraphExec_t exec = NULL;
	cudaGraph_t graph = NULL;
	cudaStream_t stream;
	size_t nodes = 0;
	cudaError_t r;

	say("cudaStreamCreate", cudaStreamCreate(&stream));
	say("cudaStreamBeginCapture", cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
	say("cudaMemsetAsync", cudaMemsetAsync(c, 0, sizeof(host_c), stream));
	vectorAdd<<<COUNT / BLOCK, BLOCK, 0, stream>>>(a, b, c, COUNT);
	say("a launch that is captured", cudaGetLastError());
	say("cudaStreamEndCapture", cudaStreamEndCapture(stream, &graph));
	r = cudaGraphGetNodes(graph, NULL, &nodes);
	say_value("cudaGraphGetNodes", r, (long long)nodes);
	say("cudaGraphInstantiate", cudaGraphInstantiateWithFlags(&exec, graph, 0));
	say("cudaGraphLaunch", cudaGraphLaunch(exec, stream));
	say("cudaStreamSynchronize", cudaStreamSynchronize(stream));
	r = cudaMemcpy(host_c, c, sizeof(host_c), cudaMemcpyDeviceToHost);
	say_value("sums that are wrong", r, wrong(host_c));
	say("cudaGraphExecDestroy", cudaGraphExecDestroy(exec));
	say("cudaGraphDestroy", cudaGraphDestroy(graph));
	say("cudaStreamDestroy", cudaStreamDestroy(stream));
}

/* Of memory that is not page-locked, by calls and captured, with an object that the graph keeps. */
static void plain_graphs(void)
{
	cudaGraphNode_t nodes[2];
	cudaGraphExec_t exec = NULL;
	cudaUserObject_t object;
	cudaGraph_t graph = NULL;
	cudaStream_t stream;
	cudaError_t r;
	size_t count = 0;
	int ended = 0;

	say("cudaStreamCreate", cudaStreamCreate(&stream));
	say("cudaGraphCreate", cudaGraphCreate(&graph, 0));
	r = cudaGraphAddMemcpyNode1D(&nodes[0], graph, NULL, 0, a, host_b, sizeof(host_b), cudaMemcpyHostToDevice);
	say("cudaGraphAddMemcpyNode1D to the device", r);
	r = cudaGraphAddMemcpyNode1D(&nodes[1], graph, nodes, 1, host_c, a, sizeof(host_c), cudaMemcpyDeviceToHost);
	say("cudaGraphAddMemcpyNode1D from it", r);
	say("cudaUserObjectCreate", cudaUserObjectCreate(&object, &ended, called, 1, cudaUserObjectNoDestructorSync));
	say("cudaGraphRetainUserObject", cudaGraphRetainUserObject(graph, object, 1, cudaGraphUserObjectMove));
	say("cudaGraphInstantiate", cudaGraphInstantiateWithFlags(&exec, graph, 0));
	for (int round = 1; round < 3; round++) {
		host_b[7] = (float)round;
		say("cudaGraphLaunch", cudaGraphLaunch(exec, stream));
		r = cudaStreamSynchronize(stream);
		say_value("what was copied", r, (long long)host_c[7]);
	}
	say("cudaGraphDestroy", cudaGraphDestroy(graph));
	say("cudaGraphExecDestroy", cudaGraphExecDestroy(exec));
	for (int i = 0; i < 2000 && !*(volatile int *)&ended; i++)
		(void)usleep(1000);
	say_value("objects that have ended", cudaSuccess, ended);
	say("cudaStreamBeginCapture", cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
	say("cudaMemcpyAsync to the device", cudaMemcpyAsync(a, host_a, sizeof(host_a), cudaMemcpyHostToDevice, stream));
	say("cudaMemcpyAsync from it", cudaMemcpyAsync(host_c, a, 64, cudaMemcpyDeviceToHost, stream));
	say("cudaStreamEndCapture", cudaStreamEndCapture(stream, &graph));
	r = cudaGraphGetNodes(graph, NULL, &count);
	say_value("cudaGraphGetNodes", r, (long long)count);
	say("cudaGraphInstantiate", cudaGraphInstantiateWithFlags(&exec, graph, 0));
	host_c[7] = 0;
	say("cudaGraphLaunch", cudaGraphLaunch(exec, stream));
	r = cudaStreamSynchronize(stream);
	say_value("copied as it was", r, host_c[7] == host_a[7]);
	say("cudaGraphExecDestroy", cudaGraphExecDestroy(exec));
	say("cudaGraphDestroy", cudaGraphDestroy(graph));
	say("cudaStreamDestroy", cudaStreamDestroy(stream));
}

static void *thread(void *data)
{
	float *own = NULL;
	cudaError_t r = cudaMalloc((void **)&own, sizeof(host_c));

	if (r == cudaSuccess)
		vectorAdd<<<COUNT / BLOCK, BLOCK, 0, cudaStreamPerThread>>>(a, b, own, COUNT);
	if (r == cudaSuccess)
		r = cudaStreamSynchronize(cudaStreamPerThread);
	if (r == cudaSuccess)
		r = cudaMemcpy(data, own, sizeof(host_c), cudaMemcpyDeviceToHost);
	if (r == cudaSuccess)
		r = cudaFree(own);
	return (void *)(size_t)r;
}

static void threads(void)
{
	static float results[4][COUNT];
	pthread_t ids[4];

	for (int i = 0; i < 4; i++)
		if (pthread_create(&ids[i], NULL, thread, results[i]) != 0)
			exit(2);
	for (int i = 0; i < 4; i++) {
		void *r;

		(void)pthread_join(ids[i], &r);
		say_value("a thread's sums that are wrong", (cudaError_t)(size_t)r, wrong(results[i]));
	}
}

/* Natively, all of these are there; what vCUDA says is in docs/vcuda.md. */
static void declare(const char *what, cudaError_t r)
{
	printf("# %s: %d\n", what, (int)r);
	(void)fflush(stdout);
	(void)cudaGetLastError();
}

static void rarer(void)
{
	const cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
	static float registered[4096];
	cudaArray_t array = NULL;
	float *managed = NULL;
	int value = 0;
	cudaError_t r;

	r = cudaHostRegister(registered, sizeof(registered), cudaHostRegisterDefault);
	declare("cudaHostRegister", r);
	if (r == cudaSuccess)
		declare("cudaHostUnregister", cudaHostUnregister(registered));
	r = cudaMallocManaged((void **)&managed, 4096);
	declare("cudaMallocManaged", r);
	if (r == cudaSuccess)
		declare("cudaFree", cudaFree(managed));
	r = cudaMallocArray(&array, &format, 64, 64);
	declare("cudaMallocArray", r);
	if (r == cudaSuccess)
		declare("cudaFreeArray", cudaFreeArray(array));
	r = cudaDeviceGetAttribute(&value, cudaDevAttrManagedMemory, 0);
	printf("# cudaDevAttrManagedMemory: %d, %d\n", (int)r, value);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} parts[] = {{"kernels", kernels}, {"symbols", symbols}, {"streams", streams}, {"pools", pools},
		     {"graphs", graphs},   {"threads", threads}, {"rarer", rarer},
		     {"plain graphs", plain_graphs}};

	begin();
	memory();
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		if (argc < 2 || strcmp(argv[1], parts[i].name) == 0) {
			printf("# %s\n", parts[i].name);
			parts[i].run();
		}
	say("cudaFree", cudaFree(a));
	say("cudaDeviceReset", cudaDeviceReset());
	say("cudaMalloc after it", cudaMalloc(&a, 4096));
	printf("# %d failed\n", failures);
	return failures > 0;
}

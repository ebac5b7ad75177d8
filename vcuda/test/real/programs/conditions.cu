/* SPDX-License-Identifier: Apache-2.0 */

/* A graph whose kernels decide how often it goes on; textures, surfaces, and what kernels print. */

#include <cstdio>
#include <cuda_runtime.h>

#define CHECK(call)                                                                             \
	do {                                                                                    \
		cudaError_t r_ = (call);                                                        \
		if (r_) {                                                                       \
			printf("%s: %s\n", #call, cudaGetErrorName(r_));                        \
			return 1;                                                               \
		}                                                                               \
	} while (0)

__global__ void count(int *counter, int most, cudaGraphConditionalHandle handle)
{
	if (++*counter == most)
		cudaGraphSetConditional(handle, 0);
}

__global__ void show(const int *counter)
{
	printf("counted to %d\n", *counter);
}

__global__ void draw(cudaSurfaceObject_t surface, int width)
{
	surf2Dwrite((float)(threadIdx.x + threadIdx.y * width), surface, threadIdx.x * 4, threadIdx.y);
}

__global__ void sample(cudaTextureObject_t texture, float *out)
{
	out[threadIdx.x] = tex2D<float>(texture, threadIdx.x + 1.0f, 1.5f);
}

static int loop(void)
{
	cudaGraphNodeParams while_node = {}, kernel_node = {}, show_node = {};
	cudaGraphConditionalHandle handle;
	cudaGraphNode_t first, second, inner;
	cudaGraphExec_t exec;
	cudaGraph_t graph;
	int *counter, most = 10;

	CHECK(cudaMalloc(&counter, sizeof(*counter)));
	CHECK(cudaMemset(counter, 0, sizeof(*counter)));
	CHECK(cudaGraphCreate(&graph, 0));
	CHECK(cudaGraphConditionalHandleCreate(&handle, graph, 1, cudaGraphCondAssignDefault));
	while_node.type = cudaGraphNodeTypeConditional;
	while_node.conditional.handle = handle;
	while_node.conditional.type = cudaGraphCondTypeWhile;
	while_node.conditional.size = 1;
	CHECK(cudaGraphAddNode(&first, graph, NULL, NULL, 0, &while_node));
	void *arguments[] = {&counter, &most, &handle}, *shown[] = {&counter};
	kernel_node.type = cudaGraphNodeTypeKernel;
	kernel_node.kernel.func = (void *)count;
	kernel_node.kernel.gridDim = kernel_node.kernel.blockDim = dim3(1);
	kernel_node.kernel.kernelParams = arguments;
	CHECK(cudaGraphAddNode(&inner, while_node.conditional.phGraph_out[0], NULL, NULL, 0, &kernel_node));
	show_node = kernel_node;
	show_node.kernel.func = (void *)show;
	show_node.kernel.kernelParams = shown;
	CHECK(cudaGraphAddNode(&second, graph, &first, NULL, 1, &show_node));
	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	for (int i = 0; i < 2; i++) {
		CHECK(cudaMemset(counter, 0, sizeof(*counter)));
		CHECK(cudaGraphLaunch(exec, 0));
		CHECK(cudaDeviceSynchronize());
		printf("after launch %d\n", i);
	}
	return 0;
}

static int texture(void)
{
	enum { WIDTH = 16, HEIGHT = 4 };
	const cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
	cudaResourceDesc resource = {};
	cudaTextureDesc how = {};
	cudaTextureObject_t texture;
	cudaSurfaceObject_t surface;
	cudaArray_t array;
	float *out, values[8], rows[WIDTH * HEIGHT];

	CHECK(cudaMallocArray(&array, &format, WIDTH, HEIGHT, cudaArraySurfaceLoadStore));
	resource.resType = cudaResourceTypeArray;
	resource.res.array.array = array;
	how.filterMode = cudaFilterModeLinear;
	how.addressMode[0] = how.addressMode[1] = cudaAddressModeClamp;
	CHECK(cudaCreateSurfaceObject(&surface, &resource));
	CHECK(cudaCreateTextureObject(&texture, &resource, &how, NULL));
	CHECK(cudaMalloc(&out, sizeof(values)));
	draw<<<1, dim3(WIDTH, HEIGHT)>>>(surface, WIDTH);
	sample<<<1, 8>>>(texture, out);
	CHECK(cudaMemcpy(values, out, sizeof(values), cudaMemcpyDeviceToHost));
	CHECK(cudaMemcpy2DFromArray(rows, WIDTH * 4, array, 0, 0, WIDTH * 4, HEIGHT, cudaMemcpyDeviceToHost));
	for (int i = 0; i < 8; i++)
		printf("%g ", values[i]);
	printf("and %g\n", rows[WIDTH * HEIGHT - 1]);
	CHECK(cudaDestroyTextureObject(texture));
	CHECK(cudaDestroySurfaceObject(surface));
	CHECK(cudaFreeArray(array));
	return 0;
}

int main(void)
{
	return loop() || texture();
}

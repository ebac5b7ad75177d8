/* SPDX-License-Identifier: Apache-2.0 */

/* Managed memory by NVIDIA's CUDA runtime: what is printed must be the same natively and through vCUDA. */

#include <stdio.h>

__global__ void add(int n, const float *x, float *y)
{
	for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x)
		y[i] += x[i];
}

struct node {
	struct node *next;
	int value;
};

__global__ void walk(const struct node *node, int *sum)
{
	for (; node; node = node->next)
		*sum += node->value;
}

__global__ void count(int *counter)
{
	atomicAdd(counter, 1);
}

/* Variables of the module, which the host uses by their names. */
__managed__ int made = 5;
__managed__ float row[1 << 16];
__managed__ struct node *list;

__global__ void use(int n)
{
	const int i = blockIdx.x * blockDim.x + threadIdx.x;

	atomicAdd(&made, 1);
	if (i < n)
		row[i] += list ? (float)list->value : 1;
}

#define MUST(call)                                                                       \
	do {                                                                             \
		cudaError_t e = call;                                                    \
		if (e != cudaSuccess) {                                                  \
			printf("%s: %s\n", #call, cudaGetErrorString(e));                \
			return 1;                                                        \
		}                                                                        \
	} while (0)

static int variables(void)
{
	cudaPointerAttributes attributes;
	cudaStream_t stream;
	struct node *node;
	double total = 0;

	printf("%d %.0f\n", made, row[7]);
	for (int i = 0; i < 1 << 16; i++)
		row[i] = (float)i;
	made = 10;
	use<<<256, 256>>>(1 << 16);
	MUST(cudaDeviceSynchronize());
	for (int i = 0; i < 1 << 16; i++)
		total += row[i];
	printf("%d %.0f\n", made, total);
	MUST(cudaMallocManaged(&node, sizeof(*node)));
	node->value = 3;
	list = node;
	MUST(cudaStreamCreate(&stream));
	for (int i = 0; i < 100; i++) {
		made = i;
		use<<<256, 256, 0, stream>>>(1 << 15);
		MUST(cudaStreamSynchronize(stream));
		if (made != i + 65536)
			printf("round %d: %d\n", i, made);
	}
	printf("%d %.0f %.0f\n", made, row[0], row[(1 << 16) - 1]);
	MUST(cudaMemset(row, 0, sizeof(float)));
	MUST(cudaDeviceSynchronize());
	MUST(cudaPointerGetAttributes(&attributes, row));
	printf("%.0f %.0f %d\n", row[0], row[1], (int)attributes.type);
	MUST(cudaStreamDestroy(stream));
	MUST(cudaFree(node));
	return 0;
}

int main(void)
{
	enum { N = 1 << 20 };
	struct node *first = NULL;
	cudaPointerAttributes attributes;
	int device = 0, managed = 0, *sum;
	double total = 0;
	float *x, *y;

	MUST(cudaGetDevice(&device));
	MUST(cudaDeviceGetAttribute(&managed, cudaDevAttrManagedMemory, device));
	MUST(cudaMallocManaged(&x, N * sizeof(float)));
	MUST(cudaMallocManaged(&y, N * sizeof(float)));
	for (int i = 0; i < N; i++) {
		x[i] = 1;
		y[i] = 2;
	}
	add<<<256, 256>>>(N, x, y);
	MUST(cudaDeviceSynchronize());
	for (int i = 0; i < N; i++)
		total += y[i];
	MUST(cudaPointerGetAttributes(&attributes, y));
	printf("%d %.0f %d\n", managed, total, (int)attributes.type);
	MUST(cudaMallocManaged(&sum, sizeof(int)));
	for (int i = 0; i < 1000; i++) {
		struct node *node;

		MUST(cudaMallocManaged(&node, sizeof(*node)));
		node->next = first;
		node->value = i;
		first = node;
	}
	*sum = 0;
	walk<<<1, 1>>>(first, sum);
	MUST(cudaDeviceSynchronize());
	printf("%d\n", *sum);
	*sum = 0;
	count<<<64, 256>>>(sum);
	MUST(cudaMemset(y, 0, N * sizeof(float)));
	MUST(cudaMemcpy(y, x, N * sizeof(float) / 2, cudaMemcpyDefault));
	MUST(cudaDeviceSynchronize());
	printf("%d %.0f %.0f\n", *sum, y[0], y[N - 1]);
	while (first) {
		struct node *next = first->next;

		MUST(cudaFree(first));
		first = next;
	}
	MUST(cudaFree(x));
	MUST(cudaFree(y));
	return variables();
}

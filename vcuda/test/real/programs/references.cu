/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Texture and surface references, as programs had them until CUDA 11, whose nvcc compiles this: of an array, of a line and
 * of rows of memory, and an array that a kernel draws on. Prints sums of what kernels read.
 */

#include <stdio.h>
#include <stdlib.h>

enum { WIDTH = 256, HEIGHT = 128, WORDS = 96, BYTES = 64, ROWS = 4, COLUMNS = 16, LINES = 8 };

texture<float, cudaTextureType2D, cudaReadModeElementType> plane;
texture<unsigned, cudaTextureType1D, cudaReadModeElementType> line;
texture<unsigned char, cudaTextureType2D, cudaReadModeNormalizedFloat> bytes;
surface<void, cudaSurfaceType2D> canvas;

__global__ void turn(float *out, float angle)
{
	const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
	const float u = (float)x / WIDTH - 0.5f, v = (float)y / HEIGHT - 0.5f;

	out[y * WIDTH + x] =
		tex2D(plane, u * cosf(angle) - v * sinf(angle) + 0.5f, v * cosf(angle) + u * sinf(angle) + 0.5f);
}

__global__ void walk(unsigned *out)
{
	out[threadIdx.x] = tex1Dfetch(line, threadIdx.x * 3);
}

__global__ void soften(float *out)
{
	out[threadIdx.x] = tex2D(bytes, threadIdx.x + 0.5f, 1.5f);
}

__global__ void paint(void)
{
	surf2Dwrite((int)(threadIdx.x * 10 + threadIdx.y), canvas, threadIdx.x * sizeof(int), threadIdx.y);
}

#define MUST(call)                                                       \
	do {                                                             \
		cudaError_t e = call;                                    \
		if (e != cudaSuccess) {                                  \
			printf("%s: %s\n", #call, cudaGetErrorString(e)); \
			exit(1);                                         \
		}                                                        \
	} while (0)

/* Once with each way to look beside the picture. */
static void turn_picture(cudaTextureAddressMode beside)
{
	static float host[WIDTH * HEIGHT];
	const cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
	cudaArray_t array;
	double sum = 0;
	float *out;

	for (int i = 0; i < WIDTH * HEIGHT; i++)
		host[i] = (float)((i * 2654435761u >> 8) % 1000) / 1000 + (float)beside;
	MUST(cudaMallocArray(&array, &format, WIDTH, HEIGHT));
	MUST(cudaMemcpy2DToArray(array, 0, 0, host, WIDTH * 4, WIDTH * 4, HEIGHT, cudaMemcpyHostToDevice));
	plane.addressMode[0] = plane.addressMode[1] = beside;
	plane.filterMode = cudaFilterModeLinear;
	plane.normalized = true;
	MUST(cudaBindTextureToArray(plane, array, format));
	MUST(cudaMalloc(&out, sizeof(host)));
	turn<<<dim3(WIDTH / 16, HEIGHT / 16), dim3(16, 16)>>>(out, 0.5f);
	MUST(cudaGetLastError());
	MUST(cudaMemcpy(host, out, sizeof(host), cudaMemcpyDeviceToHost));
	for (int i = 0; i < WIDTH * HEIGHT; i++)
		sum += host[i] * (1 + i % 7);
	printf("turned: %.6f\n", sum);
	if (beside == cudaAddressModeClamp)
		MUST(cudaUnbindTexture(plane));
	MUST(cudaFreeArray(array));
	MUST(cudaFree(out));
}

static void read_memory(void)
{
	unsigned words[WORDS], *from, *to;
	unsigned char *rows;
	size_t offset = 7, pitch;
	float soft[32];

	for (int i = 0; i < WORDS; i++)
		words[i] = (unsigned)(i * i);
	MUST(cudaMalloc(&from, sizeof(words)));
	MUST(cudaMalloc(&to, sizeof(words)));
	MUST(cudaMemcpy(from, words, sizeof(words), cudaMemcpyHostToDevice));
	MUST(cudaBindTexture(&offset, line, from, sizeof(words)));
	walk<<<1, 32>>>(to);
	MUST(cudaMemcpy(words, to, 32 * sizeof(*words), cudaMemcpyDeviceToHost));
	printf("walked: %zu %u %u\n", offset, words[1], words[31]);
	MUST(cudaMallocPitch(&rows, &pitch, BYTES, ROWS));
	MUST(cudaMemset2D(rows, pitch, 51, BYTES, ROWS));
	MUST(cudaBindTexture2D(&offset, bytes, rows, BYTES, ROWS, pitch));
	soften<<<1, 32>>>((float *)to);
	MUST(cudaMemcpy(soft, to, sizeof(soft), cudaMemcpyDeviceToHost));
	printf("softened: %.4f\n", soft[9]);
}

static void draw(void)
{
	const cudaChannelFormatDesc format = cudaCreateChannelDesc<int>();
	int drawn[COLUMNS * LINES];
	cudaArray_t array;

	MUST(cudaMallocArray(&array, &format, COLUMNS, LINES, cudaArraySurfaceLoadStore));
	MUST(cudaBindSurfaceToArray(canvas, array));
	paint<<<1, dim3(COLUMNS, LINES)>>>();
	MUST(cudaMemcpy2DFromArray(drawn, COLUMNS * 4, array, 0, 0, COLUMNS * 4, LINES, cudaMemcpyDeviceToHost));
	printf("painted: %d %d\n", drawn[COLUMNS + 1], drawn[COLUMNS * LINES - 1]);
	MUST(cudaFreeArray(array));
}

int main(void)
{
	turn_picture(cudaAddressModeWrap);
	turn_picture(cudaAddressModeClamp);
	read_memory();
	draw();
	MUST(cudaDeviceReset());
	return 0;
}

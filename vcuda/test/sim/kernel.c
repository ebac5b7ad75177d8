/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The kernels: what a GPU would make of the PTX in vcuda/test/kernels.h, in C. Each looks up its memory before it touches it;
 * what a kernel of the context cannot reach is an illegal address.
 */

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "sim.h"

static uint64_t kernel_u64(const struct launch *launch, unsigned index)
{
	uint64_t value = 0;

	memcpy(&value, launch->arguments + launch->function->parameters[index].offset,
	       launch->function->parameters[index].size);
	return value;
}

static uint32_t kernel_u32(const struct launch *launch, unsigned index)
{
	return (uint32_t)kernel_u64(launch, index);
}

static float kernel_f32(const struct launch *launch, unsigned index)
{
	uint32_t bits = kernel_u32(launch, index);
	float value;

	memcpy(&value, &bits, sizeof(value));
	return value;
}

static size_t kernel_threads(const struct launch *launch)
{
	return (size_t)launch->grid[0] * launch->grid[1] * launch->grid[2] * launch->block[0] * launch->block[1] *
	       launch->block[2];
}

/* Elements that the threads of a launch reach of a vector of n. */
static size_t kernel_reach(const struct launch *launch, size_t count)
{
	size_t threads = (size_t)launch->grid[0] * launch->block[0];

	return threads < count ? threads : count;
}

static void *kernel_memory(struct launch *launch, uint64_t address, size_t size, bool write)
{
	bool reaches;

	(void)pthread_mutex_lock(&sim_lock);
	reaches = range_reaches(launch->context, address, size ? size : 1, write);
	(void)pthread_mutex_unlock(&sim_lock);
	if (reaches)
		return (void *)(uintptr_t)address;
	launch->error = CUDA_ERROR_ILLEGAL_ADDRESS;
	return NULL;
}

static void *kernel_in(struct launch *launch, unsigned index, size_t size)
{
	return kernel_memory(launch, kernel_u64(launch, index), size, false);
}

static void *kernel_out(struct launch *launch, unsigned index, size_t size)
{
	return kernel_memory(launch, kernel_u64(launch, index), size, true);
}

static void *kernel_global(struct launch *launch, const char *name, size_t size)
{
	CUdeviceptr address = 0;

	(void)pthread_mutex_lock(&sim_lock);
	(void)module_global(launch->function->module, name, &address, NULL);
	(void)pthread_mutex_unlock(&sim_lock);
	return kernel_memory(launch, address, size, true);
}

static void kernel_nop(struct launch *launch)
{
	(void)launch;
}

static void kernel_vector_add(struct launch *launch)
{
	size_t count = kernel_reach(launch, kernel_u32(launch, 3));
	const float *a = kernel_in(launch, 0, count * 4), *b = kernel_in(launch, 1, count * 4);
	float *c = kernel_out(launch, 2, count * 4);

	if (!a || !b || !c)
		return;
	for (size_t i = 0; i < count; i++)
		c[i] = a[i] + b[i];
}

/* The one of test/real/cuda-add.c. */
static void kernel_add(struct launch *launch)
{
	size_t count = kernel_reach(launch, kernel_u32(launch, 3));
	const uint32_t *a = kernel_in(launch, 0, count * 4), *b = kernel_in(launch, 1, count * 4);
	uint32_t *c = kernel_out(launch, 2, count * 4);

	if (!a || !b || !c)
		return;
	for (size_t i = 0; i < count; i++)
		c[i] = a[i] + b[i];
}

static void kernel_saxpy(struct launch *launch)
{
	size_t count = kernel_reach(launch, kernel_u32(launch, 3));
	const float *x = kernel_in(launch, 1, count * 4);
	float *y = kernel_out(launch, 2, count * 4), alpha = kernel_f32(launch, 0);

	if (!x || !y)
		return;
	for (size_t i = 0; i < count; i++)
		y[i] = alpha * x[i] + y[i];
}

static void kernel_matmul(struct launch *launch)
{
	size_t n = kernel_u32(launch, 3);
	const float *a = kernel_in(launch, 0, n * n * 4), *b = kernel_in(launch, 1, n * n * 4);
	float *c = kernel_out(launch, 2, n * n * 4);

	if (!a || !b || !c)
		return;
	for (size_t row = 0; row < n; row++)
		for (size_t column = 0; column < n; column++) {
			float sum = 0;

			for (size_t k = 0; k < n; k++)
				sum += a[row * n + k] * b[k * n + column];
			c[row * n + column] = sum;
		}
}

static void kernel_reduce(struct launch *launch)
{
	size_t count = kernel_reach(launch, kernel_u32(launch, 2));
	const uint32_t *in = kernel_in(launch, 0, count * 4);
	uint32_t *out = kernel_out(launch, 1, 4);

	if (!in || !out)
		return;
	for (size_t i = 0; i < count; i++)
		*out += in[i];
}

static void kernel_fill(struct launch *launch)
{
	size_t count = kernel_reach(launch, kernel_u32(launch, 2));
	uint32_t *to = kernel_out(launch, 0, count * 4);

	for (size_t i = 0; to && i < count; i++)
		to[i] = kernel_u32(launch, 1);
}

static void kernel_load(struct launch *launch)
{
	const uint32_t *from = kernel_in(launch, 0, 4);
	uint32_t *to = kernel_out(launch, 1, 4);

	if (from && to)
		*to = *from;
}

/* As if the clock went twice a nanosecond. */
static void kernel_spin(struct launch *launch)
{
	(void)usleep((useconds_t)(kernel_u64(launch, 0) / 2000));
}

/* Until the host, or a copy, makes the word other than 0. */
static void kernel_gate(struct launch *launch)
{
	_Atomic uint32_t *word = kernel_in(launch, 0, 4);

	while (word && !atomic_load(word))
		(void)usleep(20);
}

static void kernel_fault(struct launch *launch)
{
	launch->error = CUDA_ERROR_ILLEGAL_ADDRESS;
}

static void kernel_trap(struct launch *launch)
{
	launch->error = CUDA_ERROR_LAUNCH_FAILED;
}

/* 31 words, and where their sum goes. */
static void kernel_many(struct launch *launch)
{
	uint32_t *out = kernel_out(launch, 31, 4), sum = 0;

	for (unsigned i = 0; i < 31; i++)
		sum += kernel_u32(launch, i);
	if (out)
		*out = sum;
}

/* A structure, and where its bytes go. */
static void kernel_structure(struct launch *launch)
{
	size_t size = launch->function->parameters[0].size;
	unsigned char *out = kernel_out(launch, 1, size);

	if (out)
		memcpy(out, launch->arguments + launch->function->parameters[0].offset, size);
}

static void kernel_where(struct launch *launch)
{
	uint32_t *out = kernel_out(launch, 0, 24);

	for (int i = 0; out && i < 3; i++) {
		out[i] = launch->block[i];
		out[3 + i] = launch->grid[i];
	}
}

static void kernel_count(struct launch *launch)
{
	uint32_t *counter = kernel_global(launch, "counter", 4);

	if (counter)
		*counter += (uint32_t)kernel_threads(launch);
}

/* Each thread adds to the one and sets its own of the others. */
static void kernel_raise(struct launch *launch)
{
	uint32_t *sum = kernel_global(launch, "managed_sum", 4), *words = kernel_global(launch, "managed_words", 65536);

	for (uint32_t i = 0; sum && words && i < kernel_threads(launch); i++) {
		*sum += 1;
		words[i] = 100 + i;
	}
}

static void kernel_table(struct launch *launch)
{
	const uint32_t *table = kernel_global(launch, "table", 16);
	uint32_t *out = kernel_out(launch, 0, 16);

	if (table && out)
		memcpy(out, table, 16);
}

/* Each block turns its part around, by way of shared memory. */
static void kernel_reverse(struct launch *launch)
{
	size_t count = (size_t)launch->grid[0] * launch->block[0], size = launch->block[0];
	uint32_t *words = kernel_out(launch, 0, count * 4);

	if (words && launch->function->declared_shared + launch->shared < size * 4)
		launch->error = CUDA_ERROR_ILLEGAL_ADDRESS;
	for (size_t block = 0; words && !launch->error && block < launch->grid[0]; block++)
		for (size_t i = 0; i < size / 2; i++) {
			uint32_t *part = words + block * size, word = part[i];

			part[i] = part[size - 1 - i];
			part[size - 1 - i] = word;
		}
}

static void kernel_linked(struct launch *launch)
{
	uint32_t *out = kernel_out(launch, 0, 4);

	if (out)
		*out = 2 * kernel_u32(launch, 1);
}

/* A plane of texels that begins at x. */
static void kernel_texel(struct launch *launch)
{
	const uint64_t texture = kernel_u64(launch, 1);
	const int x = (int)kernel_u32(launch, 2);
	uint32_t *out = kernel_out(launch, 0, kernel_threads(launch) * 4);

	for (unsigned i = 0; out && i < launch->block[1]; i++)
		for (unsigned k = 0; k < launch->block[0]; k++) {
			(void)pthread_mutex_lock(&sim_lock);
			if (!array_fetch(launch->context, texture, x + (int)k, (int)i, &out[i * launch->block[0] + k]))
				launch->error = CUDA_ERROR_ILLEGAL_ADDRESS;
			(void)pthread_mutex_unlock(&sim_lock);
		}
}

/* Each thread writes the value and its place. */
static void kernel_draw(struct launch *launch)
{
	const uint64_t surface = kernel_u64(launch, 0);
	const uint32_t value = kernel_u32(launch, 1);

	for (unsigned i = 0; i < launch->block[1]; i++)
		for (unsigned k = 0; k < launch->block[0]; k++) {
			(void)pthread_mutex_lock(&sim_lock);
			if (!array_store(launch->context, surface, k, i, value + 100 * i + k))
				launch->error = CUDA_ERROR_LAUNCH_FAILED;
			(void)pthread_mutex_unlock(&sim_lock);
		}
}

/* The same of what the module names. */
static void kernel_see(struct launch *launch, const char *name)
{
	const int x = (int)kernel_u32(launch, 1);
	uint32_t *out = kernel_out(launch, 0, kernel_threads(launch) * 4);

	for (unsigned i = 0; out && i < kernel_threads(launch); i++) {
		(void)pthread_mutex_lock(&sim_lock);
		if (!array_fetch_named(launch, name, x + (int)(i % launch->block[0]), (int)(i / launch->block[0]),
				       &out[i]))
			launch->error = CUDA_ERROR_ILLEGAL_ADDRESS;
		(void)pthread_mutex_unlock(&sim_lock);
	}
}

static void kernel_seen(struct launch *launch)
{
	kernel_see(launch, "plane");
}

static void kernel_walked(struct launch *launch)
{
	kernel_see(launch, "line");
}

static void kernel_paint(struct launch *launch)
{
	for (unsigned i = 0; i < kernel_threads(launch); i++) {
		const unsigned x = i % launch->block[0], y = i / launch->block[0];

		(void)pthread_mutex_lock(&sim_lock);
		if (!array_store_named(launch, "canvas", x, y, kernel_u32(launch, 0) + 100 * y + x))
			launch->error = CUDA_ERROR_LAUNCH_FAILED;
		(void)pthread_mutex_unlock(&sim_lock);
	}
}

static void kernel_say(struct launch *launch)
{
	char text[64];

	(void)pthread_mutex_lock(&sim_lock);
	for (size_t i = 0; i < kernel_threads(launch); i++) {
		(void)snprintf(text, sizeof(text), "kernel says %u\n", kernel_u32(launch, 0));
		print_add(false, text);
	}
	(void)pthread_mutex_unlock(&sim_lock);
}

static void kernel_claim(struct launch *launch)
{
	enum { ASSERT = 710 };

	(void)pthread_mutex_lock(&sim_lock);
	for (unsigned i = 0; i < launch->block[0]; i++) {
		char text[128];

		(void)snprintf(text, sizeof(text),
			       "file:7: function: block: [0,0,0], thread: [%u,0,0] Assertion `claim` failed.\n", i);
		print_add(true, text);
	}
	(void)pthread_mutex_unlock(&sim_lock);
	launch->error = ASSERT;
}

kernel_fn *kernel_find(const char *name)
{
	static const struct {
		const char *name;
		kernel_fn *run;
	} kernels[] = {
		{"nop", kernel_nop},
		{"small", kernel_nop},
		{"sharing", kernel_nop},
		{"vectorAdd", kernel_vector_add},
		{"add", kernel_add},
		{"saxpy", kernel_saxpy},
		{"matmul", kernel_matmul},
		{"reduce", kernel_reduce},
		{"fill", kernel_fill},
		{"load", kernel_load},
		{"spin", kernel_spin},
		{"gate", kernel_gate},
		{"fault", kernel_fault},
		{"trap", kernel_trap},
		{"many", kernel_many},
		{"structure1", kernel_structure},
		{"structure12", kernel_structure},
		{"structure4000", kernel_structure},
		{"where", kernel_where},
		{"count", kernel_count},
		{"raise", kernel_raise},
		{"table_copy", kernel_table},
		{"reverse", kernel_reverse},
		{"linked", kernel_linked},
		{"texel", kernel_texel},
		{"draw", kernel_draw},
		{"seen", kernel_seen},
		{"walked", kernel_walked},
		{"paint", kernel_paint},
		{"say", kernel_say},
		{"claim", kernel_claim},
	};

	for (size_t i = 0; i < sizeof(kernels) / sizeof(kernels[0]); i++)
		if (strcmp(kernels[i].name, name) == 0)
			return kernels[i].run;
	return NULL;
}

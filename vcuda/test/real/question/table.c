/* SPDX-License-Identifier: Apache-2.0 */

/* What slots of the tables of cuGetExportTable() do, of which no more is known than that libraries call them. */

#include <stdio.h>
#include <string.h>

#include "question.h"

enum {
	MODULES_ITERATE = 7,
	CONTEXTS_DEVICE = 3,
	CONTEXTS_NUMBER = 4,
	STREAM_NUMBER = 39,
	STREAM_OF = 51,
	POINTER_ATTRIBUTES = 22
};

static const struct {
	const char *uuid;
	unsigned char bytes[16];
} tables[] = {
#define UUID(name, ...)             \
	{                           \
		name,               \
		{                   \
			__VA_ARGS__ \
		}                   \
	}
	UUID("runtime", 0x6b, 0xd5, 0xfb, 0x6c, 0x5b, 0xf4, 0xe7, 0x4a, 0x89, 0x87, 0xd9, 0x39, 0x12, 0xfd, 0x9d, 0xf9),
	UUID("callbacks", 0xa0, 0x94, 0x79, 0x8c, 0x2e, 0x74, 0x2e, 0x74, 0x93, 0xf2, 8, 0, 0x20, 0x0c, 0x0a, 0x66),
	UUID("thread", 0x42, 0xd8, 0x5a, 0x81, 0x23, 0xf6, 0xcb, 0x47, 0x82, 0x98, 0xf6, 0xe7, 0x8a, 0x3a, 0xec, 0xdc),
	UUID("checks", 0x26, 0x3e, 0x88, 0x60, 0x7c, 0xd2, 0x61, 0x43, 0x92, 0xf6, 0xbb, 0xd5, 0, 0x6d, 0xfa, 0x7e),
	UUID("integrity", 0xd4, 8, 0x20, 0x55, 0xbd, 0xe6, 0x70, 0x4b, 0x8d, 0x34, 0xba, 0x12, 0x3c, 0x66, 0xe1, 0xf2),
	UUID("contexts", 0x21, 0x31, 0x8c, 0x60, 0x97, 0x14, 0x32, 0x48, 0x8c, 0xa6, 0x41, 0xff, 0x73, 0x24, 0xc8,
	     0xf2),
	UUID("modules", 0x6e, 0x16, 0x3f, 0xbe, 0xb9, 0x58, 0x44, 0x4d, 0x83, 0x5c, 0xe1, 0x82, 0xaf, 0xf1, 0x99, 0x1e),
	UUID("creation", 0x0c, 0xa5, 0x0b, 0x8c, 0x10, 4, 0x92, 0x9a, 0x89, 0xa7, 0xd0, 0xdf, 0x10, 0xe7, 0x72, 0x86),
	UUID("heap", 0x19, 0x5b, 0xcb, 0xf4, 0xd6, 0x7d, 2, 0x4a, 0xac, 0xc5, 0x1d, 0x29, 0xce, 0xa6, 0x31, 0xae),
	UUID("devices", 0xb1, 5, 0x41, 0xe1, 0xf7, 0xc7, 0xc7, 0x4a, 0x9f, 0x64, 0xf2, 0x23, 0xbe, 0x99, 0xf1, 0xe2),
	UUID("layout", 0x17, 0x34, 0xdc, 0x26, 0x80, 0x0d, 0x47, 0x45, 0x87, 0x26, 0xc0, 0xf1, 0xe7, 0xdd, 0x8b, 0xca),
	UUID("f8cf", 0xf8, 0xcf, 0xf9, 0x51, 0x21, 0x46, 0x8b, 0x4e, 0xb9, 0xe2, 0xfb, 0x46, 0x9e, 0x7c, 0x0d, 0xd9),
};

static void *const *table(const char *name)
{
	const void *found = NULL;
	CUuuid uuid;

	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
		if (strcmp(tables[i].uuid, name) == 0) {
			memcpy(&uuid, tables[i].bytes, sizeof(uuid));
			(void)cu.cuGetExportTable(&found, &uuid);
		}
	return found;
}

/* ---- functions of a module ---- */

static CUfunction functions[16];
static CUmodule module;
static int seen;

static void tell_call(uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
	remark("iterating gives argument %#lx, %#lx, %#lx, %#lx", a, b, c, d);
	for (int i = 0; i < 16 && functions[i]; i++)
		if ((uint64_t)functions[i] == b || (uint64_t)functions[i] == c)
			remark("… of which %s is function %d of the module",
			       (uint64_t)functions[i] == b ? "the second" : "the third", i);
	if (c == (uint64_t)module)
		remark("… of which the third is the module");
	seen++;
}

static void ask_modules(const void *about, void *ret)
{
	typedef uint64_t iterate_fn(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);
	CUcontext context = driver_begin();
	void *const *slots = table("modules");
	unsigned count = 0;
	uint64_t r;

	(void)about, (void)ret;
	(void)cu.cuModuleLoadData(&module, kernels_ptx);
	(void)cu.cuModuleGetFunctionCount(&count, module);
	(void)cu.cuModuleEnumerateFunctions(functions, 4, module);
	remark("the module %p has %u functions: %p %p %p; the context is %p", (void *)module, count,
	       (void *)functions[0], (void *)functions[1], (void *)functions[2], (void *)context);
	if (!slots)
		return;
	r = ((iterate_fn *)slots[MODULES_ITERATE])((uint64_t)context, (uint64_t)module, (uint64_t)tell_call, 0x1234, 0,
						   0);
	remark("iterating returned %lu, and called %d times", r, seen);
}

/* ---- contexts and streams ---- */

static void ask_contexts_table(const void *about, void *ret)
{
	typedef uint32_t two_fn(CUcontext, uint64_t *);
	typedef uint32_t of_fn(CUcontext, CUstream, void **, int);
	typedef uint32_t number_fn(CUcontext, void *, uint64_t *);
	CUcontext context = driver_begin();
	void *const *slots = table("contexts");
	unsigned long long id = 0, stream_id = 0;
	CUstream stream = NULL;
	void *other = NULL;
	uint64_t value = 77;
	uint32_t r;

	(void)about, (void)ret;
	if (!slots)
		return;
	(void)cu.cuCtxGetId(context, &id);
	r = ((two_fn *)slots[CONTEXTS_NUMBER])(context, &value);
	remark("number %u: %lu; cuCtxGetId() has %llu", r, value, id);
	value = 77;
	r = ((two_fn *)slots[CONTEXTS_DEVICE])(context, &value);
	remark("device %u: %#lx", r, value);
	(void)cu.cuStreamCreate(&stream, 0);
	(void)cu.cuStreamGetId(stream, &stream_id);
	r = ((of_fn *)slots[STREAM_OF])(context, stream, &other, 0);
	remark("a stream %p is %p: %u; its id is %llu", (void *)stream, other, r, stream_id);
	value = 77;
	if (!r) {
		r = ((number_fn *)slots[STREAM_NUMBER])(context, other, &value);
		remark("… and its number %lu: %u", value, r);
	}
	r = ((of_fn *)slots[STREAM_OF])(context, NULL, &other, 0);
	remark("the null stream is %p: %u", other, r);
}

/* Two results, as cuBLASLt asks for them. */
static void ask_layout(const void *about, void *ret)
{
	typedef uint32_t two_fn(uint64_t *, uint64_t *);
	void *const *slots;
	uint64_t first = 77, second = 77;
	uint32_t r;

	(void)about, (void)ret;
	(void)driver_begin();
	slots = table("layout");
	if (!slots)
		return;
	r = ((two_fn *)slots[4])(&first, &second);
	remark("layout %u: %#lx, %#lx", r, first, second);
}

/* ---- how much is written ---- */

static void ask_attributes(const void *about, void *ret)
{
	CUdeviceptr pointer = 0;

	(void)about, (void)ret;
	(void)driver_begin();
	(void)cu.cuMemAlloc_v2(&pointer, 4096);
	for (int i = 1; i < POINTER_ATTRIBUTES; i++) {
		unsigned char ones[16], zeros[16];
		int r, bytes = 16;

		memset(ones, 0xff, sizeof(ones));
		memset(zeros, 0, sizeof(zeros));
		r = cu.cuPointerGetAttribute(ones, i, pointer);
		(void)cu.cuPointerGetAttribute(zeros, i, pointer);
		while (bytes && ones[bytes - 1] == 0xff && zeros[bytes - 1] == 0)
			bytes--;
		remark("attribute %d of a pointer: %d, %d bytes", i, r, bytes);
	}
}

void ask_tables(int argc, char **argv)
{
	static void (*const questions[])(const void *, void *) = {ask_modules, ask_contexts_table, ask_layout, ask_attributes};
	char nothing;

	(void)argc, (void)argv;
	for (size_t i = 0; i < sizeof(questions) / sizeof(questions[0]); i++) {
		const int r = alone(questions[i], NULL, &nothing, 0);

		if (r)
			remark("question %zu ended with %d", i, r);
	}
	(void)driver_begin();
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
		void *const *slots = table(tables[i].uuid);

		remark("table %s: %zu words", tables[i].uuid, slots ? (size_t)slots[0] / sizeof(void *) : 0);
	}
}

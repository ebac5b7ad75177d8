/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What each way to take memory of the device takes, by cuMemGetInfo(). Natively it is the driver's own count; through vCUDA
 * with a quota below what is free it is what the server counts. A line is a name, bytes, and what the calls returned.
 */

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "question.h"

enum { PIECES_MAX = 1 << 16, MANY = 64 };
#define MIB ((size_t)1 << 20)

struct taken {
	long long bytes;
	int result;
};

struct try_method {
	char name[64];
	CUresult (*take)(const struct try_method *way);
	size_t size;
	unsigned count, keep;
	const char *path;
};

static CUdeviceptr pieces[PIECES_MAX];

/* ---- allocations ---- */

static CUresult take_pieces(const struct try_method *way)
{
	CUresult r = 0;

	for (unsigned i = 0; i < way->count && !r; i++)
		r = cu.cuMemAlloc_v2(&pieces[i], way->size);
	return r;
}

/* Of so many, one stays. */
static CUresult take_and_free(const struct try_method *way)
{
	CUresult r = take_pieces(way);

	for (unsigned i = 0; i < way->count && !r; i++)
		if (i % way->keep)
			r = cu.cuMemFree_v2(pieces[i]);
	return r;
}

static CUresult take_pitch(const struct try_method *way)
{
	size_t pitch;

	return cu.cuMemAllocPitch_v2(pieces, &pitch, way->size, way->count, 4);
}

static CUresult take_later(const struct try_method *way)
{
	CUresult r = 0;

	for (unsigned i = 0; i < way->count && !r; i++)
		r = cu.cuMemAllocAsync(&pieces[i], way->size, NULL);
	return r ? r : cu.cuStreamSynchronize(NULL);
}

static CUresult take_and_free_later(const struct try_method *way)
{
	CUresult r = take_later(way);

	for (unsigned i = 0; i < way->count && !r; i++)
		if (i % way->keep)
			r = cu.cuMemFreeAsync(pieces[i], NULL);
	return r ? r : cu.cuStreamSynchronize(NULL);
}

/* What one call gave, freed by the other. */
static CUresult take_and_free_crossed(const struct try_method *way)
{
	CUresult r = take_pieces(way);

	for (unsigned i = 0; i < way->count && !r; i++)
		r = cu.cuMemFreeAsync(pieces[i], NULL);
	return r ? r : cu.cuStreamSynchronize(NULL);
}

static CUresult take_physical(const struct try_method *way)
{
	const CUmemAllocationProp properties = {.type = 1, .location = {1, 0}};
	CUmemGenericAllocationHandle memory;
	CUresult r = 0;

	for (unsigned i = 0; i < way->count && !r; i++)
		r = cu.cuMemCreate(&memory, way->size, &properties, 0);
	return r;
}

/* One piece in many places, each far from the others. */
static CUresult take_mappings(const struct try_method *way)
{
	const CUmemAllocationProp properties = {.type = 1, .location = {1, 0}};
	const CUmemAccessDesc access = {{1, 0}, 3};
	CUmemGenericAllocationHandle memory = 0;
	CUdeviceptr at = 0;
	CUresult r = cu.cuMemCreate(&memory, 2 * MIB, &properties, 0);

	if (!r)
		r = cu.cuMemAddressReserve(&at, way->size * way->count, 0, 0, 0);
	for (unsigned i = 0; i < way->count && !r; i++, at += way->size) {
		r = cu.cuMemMap(at, 2 * MIB, 0, memory, 0);
		if (!r)
			r = cu.cuMemSetAccess(at, 2 * MIB, &access, 1);
	}
	return r;
}

/* ---- what belongs to a context ---- */

static CUresult take_streams(const struct try_method *way)
{
	CUstream stream;
	CUresult r = 0;

	for (unsigned i = 0; i < way->count && !r; i++)
		r = cu.cuStreamCreate(&stream, 1);
	return r;
}

static CUresult take_events(const struct try_method *way)
{
	CUevent event;
	CUresult r = 0;

	for (unsigned i = 0; i < way->count && !r; i++) {
		r = cu.cuEventCreate(&event, 0);
		if (!r)
			r = cu.cuEventRecord(event, NULL);
	}
	return r;
}

static CUresult take_modules(const struct try_method *way)
{
	CUmodule module;
	CUresult r = 0;

	for (unsigned i = 0; i < way->count && !r; i++)
		r = cu.cuModuleLoadData(&module, kernels_ptx);
	return r;
}

static CUresult take_graphs(const struct try_method *way)
{
	CUDA_KERNEL_NODE_PARAMS parameters = {.function = driver_function(kernels_ptx, "nop"),
					      .grid_x = 1,
					      .grid_y = 1,
					      .grid_z = 1,
					      .block_x = 1,
					      .block_y = 1,
					      .block_z = 1};
	CUgraphExec exec;
	CUgraphNode node;
	CUgraph graph;
	CUresult r = cu.cuGraphCreate(&graph, 0);

	for (int i = 0; i < 100 && !r; i++)
		r = cu.cuGraphAddKernelNode_v2(&node, graph, NULL, 0, &parameters);
	for (unsigned i = 0; i < way->count && !r; i++) {
		r = cu.cuGraphInstantiateWithFlags(&exec, graph, 0);
		if (!r)
			r = cu.cuGraphLaunch(exec, NULL);
	}
	return r;
}

static CUresult take_context(const struct try_method *way)
{
	CUcontext context, popped;
	CUresult r = 0;

	for (unsigned i = 0; i < way->count && !r; i++) {
		r = cu.cuCtxCreate_v2(&context, 0, 0);
		if (!r)
			r = cu.cuCtxPopCurrent_v2(&popped);
	}
	return r;
}

static CUresult take_limit(const struct try_method *way)
{
	return cu.cuCtxSetLimit((int)way->count, way->size);
}

/* ---- code ---- */

/* A kernel whose threads have so much local memory each, reached by an index that the compiler does not know. */
static CUresult take_local(const struct try_method *way)
{
	static const char text[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
				   ".visible .entry deep(.param .u64 out, .param .u32 n)\n{\n"
				   "\t.local .align 4 .b8 depot[%zu];\n\t.reg .b64 %%a<5>;\n\t.reg .b32 %%r<3>;\n"
				   "\tld.param.u32 %%r1, [n];\n\tld.param.u64 %%a1, [out];\n\tmov.u64 %%a2, depot;\n"
				   "\tmul.wide.u32 %%a3, %%r1, 4;\n\tadd.s64 %%a4, %%a2, %%a3;\n"
				   "\tst.local.u32 [%%a4], %%r1;\n\tld.local.u32 %%r2, [%%a2];\n"
				   "\tst.u32 [%%a1], %%r2;\n\tret;\n}\n";
	char source[1024];
	CUdeviceptr out = 0;
	CUfunction function;
	unsigned n = 1;
	int local = -1;
	CUresult r;

	(void)snprintf(source, sizeof(source), text, way->size);
	function = driver_function(source, "deep");
	r = cu.cuMemAlloc_v2(&out, 4);
	if (!r)
		r = cu.cuFuncGetAttribute(&local, 3, function);
	if (!r)
		r = cu.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, (void *[]){&out, &n}, NULL);
	if (!r)
		r = cu.cuCtxSynchronize();
	fprintf(stderr, "# taken: the kernel has %d bytes of local memory a thread, %zu were asked for\n", local,
		way->size);
	return r;
}

/* Its heap is there when something is loaded that uses it. */
static CUresult take_heap(const struct try_method *way)
{
	static const char text[] =
		".version 7.0\n.target sm_70\n.address_size 64\n"
		".extern .func (.param .b64 back) malloc(.param .b64 bytes);\n"
		".visible .entry takes()\n{\n\t.reg .b64 %a;\n\t.param .b64 bytes;\n\t.param .b64 back;\n"
		"\tst.param.b64 [bytes], 64;\n\tcall.uni (back), malloc, (bytes);\n"
		"\tld.param.b64 %a, [back];\n\tret;\n}\n";
	CUresult r = cu.cuCtxSetLimit(2, way->size);
	CUfunction function;

	if (r)
		return r;
	function = driver_function(text, "takes");
	r = cu.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
	return r ? r : cu.cuCtxSynchronize();
}

static CUresult take_image(const struct try_method *way)
{
	const int fd = open(way->path, O_RDONLY | O_CLOEXEC);
	CUdeviceptr array = 0;
	CUmodule module = NULL;
	struct stat status;
	size_t bytes = 0;
	char *image;
	CUresult r;

	if (fd < 0 || fstat(fd, &status) < 0)
		return -1;
	image = calloc(1, (size_t)status.st_size + 1);
	if (read(fd, image, (size_t)status.st_size) != status.st_size)
		return -1;
	r = cu.cuModuleLoadData(&module, image);
	if (!r)
		r = cu.cuModuleGetGlobal_v2(&array, &bytes, module, "array");
	return r;
}

/* ---- how they are asked ---- */

static const struct try_method ways[] = {
	{"16384 of 1 byte", take_pieces, 1, 16384, 0, NULL},
	{"16384 of 512 bytes", take_pieces, 512, 16384, 0, NULL},
	{"16384 of 513 bytes", take_pieces, 513, 16384, 0, NULL},
	{"4096 of 65537 bytes", take_pieces, 65537, 4096, 0, NULL},
	{"256 of a third of 2 MiB and a byte", take_pieces, (2 * MIB) / 3 + 1, 256, 0, NULL},
	{"256 of a fifth of 2 MiB and a byte", take_pieces, (2 * MIB) / 5 + 1, 256, 0, NULL},
	{"64 of 1 MiB - 1", take_pieces, MIB - 1, MANY, 0, NULL},
	{"64 of 1 MiB", take_pieces, MIB, MANY, 0, NULL},
	{"64 of 1 MiB + 1", take_pieces, MIB + 1, MANY, 0, NULL},
	{"64 of 1.5 MiB", take_pieces, 3 * MIB / 2, MANY, 0, NULL},
	{"64 of 2 MiB - 1", take_pieces, 2 * MIB - 1, MANY, 0, NULL},
	{"64 of 2 MiB", take_pieces, 2 * MIB, MANY, 0, NULL},
	{"64 of 2 MiB + 1", take_pieces, 2 * MIB + 1, MANY, 0, NULL},
	{"64 of 3 MiB", take_pieces, 3 * MIB, MANY, 0, NULL},
	{"64 of 32 MiB + 1", take_pieces, 32 * MIB + 1, MANY, 0, NULL},
	{"65536 of 512 bytes, one of 4096 kept", take_and_free, 512, PIECES_MAX, 4096, NULL},
	{"32768 of 4096 bytes, one of 512 kept", take_and_free, 4096, 32768, 512, NULL},
	{"256 of 1 MiB, every second kept", take_and_free, MIB, 256, 2, NULL},
	{"32768 of 4096 bytes, one kept", take_and_free, 4096, 32768, 1 << 30, NULL},
	{"a pitch, 65536 rows of 4 bytes", take_pitch, 4, 65536, 0, NULL},
	{"64 of 1 byte from a pool", take_later, 1, MANY, 0, NULL},
	{"64 of 1 MiB + 1 from a pool", take_later, MIB + 1, MANY, 0, NULL},
	{"64 of 2 MiB + 1 from a pool", take_later, 2 * MIB + 1, MANY, 0, NULL},
	{"16 of 33 MiB from a pool", take_later, 33 * MIB, 16, 0, NULL},
	{"256 of 1 MiB from a pool, one of 32 kept", take_and_free_later, MIB, 256, 32, NULL},
	{"64 of 2 MiB, freed in a stream", take_and_free_crossed, 2 * MIB, MANY, 0, NULL},
	{"16 of 2 MiB, physical", take_physical, 2 * MIB, 16, 0, NULL},
	{"one in 1024 places, 1 GiB apart", take_mappings, 1024 * MIB, 1024, 0, NULL},
	{"100 streams", take_streams, 0, 100, 0, NULL},
	{"10000 events", take_events, 0, 10000, 0, NULL},
	{"400000 events", take_events, 0, 400000, 0, NULL},
	{"100 modules", take_modules, 0, 100, 0, NULL},
	{"100 graphs of 100 kernels", take_graphs, 0, 100, 0, NULL},
	{"a context", take_context, 0, 1, 0, NULL},
	{"3 contexts", take_context, 0, 3, 0, NULL},
	{"limit 0, 16 KiB of stack", take_limit, 16384, 0, 0, NULL},
	{"limit 0, 2 KiB of stack", take_limit, 2048, 0, 0, NULL},
	{"limit 1, 256 MiB for printf", take_limit, 256 * MIB, 1, 0, NULL},
	{"limit 2, 1 GiB of heap", take_limit, 1024 * MIB, 2, 0, NULL},
	{"limit 2, 1 GiB of heap that is used", take_heap, 1024 * MIB, 0, 0, NULL},
	{"limit 3, depth 24", take_limit, 24, 3, 0, NULL},
	{"limit 4, 65536 launches", take_limit, 65536, 4, 0, NULL},
	{"limit 5, granularity 128", take_limit, 128, 5, 0, NULL},
	{"limit 6, persisting 16 MiB", take_limit, 16 * MIB, 6, 0, NULL},
	{"a kernel with 1 KiB of local memory", take_local, 1024, 0, 0, NULL},
	{"a kernel with 16 KiB of local memory", take_local, 16384, 0, 0, NULL},
};

static void take(const void *about, void *ret)
{
	const struct try_method *way = about;
	struct taken *taken = ret;
	size_t before = 0, after = 0, total;

	(void)driver_begin();
	/* What the driver keeps for small pieces is there before. */
	(void)cu.cuMemAlloc_v2(&pieces[0], 512);
	(void)cu.cuCtxSynchronize();
	(void)cu.cuMemGetInfo_v2(&before, &total);
	taken->result = way->take(way);
	(void)cu.cuMemGetInfo_v2(&after, &total);
	taken->bytes = (long long)before - (long long)after;
}

static void show(const struct try_method *way)
{
	struct taken taken = {0};
	const int r = alone(take, way, &taken, sizeof(taken));

	if (r)
		printf("%s\t%d\tsignal %d\n", way->name, 0, r);
	else
		printf("%s\t%lld\t%d\n", way->name, taken.bytes, taken.result);
}

void ask_taken(int argc, char **argv)
{
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
		show(&ways[i]);
	for (int i = 0; i < argc; i++) {
		struct try_method way = {.take = take_image, .path = argv[i]};
		const char *slash = strrchr(argv[i], '/');

		(void)snprintf(way.name, sizeof(way.name), "image %s", slash ? slash + 1 : argv[i]);
		show(&way);
	}
}

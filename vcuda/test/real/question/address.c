/* SPDX-License-Identifier: Apache-2.0 */

/*
 * vCUDA's server passes addresses of the device on as the client sent them. Here each call of the driver that it uses so
 * gets an address of this process's own memory instead, which was neither allocated by the driver nor registered. Where
 * that memory is read or changed, a client could do so with its server's.
 */

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "question.h"

enum { BYTES = 4096, SECRET = 0x5e, OTHER = 0x77, REGION = 4 << 20 };
enum { GLOBAL = 0 };

struct place {
	unsigned char *own;    /* this process's, of which the driver knows nothing */
	unsigned char *locked; /* page-locked */
	CUdeviceptr device;
	CUcontext context;
	CUstream stream;
};
#define OWN(place) ((CUdeviceptr)(uintptr_t)(place)->own)

/* ---- calls that read it ---- */

static CUresult read_to_host(struct place *p)
{
	return cu.cuMemcpyDtoH_v2(p->locked, OWN(p), BYTES);
}

static CUresult read_to_host_later(struct place *p)
{
	return cu.cuMemcpyDtoHAsync_v2(p->locked, OWN(p), BYTES, p->stream);
}

static CUresult read_to_device(struct place *p)
{
	return cu.cuMemcpyDtoD_v2(p->device, OWN(p), BYTES);
}

static CUresult read_to_device_later(struct place *p)
{
	return cu.cuMemcpyDtoDAsync_v2(p->device, OWN(p), BYTES, p->stream);
}

static CUresult read_by_peer(struct place *p)
{
	return cu.cuMemcpyPeerAsync(p->device, p->context, OWN(p), p->context, BYTES, p->stream);
}

static CUDA_MEMCPY2D plane(CUdeviceptr to, CUdeviceptr from)
{
	return (CUDA_MEMCPY2D){.src_type = CU_MEMORY_DEVICE,
			       .src_device = from,
			       .src_pitch = 64,
			       .dst_type = CU_MEMORY_DEVICE,
			       .dst_device = to,
			       .dst_pitch = 64,
			       .width = 64,
			       .height = BYTES / 64};
}

static CUresult read_plane(struct place *p)
{
	const CUDA_MEMCPY2D copy = plane(p->device, OWN(p));

	return cu.cuMemcpy2DAsync_v2(&copy, p->stream);
}

static CUDA_MEMCPY3D box(int to_type, CUdeviceptr to, CUdeviceptr from)
{
	return (CUDA_MEMCPY3D){.src_type = CU_MEMORY_DEVICE,
			       .src_device = from,
			       .src_pitch = BYTES,
			       .src_height = 1,
			       .dst_type = to_type,
			       .dst_device = to_type == CU_MEMORY_DEVICE ? to : 0,
			       .dst_host = to_type == CU_MEMORY_HOST ? (void *)(uintptr_t)to : NULL,
			       .dst_pitch = BYTES,
			       .dst_height = 1,
			       .width = BYTES,
			       .height = 1,
			       .depth = 1};
}

static CUresult read_box(struct place *p)
{
	const CUDA_MEMCPY3D copy = box(CU_MEMORY_DEVICE, p->device, OWN(p));

	return cu.cuMemcpy3DAsync_v2(&copy, p->stream);
}

static CUresult read_box_to_host(struct place *p)
{
	const CUDA_MEMCPY3D copy = box(CU_MEMORY_HOST, (CUdeviceptr)(uintptr_t)p->locked, OWN(p));

	return cu.cuMemcpy3DAsync_v2(&copy, p->stream);
}

static CUresult read_box_by_peer(struct place *p)
{
	CUDA_MEMCPY3D copy = box(CU_MEMORY_DEVICE, p->device, OWN(p));

	copy.src_context = copy.dst_context = p->context;
	return cu.cuMemcpy3DPeerAsync(&copy, p->stream);
}

static CUresult run_graph(CUgraph graph, struct place *p)
{
	CUgraphExec exec = NULL;
	CUresult r = cu.cuGraphInstantiateWithFlags(&exec, graph, 0);

	return r ? r : cu.cuGraphLaunch(exec, p->stream);
}

static CUresult run_copy_node(struct place *p, const CUDA_MEMCPY3D *copy)
{
	CUgraphNode node = NULL;
	CUgraph graph = NULL;
	CUresult r = cu.cuGraphCreate(&graph, 0);

	if (!r)
		r = cu.cuGraphAddMemcpyNode(&node, graph, NULL, 0, copy, p->context);
	return r ? r : run_graph(graph, p);
}

static CUresult read_node(struct place *p)
{
	const CUDA_MEMCPY3D copy = box(CU_MEMORY_DEVICE, p->device, OWN(p));

	return run_copy_node(p, &copy);
}

static CUresult read_node_to_host(struct place *p)
{
	const CUDA_MEMCPY3D copy = box(CU_MEMORY_HOST, (CUdeviceptr)(uintptr_t)p->locked, OWN(p));

	return run_copy_node(p, &copy);
}

/* A node that is right, and another address in the executable graph. */
static CUresult change_node(struct place *p, const CUDA_MEMCPY3D *right, const CUDA_MEMCPY3D *wrong)
{
	CUgraphExec exec = NULL;
	CUgraphNode node = NULL;
	CUgraph graph = NULL;
	CUresult r = cu.cuGraphCreate(&graph, 0);

	if (!r)
		r = cu.cuGraphAddMemcpyNode(&node, graph, NULL, 0, right, p->context);
	if (!r)
		r = cu.cuGraphInstantiateWithFlags(&exec, graph, 0);
	if (!r)
		r = cu.cuGraphExecMemcpyNodeSetParams(exec, node, wrong, p->context);
	return r ? r : cu.cuGraphLaunch(exec, p->stream);
}

static CUresult read_changed_node(struct place *p)
{
	const CUDA_MEMCPY3D right = box(CU_MEMORY_DEVICE, p->device, p->device + BYTES);
	const CUDA_MEMCPY3D wrong = box(CU_MEMORY_DEVICE, p->device, OWN(p));

	return change_node(p, &right, &wrong);
}

static CUresult captured(struct place *p, CUresult (*call)(struct place *))
{
	CUgraph graph = NULL;
	CUresult r = cu.cuStreamBeginCapture_v2(p->stream, GLOBAL), ended;

	if (r)
		return r;
	r = call(p);
	ended = cu.cuStreamEndCapture(p->stream, &graph);
	if (!r)
		r = ended;
	return r ? r : run_graph(graph, p);
}

static CUresult read_captured(struct place *p)
{
	return captured(p, read_to_device_later);
}

static CUresult read_captured_to_host(struct place *p)
{
	return captured(p, read_to_host_later);
}

static CUresult launch(struct place *p, const char *name, unsigned threads, void **parameters)
{
	CUfunction function = driver_function(kernels_ptx, name);

	return cu.cuLaunchKernel(function, 1, 1, 1, threads, 1, 1, 0, p->stream, parameters, NULL);
}

static CUresult read_by_kernel(struct place *p)
{
	CUdeviceptr from = OWN(p), to = p->device;

	return launch(p, "load", 1, (void *[]){&from, &to});
}

/* Done when the word is what it is compared with. */
static CUresult read_by_waiting(struct place *p)
{
	enum { EQUAL = 1 };
	CUresult r = cu.cuStreamWaitValue32_v2(p->stream, OWN(p), SECRET * 0x01010101U, EQUAL);

	return r ? r : cu.cuMemsetD8Async(p->device, SECRET, 4, p->stream);
}

/* ---- calls that change it ---- */

static CUresult write_from_host(struct place *p)
{
	return cu.cuMemcpyHtoD_v2(OWN(p), p->locked, BYTES);
}

static CUresult write_from_host_later(struct place *p)
{
	return cu.cuMemcpyHtoDAsync_v2(OWN(p), p->locked, BYTES, p->stream);
}

static CUresult write_from_device_later(struct place *p)
{
	return cu.cuMemcpyDtoDAsync_v2(OWN(p), p->device, BYTES, p->stream);
}

static CUresult write_by_peer(struct place *p)
{
	return cu.cuMemcpyPeerAsync(OWN(p), p->context, p->device, p->context, BYTES, p->stream);
}

static CUresult write_plane(struct place *p)
{
	const CUDA_MEMCPY2D copy = plane(OWN(p), p->device);

	return cu.cuMemcpy2DAsync_v2(&copy, p->stream);
}

static CUresult write_box(struct place *p)
{
	const CUDA_MEMCPY3D copy = box(CU_MEMORY_DEVICE, OWN(p), p->device);

	return cu.cuMemcpy3DAsync_v2(&copy, p->stream);
}

static CUresult write_box_by_peer(struct place *p)
{
	CUDA_MEMCPY3D copy = box(CU_MEMORY_DEVICE, OWN(p), p->device);

	copy.src_context = copy.dst_context = p->context;
	return cu.cuMemcpy3DPeerAsync(&copy, p->stream);
}

static CUresult write_node(struct place *p)
{
	const CUDA_MEMCPY3D copy = box(CU_MEMORY_DEVICE, OWN(p), p->device);

	return run_copy_node(p, &copy);
}

static CUresult write_changed_node(struct place *p)
{
	const CUDA_MEMCPY3D right = box(CU_MEMORY_DEVICE, p->device + BYTES, p->device);
	const CUDA_MEMCPY3D wrong = box(CU_MEMORY_DEVICE, OWN(p), p->device);

	return change_node(p, &right, &wrong);
}

static CUresult write_captured(struct place *p)
{
	return captured(p, write_from_device_later);
}

static CUresult set_bytes(struct place *p)
{
	return cu.cuMemsetD8Async(OWN(p), OTHER, BYTES, p->stream);
}

static CUresult set_halves(struct place *p)
{
	return cu.cuMemsetD16Async(OWN(p), OTHER, BYTES / 2, p->stream);
}

static CUresult set_words(struct place *p)
{
	return cu.cuMemsetD32Async(OWN(p), OTHER, BYTES / 4, p->stream);
}

static CUresult set_plane_of_bytes(struct place *p)
{
	return cu.cuMemsetD2D8Async(OWN(p), 64, OTHER, 32, 4, p->stream);
}

static CUresult set_plane_of_words(struct place *p)
{
	return cu.cuMemsetD2D32Async(OWN(p), 64, OTHER, 4, 4, p->stream);
}

static CUresult set_captured(struct place *p)
{
	return captured(p, set_words);
}

static CUresult set_by_node(struct place *p)
{
	const CUDA_MEMSET_NODE_PARAMS parameters = {
		.to = OWN(p), .pitch = BYTES, .value = OTHER, .element = 1, .width = BYTES, .height = 1};
	CUgraphNode node = NULL;
	CUgraph graph = NULL;
	CUresult r = cu.cuGraphCreate(&graph, 0);

	if (!r)
		r = cu.cuGraphAddMemsetNode(&node, graph, NULL, 0, &parameters, p->context);
	return r ? r : run_graph(graph, p);
}

static CUresult write_word(struct place *p)
{
	return cu.cuStreamWriteValue32_v2(p->stream, OWN(p), OTHER, 0);
}

static CUresult write_word_in_batch(struct place *p)
{
	CUstreamBatchMemOpParams operation = {.operation = 2, .address = OWN(p), .value = OTHER};

	return cu.cuStreamBatchMemOp_v2(p->stream, 1, &operation, 0);
}

static CUresult write_by_kernel(struct place *p)
{
	unsigned value = OTHER, count = 64;
	CUdeviceptr to = OWN(p);

	return launch(p, "fill", 64, (void *[]){&to, &value, &count});
}

/* ---- calls that would take it away, or put something in its place ---- */

static CUresult end_memory(struct place *p)
{
	return cu.cuMemFree_v2(OWN(p));
}

static CUresult end_memory_later(struct place *p)
{
	return cu.cuMemFreeAsync(OWN(p), p->stream);
}

static CUresult end_mapping(struct place *p)
{
	return cu.cuMemUnmap(OWN(p), 2 << 20);
}

static CUresult end_reservation(struct place *p)
{
	return cu.cuMemAddressFree(OWN(p), 2 << 20);
}

static CUresult map_over(struct place *p)
{
	const CUmemAllocationProp properties = {.type = 1, .location = {1, 0}};
	CUmemGenericAllocationHandle memory = 0;
	CUresult r = cu.cuMemCreate(&memory, 2 << 20, &properties, 0);

	return r ? r : cu.cuMemMap(OWN(p), 2 << 20, 0, memory, 0);
}

static CUresult reserve_over(struct place *p)
{
	CUdeviceptr reserved = 0;
	CUresult r = cu.cuMemAddressReserve(&reserved, 2 << 20, 0, OWN(p), 0);

	return r || reserved != OWN(p) ? 1 : 0;
}

static CUresult allow_access(struct place *p)
{
	const CUmemAccessDesc access = {{1, 0}, 3};

	return cu.cuMemSetAccess(OWN(p), 2 << 20, &access, 1);
}

/* What the driver itself has of the host, or was told of, is not the device's to free. */
static CUresult end_locked(struct place *p)
{
	return cu.cuMemFree_v2((CUdeviceptr)(uintptr_t)p->locked);
}

static CUresult end_locked_later(struct place *p)
{
	return cu.cuMemFreeAsync((CUdeviceptr)(uintptr_t)p->locked, p->stream);
}

static CUresult end_registered(struct place *p)
{
	CUresult r = cu.cuMemHostRegister_v2(p->own, BYTES, 0);

	return r ? r : end_memory(p);
}

static CUresult end_registered_later(struct place *p)
{
	CUresult r = cu.cuMemHostRegister_v2(p->own, BYTES, 0);

	return r ? r : end_memory_later(p);
}

/* ---- how they are asked ---- */

enum what { READS, WRITES, ENDS };
enum kind { PRIVATE, SHARED, STACK, PROGRAM, KINDS };

struct attempt {
	const char *name;
	CUresult (*call)(struct place *);
	enum what what;
	bool everywhere; /* with each kind of memory */
};

struct asked {
	const struct attempt *attempt;
	enum kind kind;
};

struct outcome {
	CUresult called, waited;
	int happened, reached;
};

static const struct attempt attempts[] = {
	{"cuMemcpyDtoH", read_to_host, READS, true},
	{"cuMemcpyDtoHAsync", read_to_host_later, READS, false},
	{"cuMemcpyDtoD", read_to_device, READS, false},
	{"cuMemcpyDtoDAsync", read_to_device_later, READS, true},
	{"cuMemcpyPeerAsync", read_by_peer, READS, false},
	{"cuMemcpy2DAsync", read_plane, READS, false},
	{"cuMemcpy3DAsync", read_box, READS, false},
	{"cuMemcpy3DAsync to the host", read_box_to_host, READS, false},
	{"cuMemcpy3DPeerAsync", read_box_by_peer, READS, false},
	{"a copy node", read_node, READS, false},
	{"a copy node to the host", read_node_to_host, READS, false},
	{"a changed copy node", read_changed_node, READS, false},
	{"a captured copy", read_captured, READS, false},
	{"a captured copy to the host", read_captured_to_host, READS, false},
	{"cuStreamWaitValue32", read_by_waiting, READS, false},
	{"a kernel that loads", read_by_kernel, READS, true},
	{"cuMemcpyHtoD", write_from_host, WRITES, false},
	{"cuMemcpyHtoDAsync", write_from_host_later, WRITES, false},
	{"cuMemcpyDtoDAsync", write_from_device_later, WRITES, false},
	{"cuMemcpyPeerAsync", write_by_peer, WRITES, false},
	{"cuMemcpy2DAsync", write_plane, WRITES, false},
	{"cuMemcpy3DAsync", write_box, WRITES, false},
	{"cuMemcpy3DPeerAsync", write_box_by_peer, WRITES, false},
	{"a copy node", write_node, WRITES, false},
	{"a changed copy node", write_changed_node, WRITES, false},
	{"a captured copy", write_captured, WRITES, false},
	{"cuMemsetD8Async", set_bytes, WRITES, true},
	{"cuMemsetD16Async", set_halves, WRITES, false},
	{"cuMemsetD32Async", set_words, WRITES, false},
	{"cuMemsetD2D8Async", set_plane_of_bytes, WRITES, false},
	{"cuMemsetD2D32Async", set_plane_of_words, WRITES, false},
	{"a captured set", set_captured, WRITES, false},
	{"a set node", set_by_node, WRITES, false},
	{"cuStreamWriteValue32", write_word, WRITES, false},
	{"cuStreamBatchMemOp", write_word_in_batch, WRITES, false},
	{"a kernel that stores", write_by_kernel, WRITES, true},
	{"cuMemFree", end_memory, ENDS, false},
	{"cuMemFreeAsync", end_memory_later, ENDS, false},
	{"cuMemUnmap", end_mapping, ENDS, false},
	{"cuMemAddressFree", end_reservation, ENDS, false},
	{"cuMemMap", map_over, ENDS, false},
	{"cuMemAddressReserve", reserve_over, ENDS, false},
	{"cuMemSetAccess", allow_access, ENDS, false},
	{"cuMemFree of page-locked memory", end_locked, ENDS, false},
	{"cuMemFreeAsync of page-locked memory", end_locked_later, ENDS, false},
	{"cuMemFree of registered memory", end_registered, ENDS, false},
	{"cuMemFreeAsync of registered memory", end_registered_later, ENDS, false},
};

static const char *const kinds[KINDS] = {"private memory", "shared memory", "a stack", "the program"};
static const char program[BYTES] __attribute__((aligned(64))) = {[0 ... BYTES - 1] = SECRET};

/* Aligned as mappings of the device are. */
static unsigned char *own_memory(enum kind kind)
{
	const int fd = kind == SHARED ? memfd_create("question", MFD_CLOEXEC) : -1;
	const int flags = kind == SHARED ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS;
	unsigned char *memory;

	if (fd >= 0 && ftruncate(fd, REGION) < 0)
		return NULL;
	memory = mmap(NULL, REGION, PROT_READ | PROT_WRITE, flags, fd, 0);
	if (memory == MAP_FAILED)
		return NULL;
	memory = (unsigned char *)(((uintptr_t)memory + (2 << 20) - 1) & ~(uintptr_t)((2 << 20) - 1));
	memset(memory, SECRET, 2 << 20);
	return memory;
}

static bool is_all(const unsigned char *bytes, size_t count, unsigned char value)
{
	for (size_t i = 0; i < count; i++)
		if (bytes[i] != value)
			return false;
	return true;
}

static int has_happened(const struct asked *asked, const struct place *p, CUresult called)
{
	unsigned char back[BYTES] = {0};

	if (asked->attempt->what == WRITES)
		return !is_all(p->own, BYTES, SECRET);
	/* It may not be there any more: then this ends by a signal. */
	if (asked->attempt->what == ENDS)
		return called == CUDA_SUCCESS || !is_all(p->own, BYTES, SECRET);
	(void)cu.cuMemcpyDtoH_v2(back, p->device, BYTES);
	return is_all(p->locked, 4, SECRET) || is_all(back, 4, SECRET);
}

static void attempt(const void *about, void *ret)
{
	unsigned char stack[BYTES];
	const struct asked *asked = about;
	struct outcome *outcome = ret;
	struct place place = {.context = driver_begin()};
	void *locked = NULL;

	memset(stack, SECRET, sizeof(stack));
	place.own = asked->kind == STACK ? stack : asked->kind == PROGRAM ? (void *)program : own_memory(asked->kind);
	(void)cu.cuMemHostAlloc(&locked, BYTES, 0);
	(void)cu.cuMemAlloc_v2(&place.device, 2 * BYTES);
	(void)cu.cuStreamCreate(&place.stream, 1);
	(void)cu.cuDeviceGetAttribute(&outcome->reached, 88, 0);
	place.locked = locked;
	memset(locked, OTHER, BYTES);
	(void)cu.cuMemsetD8_v2(place.device, OTHER, 2 * BYTES);
	(void)cu.cuCtxSynchronize();
	outcome->called = asked->attempt->call(&place);
	outcome->waited = cu.cuCtxSynchronize();
	outcome->happened = has_happened(asked, &place, outcome->called);
}

static void ask(const struct asked *asked)
{
	static const char *const verbs[] = {"reads", "changes", "ends"};
	struct outcome outcome = {0};
	const int r = alone(attempt, asked, &outcome, sizeof(outcome));
	const char *verb = verbs[asked->attempt->what];

	if (r)
		answer(r > 0, "%s %s %s: the process ended by signal %d", asked->attempt->name, verb,
		       kinds[asked->kind], r);
	else
		answer(!outcome.happened, "%s %s %s: the call %d, waiting %d: %s", asked->attempt->name, verb,
		       kinds[asked->kind], outcome.called, outcome.waited,
		       outcome.happened ? "it does" : "it does not");
}

void ask_addresses(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	for (size_t i = 0; i < sizeof(attempts) / sizeof(attempts[0]); i++)
		for (enum kind kind = PRIVATE; kind < KINDS; kind++)
			if (kind == PRIVATE ||
			    (attempts[i].everywhere && (kind != PROGRAM || attempts[i].what == READS)))
				ask(&(struct asked){&attempts[i], kind});
}

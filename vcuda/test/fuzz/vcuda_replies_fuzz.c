/* SPDX-License-Identifier: Apache-2.0 */

/*
 * vCUDA's client: any bytes as what the server answers. They also say which functions are called; what these write to has the
 * size that their callers have to give it.
 */

#include "vcuda_bell.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "vcuda/client/address_map.h"
#include "vcuda/client/call.h"
#include "vcuda/client/context.h"
#include "vcuda/client/variable.h"
#include "vcuda/client_api.h"
#include "vcuda/ops.h"
#include "vcuda/protocol/descriptors.h"

enum { CALLS = 24, SMALL = 3 };

const char *__asan_default_options(void);
int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const uint8_t nothing, *data = &nothing;
static size_t left;
static uint32_t tail;
static int server;
static bool honest;

static uint64_t fuzz_take(size_t bytes)
{
	uint64_t number = 0;

	if (bytes > left)
		bytes = left;
	if (bytes)
		memcpy(&number, data, bytes);
	data += bytes;
	left -= bytes;
	return number;
}

/* ---- the server ---- */

static void fuzz_send(uint64_t bytes)
{
	const int fd = memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	(void)ftruncate(fd, (off_t)(WIRE_ARENA_OFFSET + (bytes & 0xfffff)));
	(void)fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK);
	(void)descriptors_send(server, "", 1, &fd, 1, MSG_DONTWAIT);
	(void)close(fd);
}

static void fuzz_reply(const struct wire_entry *entry)
{
	struct wire_reply *reply = &client.wire->reply[entry->slot];
	const uint64_t kind = fuzz_take(1);
	const size_t bytes = (kind >> 4) * 8;

	if (entry->op == WIRE_ARENA_ADD && kind & 4)
		fuzz_send(fuzz_take(4));
	reply->result = kind & 1 ? (int32_t)fuzz_take(4) : 0;
	reply->bytes = kind & 2 ? (uint32_t)fuzz_take(4) : WIRE_REPLY;
	memset(reply->word, kind & 8 ? 0xff : 0, sizeof(reply->word));
	if (left && bytes)
		memcpy(reply->word, data, bytes < left ? bytes : left);
	(void)fuzz_take(8);
	data += bytes < left ? bytes : left;
	left -= bytes < left ? bytes : left;
	if (honest) {
		reply->result = 0;
		reply->bytes = WIRE_REPLY;
		reply->word[0] = wire_handle(WIRE_CONTEXT, 1, 1, 0);
	}
	bell_ring(&reply->done, entry->sequence);
}

void fuzz_answer(void)
{
	struct ring *ring = &client.wire->ring;

	if (left == 0 && !honest)
		client.wire->state = WIRE_DEAD;
	while (tail != ring->head.value) {
		const struct wire_entry *entry =
			(const struct wire_entry *)(client.wire->command + (size_t)(tail % RING_UNITS) * RING_UNIT);

		tail += (uint32_t)wire_units(entry->bytes);
		if (entry->op != WIRE_FILLER && entry->slot < WIRE_SLOTS)
			fuzz_reply(entry);
	}
	bell_ring(&ring->tail, tail);
}

/* ---- the client ---- */

static void *fuzz_map(size_t bytes)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		abort();
	return memory;
}

/* What is known of a function stays for as long as the process lives. */
const char *__asan_default_options(void)
{
	return "detect_leaks=0";
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static struct client_life life = {.ready = 1};
	CUcontext context;
	int pair[2];

	(void)argc;
	(void)argv;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) < 0)
		abort();
	server = fcntl(pair[1], F_DUPFD, 100);
	client.socket = fcntl(pair[0], F_DUPFD, 100);
	client.life = &life;
	client.wire = fuzz_map(sizeof(*client.wire));
	client.staging = fuzz_map(WIRE_STAGING_BYTES);
	client.arena = 0x300000000000;
	client.host.device_count = 1;
	for (int i = 1; i < WIRE_ATTRIBUTES; i++)
		client.device[0].attribute[i] = client.device[0].known[i] = 64;
	if (mmap((void *)client.arena, 1 << 30, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) ==
	    MAP_FAILED)
		abort();
	honest = true;
	if (cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context))
		abort();
	honest = false;
	return 0;
}

static uint64_t *fuzz_words(size_t count)
{
	return calloc(count, sizeof(uint64_t));
}

static void fuzz_code(uint64_t *words)
{
	char *log = malloc(SMALL);
	CUjit_option names[] = {5, 6};
	void *values[] = {log, (void *)SMALL}, *parameters[] = {words}, *image;
	const char *name;
	CUmodule module = 0;
	CUfunction function = 0;
	CUlinkState state = 0;
	size_t bytes;

	switch (fuzz_take(1) % 8) {
	case 0:
		(void)cuModuleLoadDataEx(&module, ".version 6.0", 2, names, values);
		break;
	case 1:
		if (cuLinkCreate_v2(2, names, values, &state) == 0) {
			(void)cuLinkComplete(state, &image, &bytes);
			(void)cuLinkDestroy(state);
		}
		break;
	case 2:
		if (cuModuleGetGlobal_v2(words, (size_t *)(words + 1), 1, "x") == 0)
			(void)cuCtxSynchronize();
		break;
	case 3:
		(void)cuFuncGetName(&name, 1);
		break;
	case 4:
		(void)cuModuleEnumerateFunctions(words, SMALL, 1);
		break;
	case 5:
		(void)cuFuncGetAttribute((int *)words, (CUfunction_attribute)fuzz_take(1), 1);
		break;
	case 6:
		(void)cuFuncGetParamInfo(1, fuzz_take(1), words, words + 1);
		break;
	default:
		if (cuModuleGetFunction(&function, 1, "x") == 0)
			(void)cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, 0, NULL,
					     (void *[]){(void *)1, words, (void *)2, &(size_t){24}, NULL});
		(void)parameters;
		break;
	}
	free(log);
}

static void fuzz_graph(uint64_t *words)
{
	uint64_t *other = fuzz_words(SMALL);
	const CUgraphNode *nodes;
	size_t count = SMALL;
	int state;

	switch (fuzz_take(1) % 6) {
	case 0:
		(void)cuGraphGetNodes(1, words, &count);
		break;
	case 1:
		(void)cuGraphGetEdges(1, words, other, &count);
		break;
	case 2:
		(void)cuGraphGetNodes(1, NULL, &count);
		break;
	case 3:
		(void)cuGraphNodeGetDependencies(1, words, &count);
		break;
	case 4:
		(void)cuStreamGetCaptureInfo_v2(0, &state, (cuuint64_t *)words, other, &nodes, &count);
		break;
	default:
		(void)cuStreamBeginCapture_v2(0, 0);
		(void)cuStreamEndCapture(0, words);
		break;
	}
	free(other);
}

static void fuzz_memory(uint64_t *words)
{
	void *host = NULL, *copy = malloc(200000);
	const uint64_t bytes = fuzz_take(2) * 2 + 1;

	switch (fuzz_take(1) % 8) {
	case 0:
		if (cuMemAlloc_v2(words, bytes) == 0)
			(void)cuMemcpyDtoH_v2(copy, words[0], bytes);
		break;
	case 1:
		(void)cuMemcpyHtoD_v2(fuzz_take(8), copy, bytes);
		break;
	case 2:
		if (cuMemHostAlloc(&host, bytes, 0) == 0) {
			memset(host, 1, bytes);
			(void)cuMemFreeHost(host);
		}
		break;
	case 3:
		(void)cuMemAllocPitch_v2(words, (size_t *)(words + 1), bytes, 3, 4);
		break;
	case 4:
		(void)cuMemGetInfo_v2((size_t *)words, (size_t *)(words + 1));
		break;
	case 5:
		(void)cuMemcpyDtoH_v2(copy, fuzz_take(8), bytes);
		break;
	case 6:
		(void)cuPointerGetAttribute(words, (CUpointer_attribute)fuzz_take(1), fuzz_take(8));
		break;
	default:
		(void)cuMemAllocAsync(words, bytes, 0);
		(void)cuMemFreeAsync(words[0], 0);
		break;
	}
	free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct context *context;

	data = bytes;
	left = size;
	client.wire->state = WIRE_READY;
	memset(client.wire->failed, 0, sizeof(client.wire->failed));
	for (int i = 0; i < WIRE_SLOTS; i++)
		client.wire->reply[i].deferred = 0;
	client.captures = 0;
	for (int i = 0; i < CALLS && left > 0; i++) {
		uint64_t *words = fuzz_words(SMALL);
		const uint64_t kind = fuzz_take(1) % 4;

		if (kind == 0)
			fuzz_code(words);
		else if (kind == 1)
			fuzz_graph(words);
		else if (kind == 2)
			fuzz_memory(words);
		else
			(void)(fuzz_take(1) % 2 ? cuCtxSynchronize() : cuDeviceCanAccessPeer((int *)words, 0, 0));
		free(words);
	}
	client.wire->state = WIRE_READY;
	variable_forget_owner(1);
	if (context_current(&context) == 0)
		address_map_forget_context(context);
	return 0;
}

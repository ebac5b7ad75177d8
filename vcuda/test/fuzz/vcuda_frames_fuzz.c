/* SPDX-License-Identifier: Apache-2.0 */

/*
 * vCUDA's server: any bytes as entries of the ring, on the simulated driver. The first byte of each says whether what follows
 * is the entry as it is, or its operation and words, which may be what earlier replies had: handles and addresses.
 */

#include <dlfcn.h>
#include <fcntl.h>
#include <libgen.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

/* Its entries are taken here as there, without its threads; what would end it ends a run. */
#define server_end fuzz_server_end
#include "vcuda/server/lane.c"

#include "vcuda/server/arena.h"
#include "vcuda/server/quota.h"

enum { RAW = 16, KNOWN = 64, WORDS = 24, THREADS = 4, ENTRIES = 48, LIMIT = 32 << 20 };

const char *__asan_default_options(void);
int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct server server;
static jmp_buf ended;
static int client;
static uint64_t known[KNOWN], context;
static unsigned known_count;
static const uint8_t nothing, *data = &nothing;
static size_t left;

/* No GPU's programs are moved. */
uint64_t server_places(void)
{
	return 0;
}

unsigned server_find_name(unsigned number)
{
	return number;
}

void server_tell(enum start_event_kind kind, uint64_t number, const char *text)
{
	(void)kind;
	(void)number;
	(void)text;
}

void server_tell_once(enum start_event_kind kind, const char *text)
{
	server_tell(kind, 0, text);
}

int server_send_shared(const void *message, size_t bytes, int flags)
{
	return send(START_CLIENT, message, bytes, MSG_NOSIGNAL | flags) < 0 ? -1 : 0;
}

void server_end(const char *why)
{
	(void)why;
	longjmp(ended, 1);
}

static void *fuzz_map(size_t bytes)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		abort();
	return memory;
}

/* The simulated driver keeps what a process can ask about later. */
const char *__asan_default_options(void)
{
	return "detect_leaks=0";
}

/* The client's thread that host functions run in. */
static void *fuzz_call_back(void *argument)
{
	struct bell *calls = &server.wire->calls;

	for (uint32_t done = 0;;) {
		struct wire_callback *call = &server.wire->callback[done % WIRE_CALLBACKS];

		if (BELL_LOAD(&calls->value) == done)
			bell_sleep(calls, done, NULL);
		else
			bell_ring(&call->done, ++done);
	}
	return argument;
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	struct start_orders *orders;
	char path[4096], own[2048];
	int pair[2], shared;
	pthread_t thread;

	(void)argc;
	(void)argv;
	own[readlink("/proc/self/exe", own, sizeof(own) - 1)] = '\0';
	(void)snprintf(path, sizeof(path), "%s/../vcuda/test/sim/libcuda.so.1", dirname(own));
	(void)setenv("CTR_GPU_SIM_MEMORY", "256M", 1);
	if (driver_load(path) < 0 || driver.cuInit(0)) {
		(void)fprintf(stderr, "%s: no driver\n", path);
		exit(1);
	}
	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) < 0)
		abort();
	client = fcntl(pair[0], F_DUPFD, 100);
	if (dup2(pair[1], START_CLIENT) < 0)
		abort();
	shared = memfd_create("fuzz", 0);
	if (dup2(shared, START_SHARED) < 0 || ftruncate(START_SHARED, (off_t)WIRE_SHARED_BYTES) < 0)
		abort();
	server.wire = fuzz_map(sizeof(*server.wire));
	server.staging = fuzz_map(WIRE_STAGING_BYTES);
	server.quota = fuzz_map(sizeof(*server.quota));
	orders = fuzz_map(sizeof(*orders));
	orders->limit = LIMIT;
	server.orders = orders;
	server.turns = fuzz_map(sizeof(*server.turns));
	server.rivals = server.turns->rivals;
	server.start.host_memory = LIMIT;
	server.start.gpu_count = 1;
	server.driver_version = 13000;
	if (driver.cuDeviceGetPCIBusId(server.names[0].bus, sizeof(server.names[0].bus), 0))
		abort();
	/* The driver says what a context takes, which is nothing. */
	driver_memory_begin();
	driver_memory_open();
	arena_offer(server.wire->arena);
	(void)arena_choose(0);
	lane_own = serve_kinds;
	if (pthread_create(&thread, NULL, fuzz_call_back, NULL))
		abort();
	return 0;
}

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

/* What waits for a value that nothing writes. */
static bool fuzz_is_left_out(unsigned op)
{
	return op == OP_cuStreamWaitValue32_v2 || op == OP_cuStreamWaitValue64_v2 || op == OP_cuStreamBatchMemOp_v2;
}

static uint64_t fuzz_word(void)
{
	const uint64_t kind = fuzz_take(1) % 8;

	if (kind < 4)
		return known[fuzz_take(1) % KNOWN];
	return fuzz_take(kind == 4 ? 1 : kind == 5 ? 2 : kind == 6 ? 4 : 8);
}

static uint32_t fuzz_write_raw(struct wire_entry *entry)
{
	const size_t bytes = left < 512 ? left : 512;

	memset(entry, 0, 1024);
	if (bytes)
		memcpy(entry, data, bytes);
	(void)fuzz_take(8);
	data += left < 56 ? left : 56;
	left -= left < 56 ? left : 56;
	return (uint32_t)fuzz_take(1) % 16 + 1;
}

static uint32_t fuzz_write(struct wire_entry *entry)
{
	uint64_t *argument = wire_arguments(entry);
	const uint32_t words = (uint32_t)fuzz_take(1) % WORDS;
	uint32_t part;

	*entry = (struct wire_entry){.op = (uint16_t)(fuzz_take(2) % OP_END), .words = (uint16_t)words};
	entry->thread = (uint32_t)fuzz_take(1) % THREADS;
	entry->slot = entry->thread;
	entry->context = context;
	for (uint32_t i = 0; i < words; i++)
		argument[i] = fuzz_word();
	part = (uint32_t)fuzz_take(2) % 8192;
	if (part > left)
		part = (uint32_t)left;
	if (part)
		memcpy(argument + words, data, part);
	data += part;
	left -= part;
	entry->bytes = words * 8 + (part + 7) / 8 * 8;
	return (uint32_t)wire_units(entry->bytes);
}

static void fuzz_learn(const struct request *q)
{
	const struct wire_reply *reply = &server.wire->reply[q->header.thread];

	for (unsigned i = 0; i < 2 && q->reply_bytes >= (i + 1) * 8; i++)
		if (reply->word[i])
			known[known_count++ % KNOWN] = reply->word[i];
}

/* Descriptors on their way to a client that does not read would be too many at some time. */
static void fuzz_drain(void)
{
	char byte;
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec vector = {&byte, 1};
	struct msghdr message = {
		.msg_iov = &vector, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};
	int fd;

	while (recvmsg(client, &message, MSG_DONTWAIT) > 0) {
		memcpy(&fd, CMSG_DATA(&control.header), sizeof(fd));
		if (message.msg_controllen)
			(void)close(fd);
		message.msg_controllen = sizeof(control);
	}
}

static CUresult fuzz_ask(struct request *q, unsigned op, uint64_t word)
{
	CUresult r;

	q->header = (struct wire_entry){.op = (uint16_t)op, .words = 1, .bytes = 8, .context = context};
	q->argument[0] = word;
	r = lane_serve(q);
	if (!r && q->reply_bytes >= 8)
		memcpy(&context, q->reply, 8);
	return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct request *q = &reader.request;
	struct wire_entry *entry = (struct wire_entry *)server.wire->command;
	volatile int entries = 0;

	data = bytes;
	left = size;
	known_count = 0;
	memset(known, 0, sizeof(known));
	context = 0;
	if (fuzz_ask(q, OP_cuDevicePrimaryCtxRetain, 0))
		abort();
	known[known_count++] = context;
	while (setjmp(ended) == 0 && left > 0 && entries++ < ENTRIES) {
		const uint32_t units = fuzz_take(1) < RAW ? fuzz_write_raw(entry) : fuzz_write(entry);
		CUresult r;

		(void)lane_fetch_entry(q, 0, units);
		if (q->header.op == WIRE_FILLER || fuzz_is_left_out(q->header.op))
			continue;
		r = lane_serve(q);
		if (r != REQUEST_WAITS)
			lane_reply(&reader, r);
		if (q->header.slot != WIRE_SCRATCH)
			fuzz_learn(q);
	}
	fuzz_drain();
	memset(server.wire->failed, 0, sizeof(server.wire->failed));
	for (int i = 0; i < THREADS; i++)
		server.wire->reply[i].deferred = 0;
	(void)fuzz_ask(q, OP_cuDevicePrimaryCtxReset_v2, 0);
	return 0;
}

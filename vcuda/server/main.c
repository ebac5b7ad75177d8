/* SPDX-License-Identifier: Apache-2.0 */

/* ctr-gpu-vcuda: the driver for one client process (see vcuda/protocol/start.h for how it is started). */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "vcuda/driver_api.h"
#include "vcuda/ops.h"
#include "vcuda/server/arena.h"
#include "vcuda/server/driver.h"
#include "vcuda/server/quota.h"
#include "vcuda/server/request.h"
#include "vcuda/server/server.h"
#include "vcuda/server/share.h"

enum {
	SERVER_SPIN = 50000,   /* nanoseconds */
	SERVER_SLICE = 100000, /* the least that the kernel takes */
	SERVER_SPIN_CORES = 3,
	SERVER_LONG_SPIN = 500000,
	SERVER_WAIT_SPIN = 20000000,
	SERVER_WAIT_CORES = 8,
	SERVER_PATIENCE_MS = 30000,
};

/* Tells manager and client why there will be no service. */
static int server_fail(const char *step, int number, CUresult result)
{
	const struct wire_greeting greeting = {.magic = WIRE_MAGIC, .result = result};

	server_tell(START_EVENT_FAILED, (uint64_t)number, step);
	(void)send(START_CLIENT, &greeting, sizeof(greeting), MSG_NOSIGNAL);
	return 1;
}

static int server_read_start(void)
{
	struct start *start = &server.start;
	const struct sysinfo *memory = &(const struct sysinfo){0};
	struct sysinfo host;

	if (recv(START_MANAGER, start, sizeof(*start), 0) != sizeof(*start) || start->magic != START_MAGIC ||
	    start->size != sizeof(*start) || start->gpu_count > START_GPUS || start->reach > START_GPUS ||
	    start->quota_slot >= START_QUOTA_SLOTS)
		return -EPROTO;
	if (start->reach < start->gpu_count)
		start->reach = start->gpu_count;
	start->library[sizeof(start->library) - 1] = '\0';
	if (sysinfo(&host) == 0)
		memory = &host;
	if (start->host_memory == 0)
		start->host_memory = (uint64_t)memory->totalram * memory->mem_unit / 4;
	if (start->flags & START_WATCH)
		return 0;
	server.quota = mmap(NULL, sizeof(*server.quota), PROT_READ | PROT_WRITE, MAP_SHARED, START_QUOTA, 0);
	server.orders = mmap(NULL, sizeof(*server.orders), PROT_READ, MAP_SHARED, START_ORDERS, 0);
	server.turns = mmap(NULL, sizeof(*server.turns), PROT_READ, MAP_SHARED, START_TURNS, 0);
	if (server.quota == MAP_FAILED || server.orders == MAP_FAILED || server.turns == MAP_FAILED)
		return -errno;
	server.rivals = &server.turns->rivals[start->quota_slot];
	return 0;
}

static void *server_map_shared(uint64_t offset, uint64_t bytes)
{
	return mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, START_SHARED, (off_t)offset);
}

/* A thread that spins takes a core from others, so the time depends on how many cores there are. */
static void server_set_spin(void)
{
	cpu_set_t set;
	const int here = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
	const int cores = server.start.flags & START_SPIN ? SERVER_WAIT_CORES : here;

	if (server.start.flags & START_NO_SPIN || cores < SERVER_SPIN_CORES)
		return;
	server.spin = SERVER_SPIN;
	server.long_spin = cores >= SERVER_WAIT_CORES ? SERVER_LONG_SPIN : SERVER_SPIN;
	server.wait_spin = cores >= SERVER_WAIT_CORES ? SERVER_WAIT_SPIN : 4 * SERVER_SPIN;
	server.wire->spin = (uint32_t)server.spin;
	server.wire->wait_spin = (uint32_t)server.wait_spin;
	server.wire->copy_threads = cores >= SERVER_WAIT_CORES ? 3 : 1;
}

static bool server_greet(void)
{
	const struct wire_greeting greeting = {.magic = WIRE_MAGIC};

	return server_send_shared(&greeting, sizeof(greeting), 0) == 0;
}

/* Return: the driver's number of a GPU; -1: it has no such one. */
static int server_find_gpu(const struct start_gpu *gpu, int count)
{
	static const uint8_t none[16];

	if (memcmp(gpu->uuid, none, sizeof(none)) == 0)
		return gpu->ordinal < count ? gpu->ordinal : -1;
	for (int i = 0; i < count; i++) {
		CUuuid uuid = {{0}};

		(void)driver.cuDeviceGetUuid(&uuid, i);
		if (memcmp(uuid.bytes, gpu->uuid, sizeof(none)) == 0)
			return i;
	}
	return -1;
}

/* What a driver says later may be of another GPU, or partly. */
static void server_learn_name(CUdevice device, struct server_name *ret)
{
	enum { BUS_NUMBER = 33, DEVICE_NUMBER = 34, DOMAIN = 50 };
	CUuuid uuid = {{0}};

	(void)(driver.cuDeviceGetUuid_v2 ? driver.cuDeviceGetUuid_v2 : driver.cuDeviceGetUuid)(&uuid, device);
	memcpy(ret->uuid, uuid.bytes, sizeof(ret->uuid));
	if (driver.cuDeviceGetPCIBusId(ret->bus, sizeof(ret->bus), device))
		ret->bus[0] = '\0';
	(void)driver.cuDeviceGetAttribute(&ret->bus_number, BUS_NUMBER, device);
	(void)driver.cuDeviceGetAttribute(&ret->device_number, DEVICE_NUMBER, device);
	(void)driver.cuDeviceGetAttribute(&ret->domain, DOMAIN, device);
}

/* Return: the driver's number of the GPU on which is what the client knows by a number; -1: there is none. */
static int server_find_placed(unsigned number, const int *found)
{
	for (unsigned i = 0; i < server.start.reach; i++)
		if (server.start.gpus[i].number == server_find_name(number))
			return found[i];
	return -1;
}

/* The driver's numbers of the granted GPUs, and what the client calls them. */
static CUresult server_find_gpus(void)
{
	int found[START_GPUS], count = 0;
	size_t bytes = 0;
	CUresult r = driver.cuDeviceGetCount(&count);

	for (unsigned i = 0; i < server.start.reach && !r; i++) {
		struct server_name *name = &server.names[server.start.gpus[i].number % START_GPUS];

		found[i] = server_find_gpu(&server.start.gpus[i], count);
		memcpy(name->uuid, server.start.gpus[i].uuid, sizeof(name->uuid));
		if (found[i] >= 0)
			server_learn_name(found[i], name);
	}
	for (unsigned i = 0; i < server.start.gpu_count && !r; i++) {
		server.gpu[i] = server_find_placed(server.start.gpus[i].number, found);
		server.granted[i] = (uint8_t)(server.start.gpus[i].number % START_GPUS);
		if (server.gpu[i] < 0)
			r = CUDA_ERROR_NO_DEVICE;
		else if (driver.cuDeviceTotalMem_v2(&bytes, server.gpu[i]) == CUDA_SUCCESS)
			server.gpu_bytes += bytes;
	}
	return r;
}

/*
 * Notices when the client is gone, whatever the lanes wait for. A client library sends its handshake at once. A peer
 * that connects and sends nothing is cut off, since it takes a place from other programs and containers.
 */
static void *server_watch(void *nothing)
{
	struct pollfd socket = {.fd = START_CLIENT, .events = POLLRDHUP};
	int patience_ms = SERVER_PATIENCE_MS;

	for (;; patience_ms = -1) {
		const int r = poll(&socket, 1, patience_ms);

		if (r > 0) {
			arena_stop();
			arena_exit(0);
		}
		if (r == 0 && BELL_LOAD(&server.wire->ring.head.value) == 0)
			server_end("it said nothing for 30 seconds");
	}
	return nothing;
}

/* As of sched_setattr(2). The headers of some kernels have it beside what is in <sched.h>, some libraries there. */
struct server_slice {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime, deadline, period;
};

/*
 * Since Linux 6.12 a thread says for how long it wants a processor at a time. Whoever wants one shortly gets it at once
 * when it wakes, and not behind threads that spin, as those of OpenMP do for milliseconds on all processors that a
 * program may use; and no more of the time. Older kernels take no notice.
 */
static void server_ask_for_short_slices(void)
{
	struct server_slice slice = {.size = sizeof(slice)};

	if (syscall(SYS_sched_getattr, 0, &slice, sizeof(slice), 0) < 0 || slice.policy != SCHED_OTHER)
		return;
	slice.runtime = SERVER_SLICE;
	(void)syscall(SYS_sched_setattr, 0, &slice, 0);
}

/* Reads what the manager wants, and gives up what the driver does not need. Return: 0, or the exit status. */
static int server_prepare(void)
{
	const char *step = NULL;
	int r = server_read_start();

	if (r == -EPROTO)
		(void)fputs("ctr-gpu-vcuda: started by ctr-gpu-vcudad, not by hand; see ctr-gpu-vcuda(8)\n", stderr);
	if (r < 0)
		return server_fail("reading the start parameters", -r, CUDA_ERROR_SYSTEM_NOT_READY);
	/* Of all threads to come: they sleep for less than what the kernel rounds up to otherwise. */
	(void)prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
	server_ask_for_short_slices();
	/* What may be opened is said by whole paths, too. */
	if (server.start.library[0] != '\0' && server.start.library[0] != '/')
		return server_fail("loading a driver whose path is not absolute", EINVAL, CUDA_ERROR_SYSTEM_NOT_READY);
	r = server_sandbox_enter(&server.start, &step);
	if (r < 0)
		return server_fail(step, -r, CUDA_ERROR_SYSTEM_NOT_READY);
	r = driver_load(server.start.library[0] ? server.start.library : "libcuda.so.1");
	if (r < 0)
		return server_fail("loading the driver", -r, CUDA_ERROR_SYSTEM_NOT_READY);
	return 0;
}

/* Return: 0, or the exit status. */
static int server_map_memory(void)
{
	server.wire = server_map_shared(0, sizeof(*server.wire));
	server.staging = server_map_shared(WIRE_STAGING_OFFSET, WIRE_STAGING_BYTES);
	if (server.wire == MAP_FAILED || server.staging == MAP_FAILED)
		return server_fail("mapping shared memory", errno, CUDA_ERROR_OUT_OF_MEMORY);
	arena_offer(server.wire->arena);
	return 0;
}

/* Return: 0, or the exit status. */
static int server_init_driver(void)
{
	CUresult r;

	quota_begin();
	share_held_begin();
	driver_memory_begin();
	r = driver.cuInit(0);
	if (!r)
		r = driver.cuDriverGetVersion(&server.driver_version);
	if (!r)
		r = server_find_gpus();
	if (!r)
		driver_memory_open();
	return r ? server_fail("initializing the driver", r, r) : 0;
}

/* Kernels can read and write whatever the server has where the driver maps a process's memory for them. */
static void server_tell_reached(void)
{
	enum { PAGEABLE_MEMORY_ACCESS = 88, USES_HOST_PAGE_TABLES = 100 };

	for (unsigned i = 0; i < server.start.gpu_count; i++) {
		int reached = 0, by_tables = 0;

		(void)driver.cuDeviceGetAttribute(&reached, PAGEABLE_MEMORY_ACCESS, server.gpu[i]);
		(void)driver.cuDeviceGetAttribute(&by_tables, USES_HOST_PAGE_TABLES, server.gpu[i]);
		if (reached)
			server_tell(START_EVENT_REACHED, i, by_tables ? "ATS" : "HMM");
	}
}

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83 /* since Linux 6.16 */
#endif

/*
 * From here on, the client is heard. What the manager is told of this comes before it: the server may end at any moment
 * afterwards, since the client has. @took: for the manager. Return: 0, or the exit status.
 */
static int server_open(const char *took)
{
	const char *step = NULL;
	pthread_t thread;

	/* Its manager, which had this end before, wants none. */
	(void)setsockopt(START_CLIENT, SOL_SOCKET, SO_PASSRIGHTS, &(int){1}, sizeof(int));
	server.wire->magic = WIRE_MAGIC;
	server.wire->ops = OP_DIGEST;
	server_set_spin();
	server.wire->state = WIRE_READY;
	if (pthread_create(&thread, NULL, server_watch, NULL) != 0)
		step = "starting a thread";
	if (!step && server_sandbox_close(&server.start) < 0)
		step = "loading the system call filter";
	if (!step && !print_begin())
		step = "having the driver print here";
	if (!step) {
		server_tell(START_EVENT_READY, (uint64_t)server.driver_version, took);
		server_tell_reached();
	}
	if (!step && !server_greet())
		step = "greeting the client";
	return step ? server_fail(step, EIO, CUDA_ERROR_SYSTEM_NOT_READY) : 0;
}

int main(void)
{
	const long began = clock_now_ms();
	int r = server_prepare();
	char took[START_NAME];
	long loaded;

	if (!r && server.start.flags & START_WATCH)
		return watch_run();
	loaded = clock_now_ms();
	if (!r)
		r = server_map_memory();
	if (!r)
		r = server_init_driver();
	(void)snprintf(took, sizeof(took), "load %ld ms, init %ld ms", loaded - began, clock_now_ms() - loaded);
	if (!r)
		r = server_open(took);
	if (r)
		return r;
	lane_run(serve_kinds);
}

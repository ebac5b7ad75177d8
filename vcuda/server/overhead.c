/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Asked after the driver has taken what it takes, since it says nothing before. Whoever is told then that it is too
 * much gives it back at once. Where NVML says nothing (under WSL, in a pid namespace that is not the kernel's own),
 * what is known beforehand is all that counts.
 */

#include "vcuda/server/overhead.h"

#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>

#include "vcuda/driver_api.h"
#include "vcuda/server/allocation.h"
#include "vcuda/server/driver.h"
#include "vcuda/server/server.h"

enum {
	OVERHEAD_PROCESSES = 1024,
	OVERHEAD_ADDRESS = 32,
	OVERHEAD_PIECE = 4096, /* less than that is nobody's */
};

/* NVML's, as its functions of these versions have it. */
struct overhead_process {
	unsigned pid;
	unsigned long long used; /* all ones: not known */
	unsigned gpu_instance, compute_instance;
};
_Static_assert(sizeof(struct overhead_process) == 24, "as nvml.h has it");

static void *overhead_nvml;
static const char *overhead_missing = "there was no limit when the server began"; /* while nobody can be asked */
static pthread_t overhead_loader;
static bool overhead_loads;
static int (*overhead_ask)(void *gpu, unsigned *count, struct overhead_process *list);
static void *overhead_gpus[START_GPUS];
static unsigned overhead_gpu_count;

static pthread_mutex_t overhead_mutex = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static _Atomic bool overhead_stirred;
static _Atomic uint64_t overhead_little; /* since it was asked last */
static bool overhead_seen;               /* this process was among those that it counts */
static bool overhead_known;              /* it said how much that is, when it was asked last */
static uint64_t overhead_surplus;        /* counted, and noted for nobody */

bool overhead_hold(void)
{
	(void)pthread_mutex_lock(&overhead_mutex);
	return true;
}

void overhead_let_go(const bool *held)
{
	(void)held;
	(void)pthread_mutex_unlock(&overhead_mutex);
}

/* ---- asking ---- */

/*
 * Adds what this process has of a GPU. A context always takes some, so that 0 is no answer: it is what other pid
 * namespaces hear. Return: false if NVML does not say; *ret_there: whether it has a context there.
 */
static bool overhead_add(void *gpu, uint64_t *sum, bool *ret_there)
{
	static struct overhead_process list[OVERHEAD_PROCESSES];
	unsigned count = OVERHEAD_PROCESSES;

	if (overhead_ask(gpu, &count, list) != 0 || count > OVERHEAD_PROCESSES)
		return false;
	for (unsigned i = 0; i < count; i++) {
		if (list[i].pid != (unsigned)getpid())
			continue;
		if (list[i].used == 0 || list[i].used == UINT64_MAX || __builtin_add_overflow(*sum, list[i].used, sum))
			return false;
		*ret_there = true;
	}
	return true;
}

/* On all GPUs. Return: as above. */
static bool overhead_measure(uint64_t *ret, bool *ret_there)
{
	*ret = 0;
	*ret_there = false;
	for (unsigned i = 0; i < overhead_gpu_count; i++)
		if (!overhead_add(overhead_gpus[i], ret, ret_there))
			return false;
	return true;
}

/* One that was granted twice counts once. */
static bool overhead_is_another(unsigned gpu)
{
	for (unsigned i = 0; i < gpu; i++)
		if (server.gpu[i] == server.gpu[gpu])
			return false;
	return true;
}

static bool overhead_find_gpus(int (*find)(const char *address, void **ret))
{
	char address[OVERHEAD_ADDRESS];

	for (unsigned i = 0; i < server.start.gpu_count; i++)
		if (overhead_is_another(i) && (driver.cuDeviceGetPCIBusId(address, sizeof(address), server.gpu[i]) ||
					       find(address, &overhead_gpus[overhead_gpu_count++]) != 0))
			return false;
	return true;
}

/* It takes 16 ms, most of them waiting. */
static void *overhead_load(void *nothing)
{
	int (*init)(void) = NULL;

	overhead_nvml = driver_load_beside("libnvidia-ml.so.1");
	overhead_missing = overhead_nvml ? "NVML does not begin" : "there is no libnvidia-ml.so.1 beside libcuda.so.1";
	if (overhead_nvml)
		*(void **)&init = dlsym(overhead_nvml, "nvmlInit_v2");
	if (!init || init() != 0)
		overhead_nvml = NULL;
	return nothing;
}

void overhead_begin(void)
{
	if (!quota_is_limited())
		return;
	overhead_loads = pthread_create(&overhead_loader, NULL, overhead_load, NULL) == 0;
	if (!overhead_loads)
		(void)overhead_load(NULL);
}

void overhead_open(void)
{
	int (*find)(const char *, void **) = NULL;
	bool there = true;
	uint64_t bytes;

	if (overhead_loads)
		(void)pthread_join(overhead_loader, NULL);
	if (!overhead_nvml)
		return;
	*(void **)&find = dlsym(overhead_nvml, "nvmlDeviceGetHandleByPciBusId_v2");
	*(void **)&overhead_ask = dlsym(overhead_nvml, "nvmlDeviceGetComputeRunningProcesses_v3");
	overhead_missing = "NVML does not say it of the GPU";
	if (!find || !overhead_ask || !overhead_find_gpus(find) || !overhead_measure(&bytes, &there)) {
		overhead_ask = NULL;
	} else if (there) {
		/* Without a context it has nothing: who has this number there is another. */
		overhead_missing = "NVML knows processes by numbers of another pid namespace";
		overhead_ask = NULL;
	}
}

bool overhead_is_known(void)
{
	if (!overhead_known && quota_is_limited())
		server_tell_once(START_EVENT_ESTIMATED, overhead_missing);
	return overhead_known;
}

/* ---- counting ---- */

/* What was asked for is looked at later, so that a pool that gives something back in between does not hide anything. */
static void overhead_recount(uint64_t has)
{
	uint64_t asked, surplus = 0;

	allocation_settle();
	asked = quota_counted() - quota_reserved() - overhead_surplus;
	if (has > asked && has - asked > quota_reserved())
		surplus = (has - asked - quota_reserved()) & ~(uint64_t)(OVERHEAD_PIECE - 1);
	if (surplus > overhead_surplus)
		quota_count(surplus - overhead_surplus);
	else
		quota_give(overhead_surplus - surplus);
	overhead_surplus = surplus;
}

bool overhead_count(void)
{
	OVERHEAD_HOLD;
	bool there = false;
	uint64_t has = 0;

	if (!quota_is_limited())
		return true;
	overhead_stirred = false;
	overhead_little = 0;
	overhead_known = overhead_ask && overhead_measure(&has, &there);
	overhead_seen |= overhead_known && there;
	/* There is a context now, or was. */
	if (!overhead_seen) {
		if (overhead_ask)
			overhead_missing = "NVML does not count this process";
		overhead_ask = NULL;
		overhead_known = false;
	}
	if (overhead_known)
		overhead_recount(has);
	return !quota_is_exceeded();
}

bool overhead_fits(void)
{
	OVERHEAD_HOLD;
	const bool fits = overhead_count();

	if (!fits)
		server_tell(START_EVENT_QUOTA, overhead_surplus, "");
	return fits;
}

void overhead_stir(void)
{
	overhead_stirred = true;
}

void overhead_stir_by(uint64_t bytes)
{
	overhead_little += bytes;
	if (overhead_little >= OVERHEAD_PAGE)
		overhead_stir();
}

void overhead_settle(void)
{
	if (overhead_stirred && quota_is_limited())
		(void)overhead_count();
}

void overhead_note(enum quota_kind kind, uint64_t key, uint64_t most, uint64_t context)
{
	OVERHEAD_HOLD;
	const uint64_t bytes = overhead_surplus < most ? overhead_surplus : most;

	if (bytes > 0 && quota_note(kind, key, bytes, context))
		overhead_surplus -= bytes;
}

/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Asked after the driver has taken what it takes, since it says nothing before. Whoever is told then that it is too
 * much gives it back at once. Where NVML says nothing (under WSL, in a pid namespace that is not the kernel's own),
 * what is known beforehand is all that counts.
 */

#include "vcuda/server/quota.h"

#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>

#include "vcuda/driver_api.h"
#include "vcuda/server/arena.h"
#include "vcuda/server/driver.h"
#include "vcuda/server/server.h"
#include "vcuda/server/share.h"

enum {
	DRIVER_MEMORY_PROCESSES = 1024,
	DRIVER_MEMORY_PIECE = 4096, /* less than that is nobody's */
};

/* NVML's, as its functions of these versions have it. */
struct driver_memory_process {
	unsigned pid;
	unsigned long long used; /* all ones: not known */
	unsigned gpu_instance, compute_instance;
};
_Static_assert(sizeof(struct driver_memory_process) == 24, "as nvml.h has it");

static void *driver_memory_nvml;
static const char *driver_memory_missing = "there was no limit when the server began"; /* while nobody can be asked */
static pthread_t driver_memory_loader;
static bool driver_memory_loads;
static int (*overhead_ask)(void *gpu, unsigned *count, struct driver_memory_process *list);
static void *driver_memory_gpus[START_GPUS];
static unsigned driver_memory_gpu_count;
static uint64_t driver_memory_places; /* where these were found */
static int (*overhead_find)(const char *address, void **ret);

static pthread_mutex_t driver_memory_mutex = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static _Atomic bool driver_memory_stirred;
static _Atomic uint32_t driver_memory_count_number;
static _Atomic uint64_t driver_memory_little; /* since it was asked last */
static bool driver_memory_begun;              /* there is a context, or was */
static bool driver_memory_seen;               /* this process was among those that it counts */
static bool driver_memory_known;              /* it said how much that is, when it was asked last */
static uint64_t driver_memory_surplus;        /* counted, and noted for nobody */

bool driver_memory_hold(void)
{
	(void)pthread_mutex_lock(&driver_memory_mutex);
	return true;
}

void driver_memory_let_go(const bool *held)
{
	(void)held;
	(void)pthread_mutex_unlock(&driver_memory_mutex);
}

/* ---- asking ---- */

/*
 * Adds what this process has of a GPU. A context always takes some, so that 0 is no answer: it is what other pid
 * namespaces hear. Return: false if NVML does not say; *ret_there: whether it has a context there.
 */
static bool driver_memory_add(void *gpu, uint64_t *sum, bool *ret_there)
{
	static struct driver_memory_process list[DRIVER_MEMORY_PROCESSES];
	unsigned count = DRIVER_MEMORY_PROCESSES;

	if (overhead_ask(gpu, &count, list) != 0 || count > DRIVER_MEMORY_PROCESSES)
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

static bool driver_memory_find_gpus(void);

/* On all GPUs. Return: as above. */
static bool driver_memory_measure(uint64_t *ret, bool *ret_there)
{
	*ret = 0;
	*ret_there = false;
	if (driver_memory_places != server_places() && !driver_memory_find_gpus())
		return false;
	for (unsigned i = 0; i < driver_memory_gpu_count; i++)
		if (!driver_memory_add(driver_memory_gpus[i], ret, ret_there))
			return false;
	return true;
}

/* One that was granted twice counts once. */
static bool driver_memory_is_another(unsigned gpu)
{
	for (unsigned i = 0; i < gpu; i++)
		if (server.gpu[i] == server.gpu[gpu])
			return false;
	return true;
}

static bool driver_memory_find_gpus(void)
{
	const uint64_t places = server_places();

	driver_memory_gpu_count = 0;
	for (unsigned i = 0; i < server.start.gpu_count; i++)
		if (driver_memory_is_another(i) && overhead_find(server.names[server_find_name(server.granted[i])].bus,
								 &driver_memory_gpus[driver_memory_gpu_count++]) != 0)
			return false;
	driver_memory_places = places;
	return true;
}

/* It takes 16 ms, most of them waiting. */
static void *driver_memory_load(void *nothing)
{
	int (*init)(void) = NULL;

	driver_memory_nvml = driver_load_beside("libnvidia-ml.so.1");
	driver_memory_missing =
		driver_memory_nvml ? "NVML does not begin" : "there is no libnvidia-ml.so.1 beside libcuda.so.1";
	if (driver_memory_nvml)
		*(void **)&init = dlsym(driver_memory_nvml, "nvmlInit_v2");
	if (!init || init() != 0)
		driver_memory_nvml = NULL;
	return nothing;
}

void *driver_memory_library(void)
{
	static bool tried;

	if (!driver_memory_nvml && !driver_memory_loads && !tried)
		(void)driver_memory_load(NULL);
	tried = true;
	return driver_memory_nvml;
}

void driver_memory_begin(void)
{
	if (!quota_is_limited())
		return;
	driver_memory_loads = pthread_create(&driver_memory_loader, NULL, driver_memory_load, NULL) == 0;
	if (!driver_memory_loads)
		(void)driver_memory_load(NULL);
}

void driver_memory_open(void)
{
	bool there = true;
	uint64_t bytes;

	if (driver_memory_loads)
		(void)pthread_join(driver_memory_loader, NULL);
	if (!driver_memory_nvml)
		return;
	*(void **)&overhead_find = dlsym(driver_memory_nvml, "nvmlDeviceGetHandleByPciBusId_v2");
	*(void **)&overhead_ask = dlsym(driver_memory_nvml, "nvmlDeviceGetComputeRunningProcesses_v3");
	driver_memory_missing = "NVML does not say it of the GPU";
	if (!overhead_find || !overhead_ask || !driver_memory_find_gpus() || !driver_memory_measure(&bytes, &there)) {
		overhead_ask = NULL;
	} else if (there) {
		/* This process has no context yet, so what NVML lists under its number is another process. */
		driver_memory_missing = "NVML knows processes by numbers of another pid namespace";
		overhead_ask = NULL;
	}
}

bool driver_memory_is_known(void)
{
	if (!driver_memory_known && quota_is_limited())
		server_tell_once(START_EVENT_ESTIMATED, driver_memory_missing);
	return driver_memory_known;
}

/* ---- counting ---- */

void driver_memory_add_context(void)
{
	DRIVER_MEMORY_HOLD;
	driver_memory_begun = true;
}

/* What was asked for is looked at later, so that a pool that gives something back in between does not hide anything. */
static void driver_memory_recount(uint64_t has)
{
	uint64_t asked, surplus = 0;

	pool_settle();
	/* What this process gave others stands elsewhere, and is in its own. */
	asked = quota_counted() - quota_reserved() - driver_memory_surplus + share_held_given();
	if (has > asked && has - asked > quota_reserved())
		surplus = (has - asked - quota_reserved()) & ~(uint64_t)(DRIVER_MEMORY_PIECE - 1);
	if (surplus > driver_memory_surplus)
		quota_count(surplus - driver_memory_surplus);
	else
		quota_give(driver_memory_surplus - surplus);
	driver_memory_surplus = surplus;
}

bool driver_memory_count(void)
{
	DRIVER_MEMORY_HOLD;
	bool there = false;
	uint64_t has = 0;

	if (!quota_is_limited())
		return true;
	driver_memory_stirred = false;
	driver_memory_count_number++;
	driver_memory_little = 0;
	driver_memory_known = overhead_ask && driver_memory_measure(&has, &there);
	driver_memory_seen |= driver_memory_known && there;
	/* Before there is a context, none is counted: that says nothing of whether this one will be. */
	if (!driver_memory_seen && driver_memory_begun) {
		if (overhead_ask)
			driver_memory_missing = "NVML does not count this process";
		overhead_ask = NULL;
	}
	driver_memory_known &= driver_memory_seen;
	if (driver_memory_known)
		driver_memory_recount(has);
	return !quota_is_exceeded();
}

bool driver_memory_fits(void)
{
	DRIVER_MEMORY_HOLD;
	const bool fits = driver_memory_count();

	if (!fits)
		quota_tell(driver_memory_surplus);
	return fits;
}

uint32_t driver_memory_counts(void)
{
	return driver_memory_count_number;
}

void driver_memory_set_dirty(void)
{
	driver_memory_stirred = true;
}

void driver_memory_set_dirty_by(uint64_t bytes)
{
	driver_memory_little += bytes;
	if (driver_memory_little >= DRIVER_MEMORY_PAGE)
		driver_memory_set_dirty();
}

void driver_memory_settle(void)
{
	if (driver_memory_stirred && quota_is_limited())
		(void)driver_memory_count();
}

void driver_memory_note(enum quota_kind kind, uint64_t key, uint64_t most, uint64_t context)
{
	DRIVER_MEMORY_HOLD;
	const uint64_t bytes = driver_memory_surplus < most ? driver_memory_surplus : most;

	if (bytes > 0 && quota_note(kind, key, bytes, context))
		driver_memory_surplus -= bytes;
}

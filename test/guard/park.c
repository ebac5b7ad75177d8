/* SPDX-License-Identifier: Apache-2.0 */

/*
 * park [--more] [--file] KIND THREADS PROCESSES LUID -- HIDDEN: each process has so many threads that wait in the driver's copy of their arguments, for a page that
 * userfaultfd(2), or with --file a FUSE file system, keeps back, until all do; then each is given the hidden adapter's name. In all of them together hardly more
 * answers of it come back than there are processors, and who got one does not live. With --more
 * they may be more: where the kernel preempts itself, it may do so between the guard's look and the driver's copy. KIND is
 *
 *	statistics	the page with the beginning of the arguments is missing from the start, and the LUID is in the next one
 *	memory		the same with a handle in the next one, which is the chosen adapter's until all wait
 *	reuse		the page behind a handle is missing, and the handle is the hidden adapter's by the time that it comes
 *	handle		the page is taken away as often as possible, between the guard's look and the driver's copy
 */

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "dxg.h"
#include "late.h"

enum {
	PROCESSES_MAX = 64,
	TRIES_MS = 4000,  /* to take pages away from calls */
	PATIENCE_S = 600, /* of an emulator, on a machine with more to do */
	OFFSET_MEMORY = 8,
	OFFSET_LUID = 4,
	OFFSET_HANDLE = 8,
	HANDLES = 1200, /* more than the driver's table has at first */
};

static struct arguments arguments;
static struct shared {
	int answers[PROCESSES_MAX], parked[PROCESSES_MAX], refused[PROCESSES_MAX];
} * shared;

static int fd, number, threads, bus;
static uint32_t mine, foreign;
static volatile bool released;

static _Noreturn void give_up(const char *what)
{
	(void)dprintf(STDOUT_FILENO, "# %s: %s\n", what, strerror(errno));
	_exit(3);
}

/* The enumeration opens the hidden one as well, unless it is refused that: the next handles are candidates. */
static void find_handles(void)
{
	static D3DKMT_ADAPTERINFO infos[64];
	uint32_t count;

	if (dxg_open_luid(fd, arguments.seen[0], 0, &mine) < 0)
		give_up("opening the adapter that is seen");
	bus = dxg_bus(fd, mine);
	(void)dxg_enumerate3(fd, infos, 64, &count);
	for (uint32_t handle = mine + 0x40; !foreign; handle += 0x40) {
		uint32_t i = 0;

		while (i < count && infos[i].hAdapter != handle)
			i++;
		if (i == count || luid_is(&infos[i].AdapterLuid, &arguments.hidden[0]))
			foreign = handle;
	}
}

/* ---- kinds ---- */

static void prepare_statistics(int i)
{
	memcpy(late_get_page(i) + LATE_PAGE, &arguments.seen[0], sizeof(LUID));
}

static void exchange_statistics(int i)
{
	memcpy(late_get_page(i) + LATE_PAGE, &arguments.hidden[0], sizeof(LUID));
}

static bool call_statistics(int i)
{
	D3DKMT_QUERYSTATISTICS *call = (void *)(late_get_page(i) + LATE_PAGE - OFFSET_LUID);
	LUID luid;

	if (dxg_call(fd, LX_DXQUERYSTATISTICS, call) < 0)
		return false;
	memcpy(&luid, call->Result, sizeof(luid));
	return luid_is(&luid, &arguments.hidden[0]);
}

static void prepare_memory(int i)
{
	memcpy(late_get_page(i) + LATE_PAGE, &mine, sizeof(mine));
}

static void exchange_memory(int i)
{
	memcpy(late_get_page(i) + LATE_PAGE, &foreign, sizeof(foreign));
}

/* It succeeds with a handle of the process's. */
static bool call_memory(int i)
{
	return dxg_call(fd, LX_DXQUERYVIDEOMEMORYINFO, late_get_page(i) + LATE_PAGE - OFFSET_MEMORY) == 0 && released;
}

/* ---- a handle that means another adapter later ---- */

static ADAPTERADDRESS addresses[LATE_MAX];
static uint32_t reused;

/* One that was used before: its number will come again just so. */
static void find_used_handle(void)
{
	for (int i = 0; i < HANDLES && reused >> 31 == 0; i++) {
		if (reused)
			(void)dxg_call(fd, LX_DXCLOSEADAPTER, &reused);
		if (dxg_open_luid(fd, arguments.seen[0], 0, &reused) < 0)
			give_up("opening the adapter that is seen");
	}
}

static void prepare_reuse(int i)
{
	const D3DKMT_QUERYADAPTERINFO query = {
		.Type = QUERY_ADAPTERADDRESS,
		.pPrivateDriverData = (uintptr_t)&addresses[i],
		.PrivateDriverDataSize = sizeof(addresses[i]),
	};

	if (i == 0)
		find_used_handle();
	memcpy(late_get_page(i) - OFFSET_HANDLE, &query, OFFSET_HANDLE);
	memcpy(late_get_page(i) - OFFSET_HANDLE, &reused, sizeof(reused));
	memcpy(late_get_contents(i), (const char *)&query + OFFSET_HANDLE, sizeof(query) - OFFSET_HANDLE);
}

/* Lists open both adapters, one after the other; a handle of the hidden one nobody can close. */
static void exchange_reuse(int thread)
{
	static D3DKMT_ADAPTERINFO infos[64];
	uint32_t count;

	if (thread > 0)
		return;
	(void)dxg_call(fd, LX_DXCLOSEADAPTER, &reused);
	for (int i = 0; i < HANDLES; i++) {
		(void)dxg_enumerate3(fd, infos, 64, &count);
		for (uint32_t j = 0; j < count && j < 64; j++) {
			bool seen = luid_is(&infos[j].AdapterLuid, &arguments.seen[0]);

			if (seen && infos[j].hAdapter == reused)
				(void)dxg_open_luid(fd, arguments.seen[0], 0, &count);
			if (seen)
				(void)dxg_call(fd, LX_DXCLOSEADAPTER, &infos[j].hAdapter);
		}
	}
}

static bool call_reuse(int i)
{
	return dxg_call(fd, LX_DXQUERYADAPTERINFO, late_get_page(i) - OFFSET_HANDLE) == 0 &&
	       addresses[i].BusNumber != 0 && (int)addresses[i].BusNumber != bus;
}

/* ---- a page that is taken away ---- */

static void set_handle(int i, uint32_t handle)
{
	const D3DKMT_QUERYADAPTERINFO query = {
		.hAdapter = handle,
		.Type = QUERY_ADAPTERADDRESS,
		.pPrivateDriverData = (uintptr_t)&addresses[i],
		.PrivateDriverDataSize = sizeof(addresses[i]),
	};

	memcpy(late_get_contents(i), &query, sizeof(query));
}

static void prepare_handle(int i)
{
	set_handle(i, mine);
}

static void exchange_handle(int i)
{
	set_handle(i, foreign);
}

static bool call_handle(int i)
{
	bool found = false;

	while (!late_is_awaited(i) && !released && !found) {
		addresses[i] = (ADAPTERADDRESS){0};
		late_bring(i);
		found = dxg_call(fd, LX_DXQUERYADAPTERINFO, late_get_page(i)) == 0 && addresses[i].BusNumber != 0 &&
			(int)addresses[i].BusNumber != bus;
	}
	return found;
}

static const struct kind {
	const char *name;
	void (*prepare)(int thread), (*exchange)(int thread);
	bool (*call)(int thread);
	bool takes_away;
} kinds[] = {
	{"statistics", prepare_statistics, exchange_statistics, call_statistics, false},
	{"memory", prepare_memory, exchange_memory, call_memory, false},
	{"reuse", prepare_reuse, exchange_reuse, call_reuse, false},
	{"handle", prepare_handle, exchange_handle, call_handle, true},
};
static const struct kind *kind;
static bool more, by_file;

static void *thread_run(void *thread)
{
	int i = (int)(intptr_t)thread;

	if (kind->call(i))
		(void)__atomic_fetch_add(&shared->answers[number], 1, __ATOMIC_SEQ_CST);
	else
		(void)__atomic_fetch_add(&shared->refused[number], 1, __ATOMIC_SEQ_CST);
	return NULL;
}

static long now_ms(void)
{
	struct timespec time;

	(void)clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

static int count_waiting(void)
{
	int count = 0;

	for (int i = 0; i < threads; i++)
		count += late_is_awaited(i);
	return count;
}

static bool is_over(long end)
{
	return shared->parked[number] + shared->refused[number] + shared->answers[number] >= threads ||
	       (kind->takes_away && now_ms() > end);
}

static void await_all(void)
{
	long end = now_ms() + TRIES_MS;
	int next = 0;

	do {
		if (kind->takes_away) {
			next = (next + 1) % threads;
			if (!late_is_awaited(next))
				late_take(next);
		} else {
			(void)usleep(1000);
		}
		shared->parked[number] = count_waiting();
	} while (!is_over(end));
}

static void child(void)
{
	pthread_t ids[LATE_MAX];

	(void)alarm(PATIENCE_S);
	fd = dxg_open();
	find_handles();
	late_new(threads, by_file);
	for (int i = 0; i < threads; i++) {
		kind->prepare(i);
		if (pthread_create(&ids[i], NULL, thread_run, (void *)(intptr_t)i) != 0)
			give_up("a thread");
	}
	await_all();
	released = true;
	for (int i = 0; i < threads; i++)
		kind->exchange(i);
	for (int i = 0; i < threads; i++)
		late_bring(i);
	for (int i = 0; i < threads; i++)
		(void)pthread_join(ids[i], NULL);
	_exit(0);
}

static void sum_up(int processes, const pid_t *pids)
{
	int processors = (int)sysconf(_SC_NPROCESSORS_ONLN), answers = 0, parked = 0, killed = 0, lived = 0, odd = 0;

	for (int i = 0; i < processes; i++) {
		int status = 0;

		(void)waitpid(pids[i], &status, 0);
		killed += WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
		odd += WIFSIGNALED(status) ? WTERMSIG(status) != SIGKILL : WEXITSTATUS(status) != 0;
		answers += shared->answers[i];
		parked += shared->parked[i];
		lived += shared->answers[i] > 0 && !WIFSIGNALED(status);
	}
	(void)printf("# %s: %d threads waited, %d answers, %d of %d processes killed\n", kind->name, parked, answers,
		     killed, processes);
	tap(odd == 0, "threads that wait, %s: %d processes ended in another way", kind->name, odd);
	tap(answers <= 2 * processors || more, "threads that wait, %s: hardly more answers than processors, not %d",
	    kind->name, answers);
	tap(lived == 0, "threads that wait, %s: %d lived on with an answer", kind->name, lived);
}

int main(int argc, char **argv)
{
	pid_t pids[PROCESSES_MAX];
	int processes;

	for (; argc > 1 && strncmp(argv[1], "--", 2) == 0; argc--, argv++) {
		more |= strcmp(argv[1], "--more") == 0;
		by_file |= strcmp(argv[1], "--file") == 0;
	}
	if (argc < 7)
		return 2;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (strcmp(argv[1], kinds[i].name) == 0)
			kind = &kinds[i];
	threads = (int)strtol(argv[2], NULL, 10);
	processes = (int)strtol(argv[3], NULL, 10);
	arguments_read(argc, argv, 4, &arguments);
	if (!kind || threads < 1 || threads > LATE_MAX || processes < 1 || processes > PROCESSES_MAX ||
	    arguments.seen_count != 1 || arguments.hidden_count != 1)
		return 2;
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		return 2;
	for (number = 0; number < processes; number++) {
		pids[number] = fork();
		if (pids[number] == 0)
			child();
	}
	sum_up(processes, pids);
	return tap_status();
}

/* SPDX-License-Identifier: Apache-2.0 */

/*
 * newcomer [--pry] ROUNDS LUID -- HIDDEN: on each processor so many threads, one after another, make their first call, and an enumeration, just when
 * others of that processor were interrupted in theirs, where they stay until this one has ended. It is not refused, and sees no more than
 * it may. Who is refused asks again at once: for how long is printed.
 * With --pry these are processes that name the hidden adapter in memory that nobody can write: each is refused as for an unknown one, and lives.
 */

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "dxg.h"

enum { PATIENCE = 2000 };

static struct arguments arguments;
static int fd, refused, reached, shown;
static double longest;

static double now(void)
{
	struct timespec time;

	(void)clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec * 1e3 + (double)time.tv_nsec / 1e6;
}

static void stay_on(long processor)
{
	cpu_set_t processors;

	CPU_ZERO(&processors);
	CPU_SET((size_t)processor, &processors);
	if (sched_setaffinity(0, sizeof(processors), &processors) < 0)
		exit(5);
}

/* Of what else the machine has to do, nothing comes before this thread, and before a more urgent one none of the others. */
static void be_urgent(int urgency)
{
	const struct sched_param parameters = {.sched_priority = urgency};

	if (sched_setscheduler(0, SCHED_FIFO, &parameters) < 0)
		exit(5);
}

/* Most of such a call is the guard's. */
static void *starve(void *processor)
{
	const uint32_t unknown = 0x7fff00;

	stay_on((long)processor);
	be_urgent(1);
	for (;;) {
		uint32_t handle = unknown;

		(void)dxg_call(fd, LX_DXCLOSEADAPTER, &handle);
	}
	return NULL;
}

/* In a process of their own, which ends with this one. */
static pid_t start_starved(long processors)
{
	pid_t pid = fork();
	pthread_t thread;

	if (pid != 0)
		return pid;
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	fd = dxg_open();
	for (long i = 0; i < processors; i++)
		if (pthread_create(&thread, NULL, starve, (void *)i) != 0)
			exit(5);
	for (;;)
		(void)pause();
}

static void look(void)
{
	D3DKMT_ADAPTERINFO infos[64];
	uint32_t count = 0;

	shown += dxg_enumerate3(fd, infos, 64, &count) < 0 || count != 1 ||
		 !luid_is(&infos[0].AdapterLuid, &arguments.seen[0]);
	for (uint32_t i = 0; i < count; i++)
		(void)dxg_call(fd, LX_DXCLOSEADAPTER, &infos[i].hAdapter);
}

static void *come(void *unused)
{
	double begun = now(), waited = 0;
	uint32_t handle;

	while (dxg_open_luid(fd, arguments.seen[0], 0, &handle) < 0 && waited < (double)PATIENCE)
		waited = now() - begun;
	refused += waited > 0;
	if (waited < (double)PATIENCE)
		(void)dxg_call(fd, LX_DXCLOSEADAPTER, &handle);
	longest = waited > longest ? waited : longest;
	look();
	return unused;
}

static int pry(void)
{
	D3DKMT_OPENADAPTERFROMLUID *open = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (open == MAP_FAILED)
		return 2;
	open->AdapterLuid = arguments.hidden[0];
	if (mprotect(open, 4096, PROT_READ) < 0)
		return 2;
	return dxg_call(dxg_open(), LX_DXOPENADAPTERFROMLUID, open) == -EINVAL ? 0 : 1;
}

static bool try_prying(void)
{
	pid_t pid = fork();
	int status;

	if (pid == 0)
		_exit(pry());
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return false;
	reached += status != 0;
	return true;
}

static bool try_coming(void)
{
	pthread_t thread;

	return pthread_create(&thread, NULL, come, NULL) == 0 && pthread_join(thread, NULL) == 0;
}

int main(int argc, char **argv)
{
	bool prying = argc > 1 && strcmp(argv[1], "--pry") == 0;
	long rounds = argc > 2 ? strtol(argv[1 + prying], NULL, 10) : 0, processors = sysconf(_SC_NPROCESSORS_ONLN);
	long calls = rounds * processors;
	pid_t starved;

	arguments_read(argc, argv, 2 + prying, &arguments);
	if (rounds < 1 || arguments.seen_count != 1 || arguments.hidden_count != 1)
		return 2;
	starved = start_starved(processors);
	fd = dxg_open();
	be_urgent(2);
	for (long i = 0; i < calls; i++) {
		stay_on(i % processors);
		(void)usleep((useconds_t)(500 + rand() % 3000));
		if (!(prying ? try_prying() : try_coming()))
			return 3;
	}
	(void)printf("# newcomers: %ld, refused at first: %d, the longest for %.1f ms\n", calls, refused, longest);
	tap(waitpid(starved, NULL, WNOHANG) == 0, "newcomer: others are in calls all the time");
	tap(refused == 0, "newcomer: %d of %ld first calls are refused", refused, calls);
	tap(shown == 0, "newcomer: %d of %ld enumerations show something else than they should", shown, calls);
	tap(reached == 0, "newcomer: %d of %ld calls reach the hidden adapter", reached, calls);
	(void)kill(starved, SIGKILL);
	return tap_status();
}

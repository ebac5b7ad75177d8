/* SPDX-License-Identifier: Apache-2.0 */

/*
 * newcomer ROUNDS LUID: on each processor so many threads, one after another, make their first call just when others of that processor, which
 * get time when nobody else wants it, were interrupted in theirs. None of them is refused. Who is refused asks again at once: for how long is
 * printed.
 */

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "dxg.h"

enum { STARVED = 3, PATIENCE = 5000 };

static struct arguments arguments;
static int fd, refused;
static uint32_t honest;
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

static void *starve(void *processor)
{
	const struct sched_param parameters = {0};

	stay_on((long)processor);
	(void)dxg_bus(fd, honest);
	if (sched_setscheduler(0, SCHED_IDLE, &parameters) < 0)
		exit(5);
	for (;;)
		(void)dxg_bus(fd, honest);
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
	if (dxg_open_luid(fd, arguments.seen[0], 0, &honest) < 0)
		exit(3);
	for (long i = 0; i < processors * STARVED; i++)
		if (pthread_create(&thread, NULL, starve, (void *)(i % processors)) != 0)
			exit(5);
	for (;;)
		(void)pause();
}

static void *come(void *unused)
{
	double begun = now(), waited = 0;
	uint32_t handle;

	while (dxg_open_luid(fd, arguments.seen[0], 0, &handle) < 0 && waited < PATIENCE)
		waited = now() - begun;
	if (waited > 0)
		refused++;
	else
		(void)dxg_call(fd, LX_DXCLOSEADAPTER, &handle);
	longest = waited > longest ? waited : longest;
	return unused;
}

int main(int argc, char **argv)
{
	long rounds = argc > 2 ? strtol(argv[1], NULL, 10) : 0, processors = sysconf(_SC_NPROCESSORS_ONLN);
	pthread_t thread;
	pid_t starved;

	arguments_read(argc, argv, 2, &arguments);
	if (rounds < 1 || arguments.seen_count != 1)
		return 2;
	starved = start_starved(processors);
	fd = dxg_open();
	for (long i = 0; i < rounds * processors; i++) {
		stay_on(i % processors);
		(void)usleep((useconds_t)(500 + rand() % 3000));
		if (pthread_create(&thread, NULL, come, NULL) != 0 || pthread_join(thread, NULL) != 0)
			return 3;
	}
	(void)printf("# newcomers: %ld, refused at first: %d, the longest for %.1f ms\n", rounds * processors, refused,
		     longest);
	tap(waitpid(starved, NULL, WNOHANG) == 0, "newcomer: others are in calls all the time");
	tap(refused == 0, "newcomer: %d of %ld first calls are refused", refused, rounds * processors);
	(void)kill(starved, SIGKILL);
	return tap_status();
}

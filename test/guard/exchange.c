/* SPDX-License-Identifier: Apache-2.0 */

/*
 * exchange [--more] KIND ROUNDS LUID -- HIDDEN: so many lists of adapters are asked for while another thread exchanges where the list shall be, so that the
 * guard may clean another one than the driver writes. Hardly one tells of the hidden adapter, and who is told does not live; with --more
 * some do, where the kernel preempts itself and lists are not compared. KIND is
 * "list", the one place for the other; "room", where the first is too small besides; "none", where the first is no list.
 */

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "dxg.h"

enum { ROOM = 64 };

static struct arguments arguments;
static D3DKMT_ADAPTERINFO first[ROOM], second[ROOM];
static volatile D3DKMT_ENUMADAPTERS3 call = {.Filter = FILTER_INCLUDE_COMPUTE_ONLY};
static volatile bool begun, done;
static uint64_t places[2];
static uint32_t rooms[2] = {ROOM, ROOM};

static void set(int which)
{
	call.pAdapters = places[which];
	call.NumAdapters = rooms[which];
	/* In an emulator a short loop is one step: nobody would see the words in between. */
	for (volatile int i = 0; i < 100 + rand() % 100; i++)
		;
}

static void *flip(void *unused)
{
	(void)unused;
	while (!done) {
		set(0);
		set(1);
		begun = true;
	}
	return NULL;
}

static bool is_told(const D3DKMT_ADAPTERINFO *list)
{
	for (int i = 0; i < ROOM; i++)
		if (luid_is(&list[i].AdapterLuid, &arguments.hidden[0]))
			return true;
	return false;
}

static void child(long rounds, int *told)
{
	pthread_t thread;
	int fd = dxg_open();

	(void)alarm(600);
	if (pthread_create(&thread, NULL, flip, NULL) != 0)
		_exit(3);
	while (!begun)
		(void)usleep(1000);
	for (long i = 0; i < rounds; i++) {
		memset(first, 0, sizeof(first));
		memset(second, 0, sizeof(second));
		(void)dxg_call(fd, LX_DXENUMADAPTERS3, (void *)&call);
		*told += is_told(first) || is_told(second);
	}
	done = true;
	(void)pthread_join(thread, NULL);
	_exit(0);
}

int main(int argc, char **argv)
{
	int status = 0, *told = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	/* An exchange that the guard does not see is rare; without it as many are told as are asked for. */
	const int most = 2 * (int)sysconf(_SC_NPROCESSORS_ONLN);
	const bool more = argc > 1 && strcmp(argv[1], "--more") == 0;
	pid_t pid;

	argc -= more;
	argv += more;
	if (argc < 6 || told == MAP_FAILED)
		return 2;
	arguments_read(argc, argv, 3, &arguments);
	places[0] = strcmp(argv[1], "none") == 0 ? 0 : (uintptr_t)first;
	places[1] = (uintptr_t)second;
	rooms[0] = strcmp(argv[1], "none") == 0 ? 0 : strcmp(argv[1], "room") == 0 ? 1 : ROOM;
	pid = fork();
	if (pid == 0)
		child(strtol(argv[2], NULL, 10), told);
	(void)waitpid(pid, &status, 0);
	(void)printf("# %s: %d lists told of the hidden adapter, wait status 0x%x\n", argv[1], *told, (unsigned)status);
	tap(*told <= most || more, "exchanged lists, %s: hardly one tells of the hidden adapter, not %d", argv[1],
	    *told);
	/* On an emulated machine the guard does not see the exchange in some runs, and then nothing is told. */
	tap((WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) || (status == 0 && (*told == 0 || more)),
	    "exchanged lists, %s: who is told of it is killed", argv[1]);
	return tap_status();
}

/* SPDX-License-Identifier: Apache-2.0 */

/*
 * race [--more] [--landlocked] [--starved] KIND PROCESSES [--int80] LUID -- HIDDEN: each process has a thread that changes what names the adapter while another one
 * makes the call, 200 times, and a third is in honest calls all the time. KIND is handle, luid or statistics. Nobody gets more than one answer of the hidden adapter, and who
 * got one does not live.
 * With --landlocked each process has a thread that has forbidden itself calls of devices, and has tried one: the kernel refuses it behind
 * the guard's look.
 * With --more, one may get several: where the kernel preempts itself, it at times skips a BPF program that another task is in.
 * With --starved each process has threads that are in calls as well and get time when nobody else wants it, so that they stay in the
 * guard's programs, on the processor of the thread that races.
 */

#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "dxg.h"

enum {
	ROUNDS = 200,
	PROCESSES_MAX = 64,
	STARVED = 3,
	PATIENCE_S = 600, /* of an emulator, on a machine with more to do */
};

static struct arguments arguments;
static int *answers; /* of each process, of the hidden adapter; shared by all */

/* What the call is given, and the two values of the word that changes: of a LUID whichever differs. */
static struct {
	D3DKMT_QUERYADAPTERINFO query;
	D3DKMT_OPENADAPTERFROMLUID open;
	D3DKMT_QUERYSTATISTICS statistics;
	ADAPTERADDRESS address;
} call;
static volatile uint32_t *word;
static uint32_t mine, foreign, honest;
static volatile bool begun, done;
static int bus;
static bool more, landlocked, starved;

/* In an emulator a short loop is one step: nobody would see the word in between. */
static void hold(uint32_t value)
{
	*word = value;
	for (volatile int i = 0; i < 100 + rand() % 100; i++)
		;
}

/* Who is killed in the middle of one of these leaves a packet behind. */
static void *call_honestly(void *fd)
{
	ADAPTERADDRESS address;
	D3DKMT_QUERYADAPTERINFO query = {
		.hAdapter = honest,
		.Type = QUERY_ADAPTERADDRESS,
		.pPrivateDriverData = (uintptr_t)&address,
		.PrivateDriverDataSize = sizeof(address),
	};

	while (!done)
		(void)ioctl(*(int *)fd, LX_DXQUERYADAPTERINFO, &query);
	return NULL;
}

/* What has to work before there is a race does not. */
static _Noreturn void give_up(const char *what)
{
	(void)dprintf(STDOUT_FILENO, "# %s: %s\n", what, strerror(errno));
	exit(3);
}

static void open_seen(int fd, uint32_t *ret)
{
	if (dxg_open_luid(fd, arguments.seen[0], 0, ret) < 0)
		give_up("opening the adapter that is seen");
}

static void *call_starved(void *fd)
{
	const struct sched_param parameters = {0};

	if (sched_setscheduler(0, SCHED_IDLE, &parameters) < 0)
		exit(5);
	return call_honestly(fd);
}

/* The threads that there will be inherit the processor. */
static void starve(int number, int *fd, pthread_t threads[STARVED])
{
	cpu_set_t processors;

	CPU_ZERO(&processors);
	CPU_SET((size_t)number % (size_t)sysconf(_SC_NPROCESSORS_ONLN), &processors);
	if (sched_setaffinity(0, sizeof(processors), &processors) < 0)
		exit(5);
	for (int i = 0; i < STARVED; i++)
		if (pthread_create(&threads[i], NULL, call_starved, fd) != 0)
			give_up("a starved thread");
}

/* LANDLOCK_ACCESS_FS_IOCTL_DEV of Linux 6.10: it holds for files that are opened from then on. */
static void *forbid_itself(void *refused)
{
	const struct landlock_ruleset_attr rules = {.handled_access_fs = 1ULL << 15};
	int set = (int)syscall(SYS_landlock_create_ruleset, &rules, sizeof(rules), 0), fd;
	D3DKMT_QUERYADAPTERINFO query = {.hAdapter = honest};

	if (set < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || syscall(SYS_landlock_restrict_self, set, 0) < 0)
		return NULL;
	fd = open("/dev/dxg", O_RDONLY | O_CLOEXEC);
	*(bool *)refused = fd >= 0 && ioctl(fd, LX_DXQUERYADAPTERINFO, &query) < 0 && errno == EACCES;
	while (!done)
		usleep(10000);
	return NULL;
}

static void *flip(void *unused)
{
	(void)unused;
	while (!done) {
		hold(mine);
		hold(foreign);
		begun = true;
	}
	return NULL;
}

static void choose_words(volatile LUID *luid)
{
	const LUID *seen = &arguments.seen[0], *hidden = &arguments.hidden[0];
	bool low = seen->LowPart != hidden->LowPart;

	luid->LowPart = seen->LowPart;
	luid->HighPart = seen->HighPart;
	word = low ? &luid->LowPart : (volatile uint32_t *)&luid->HighPart;
	mine = low ? seen->LowPart : (uint32_t)seen->HighPart;
	foreign = low ? hidden->LowPart : (uint32_t)hidden->HighPart;
}

static void prepare_handle(int fd)
{
	static D3DKMT_ADAPTERINFO infos[64];
	uint32_t count, handle;

	open_seen(fd, &mine);
	bus = dxg_bus(fd, mine);
	/* The enumeration opens the hidden one as well, unless it is refused that: the next handles are candidates. */
	(void)dxg_enumerate3(fd, infos, 64, &count);
	for (handle = mine + 0x40; !foreign; handle += 0x40) {
		uint32_t i = 0;

		while (i < count && infos[i].hAdapter != handle)
			i++;
		if (i == count || luid_is(&infos[i].AdapterLuid, &arguments.hidden[0]))
			foreign = handle;
	}
	word = &call.query.hAdapter;
	call.query.Type = QUERY_ADAPTERADDRESS;
	call.query.pPrivateDriverData = (uintptr_t)&call.address;
	call.query.PrivateDriverDataSize = sizeof(call.address);
}

static void prepare_luid(int fd)
{
	uint32_t handle;

	open_seen(fd, &handle);
	bus = dxg_bus(fd, handle);
	choose_words(&call.open.AdapterLuid);
}

static void prepare_statistics(int fd)
{
	(void)fd;
	choose_words(&call.statistics.AdapterLuid);
}

/* Return: whether the hidden adapter answered. */
static bool once_handle(int fd)
{
	call.address = (ADAPTERADDRESS){0};
	return dxg_call(fd, LX_DXQUERYADAPTERINFO, &call.query) == 0 && call.address.BusNumber != 0 &&
	       (int)call.address.BusNumber != bus;
}

static bool once_luid(int fd)
{
	int found;

	call.open.hAdapter = 0;
	if (dxg_call(fd, LX_DXOPENADAPTERFROMLUID, &call.open) < 0)
		return false;
	found = dxg_bus(fd, call.open.hAdapter);
	(void)dxg_call(fd, LX_DXCLOSEADAPTER, &call.open.hAdapter);
	return found > 0 && found != bus;
}

static bool once_statistics(int fd)
{
	LUID luid;

	memset(call.statistics.Result, 0, sizeof(call.statistics.Result));
	if (dxg_call(fd, LX_DXQUERYSTATISTICS, &call.statistics) < 0)
		return false;
	memcpy(&luid, call.statistics.Result, sizeof(luid));
	return luid_is(&luid, &arguments.hidden[0]);
}

static const struct kind {
	const char *name;
	void (*prepare)(int fd);
	bool (*once)(int fd);
} kinds[] = {
	{"handle", prepare_handle, once_handle},
	{"luid", prepare_luid, once_luid},
	{"statistics", prepare_statistics, once_statistics},
};

static void child(const struct kind *kind, int number)
{
	pthread_t flipping, calling, starving[STARVED];
	int fd = dxg_open();

	(void)alarm(PATIENCE_S);
	kind->prepare(fd);
	open_seen(fd, &honest);
	if (pthread_create(&flipping, NULL, flip, NULL) != 0 || pthread_create(&calling, NULL, call_honestly, &fd) != 0)
		give_up("a thread");
	if (landlocked) {
		static volatile bool refused;
		pthread_t forbidden;

		if (pthread_create(&forbidden, NULL, forbid_itself, (void *)&refused) != 0)
			give_up("a thread");
		for (int i = 0; i < PATIENCE_S * 100 && !refused; i++)
			usleep(10000);
		if (!refused)
			exit(4);
	}
	if (starved)
		starve(number, &fd, starving);
	while (!begun)
		usleep(1000);
	for (int i = 0; i < ROUNDS; i++)
		if (kind->once(fd))
			answers[number]++;
	done = true;
	(void)pthread_join(flipping, NULL);
	(void)pthread_join(calling, NULL);
	for (int i = 0; starved && i < STARVED; i++)
		(void)pthread_join(starving[i], NULL);
	_exit(0);
}

static void sum_up(const struct kind *kind, int processes, const pid_t *pids)
{
	int processors = (int)sysconf(_SC_NPROCESSORS_ONLN);
	int killed = 0, lived_with_one = 0, with_one = 0, most = 0, odd = 0;

	for (int i = 0; i < processes; i++) {
		int status = 0;

		(void)waitpid(pids[i], &status, 0);
		killed += WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
		if (WIFSIGNALED(status) ? WTERMSIG(status) != SIGKILL : WEXITSTATUS(status) != 0) {
			(void)printf("# wait status 0x%x\n", (unsigned)status);
			odd++;
		}
		with_one += answers[i] > 0;
		lived_with_one += answers[i] > 0 && !WIFSIGNALED(status);
		most = answers[i] > most ? answers[i] : most;
	}
	(void)printf("# %s: %d of %d processes killed, %d had answers, at most %d each\n", kind->name, killed,
		     processes, with_one, most);
	tap(odd == 0, "race for the %s: %d processes ended in another way", kind->name, odd);
	tap(most <= 1 || more, "race for the %s: at most one answer of the hidden adapter, not %d", kind->name, most);
	tap(with_one <= 2 * processors || more, "race for the %s: hardly more answers than processors, not %d",
	    kind->name, with_one);
	tap(lived_with_one == 0, "race for the %s: %d of %d lived on with an answer", kind->name, lived_with_one,
	    processes);
}

int main(int argc, char **argv)
{
	const struct kind *kind = NULL;
	pid_t pids[PROCESSES_MAX];
	int processes;

	for (; argc > 1 && strncmp(argv[1], "--", 2) == 0; argc--, argv++) {
		more |= strcmp(argv[1], "--more") == 0;
		landlocked |= strcmp(argv[1], "--landlocked") == 0;
		starved |= strcmp(argv[1], "--starved") == 0;
	}
	if (argc < 6)
		return 2;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (strcmp(argv[1], kinds[i].name) == 0)
			kind = &kinds[i];
	processes = (int)strtol(argv[2], NULL, 10);
	arguments_read(argc, argv, 3, &arguments);
	if (!kind || processes < 1 || processes > PROCESSES_MAX || arguments.seen_count != 1 ||
	    arguments.hidden_count != 1)
		return 2;
	answers = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (answers == MAP_FAILED)
		return 2;
	for (int i = 0; i < processes; i++) {
		pids[i] = fork();
		if (pids[i] == 0)
			child(kind, i);
	}
	sum_up(kind, processes, pids);
	return tap_status();
}

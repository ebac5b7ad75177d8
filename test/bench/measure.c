/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Times programs that configure a container, in alternation, so that what else happens on the machine happens to all of
 * them: A B A B… Each gets a container of its own each time, made before the clock starts; the clock runs from before the
 * process is made until it has ended. Programs get an OCI state on their standard input, as a hook does, and may have
 * {pid}, {rootfs} and {cgroup} (version 1: its devices.allow; version 2: its directory) among their arguments.
 *
 *	measure -r ROUNDS -d DIRECTORY -c CONFIG [-e PATH]… [-b] [-x] [-k SCRIPT] -- CASE [-- CASE]…
 *
 * With -x the caches of files are dropped before each run. With -b the programs are runtimes: there is only a bundle, {bundle}, for a container to be called {id}. After the clock has
 * stopped, a shell runs SCRIPT with that name as its first argument.
 *
 * CASE is "AT-ONCE IMAGE[:CONFIG] PROGRAM [ARGUMENT…]": so many processes at once, each in a container of its own. PATHs must
 * be in the container afterwards. Prints for every case, separated by tabs: the median and the median absolute deviation of
 * the time one process takes of one processor, the least of them (all in microseconds), the most memory in KiB that
 * the program or a child of it had; the median of what it took more than the case before it, in microseconds, each round
 * compared with itself: what the machine did in a round it did to both; the fewest page faults that no disk was read for,
 * of the program and its children; the median of the processor time of these, in microseconds; the standard error of the
 * fifth; and the fifth and its error of processor time. A busy machine, on which everybody waits, changes faults and
 * processor time little.
 */

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "target.h"

enum { CASES_MAX = 8, AT_ONCE_MAX = 256, EXPECTED_MAX = 8, ARGUMENTS_MAX = 512, STATE_MAX = 4096, WARM_UP_ROUNDS = 3 };

struct bench_case {
	unsigned at_once;
	const char *image, *config;
	char **argv; /* with placeholders */
	double *times, *used;
	struct more {
		double middle, error;
	} more, more_used; /* than the case before */
	long memory, faults;
};

struct bench {
	unsigned rounds;
	const char *directory, *config, *cleanup;
	bool only_bundle, cold;
	const char *expected[EXPECTED_MAX];
	size_t expected_count;
	struct bench_case cases[CASES_MAX];
	size_t case_count;
	unsigned next_target;
};

/* A process that is to be started: everything it needs is made before the clock runs. */
struct start {
	struct target target;
	char rootfs[TARGET_PATH_MAX + 8], cgroup[TARGET_PATH_MAX + 16], pid[16], id[32];
	char *argv[ARGUMENTS_MAX + 1];
	int state;
	pid_t process;
};

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec * 1e6 + (double)time.tv_nsec / 1e3;
}

static unsigned processors(void)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof(set), &set) == 0 ? (unsigned)CPU_COUNT(&set) : 1;
}

static char *fill_in(struct start *start, char *argument)
{
	if (strcmp(argument, "{pid}") == 0)
		return start->pid;
	if (strcmp(argument, "{rootfs}") == 0)
		return start->rootfs;
	if (strcmp(argument, "{cgroup}") == 0)
		return start->cgroup;
	if (strcmp(argument, "{bundle}") == 0)
		return start->target.bundle;
	if (strcmp(argument, "{id}") == 0)
		return start->id;
	return argument;
}

/* The state fits into the pipe, so nobody needs to write while the process runs. */
static int make_state(const struct target *target)
{
	char text[STATE_MAX];
	int ends[2], length;

	length = snprintf(
		text, sizeof(text),
		"{\"ociVersion\":\"1.0.2\",\"id\":\"bench\",\"status\":\"creating\",\"pid\":%d,\"bundle\":\"%s\"}",
		target->pid, target->bundle);
	if (length >= (int)sizeof(text) || pipe2(ends, O_CLOEXEC) < 0 || write(ends[1], text, (size_t)length) != length)
		err(1, "state");
	close(ends[1]);
	return ends[0];
}

static void prepare(struct bench *bench, const struct bench_case *bench_case, struct start *start)
{
	size_t i;

	(bench->only_bundle ? target_prepare : target_start)(bench->directory, bench->next_target, bench_case->image,
							     bench_case->config, &start->target);
	snprintf(start->id, sizeof(start->id), "bench-%u", bench->next_target++);
	snprintf(start->pid, sizeof(start->pid), "%d", start->target.pid);
	snprintf(start->rootfs, sizeof(start->rootfs), "%s/rootfs", start->target.bundle);
	snprintf(start->cgroup, sizeof(start->cgroup), "%s/devices.allow", start->target.cgroup);
	if (access(start->cgroup, F_OK) < 0)
		snprintf(start->cgroup, sizeof(start->cgroup), "%s", start->target.cgroup);
	for (i = 0; i < ARGUMENTS_MAX && bench_case->argv[i]; i++)
		start->argv[i] = fill_in(start, bench_case->argv[i]);
	start->argv[i] = NULL;
	start->state = make_state(&start->target);
}

/* Before each run: pages of files, names and inodes (Documentation/admin-guide/sysctl/vm.rst). */
static void drop_caches(void)
{
	int fd = open("/proc/sys/vm/drop_caches", O_WRONLY | O_CLOEXEC);

	sync();
	if (fd < 0 || write(fd, "3", 1) != 1)
		err(1, "/proc/sys/vm/drop_caches");
	close(fd);
}

static void launch(struct start *start)
{
	start->process = vfork();
	if (start->process == 0) {
		dup2(start->state, STDIN_FILENO);
		execv(start->argv[0], start->argv);
		_exit(127);
	}
	if (start->process < 0)
		err(1, "vfork");
}

static double microseconds(struct timeval time)
{
	return (double)time.tv_sec * 1e6 + (double)time.tv_usec;
}

/* Return: the processor time that it took, its children's too. */
static double await(const struct start *start, struct bench_case *bench_case)
{
	struct rusage usage;
	int status;

	if (wait4(start->process, &status, 0, &usage) < 0)
		err(1, "wait4");
	if (status != 0)
		errx(1, "%s: status %#x", start->argv[0], status);
	if (usage.ru_maxrss > bench_case->memory)
		bench_case->memory = usage.ru_maxrss;
	if (!bench_case->faults || usage.ru_minflt < bench_case->faults)
		bench_case->faults = usage.ru_minflt;
	return microseconds(usage.ru_utime) + microseconds(usage.ru_stime);
}

static void check_result(const struct bench *bench, const struct start *start)
{
	char path[3 * TARGET_PATH_MAX];
	struct stat st;

	for (size_t i = 0; i < bench->expected_count; i++) {
		snprintf(path, sizeof(path), "/proc/%d/root%s%s", start->target.pid ? start->target.pid : getpid(),
			 start->rootfs, bench->expected[i]);
		if (stat(path, &st) < 0)
			err(1, "%s did not bring %s", start->argv[0], bench->expected[i]);
	}
}

static void clean_up(const struct bench *bench, const struct start *start)
{
	pid_t pid = bench->cleanup ? vfork() : -1;

	if (pid == 0) {
		execl("/bin/sh", "sh", "-c", bench->cleanup, "sh", start->id, (char *)NULL);
		_exit(127);
	}
	if (pid > 0)
		waitpid(pid, NULL, 0);
}

/* Return: what one process took of one processor, waiting included. */
static double run_once(struct bench *bench, struct bench_case *bench_case, double *ret_used)
{
	static struct start starts[AT_ONCE_MAX];
	unsigned count = bench_case->at_once, share = count < processors() ? count : processors();
	double begin, end, used = 0;

	for (unsigned i = 0; i < count; i++)
		prepare(bench, bench_case, &starts[i]);
	if (bench->cold)
		drop_caches();
	begin = now();
	for (unsigned i = 0; i < count; i++)
		launch(&starts[i]);
	for (unsigned i = 0; i < count; i++)
		used += await(&starts[i], bench_case);
	end = now();
	for (unsigned i = 0; i < count; i++) {
		check_result(bench, &starts[i]);
		clean_up(bench, &starts[i]);
		close(starts[i].state);
		target_stop(&starts[i].target);
	}
	*ret_used = used / count;
	return (end - begin) * share / count;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *values, unsigned count)
{
	qsort(values, count, sizeof(*values), compare);
	return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

/* Turns values into what each is away from the middle, and returns the median of that. */
static double deviation(double *values, unsigned count, double middle)
{
	for (unsigned i = 0; i < count; i++)
		values[i] = values[i] > middle ? values[i] - middle : middle - values[i];
	return median(values, count);
}

/*
 * Of the first case, what it took. The standard error of a median is sqrt(pi / 2) that of a mean; a median absolute
 * deviation is 0.6745 standard deviations (both of a normal distribution).
 */
static struct more median_more(const double *values, const double *before, unsigned rounds)
{
	double *more = calloc(rounds, sizeof(*more));
	struct more ret;

	if (!more)
		err(1, "calloc");
	for (unsigned i = 0; i < rounds; i++)
		more[i] = values[i] - (before ? before[i] : 0);
	ret.middle = median(more, rounds);
	ret.error = 1.2533 / 0.6745 * deviation(more, rounds, ret.middle) / sqrt(rounds);
	free(more);
	return ret;
}

static void report(struct bench_case *bench_case, unsigned rounds)
{
	double middle = median(bench_case->times, rounds), least = bench_case->times[0];

	printf("%.1f\t%.1f\t%.1f\t%ld\t%.1f\t%ld\t%.1f\t%.1f\t%.1f\t%.1f\n", middle,
	       deviation(bench_case->times, rounds, middle), least, bench_case->memory, bench_case->more.middle,
	       bench_case->faults, median(bench_case->used, rounds), bench_case->more.error,
	       bench_case->more_used.middle, bench_case->more_used.error);
}

static void add_case(struct bench *bench, char **words)
{
	struct bench_case *bench_case = &bench->cases[bench->case_count++];

	if (bench->case_count > CASES_MAX || !words[0] || !words[1] || !words[2])
		errx(2, "a case is: AT-ONCE IMAGE[:CONFIG] PROGRAM [ARGUMENT...]");
	bench_case->at_once = (unsigned)atoi(words[0]);
	if (bench_case->at_once < 1 || bench_case->at_once > AT_ONCE_MAX)
		errx(2, "%s at once: from 1 to %d", words[0], AT_ONCE_MAX);
	bench_case->config = bench->config;
	if (strchr(words[1], ':')) {
		bench_case->config = strchr(words[1], ':') + 1;
		words[1][strcspn(words[1], ":")] = '\0';
	}
	bench_case->image = words[1];
	bench_case->argv = words + 2;
	bench_case->times = calloc(bench->rounds, sizeof(double));
	bench_case->used = calloc(bench->rounds, sizeof(double));
	if (!bench_case->times || !bench_case->used)
		err(1, "calloc");
}

static void read_options(struct bench *bench, int argc, char **argv)
{
	int option;

	while ((option = getopt(argc, argv, "+r:d:c:e:k:bx")) != -1) {
		if (option == 'r')
			bench->rounds = (unsigned)atoi(optarg);
		else if (option == 'd')
			bench->directory = optarg;
		else if (option == 'c')
			bench->config = optarg;
		else if (option == 'k')
			bench->cleanup = optarg;
		else if (option == 'b')
			bench->only_bundle = true;
		else if (option == 'x')
			bench->cold = true;
		else if (option == 'e' && bench->expected_count < EXPECTED_MAX)
			bench->expected[bench->expected_count++] = optarg;
		else
			exit(2);
	}
	if (bench->rounds == 0 || !bench->directory || !bench->config || optind >= argc)
		errx(2,
		     "usage: measure -r ROUNDS -d DIRECTORY -c CONFIG [-e PATH]... [-b] [-x] [-k SCRIPT] -- CASE [-- CASE]...");
}

int main(int argc, char **argv)
{
	static struct bench bench;
	unsigned warm_up;
	char **words;

	read_options(&bench, argc, argv);
	words = argv + optind;
	for (char **word = words; word <= argv + argc; word++) {
		if (*word && strcmp(*word, "--") != 0)
			continue;
		*word = NULL;
		add_case(&bench, words);
		words = word + 1;
	}
	warm_up = bench.rounds > WARM_UP_ROUNDS ? WARM_UP_ROUNDS : 0;
	for (unsigned round = 0; round < bench.rounds + warm_up; round++) {
		for (size_t i = 0; i < bench.case_count; i++) {
			double used, time = run_once(&bench, &bench.cases[i], &used);

			if (round < warm_up)
				continue;
			bench.cases[i].times[round - warm_up] = time;
			bench.cases[i].used[round - warm_up] = used;
		}
	}
	/* All of them first: reporting a case spoils its times, with which the next one is compared. */
	for (size_t i = 0; i < bench.case_count; i++) {
		struct bench_case *this = &bench.cases[i];

		this->more = median_more(this->times, i ? this[-1].times : NULL, bench.rounds);
		this->more_used = median_more(this->used, i ? this[-1].used : NULL, bench.rounds);
	}
	for (size_t i = 0; i < bench.case_count; i++)
		report(&bench.cases[i], bench.rounds);
	return 0;
}

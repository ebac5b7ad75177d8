/* SPDX-License-Identifier: Apache-2.0 */

/*
 * saves PID: has NVIDIA's driver put away what a process has on its GPUs, and bring it back, as vCUDA has it do that; and
 * prints how long each of both took, in milliseconds: what nobody can do faster by this driver.
 */

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double now(void)
{
	struct timespec time;

	(void)clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec * 1e3 + (double)time.tv_nsec / 1e6;
}

/* What the arguments of all these are where nothing special is wanted; of the first, how long it may take. */
union arguments {
	unsigned timeout_ms;
	char zero[64];
};

static void *driver;

static void ask(const char *name, int pid, union arguments *arguments)
{
	int (*function)(int pid, void *arguments);
	int r;

	*(void **)&function = dlsym(driver, name);
	r = function ? function(pid, arguments) : -1;
	if (r == 0)
		return;
	printf("%s: %d\n", name, r);
	exit(1);
}

int main(int argc, char **argv)
{
	const int pid = argc > 1 ? atoi(argv[1]) : 0;
	union arguments patience = {.timeout_ms = 10000}, none = {.timeout_ms = 0};
	double began, between;

	driver = dlopen("libcuda.so.1", RTLD_NOW);
	if (!driver || pid <= 0) {
		puts(driver ? "saves PID" : dlerror());
		return 2;
	}
	began = now();
	ask("cuCheckpointProcessLock", pid, &patience);
	ask("cuCheckpointProcessCheckpoint", pid, &none);
	between = now();
	printf("%.0f", between - began);
	ask("cuCheckpointProcessRestore", pid, &none);
	ask("cuCheckpointProcessUnlock", pid, &none);
	printf(" %.0f\n", now() - between);
	return 0;
}

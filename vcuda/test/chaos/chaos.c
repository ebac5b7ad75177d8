/* SPDX-License-Identifier: Apache-2.0 */

/*
 * chaos: run by vcuda/test/launch, as TAP. Starts clients, kills most at a random moment and crashes the servers of some, and
 * then looks for what is left: servers, descriptors of the manager, bytes of the quota. "chaos client SEED" is one client.
 * CHAOS_LATEST=MICROSECONDS: the most between two that are killed, for a driver that starts slowly.
 */

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../cuda.h"
#include "vcuda/protocol/start.h"

enum {
	CLIENTS = 1000,
	AT_ONCE = 8,
	SECRET_BYTES = 16 << 20,
	EXIT_LOST = 7,
	EXIT_FOREIGN = 8,
	LATEST = 15000,
	PAUSE = 20000
};

/* ---- a client ---- */

/* clang-format off */
#define CHAOS_FUNCTIONS(X) \
	X(cuInit) X(cuDevicePrimaryCtxRetain) X(cuCtxSetCurrent) X(cuMemAlloc_v2) X(cuMemFree_v2) \
	X(cuMemcpyHtoD_v2) X(cuMemcpyDtoH_v2) X(cuMemsetD32Async) X(cuModuleLoadData) X(cuModuleUnload) \
	X(cuModuleGetFunction) X(cuLaunchKernel) X(cuStreamCreate) X(cuStreamDestroy_v2) X(cuStreamSynchronize) \
	X(cuDeviceGetCount) X(cuDeviceGetUuid_v2) X(cuDeviceTotalMem_v2) X(cuCtxSynchronize) X(cuMemHostAlloc) X(cuMemFreeHost) X(cuMemAllocAsync) X(cuMemFreeAsync)
/* clang-format on */

static struct {
#define X(name) __typeof__(&name) name;
	CHAOS_FUNCTIONS(X)
#undef X
} cu;

static const char kernels[] = ".version 6.0\n.target sm_50\n.address_size 64\n.visible .entry nop()\n{\n\tret;\n}\n";

static void chaos_load(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW), *function;

#define X(name)                                            \
	function = library ? dlsym(library, #name) : NULL; \
	if (!function)                                     \
		_exit(2);                                  \
	memcpy(&cu.name, &function, sizeof(function));
	CHAOS_FUNCTIONS(X)
#undef X
}

static CUresult chaos_begin(void)
{
	CUcontext context;
	CUresult r = cu.cuInit(0);

	if (!r)
		r = cu.cuDevicePrimaryCtxRetain(&context, 0);
	return r ? r : cu.cuCtxSetCurrent(context);
}

static CUresult chaos_launch(CUstream stream)
{
	CUfunction function = NULL;
	CUmodule module = NULL;
	CUresult r = cu.cuModuleLoadData(&module, kernels);

	if (!r)
		r = cu.cuModuleGetFunction(&function, module, "nop");
	for (int i = 0; !r && i < 100; i++)
		r = cu.cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, stream, NULL, NULL);
	if (!r)
		r = cu.cuStreamSynchronize(stream);
	return r ? r : cu.cuModuleUnload(module);
}

static CUresult chaos_memory(unsigned *seed)
{
	static char host[300000];
	size_t bytes = 1 + (size_t)rand_r(seed) % sizeof(host);
	CUdeviceptr pointer = 0;
	CUresult r = cu.cuMemAlloc_v2(&pointer, bytes);

	if (!r)
		r = cu.cuMemcpyHtoD_v2(pointer, host, bytes);
	if (!r)
		r = cu.cuMemcpyDtoH_v2(host, pointer, bytes);
	/* Some is left for the end. */
	return r || rand_r(seed) % 4 == 0 ? r : cu.cuMemFree_v2(pointer);
}

static CUresult chaos_other(unsigned *seed)
{
	CUdeviceptr pointer = 0;
	CUstream stream = NULL;
	void *pinned = NULL;
	CUresult r = cu.cuMemHostAlloc(&pinned, 1 + (size_t)rand_r(seed) % 200000, 0);

	if (!r)
		r = cu.cuMemFreeHost(pinned);
	if (!r)
		r = cu.cuStreamCreate(&stream, 1);
	if (!r)
		r = cu.cuMemAllocAsync(&pointer, 4096, stream);
	if (!r)
		r = cu.cuMemsetD32Async(pointer, 5, 1024, stream);
	if (!r)
		r = cu.cuMemFreeAsync(pointer, stream);
	if (!r)
		r = chaos_launch(stream);
	return r ? r : cu.cuStreamDestroy_v2(stream);
}

/* "5a3f1c2b,7b10aa04 1073741824": the GPUs that it was granted, in any order, and its memory. */
static bool chaos_is_granted(const char *granted)
{
	const char *total = strchr(granted, ' ');
	size_t bytes = 0;
	int count = 0;

	if (cu.cuDeviceGetCount(&count) || cu.cuDeviceTotalMem_v2(&bytes, 0) || !total ||
	    bytes != strtoull(total, NULL, 10) || (size_t)count != (size_t)(total - granted + 1) / 9)
		return false;
	for (int i = 0; i < count; i++) {
		const char *at;
		char begin[9];
		CUuuid uuid;

		if (cu.cuDeviceGetUuid_v2(&uuid, i))
			return false;
		for (int k = 0; k < 4; k++)
			(void)snprintf(begin + 2 * k, 3, "%02x", (unsigned char)uuid.bytes[k]);
		at = strstr(granted, begin);
		if (!at || at > total)
			return false;
	}
	return true;
}

static void chaos_sleep(unsigned microseconds)
{
	(void)nanosleep(
		&(struct timespec){.tv_sec = microseconds / 1000000, .tv_nsec = (microseconds % 1000000) * 1000L},
		NULL);
}

/* Works until it is killed or something fails. Most of a manager's sleep now and then, so that others begin soon. */
static int chaos_client(unsigned seed)
{
	const char *granted = getenv("CHAOS_GRANTED");
	const bool sleeps = granted && seed % 4 != 0;
	CUresult r = chaos_begin();

	if (!r && granted && !chaos_is_granted(granted)) {
		printf("foreign\n");
		return EXIT_FOREIGN;
	}
	for (int i = 0; !r && i < 100000; i++) {
		if (sleeps)
			chaos_sleep((unsigned)rand_r(&seed) % PAUSE);
		r = rand_r(&seed) % 2 ? chaos_memory(&seed) : chaos_other(&seed);
	}
	return r ? EXIT_LOST : 0;
}

/* Leaves a secret, or looks for one. */
static int chaos_secret(bool leave)
{
	unsigned *words = malloc(SECRET_BYTES);
	CUdeviceptr pointer = 0;
	int found = 0;

	if (!words || chaos_begin() || cu.cuMemAlloc_v2(&pointer, SECRET_BYTES))
		return 2;
	for (size_t i = 0; leave && i < SECRET_BYTES / 4; i++)
		words[i] = 0x5ec2e7;
	if (leave)
		return cu.cuMemcpyHtoD_v2(pointer, words, SECRET_BYTES) || cu.cuMemFree_v2(pointer) ? 2 : 0;
	if (cu.cuMemcpyDtoH_v2(words, pointer, SECRET_BYTES))
		return 2;
	for (size_t i = 0; i < SECRET_BYTES / 4; i++)
		found += words[i] == 0x5ec2e7;
	return found ? 1 : 0;
}

/* ---- what is left ---- */

static int chaos_count_descriptors(pid_t pid)
{
	char path[64];
	int count = 0;
	DIR *directory;

	(void)snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	directory = opendir(path);
	while (directory && readdir(directory))
		count++;
	if (directory)
		(void)closedir(directory);
	return count;
}

/* The servers of the manager, without this program and what it started. */
static int chaos_servers(pid_t manager, pid_t *pids, int most)
{
	char path[64], name[32];
	int count = 0, pid;
	FILE *children, *file;

	(void)snprintf(path, sizeof(path), "/proc/%d/task/%d/children", manager, manager);
	children = fopen(path, "re");
	while (children && fscanf(children, "%d", &pid) == 1) {
		(void)snprintf(path, sizeof(path), "/proc/%d/comm", pid);
		file = fopen(path, "re");
		if (file && fgets(name, sizeof(name), file) && strncmp(name, "ctr-gpu-vcuda", 13) == 0 && count < most)
			pids[count++] = pid;
		if (file)
			(void)fclose(file);
	}
	if (children)
		(void)fclose(children);
	return count;
}

static const struct start_quota *chaos_quota(pid_t manager)
{
	char path[64], target[64];
	void *memory;
	ssize_t length;
	int fd;

	for (int i = 0; i < 64; i++) {
		(void)snprintf(path, sizeof(path), "/proc/%d/fd/%d", manager, i);
		length = readlink(path, target, sizeof(target) - 1);
		if (length < 0)
			continue;
		target[length] = '\0';
		if (!strstr(target, "memfd:quota"))
			continue;
		fd = open(path, O_RDWR | O_CLOEXEC);
		memory = mmap(NULL, sizeof(struct start_quota), PROT_READ, MAP_SHARED, fd, 0);
		(void)close(fd);
		return memory == MAP_FAILED ? NULL : memory;
	}
	return NULL;
}

static unsigned long long chaos_used(const struct start_quota *quota)
{
	unsigned long long sum = 0;

	for (int i = 0; i < START_QUOTA_SLOTS; i++)
		sum += quota->used[i];
	return sum;
}

/* ---- the run ---- */

static int number, failures;

static void chaos_report(bool passed, const char *what, long long count)
{
	number++;
	failures += !passed;
	printf("%s %d - chaos: %s\n", passed ? "ok" : "not ok", number, what);
	if (!passed)
		printf("# %lld\n", count);
	(void)fflush(stdout);
}

static pid_t chaos_start(const char *what, unsigned seed)
{
	char text[16];
	pid_t pid = fork();

	if (pid)
		return pid;
	(void)snprintf(text, sizeof(text), "%u", seed);
	(void)execl("/proc/self/exe", "chaos", what, text, (char *)NULL);
	_exit(127);
}

static int chaos_run(const char *what)
{
	int status = 0;

	(void)waitpid(chaos_start(what, 0), &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Return: how many of those killed ended in another way than by that. */
static int chaos_kill_clients(unsigned seed)
{
	const char *text = getenv("CHAOS_LATEST");
	const unsigned latest = text ? (unsigned)strtoul(text, NULL, 10) : LATEST;
	pid_t clients[AT_ONCE] = {0};
	int status, early = 0;

	for (int i = 0; i < CLIENTS + AT_ONCE; i++) {
		pid_t *client = &clients[i % AT_ONCE];

		if (*client) {
			chaos_sleep((unsigned)rand_r(&seed) % latest);
			(void)kill(*client, SIGKILL);
			(void)waitpid(*client, &status, 0);
			early += !WIFSIGNALED(status);
		}
		*client = i < CLIENTS ? chaos_start("client", (unsigned)rand_r(&seed)) : 0;
	}
	return early;
}

/* Servers crash; their clients get errors and end by themselves. Return: how many clients did not. */
static int chaos_crash_servers(pid_t manager, unsigned seed)
{
	pid_t clients[AT_ONCE], servers[64];
	int stuck = 0, status, count;

	for (int round = 0; round < 5; round++) {
		for (int i = 0; i < AT_ONCE; i++)
			clients[i] = chaos_start("client", (unsigned)rand_r(&seed));
		for (int tries = 0; tries < 3000 && chaos_servers(manager, servers, 64) < AT_ONCE; tries++)
			chaos_sleep(10000);
		chaos_sleep(20000 + (unsigned)rand_r(&seed) % 50000);
		count = chaos_servers(manager, servers, 64);
		for (int i = 0; i < count; i++)
			(void)kill(servers[i], SIGSEGV);
		for (int i = 0; i < AT_ONCE; i++) {
			for (int tries = 0; tries < 3000 && waitpid(clients[i], &status, WNOHANG) == 0; tries++)
				chaos_sleep(10000);
			if (kill(clients[i], 0) == 0 && waitpid(clients[i], &status, WNOHANG) == 0) {
				stuck++;
				(void)kill(clients[i], SIGKILL);
				(void)waitpid(clients[i], &status, 0);
			} else if (!WIFEXITED(status) || WEXITSTATUS(status) != EXIT_LOST) {
				printf("# a client ended with status %#x\n", (unsigned)status);
				stuck++;
			}
		}
	}
	return stuck;
}

static int chaos_left(pid_t manager)
{
	pid_t servers[256];
	int count = 0;

	for (int tries = 0; tries < 3000; tries++) {
		count = chaos_servers(manager, servers, 256);
		if (!count)
			break;
		chaos_sleep(10000);
	}
	chaos_sleep(50000);
	return count;
}

static void chaos_look(pid_t manager, const struct start_quota *quota, int descriptors, const char *after)
{
	char what[128];

	(void)snprintf(what, sizeof(what), "no server is left after %s", after);
	chaos_report(chaos_left(manager) == 0, what, chaos_left(manager));
	(void)snprintf(what, sizeof(what), "the manager has no more descriptors after %s", after);
	chaos_report(chaos_count_descriptors(manager) <= descriptors, what, chaos_count_descriptors(manager));
	(void)snprintf(what, sizeof(what), "no byte of the quota is left after %s", after);
	chaos_report(quota && chaos_used(quota) == 0, what, quota ? (long long)chaos_used(quota) : -1);
}

int main(int argc, char **argv)
{
	unsigned seed = argc == 3 ? (unsigned)strtoul(argv[2], NULL, 10) : (unsigned)time(NULL);
	pid_t manager = getppid();
	const struct start_quota *quota;
	int descriptors, count;

	if (argc == 3) {
		chaos_load();
		return strcmp(argv[1], "client") == 0 ? chaos_client(seed)
						      : chaos_secret(strcmp(argv[1], "leave") == 0);
	}
	printf("# seed %u\n", seed);
	quota = chaos_quota(manager);
	chaos_report(chaos_run("leave") == 0 && chaos_run("look") == 0,
		     "memory that one has freed shows nothing to the next", 0);
	(void)chaos_left(manager);
	descriptors = chaos_count_descriptors(manager);
	count = chaos_kill_clients(seed);
	chaos_report(count < CLIENTS / 20, "1,000 clients are killed in the midst of their work", count);
	chaos_look(manager, quota, descriptors, "killed clients");
	count = chaos_crash_servers(manager, seed);
	chaos_report(count == 0, "clients of servers that crash get errors and go on", count);
	chaos_look(manager, quota, descriptors, "crashed servers");
	chaos_report(chaos_run("leave") == 0, "the next client is served", 0);
	printf("1..%d\n", number);
	return failures > 0;
}

/* SPDX-License-Identifier: Apache-2.0 */

/*
 * moves BYTES: what vCUDA counts on of the driver, natively, on a machine with two GPUs of one model, as TAP: a process
 * with data on both GPUs is suspended and comes back with its GPUs exchanged, and once more, as they were. Lines of "#"
 * say what the process is told of its GPUs before and afterwards, what the GPUs have in use, and what becomes of
 * a process when only one of its GPUs is named.
 */

#include <dlfcn.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

typedef uint64_t handle;

struct uuid {
	unsigned char bytes[16];
};

struct pair {
	struct uuid old, new;
};

struct restore_arguments {
	struct pair *pairs;
	unsigned count;
	char zero[52];
};

#define FUNCTIONS(X)                                          \
	X(cuInit, (unsigned))                                 \
	X(cuDeviceGetCount, (int *))                          \
	X(cuDeviceGetUuid, (struct uuid *, int))              \
	X(cuDeviceGetUuid_v2, (struct uuid *, int))           \
	X(cuDeviceGetPCIBusId, (char *, int, int))            \
	X(cuDevicePrimaryCtxRetain, (handle *, int))          \
	X(cuCtxSetCurrent, (handle))                          \
	X(cuCtxSynchronize, (void))                           \
	X(cuMemAlloc_v2, (handle *, size_t))                  \
	X(cuMemsetD32_v2, (handle, unsigned, size_t))         \
	X(cuMemcpyDtoH_v2, (void *, handle, size_t))          \
	X(cuCheckpointProcessGetState, (int, int *))          \
	X(cuCheckpointProcessLock, (int, const void *))       \
	X(cuCheckpointProcessCheckpoint, (int, const void *)) \
	X(cuCheckpointProcessRestore, (int, const void *))    \
	X(cuCheckpointProcessUnlock, (int, const void *))

#define X(name, arguments) static int(*name) arguments;
FUNCTIONS(X)
#undef X

enum { GPUS = 2 };

static int number, failures;

static void check(bool good, const char *what)
{
	number++;
	failures += !good;
	printf("%sok %d - %s\n", good ? "" : "not ", number, what);
	(void)fflush(stdout);
}

static int said(int result, const char *what)
{
	if (result)
		printf("# %s: %d\n", what, result);
	(void)fflush(stdout);
	return result;
}
#define SAID(name, ...) said(name(__VA_ARGS__), #name)

static double now(void)
{
	struct timespec time;

	(void)clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec * 1e3 + (double)time.tv_nsec / 1e6;
}

static bool load(void)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW);

	if (!driver)
		return false;
#define X(name, arguments)                           \
	*(void **)&name = dlsym(driver, #name);      \
	if (!name) {                                 \
		printf("# there is no " #name "\n"); \
		return false;                        \
	}
	FUNCTIONS(X)
#undef X
	return true;
}

/* ---- the process that is moved ---- */

static void tell_gpus(void)
{
	int count = 0;

	(void)cuDeviceGetCount(&count);
	for (int i = 0; i < count; i++) {
		struct uuid one = {{0}}, other = {{0}};
		char address[32] = "";

		(void)cuDeviceGetUuid(&one, i);
		(void)cuDeviceGetUuid_v2(&other, i);
		(void)cuDeviceGetPCIBusId(address, sizeof(address), i);
		printf("# it is told of device %d: GPU-%02x%02x%02x%02x, by version 2 GPU-%02x%02x%02x%02x, at %s\n", i,
		       one.bytes[0], one.bytes[1], one.bytes[2], one.bytes[3], other.bytes[0], other.bytes[1],
		       other.bytes[2], other.bytes[3], address);
	}
	(void)fflush(stdout);
}

/* Answers each byte of @in by one on @out: whether all data are there. Ends with the pipe. */
static _Noreturn void child(int in, int out, size_t bytes)
{
	handle contexts[GPUS] = {0}, memory[GPUS] = {0};
	const size_t sizes[GPUS] = {bytes, bytes / 4};
	unsigned round = 1;
	char byte;

	if (SAID(cuInit, 0))
		_exit(1);
	for (int i = 0; i < GPUS; i++)
		if (SAID(cuDevicePrimaryCtxRetain, &contexts[i], i) || SAID(cuCtxSetCurrent, contexts[i]) ||
		    SAID(cuMemAlloc_v2, &memory[i], sizes[i]) ||
		    SAID(cuMemsetD32_v2, memory[i], round * 16 + (unsigned)i, sizes[i] / 4) || SAID(cuCtxSynchronize))
			_exit(1);
	(void)!write(out, "r", 1);
	while (read(in, &byte, 1) == 1) {
		bool right = true;

		for (int i = 0; i < GPUS; i++) {
			unsigned ends[2] = {0, 0}, wanted = round * 16 + (unsigned)i;

			right = !SAID(cuCtxSetCurrent, contexts[i]) &&
				!SAID(cuMemcpyDtoH_v2, &ends[0], memory[i], sizeof(ends[0])) &&
				!SAID(cuMemcpyDtoH_v2, &ends[1], memory[i] + sizes[i] - 4, sizeof(ends[1])) &&
				ends[0] == wanted && ends[1] == wanted &&
				!SAID(cuMemsetD32_v2, memory[i], wanted + 16, sizes[i] / 4) &&
				!SAID(cuCtxSynchronize) && right;
		}
		round++;
		tell_gpus();
		(void)!write(out, right ? "r" : "w", 1);
	}
	_exit(0);
}

struct program {
	pid_t pid;
	int in, out;
};

static bool answers(const struct program *program)
{
	char byte = 'x';

	return read(program->out, &byte, 1) == 1 && byte == 'r';
}

static bool is_right(const struct program *program)
{
	return write(program->in, "", 1) == 1 && answers(program);
}

static struct program begin(size_t bytes)
{
	struct program program = {0};
	int in[2], out[2];

	if (pipe(in) < 0 || pipe(out) < 0)
		exit(1);
	program.pid = fork();
	if (program.pid == 0) {
		(void)close(in[1]);
		(void)close(out[0]);
		child(in[0], out[1], bytes);
	}
	(void)close(in[0]);
	(void)close(out[1]);
	program.in = in[1];
	program.out = out[0];
	return program;
}

/* ---- who moves it ---- */

static void tell_memory(const char *when)
{
	printf("# MiB in use %s: ", when);
	(void)fflush(stdout);
	(void)!system("nvidia-smi --query-gpu=memory.used --format=csv,noheader,nounits | tr '\\n' ' '; echo");
}

static bool put_away(pid_t pid)
{
	const double began = now();
	const bool done = !SAID(cuCheckpointProcessLock, pid, NULL) && !SAID(cuCheckpointProcessCheckpoint, pid, NULL);

	printf("# put away in %.0f ms\n", now() - began);
	tell_memory("meanwhile");
	return done;
}

static bool bring_back(pid_t pid, struct pair *pairs, unsigned count)
{
	const struct restore_arguments arguments = {.pairs = pairs, .count = count};
	const double began = now();
	const bool done = !SAID(cuCheckpointProcessRestore, pid, count ? &arguments : NULL);

	printf("# %s %.0f ms\n", done ? "brought back in" : "refused after", now() - began);
	return done && !SAID(cuCheckpointProcessUnlock, pid, NULL);
}

int main(int argc, char **argv)
{
	const size_t bytes = argc > 1 ? strtoull(argv[1], NULL, 0) : (size_t)1 << 30;
	struct uuid gpus[GPUS];
	struct program program;
	int count = 0, state = 0;

	if (!load())
		return 2;
	program = begin(bytes); /* before the driver is used: a child of fork() has none afterwards */
	if (SAID(cuInit, 0) || SAID(cuDeviceGetCount, &count) || count != GPUS) {
		printf("Bail out! %d GPUs, and not two\n", count);
		(void)kill(program.pid, SIGKILL);
		return 2;
	}
	for (int i = 0; i < GPUS; i++)
		(void)cuDeviceGetUuid_v2(&gpus[i], i);
	struct pair exchanged[GPUS] = {{gpus[0], gpus[1]}, {gpus[1], gpus[0]}};

	check(answers(&program) && is_right(&program), "a process has data on both GPUs");
	tell_memory("with it");
	check(put_away(program.pid), "they are put away");
	check(!bring_back(program.pid, exchanged, 1), "with one pair for two GPUs it does not come back");
	(void)SAID(cuCheckpointProcessGetState, program.pid, &state);
	printf("# its state is then %d\n", state);
	check(bring_back(program.pid, exchanged, GPUS), "it comes back with its GPUs exchanged");
	tell_memory("afterwards");
	check(is_right(&program), "its data are right");
	check(put_away(program.pid) && bring_back(program.pid, NULL, 0), "it is put away, and comes back where it was");
	tell_memory("afterwards");
	check(is_right(&program), "its data are right");
	check(put_away(program.pid) && bring_back(program.pid, exchanged, GPUS),
	      "and once more with its GPUs exchanged");
	tell_memory("afterwards");
	check(is_right(&program), "its data are right");
	(void)close(program.in);
	(void)waitpid(program.pid, &state, 0);
	check(state == 0, "it ends as it should");
	printf("1..%d\n", number);
	return failures > 0;
}

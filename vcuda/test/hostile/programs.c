/* SPDX-License-Identifier: Apache-2.0 */

/*
 * programs: what becomes of programs that do what no driver counts on, as TAP, run by vcuda/test/launch: that close descriptors
 * which are not theirs, have few of them, handle signals, unload the library, or use very much of something. Each case is a
 * process of its own. It has to end in time and with no signal, and what it gets is what the driver would answer.
 */

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../cuda.h"
#include "vcuda/protocol/start.h"
#include "vcuda/protocol/wire.h"

enum { SOON = 240 };

static struct {
#define MEMBER(name, symbol, version, parameters) CUresult(*symbol) parameters;
#define MEMBER_TWIN(name, symbol, version, suffix, parameters, arguments) CUresult(*symbol) parameters;
	CUDA_FUNCTIONS(MEMBER, MEMBER_TWIN)
} cu;

static void *library;

static const char kernels[] = ".version 6.0\n.target sm_50\n.address_size 64\n.visible .global .align 4 .u32 counter;\n"
			      ".visible .entry nop()\n{\n\tret;\n}\n";

static _Noreturn void fail(const char *what, long long got)
{
	printf("# %s: %lld\n", what, got);
	(void)fflush(stdout);
	_exit(1);
}

static void must(const char *what, CUresult result)
{
	if (result)
		fail(what, result);
}

#define MUST(call) must(#call, cu.call)

static void is_failure(const char *what, CUresult result)
{
	if (result <= 0 || result > 999)
		fail(what, result);
}

static void is(const char *what, long long right, long long got)
{
	if (got != right)
		fail(what, got);
}

static long now_ms(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void load(void)
{
	void *function;

	library = dlopen("libcuda.so.1", RTLD_NOW);
	if (!library)
		fail("dlopen", 0);
#define RESOLVE(name, symbol, version, parameters) \
	function = dlsym(library, #symbol);        \
	memcpy(&cu.symbol, &function, sizeof(function));
#define RESOLVE_TWIN(name, symbol, version, suffix, parameters, arguments) RESOLVE(name, symbol, version, parameters)
	CUDA_FUNCTIONS(RESOLVE, RESOLVE_TWIN)
}

static void begin(void)
{
	CUcontext context = NULL;

	load();
	MUST(cuInit(0));
	MUST(cuDevicePrimaryCtxRetain(&context, 0));
	MUST(cuCtxSetCurrent(context));
}

/* Return: how many sockets the process has. */
static int count_sockets(int *ret_lowest)
{
	int count = 0;

	for (int fd = 255; fd >= 0; fd--) {
		struct stat st;

		if (fstat(fd, &st) < 0 || !S_ISSOCK(st.st_mode))
			continue;
		count++;
		*ret_lowest = fd;
	}
	return count;
}

/* ---- descriptors ---- */

/* What was under way may be done yet. */
static void calls_fail_soon(void)
{
	const long began = now_ms();
	CUdeviceptr pointer;

	while (cu.cuMemAlloc_v2(&pointer, 4096) == 0)
		if (now_ms() - began > 5000)
			fail("a server without a connection", 0);
	is_failure("cuMemAlloc", cu.cuMemAlloc_v2(&pointer, 4096));
	is_failure("cuCtxSynchronize", cu.cuCtxSynchronize());
}

static void program_closes_all(void)
{
	begin();
	(void)close_range(3, ~0U, 0);
	calls_fail_soon();
}

static void program_closes_all_and_opens_others(void)
{
	begin();
	(void)close_range(3, ~0U, 0);
	for (int i = 0; i < 64; i++)
		(void)open("/dev/null", O_RDWR);
	calls_fail_soon();
}

/* What comes by its own socket is its own. */
static void program_has_a_socket_in_the_same_place(void)
{
	int pair[2], lowest = -1;
	void *memory;
	char text[8];

	begin();
	if (count_sockets(&lowest) < 1)
		fail("sockets", 0);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) < 0 || send(pair[1], "x", 1, 0) != 1)
		fail("socketpair", errno);
	/* A child keeps the other one open, so the server is there. */
	if (fork() == 0) {
		(void)sleep(3);
		_exit(0);
	}
	if (dup2(pair[0], lowest) < 0)
		fail("dup2", errno);
	is_failure("cuMemHostAlloc", cu.cuMemHostAlloc(&memory, 65536, 0));
	is("what was sent", 1, recv(lowest, text, sizeof(text), MSG_DONTWAIT));
}

static void program_has_no_standard_descriptors(void)
{
	CUdeviceptr pointer;
	int lowest = -1, out = fcntl(1, F_DUPFD, 10);

	(void)close(0);
	(void)close(1);
	(void)close(2);
	begin();
	(void)dup2(out, 1);
	(void)count_sockets(&lowest);
	if (lowest < 3)
		fail("the connection is descriptor", lowest);
	MUST(cuMemAlloc_v2(&pointer, 4096));
}

static void program_may_have_few_descriptors(void)
{
	void *memory;

	for (rlim_t most = 3; most < 9; most++) {
		const pid_t child = fork();
		int status = 0;

		if (child == 0) {
			CUresult r;

			load();
			(void)setrlimit(RLIMIT_NOFILE, &(struct rlimit){most, most});
			r = cu.cuInit(0);
			if (r < 0 || r > 999)
				fail("cuInit", r);
			r = cu.cuMemHostAlloc(&memory, 4096, 0);
			_exit(r < 0 || r > 999);
		}
		(void)waitpid(child, &status, 0);
		is("the child's end", 0, status);
	}
}

/* ---- NVML, in descriptors of others ---- */

static void program_closes_what_nvml_has(void)
{
	void *nvml = dlopen("libnvidia-ml.so.1", RTLD_NOW);
	int (*init)(void), (*shutdown)(void), lowest = -1, own;

	if (!nvml)
		fail("dlopen", 0);
	*(void **)&init = dlsym(nvml, "nvmlInit_v2");
	*(void **)&shutdown = dlsym(nvml, "nvmlShutdown");
	is("nvmlInit", 0, init());
	if (count_sockets(&lowest) < 1)
		fail("sockets", 0);
	own = open("/dev/null", O_RDWR);
	if (dup2(own, lowest) < 0)
		fail("dup2", errno);
	is("nvmlShutdown", 0, shutdown());
	if (fcntl(lowest, F_GETFD) < 0)
		fail("it closed a descriptor of ours", lowest);
}

/* ---- children ---- */

static int (*nvml_init)(void), (*nvml_shutdown)(void), (*nvml_count)(unsigned *);
static _Atomic bool stops;

static void load_nvml(void)
{
	void *nvml = dlopen("libnvidia-ml.so.1", RTLD_NOW);

	if (!nvml)
		fail("dlopen", 0);
	*(void **)&nvml_init = dlsym(nvml, "nvmlInit_v2");
	*(void **)&nvml_shutdown = dlsym(nvml, "nvmlShutdown");
	*(void **)&nvml_count = dlsym(nvml, "nvmlDeviceGetCount_v2");
}

static void *thread_begins_and_ends(void *nothing)
{
	while (!stops)
		if (nvml_init() || nvml_shutdown())
			fail("nvmlInit", 0);
	return nothing;
}

static useconds_t madvise_pause;

/* The libraries' calls, too: -rdynamic. A fork is then likely where a page for children is made. */
__attribute__((visibility("default"))) int madvise(void *at, size_t bytes, int advice)
{
	const int r = (int)syscall(SYS_madvise, at, bytes, advice);

	(void)usleep(madvise_pause);
	return r;
}

/* They find locked what a thread of their parent's had locked. */
static void program_forks_while_nvml_begins(void)
{
	pthread_t thread;
	unsigned count;

	madvise_pause = 4000;
	load_nvml();
	(void)pthread_create(&thread, NULL, thread_begins_and_ends, NULL);
	for (int i = 0; i < 20; i++) {
		pid_t child;
		int status = 0;

		(void)usleep(5000);
		child = fork();
		if (child == 0) {
			(void)alarm(60);
			_exit(nvml_init() || nvml_count(&count) || count != 1 || nvml_shutdown());
		}
		(void)waitpid(child, &status, 0);
		is("a child's end", 0, status);
	}
	stops = true;
	(void)pthread_join(thread, NULL);
}

static useconds_t close_pause;

/* The libraries' calls, too: what a thread of a child does before it connects takes a while. */
__attribute__((visibility("default"))) int close(int fd)
{
	(void)usleep(close_pause);
	return (int)syscall(SYS_close, fd);
}

static void *thread_counts(void *together)
{
	unsigned count = 0;

	(void)pthread_barrier_wait(together);
	if (nvml_count(&count) || count != 1)
		fail("nvmlDeviceGetCount", count);
	return NULL;
}

/* The first of them connects, and the others wait for it. */
static void program_has_a_child_with_threads_that_ask_nvml(void)
{
	enum { THREADS = 8, CHILDREN = 10 };

	load_nvml();
	is("nvmlInit", 0, nvml_init());
	for (int i = 0; i < CHILDREN; i++) {
		const pid_t child = fork();
		int status = 0;

		if (child == 0) {
			pthread_barrier_t together;
			pthread_t thread[THREADS];

			(void)alarm(60);
			close_pause = 2000;
			(void)pthread_barrier_init(&together, NULL, THREADS);
			for (int k = 0; k < THREADS; k++)
				(void)pthread_create(&thread[k], NULL, thread_counts, &together);
			for (int k = 0; k < THREADS; k++)
				(void)pthread_join(thread[k], NULL);
			_exit(0);
		}
		(void)waitpid(child, &status, 0);
		is("a child's end", 0, status);
	}
}

static CUdeviceptr asked_about;

static void *thread_asks(void *nothing)
{
	CUdeviceptr start;

	MUST(cuCtxSetCurrent(nothing));
	while (!stops)
		MUST(cuPointerGetAttribute(&start, 11, asked_about));
	return NULL;
}

/* A lock that the thread has then is free for nobody in the child, whose calls fail as those of any child. */
static void program_forks_while_it_asks(void)
{
	enum { THREADS = 2, CHILDREN = 300 };
	pthread_t thread[THREADS];
	CUcontext context = NULL;
	int status = 0;

	begin();
	MUST(cuCtxGetCurrent(&context));
	MUST(cuMemAlloc_v2(&asked_about, 4096));
	for (int i = 0; i < THREADS; i++)
		(void)pthread_create(&thread[i], NULL, thread_asks, context);
	for (int i = 0; i < CHILDREN && status == 0; i++) {
		const pid_t child = fork();

		if (child == 0) {
			(void)alarm(SOON / 4);
			_exit(cu.cuMemcpy(asked_about, asked_about, 4096) != 3 ||
			      cu.cuMemcpyDtoDAsync_v2(asked_about, asked_about, 4096, NULL) != 3);
		}
		(void)waitpid(child, &status, 0);
	}
	stops = true;
	for (int i = 0; i < THREADS; i++)
		(void)pthread_join(thread[i], NULL);
	is("a child", 0, status);
}

static void *thread_inits(void *nothing)
{
	(void)cu.cuInit(0);
	return nothing;
}

static void program_forks_while_it_begins(void)
{
	enum { NOT_INITIALIZED = 3 };

	madvise_pause = 4000;
	for (useconds_t pause = 0; pause < 20000; pause += 1000) {
		const pid_t parent = fork();
		int status = 0;

		if (parent == 0) {
			pthread_t thread;
			pid_t child;
			CUresult r;

			load();
			(void)pthread_create(&thread, NULL, thread_inits, NULL);
			(void)usleep(pause);
			child = fork();
			if (child == 0) {
				(void)alarm(60);
				r = cu.cuInit(0);
				_exit(r != 0 && r != NOT_INITIALIZED);
			}
			(void)waitpid(child, &status, 0);
			is("a child's end", 0, status);
			(void)pthread_join(thread, NULL);
			_exit(cu.cuInit(0));
		}
		(void)waitpid(parent, &status, 0);
		is("its parent's end", 0, status);
	}
}

/* Of a driver 12.4. */
static void program_asks_a_child_for_the_version(void)
{
	int version = 0, status = 0;
	pid_t child;

	begin();
	MUST(cuDriverGetVersion(&version));
	is("the version", 12040, version);
	child = fork();
	if (child == 0)
		_exit(cu.cuDriverGetVersion(&version) || version != 12040);
	(void)waitpid(child, &status, 0);
	is("the child's end", 0, status);
}

/* As natively, where the memory is the driver's: a child that touches it is ended. */
static void program_has_a_child_that_writes(void)
{
	uint32_t *locked;
	char line[256];
	int status = 0;
	FILE *maps;
	pid_t child;

	begin();
	MUST(cuMemHostAlloc((void **)&locked, 65536, 0));
	locked[0] = 1;
	child = fork();
	if (child == 0) {
		maps = fopen("/proc/self/maps", "r");
		while (maps && fgets(line, sizeof(line), maps))
			if (strstr(line, "ctr-gpu-vcuda"))
				fail("memory that is its parent's, too", 1);
		if (!maps)
			fail("maps", errno);
		(void)signal(SIGSEGV, SIG_DFL);
		locked[0] = 2;
		_exit(0);
	}
	(void)waitpid(child, &status, 0);
	is("the signal that ends the child", SIGSEGV, WIFSIGNALED(status) ? WTERMSIG(status) : -status);
	is("what the parent wrote", 1, locked[0]);
	MUST(cuCtxSynchronize());
}

static void *thread_changes_its_mode(void *argument)
{
	int *seen = argument, mode = 2;

	*seen = cu.cuThreadExchangeStreamCaptureMode(&mode) ? -1 : mode;
	return NULL;
}

/* More than there are places for: what the driver keeps for a thread ends with it. */
static void program_has_threads_one_after_the_other(void)
{
	begin();
	for (int i = 0; i < WIRE_SLOTS + 200; i++) {
		pthread_t thread;
		int seen = -1;

		if (pthread_create(&thread, NULL, thread_changes_its_mode, &seen) != 0)
			fail("pthread_create", i);
		(void)pthread_join(thread, NULL);
		if (seen != 0)
			fail("a mode of captures that another thread had", seen);
	}
}

/* Those that call at once. */
static struct {
	_Atomic unsigned called, refused, others;
	_Atomic bool end;
} at_once;

static void *thread_stays(void *nothing)
{
	int mode = 2;
	const int r = cu.cuThreadExchangeStreamCaptureMode(&mode);

	at_once.refused += r == 2;
	at_once.others += r != 0 && r != 2;
	at_once.called++;
	while (!at_once.end)
		(void)usleep(20000);
	return nothing;
}

/* The main thread has a place, too. */
static void program_has_too_many_threads_at_once(void)
{
	enum { MORE = 50, COUNT = WIRE_SLOTS + MORE };
	static pthread_t threads[COUNT];
	char text[512] = "";
	int said[2];

	begin();
	if (pipe(said) || dup2(said[1], STDERR_FILENO) < 0)
		fail("pipe", errno);
	for (int i = 0; i < COUNT; i++)
		if (pthread_create(&threads[i], NULL, thread_stays, NULL) != 0)
			fail("pthread_create", i);
	while (at_once.called < COUNT)
		(void)usleep(1000);
	is("threads that are refused", MORE + 1, (int)at_once.refused);
	is("threads that fail otherwise", 0, (int)at_once.others);
	at_once.end = true;
	for (int i = 0; i < COUNT; i++)
		(void)pthread_join(threads[i], NULL);
	(void)fcntl(said[0], F_SETFL, O_NONBLOCK);
	is("lines on stderr", 1,
	   read(said[0], text, sizeof(text) - 1) > 0 && strstr(text, "1024 threads") && strchr(text, '\n')[1] == '\0');
	MUST(cuCtxSynchronize());
}

/* ---- signals ---- */

static _Atomic int ran;

static void function_runs(void *data)
{
	(void)data;
	ran++;
}

static void function_takes_long(void *data)
{
	(void)data;
	(void)usleep(10000);
}

/* Processor time that 20 waits of 10 ms take, in milliseconds. */
static long time_waits(void)
{
	struct timespec begin, end;

	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
	for (int i = 0; i < 20; i++) {
		MUST(cuLaunchHostFunc(NULL, function_takes_long, NULL));
		MUST(cuStreamSynchronize(NULL));
	}
	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
	return (end.tv_sec - begin.tv_sec) * 1000 + (end.tv_nsec - begin.tv_nsec) / 1000000;
}

static void program_wants_waits_to_sleep(void)
{
	enum { BLOCKING_SYNC = 4 };
	long took;

	begin();
	MUST(cuCtxSetFlags(BLOCKING_SYNC));
	took = time_waits();
	if (took > 60)
		fail("milliseconds of processor time in 200 of waiting", took);
}

static void program_blocks_signals_later(void)
{
	static char host[8 << 20];
	CUdeviceptr pointer;
	sigset_t set;

	begin();
	MUST(cuLaunchHostFunc(NULL, function_runs, NULL));
	MUST(cuMemAlloc_v2(&pointer, sizeof(host)));
	MUST(cuMemcpyHtoD_v2(pointer, host, sizeof(host)));
	MUST(cuCtxSynchronize());
	is("calls", 1, ran);
	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGUSR1);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	/* If a thread of the library's takes it, it ends the process. */
	(void)kill(getpid(), SIGUSR1);
	(void)usleep(100000);
	(void)sigpending(&set);
	is("the signal is there", 1, sigismember(&set, SIGUSR1));
}

static void nothing_done(int signal)
{
	(void)signal;
}

/* A manager that accepts late, and a program that has a signal each millisecond. */
static void program_is_interrupted(void)
{
	struct sigaction action = {.sa_handler = nothing_done};
	struct itimerval often = {{0, 1000}, {0, 1000}};
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int listener = socket(AF_UNIX, SOCK_SEQPACKET, 0), waiting = socket(AF_UNIX, SOCK_SEQPACKET, 0);
	long began;

	(void)snprintf(address.sun_path, sizeof(address.sun_path), "/tmp/vcuda-late-%d", (int)getpid());
	if (bind(listener, (struct sockaddr *)&address, sizeof(address)) < 0 || listen(listener, 0) < 0 ||
	    connect(waiting, (struct sockaddr *)&address, sizeof(address)) < 0)
		fail("a listener", errno);
	(void)setenv(START_SOCKET_VARIABLE, address.sun_path, 1);
	load();
	if (fork() == 0) {
		(void)usleep(500000);
		(void)close(accept(listener, NULL, NULL));
		(void)close(accept(listener, NULL, NULL));
		_exit(0);
	}
	(void)close(listener);
	(void)sigaction(SIGALRM, &action, NULL);
	(void)setitimer(ITIMER_REAL, &often, NULL);
	began = now_ms();
	is_failure("cuInit", cu.cuInit(0));
	(void)unlink(address.sun_path);
	if (now_ms() - began < 400)
		fail("it did not wait: milliseconds", now_ms() - began);
}

/* ---- the library, unloaded ---- */

static void program_unloads(void)
{
	CUdeviceptr pointer;
	int lowest;

	for (int i = 0; i < 3; i++) {
		begin();
		MUST(cuLaunchHostFunc(NULL, function_runs, NULL));
		MUST(cuCtxSynchronize());
		MUST(cuMemAlloc_v2(&pointer, 4096));
		(void)dlclose(library);
		is("connections", 1, count_sockets(&lowest));
	}
}

/* ---- servers that are gone ---- */

static void program_goes_on_without_a_server(void)
{
	CUdeviceptr pointer = 0;
	CUfunction function;
	CUmodule module;
	CUresult r = 0;
	long began;

	begin();
	MUST(cuModuleLoadData(&module, kernels));
	MUST(cuModuleGetFunction(&function, module, "nop"));
	MUST(cuMemAlloc_v2(&pointer, 4096));
	/* The server's driver crashes here. */
	(void)cu.cuMemsetD8Async(pointer, 1, 4096, NULL);
	is_failure("the first call behind it", cu.cuCtxSynchronize());
	began = now_ms();
	for (int i = 0; i < 200; i++) {
		is_failure("cuMemAlloc", cu.cuMemAlloc_v2(&pointer, 4096));
		is_failure("cuCtxSynchronize", cu.cuCtxSynchronize());
	}
	if (now_ms() - began > 10000)
		fail("milliseconds of 400 calls", now_ms() - began);
	r = cu.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
	is_failure("a launch", r);
}

/* ---- functions of the host ---- */

struct counted {
	char text[40];
	int *count;
};

static void callback_counts(CUstream stream, CUresult status, void *data)
{
	(void)stream, (void)status;
	++*(int *)data;
}

/* The driver refuses all of these, which a call that does not wait may hear of itself. */
static void fail_unnoticed(CUdeviceptr pointer)
{
	size_t unused, bytes;

	for (int i = 0; cu.cuMemsetD8Async(pointer, 1, 4096, NULL) != 0; i++)
		if (i == 5000)
			fail("each was told at once", i);
	MUST(cuMemGetInfo_v2(&unused, &bytes)); /* which is behind it */
}

/* The driver does not free it, so it is there with what is in it, and is freed when it is asked again. */
static void program_is_refused_a_free(void)
{
	enum { GLOBAL = 1, READ_MOSTLY = 1 };
	const size_t sizes[] = {1 << 20, 64};
	CUdeviceptr managed = 0, pointer;

	begin();
	MUST(cuMemAlloc_v2(&pointer, 4096));
	for (int i = 0; i < 2; i++) {
		unsigned word = 0, flags = 0;
		void *host = NULL;
		int said = 0;

		MUST(cuMemHostAlloc(&host, sizes[i], 0));
		*(volatile unsigned *)host = 7;
		is("the first", 900, cu.cuMemFreeHost(host));
		is("what is in it", 7, *(volatile unsigned *)host);
		MUST(cuMemHostGetFlags(&flags, host));
		MUST(cuMemcpyHtoD_v2(pointer, host, 4));
		MUST(cuMemcpyDtoH_v2(&word, pointer, 4));
		is("what is copied of it", 7, word);
		MUST(cuMemFreeHost(host));
		is("the third", 1, cu.cuMemFreeHost(host));
		/* Every other one is refused. */
		MUST(cuMemAllocManaged(&managed, sizes[i], GLOBAL));
		*(volatile unsigned *)(uintptr_t)managed = 8;
		MUST(cuMemAdvise(managed, sizes[i], READ_MOSTLY, 0));
		is("of managed memory", 900, cu.cuMemFree_v2(managed));
		is("what is in that", 8, *(volatile unsigned *)(uintptr_t)managed);
		MUST(cuMemRangeGetAttribute(&said, sizeof(said), READ_MOSTLY, managed, sizes[i]));
		is("what was said of it", 1, said);
		MUST(cuMemFree_v2(managed));
	}
}

/* The current context has failed then. */
static void launch_fault(void)
{
	static const char text[] = ".version 6.0\n.target sm_50\n.address_size 64\n.visible .entry fault()\n{\n"
				   "\t.reg .b32 %x;\n\t.reg .b64 %a;\n\tmov.u64 %a, 16;\n\tmov.u32 %x, 1;\n"
				   "\tst.global.u32 [%a], %x;\n\tret;\n}\n";
	CUfunction function = NULL;
	CUmodule module = NULL;

	MUST(cuModuleLoadData(&module, text));
	MUST(cuModuleGetFunction(&function, module, "fault"));
	MUST(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
	is("the failure", 700, cu.cuCtxSynchronize());
}

static void begin_again(void)
{
	CUcontext context = NULL;

	(void)cu.cuDevicePrimaryCtxReset_v2(0);
	MUST(cuDevicePrimaryCtxRetain(&context, 0));
	MUST(cuCtxSetCurrent(context));
}

/* It goes with its context. Only 80 MiB may be locked. */
static void program_frees_in_failed_contexts(void)
{
	const size_t sizes[] = {64 << 20, 16384};

	begin();
	for (int i = 0; i < 2; i++)
		for (int left = i ? 1500 : 4; left > 0; left--) {
			void *host = NULL;

			MUST(cuMemHostAlloc(&host, sizes[i], 0));
			*(volatile uint8_t *)host = 7;
			launch_fault();
			is("freed", 700, cu.cuMemFreeHost(host));
			is("freed again", 700, cu.cuMemFreeHost(host));
			is("what is in it", 7, *(volatile uint8_t *)host);
			begin_again();
			if (left == 1)
				is("what the context had", 1, cu.cuMemFreeHost(host));
		}
}

/* Its own context has ended, by which it is freed; the one in which it is asked for has failed. */
static void program_frees_in_another_failed_context(void)
{
	const size_t sizes[] = {1 << 20, 64};

	begin();
	for (int i = 0; i < 2; i++) {
		CUcontext context = NULL;
		void *host = NULL;

		MUST(cuCtxCreate_v2(&context, 0, 0));
		MUST(cuMemHostAlloc(&host, sizes[i], 0));
		MUST(cuCtxDestroy_v2(context));
		launch_fault();
		MUST(cuMemFreeHost(host));
		is("freed again", 1, cu.cuMemFreeHost(host));
		begin_again();
	}
}

/* The page-locked memory behind a managed variable, which the program knows nothing of. */
static void program_unloads_what_stays_locked(void)
{
	static const char text[] = ".version 6.0\n.target sm_50\n.address_size 64\n"
				   ".visible .global .attribute(.managed) .align 4 .b8 made[16777216];\n";
	CUdeviceptr pointer = 0;
	CUmodule module = NULL;
	size_t bytes;

	begin();
	for (int round = 0; round < 10; round++) {
		MUST(cuModuleLoadData(&module, text));
		MUST(cuModuleGetGlobal_v2(&pointer, &bytes, module, "made"));
		MUST(cuModuleUnload(module));
		begin_again();
	}
}

/* What fails has not been done: what failed before is no reason to say so of what will run. */
static void program_gets_earlier_failures(void)
{
	CUdeviceptr pointer;
	int first = 0;
	CUresult r;

	begin();
	MUST(cuMemAlloc_v2(&pointer, 4096));
	fail_unnoticed(pointer);
	r = cu.cuStreamAddCallback(NULL, callback_counts, &first, 0);
	if (!r)
		fail("an earlier failure was not told", r);
	(void)cu.cuCtxSynchronize();
	(void)usleep(100000);
	is("calls of a callback that failed", 0, first);
	fail_unnoticed(pointer);
	r = cu.cuLaunchHostFunc(NULL, function_runs, NULL);
	if (!r)
		fail("an earlier failure was not told", r);
	(void)cu.cuCtxSynchronize();
	(void)usleep(100000);
	is("calls of a function that failed", 0, ran);
	MUST(cuLaunchHostFunc(NULL, function_runs, NULL));
	MUST(cuCtxSynchronize());
	is("calls of one that did not", 1, ran);
}

/* Nothing waits any more for a capture that no call can end: what fails is told by a call that waits. */
static void program_defers_again_without_its_capture(void)
{
	CUcontext context = NULL, other = NULL;
	CUstream stream = NULL;
	CUdeviceptr pointer;

	begin();
	MUST(cuCtxGetCurrent(&context));
	MUST(cuMemAlloc_v2(&pointer, 4096));
	MUST(cuStreamCreate(&stream, 1));
	MUST(cuStreamBeginCapture_v2(stream, 2));
	MUST(cuStreamDestroy_v2(stream));
	MUST(cuMemsetD8Async(pointer, 1, 4096, NULL));
	is("behind a stream that is gone", 2, cu.cuCtxSynchronize());
	MUST(cuCtxCreate_v2(&other, 0, 0));
	MUST(cuStreamCreate(&stream, 1));
	MUST(cuStreamBeginCapture_v2(stream, 2));
	MUST(cuCtxDestroy_v2(other));
	MUST(cuCtxSetCurrent(context));
	MUST(cuMemsetD8Async(pointer, 1, 4096, NULL));
	is("behind a context that is gone", 2, cu.cuCtxSynchronize());
	MUST(cuCtxCreate_v2(&other, 0, 0));
	MUST(cuStreamCreate(&stream, 1));
	MUST(cuCtxSetCurrent(context));
	MUST(cuStreamBeginCapture_v2(stream, 2));
	MUST(cuCtxDestroy_v2(other));
	MUST(cuMemsetD8Async(pointer, 1, 4096, NULL));
	is("behind another's that is gone", 2, cu.cuCtxSynchronize());
}

/* A call that has made, begun or ended something says so; that one failed before is told by the next that waits. */
static void program_makes_things_behind_a_failure(void)
{
	enum { SMALL = 4096, GLOBAL = 1 };
	void *host = NULL, *small[2] = {NULL, NULL};
	CUdeviceptr pointer, other, managed[2] = {0, 0};
	CUstream stream = NULL;
	CUfunction function;
	CUmodule module;
	CUgraph graph;

	begin();
	MUST(cuMemAlloc_v2(&pointer, 4096));
	MUST(cuMemAlloc_v2(&other, 4096));
	MUST(cuStreamCreate(&stream, 1));
	/* Of small pieces, which are parts of a larger one, another is there when one is freed. */
	for (int i = 0; i < 2; i++) {
		MUST(cuMemHostAlloc(&small[i], SMALL, 0));
		MUST(cuMemAllocManaged(&managed[i], SMALL, GLOBAL));
	}
	fail_unnoticed(pointer);
	MUST(cuMemFreeHost(small[0]));
	MUST(cuMemFree_v2(managed[0]));
	MUST(cuMemHostAlloc(&host, 1 << 20, 0));
	MUST(cuMemFreeHost(host));
	MUST(cuMemFree_v2(other));
	is("freed twice", 1, cu.cuMemFree_v2(other));
	MUST(cuStreamBeginCapture_v2(stream, 0));
	MUST(cuStreamEndCapture(stream, &graph));
	is("a synchronization", 2, cu.cuCtxSynchronize());
	MUST(cuCtxSynchronize());
	fail_unnoticed(pointer);
	is("code behind a failure", 2, cu.cuModuleLoadData(&module, kernels));
	MUST(cuModuleLoadData(&module, kernels));
	MUST(cuModuleGetFunction(&function, module, "nop"));
	fail_unnoticed(pointer);
	MUST(cuModuleUnload(module));
	is("a launch", 400, cu.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
	is("the end of it", 2, cu.cuCtxSynchronize());
}

/* The first copy is of what it begins as. What the next could not bring is not taken for what the device has. */
static void program_has_a_variable_that_is_not_copied(void)
{
	static const char text[] = ".version 6.0\n.target sm_50\n.address_size 64\n"
				   ".visible .global .attribute(.managed) .align 4 .u32 made = 5;\n";
	CUdeviceptr pointer = 0, other;
	size_t bytes = 0;
	CUmodule module;

	begin();
	MUST(cuMemAlloc_v2(&other, 4096));
	MUST(cuModuleLoadData(&module, text));
	MUST(cuModuleGetGlobal_v2(&pointer, &bytes, module, "made"));
	*(volatile unsigned *)(uintptr_t)pointer = 6;
	MUST(cuMemsetD32Async(other, 0, 1, NULL));
	MUST(cuCtxSynchronize());
	is("the variable", 6, *(volatile unsigned *)(uintptr_t)pointer);
	is("the next that waits", 2, cu.cuCtxSynchronize());
	MUST(cuCtxSynchronize());
	is("the variable", 6, *(volatile unsigned *)(uintptr_t)pointer);
}

static void program_has_many_host_nodes(void)
{
	CUDA_HOST_NODE_PARAMS parameters = {function_runs, NULL};

	begin();
	for (int i = 0; i < 20; i++) {
		CUgraphNode node = NULL;
		CUgraph graph = NULL;

		MUST(cuGraphCreate(&graph, 0));
		for (int k = 0; k < 1000; k++)
			MUST(cuGraphAddHostNode(&node, graph, NULL, 0, &parameters));
		MUST(cuGraphDestroy(graph));
	}
	MUST(cuLaunchHostFunc(NULL, function_runs, NULL));
	MUST(cuCtxSynchronize());
	is("calls", 1, ran);
}

/* Large pieces are counted apart. */
static size_t bytes_allocated(void)
{
	const struct mallinfo2 now = mallinfo2();

	return now.uordblks + now.hblkhd;
}

static void program_sets_functions_of_nodes_that_are_none(void)
{
	enum { CALLS = 20000, FIRST = 100, MOST = 65536 };
	const CUDA_HOST_NODE_PARAMS parameters = {function_runs, NULL};
	size_t before = 0;

	begin();
	for (int i = 0; i < CALLS; i++) {
		is_failure("a node that is none", cu.cuGraphHostNodeSetParams(NULL, &parameters));
		if (i == FIRST)
			before = bytes_allocated();
	}
	if (bytes_allocated() > before + MOST)
		fail("bytes more than before", (long long)(bytes_allocated() - before));
}

/* ---- much of something ---- */

static void program_has_a_large_graph(void)
{
	enum { NODES = 1500 };
	static CUgraphNode nodes[NODES], listed[NODES + 10], from[NODES], to[NODES];
	size_t count = NODES + 10, edges = NODES;
	CUgraph graph = NULL;

	begin();
	MUST(cuGraphCreate(&graph, 0));
	for (int i = 0; i < NODES; i++)
		MUST(cuGraphAddEmptyNode(&nodes[i], graph, i ? &nodes[i - 1] : NULL, i > 0));
	MUST(cuGraphGetNodes(graph, listed, &count));
	is("nodes", NODES, (long long)count);
	for (int i = 0; i < NODES; i++)
		if (listed[i] != nodes[i])
			fail("another node", i);
	MUST(cuGraphGetEdges(graph, from, to, &edges));
	is("edges", NODES - 1, (long long)edges);
	for (int i = 0; i + 1 < NODES; i++)
		if (from[i] != nodes[i] || to[i] != nodes[i + 1])
			fail("another edge", i);
}

/* A node behind as many as a barrier has, by each of the ways to add one; and in a capture. */
static void program_has_nodes_with_many_dependencies(void)
{
	enum { NODES = 1200 };
	static CUgraphNode nodes[NODES], same[NODES];
	CUDA_KERNEL_NODE_PARAMS parameters;
	const CUgraphNode *before = NULL;
	CUgraph graph = NULL, captured;
	CUgraphNode node = NULL;
	CUstream stream = NULL;
	CUmodule module;
	size_t count = 0;
	int status = 0;

	begin();
	MUST(cuGraphCreate(&graph, 0));
	MUST(cuStreamCreate(&stream, 1));
	MUST(cuModuleLoadData(&module, kernels));
	memset(&parameters, 0, sizeof(parameters));
	MUST(cuModuleGetFunction(&parameters.function, module, "nop"));
	parameters.grid_x = parameters.grid_y = parameters.grid_z = 1;
	parameters.block_x = parameters.block_y = parameters.block_z = 1;
	for (int i = 0; i < NODES; i++)
		MUST(cuGraphAddEmptyNode(&nodes[i], graph, NULL, 0));
	MUST(cuGraphAddKernelNode_v2(&node, graph, nodes, NODES, &parameters));
	MUST(cuGraphNodeGetDependencies(node, NULL, &count));
	is("dependencies of a kernel", NODES, (long long)count);
	MUST(cuGraphAddEmptyNode(&node, graph, NULL, 0));
	for (int i = 0; i < NODES; i++)
		same[i] = node;
	MUST(cuGraphAddDependencies(graph, nodes, same, NODES));
	MUST(cuGraphNodeGetDependencies(node, NULL, &count));
	is("dependencies that were added", NODES, (long long)count);
	MUST(cuStreamBeginCaptureToGraph(stream, graph, nodes, NULL, NODES, 2));
	MUST(cuStreamGetCaptureInfo_v2(stream, &status, NULL, NULL, &before, &count));
	is("dependencies of what is captured", NODES, (long long)count);
	for (int i = 0; i < NODES; i++)
		is("one of them", 1, before[i] == nodes[i]);
	MUST(cuLaunchHostFunc(stream, function_runs, NULL));
	MUST(cuStreamEndCapture(stream, &captured));
	is("the graph", 1, captured == graph);
}

static CUcontext looked_in;
static CUstream looked_at;

static void *thread_looks(void *nothing)
{
	const CUgraphNode *before;
	size_t count = 0;
	int status = 0;

	MUST(cuCtxSetCurrent(looked_in));
	MUST(cuStreamGetCaptureInfo_v2(looked_at, &status, NULL, NULL, &before, &count));
	is("dependencies", 1200, (long long)count);
	return nothing;
}

/* What each of them is told lies in memory that nobody frees when it ends. */
static void program_has_threads_that_look_at_many_dependencies(void)
{
	enum { NODES = 1200, THREADS = 64, FIRST = 4, MOST = 262144 };
	static CUgraphNode nodes[NODES];
	CUgraph graph = NULL, captured;
	size_t before = 0;

	begin();
	MUST(cuCtxGetCurrent(&looked_in));
	MUST(cuGraphCreate(&graph, 0));
	MUST(cuStreamCreate(&looked_at, 1));
	for (int i = 0; i < NODES; i++)
		MUST(cuGraphAddEmptyNode(&nodes[i], graph, NULL, 0));
	MUST(cuStreamBeginCaptureToGraph(looked_at, graph, nodes, NULL, NODES, 2));
	for (int i = 0; i < THREADS; i++) {
		pthread_t thread;

		(void)pthread_create(&thread, NULL, thread_looks, NULL);
		(void)pthread_join(thread, NULL);
		if (i == FIRST)
			before = mallinfo2().uordblks;
	}
	if (mallinfo2().uordblks > before + MOST)
		fail("bytes more than before", (long long)(mallinfo2().uordblks - before));
	MUST(cuStreamEndCapture(looked_at, &captured));
}

/* It is not opened, which could wait for whoever has the file system: nothing but memory can be the server's, too. */
static void program_registers_a_file_of_a_disk(void)
{
	enum { BYTES = 65536, TMPFS = 0x01021994 };
	char path[] = "/var/tmp/programs-XXXXXX", event[256];
	CUdeviceptr device = 0;
	struct statfs system;
	int fd, watch;
	void *memory;

	begin();
	fd = mkstemp(path);
	if (fd < 0 || ftruncate(fd, BYTES) < 0 || fstatfs(fd, &system) < 0)
		fail("a file", errno);
	memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	(void)close(fd);
	watch = inotify_init1(IN_NONBLOCK);
	if (memory == MAP_FAILED || inotify_add_watch(watch, path, IN_OPEN) < 0)
		fail("a file that is watched", errno);
	MUST(cuMemHostRegister_v2(memory, BYTES, 3));
	if (system.f_type != TMPFS)
		is("its address on the device", 801, cu.cuMemHostGetDevicePointer_v2(&device, memory, 0));
	(void)unlink(path);
	if (system.f_type != TMPFS && read(watch, event, sizeof(event)) > 0)
		fail("it was opened", 0);
	MUST(cuMemHostUnregister(memory));
}

static void program_loads_and_unloads(void)
{
	size_t before = 0;

	begin();
	for (int i = 0; i < 2000; i++) {
		CUfunction function;
		CUmodule module;

		MUST(cuModuleLoadData(&module, kernels));
		MUST(cuModuleGetFunction(&function, module, "nop"));
		MUST(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
		MUST(cuModuleUnload(module));
		if (i == 500)
			before = mallinfo2().uordblks;
	}
	if (mallinfo2().uordblks > before + 65536)
		fail("bytes more than before", (long long)(mallinfo2().uordblks - before));
}

/* ---- images ---- */

static void load_file(const void *data, size_t bytes)
{
	char path[] = "/tmp/vcuda-image-XXXXXX";
	const int fd = mkstemp(path);
	CUlibrary loaded;
	CUmodule module;

	if (fd < 0 || write(fd, data, bytes) != (ssize_t)bytes)
		fail("a file", errno);
	(void)close(fd);
	is("cuModuleLoad", 200, cu.cuModuleLoad(&module, path));
	is("cuLibraryLoadFromFile", 200, cu.cuLibraryLoadFromFile(&loaded, path, NULL, NULL, 0, NULL, NULL, 0));
	(void)unlink(path);
}

static void program_loads_cut_files(void)
{
	struct {
		uint32_t magic;
		uint16_t version, header;
		uint64_t bytes;
	} fat = {0xba55ed50, 1, 16, (uint64_t)1 << 29};
	struct {
		uint32_t magic, version;
		const void *data, *file;
	} wrapper = {0x466243b1, 1, (const void *)8, NULL};
	Elf64_Ehdr header = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT}};

	begin();
	header.e_shoff = (Elf64_Off)1 << 40;
	header.e_shnum = 4;
	header.e_shentsize = sizeof(Elf64_Shdr);
	load_file(&header, sizeof(header));
	header.e_shoff = sizeof(header);
	load_file(&header, sizeof(header));
	load_file(&header, 20);
	load_file(&fat, sizeof(fat));
	load_file(&fat, 6);
	load_file(&wrapper, sizeof(wrapper));
}

static void program_asks_for_a_variable_that_is_gone(void)
{
	CUdeviceptr pointer = 0, base;
	size_t bytes = 0;
	CUmodule module;

	begin();
	MUST(cuModuleLoadData(&module, kernels));
	MUST(cuModuleGetGlobal_v2(&pointer, &bytes, module, "counter"));
	MUST(cuMemGetAddressRange_v2(&base, &bytes, pointer));
	MUST(cuModuleUnload(module));
	is("its address", 500, cu.cuMemGetAddressRange_v2(&base, &bytes, pointer));
}

/*
 * With addresses of 32 bits, as before CUDA 3.2: other functions than today's, which are exported and refused, and are
 * not there for whoever asks by name and version.
 */
static void program_calls_old_names(void)
{
	static const char *const names[] = {"cuCtxCreate", "cuMemAlloc", "cuMemcpyDtoDAsync", "cuParamSetTexRef"};

	begin();
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		CUresult (*called)(void) = NULL;
		void *found = NULL, *exported = dlsym(library, names[i]);
		int status = -1;

		is(names[i], 500, cu.cuGetProcAddress_v2(names[i], &found, 3010, 0, &status));
		is("its status", i < 3 ? 2 : 1, status);
		if (found || !exported)
			fail(names[i], 0);
		memcpy(&called, &exported, sizeof(called));
		is(names[i], 801, called());
	}
}

static void program_links_with_many_options(void)
{
	int names[32];
	void *values[32] = {0}, *image;
	CUlinkState state = NULL;
	size_t bytes;

	begin();
	for (int i = 0; i < 32; i++)
		names[i] = 12; /* more of the log */
	MUST(cuLinkCreate_v2(0, NULL, NULL, &state));
	MUST(cuLinkAddData_v2(state, 1, (void *)kernels, sizeof(kernels), "k", 32, names, values));
	MUST(cuLinkComplete(state, &image, &bytes));
	MUST(cuLinkDestroy(state));
}

/* ---- sizes ---- */

static void program_copies_planes_without_end(void)
{
	static char host[4096];
	CUDA_MEMCPY2D copy = {0};
	CUdeviceptr pointer;

	begin();
	MUST(cuMemAlloc_v2(&pointer, 4096));
	copy.src_type = 1;
	copy.src_host = host;
	copy.dst_type = 2;
	copy.dst_device = pointer;
	copy.width = copy.src_pitch = copy.dst_pitch = (size_t)1 << 33;
	copy.height = (size_t)1 << 31;
	is("cuMemcpy2D", 1, cu.cuMemcpy2D_v2(&copy));
	copy.width = copy.src_pitch = copy.dst_pitch = ((size_t)1 << 33) + 1;
	is("cuMemcpy2D", 1, cu.cuMemcpy2D_v2(&copy));
}

static void program_has_names_of_any_length(void)
{
	char *name = malloc(256), *bus = malloc(32);

	begin();
	memset(name, 'x', 256);
	memset(bus, 'x', 32);
	MUST(cuDeviceGetName(name, INT32_MAX, 0));
	MUST(cuDeviceGetPCIBusId(bus, INT32_MAX, 0));
	if (strlen(name) > 64 || strlen(bus) > 16)
		fail("their lengths", (long long)(strlen(name) + strlen(bus)));
	free(name);
	free(bus);
}

/* ---- addresses and streams that are none ---- */

static void program_copies_what_is_gone(void)
{
	static char host[8192];
	CUDA_MEMCPY2D copy = {.src_type = 4, .dst_type = 1, .dst_host = host, .width = 16, .height = 2};
	CUdeviceptr gone, there;

	begin();
	MUST(cuMemAlloc_v2(&gone, 4096));
	MUST(cuMemAlloc_v2(&there, 4096));
	MUST(cuMemFree_v2(gone));
	is("to memory that is gone", 1, cu.cuMemcpy(gone, (CUdeviceptr)(uintptr_t)host, 4096));
	is("from memory that is gone", 1, cu.cuMemcpy((CUdeviceptr)(uintptr_t)host, gone, 4096));
	is("from there to the device", 1, cu.cuMemcpyAsync(there, gone, 4096, NULL));
	is("from the device to there", 1, cu.cuMemcpyAsync(gone, there, 4096, NULL));
	is("to nowhere", 1, cu.cuMemcpy(0, (CUdeviceptr)(uintptr_t)host, 16));
	is("from nowhere", 1, cu.cuMemcpy((CUdeviceptr)(uintptr_t)host, 0, 16));
	copy.src_device = gone;
	is("a plane of it", 1, cu.cuMemcpy2D_v2(&copy));
	MUST(cuMemcpy((CUdeviceptr)(uintptr_t)host, (CUdeviceptr)(uintptr_t)host + 4096, 4096));
}

/* What does not wait says so at once, too. */
static void program_names_streams_that_are_none(void)
{
	static char host[4096];
	CUstream none = (CUstream)host;
	CUfunction function;
	CUdeviceptr pointer;
	CUmodule module;
	CUevent event;

	begin();
	MUST(cuMemAlloc_v2(&pointer, 4096));
	MUST(cuModuleLoadData(&module, kernels));
	MUST(cuModuleGetFunction(&function, module, "nop"));
	MUST(cuEventCreate(&event, 0));
	is("cuMemcpyHtoDAsync", 400, cu.cuMemcpyHtoDAsync_v2(pointer, host, 16, none));
	is("cuMemcpyDtoHAsync", 400, cu.cuMemcpyDtoHAsync_v2(host, pointer, 16, none));
	is("cuMemsetD8Async", 400, cu.cuMemsetD8Async(pointer, 0, 16, none));
	is("cuLaunchKernel", 400, cu.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, none, NULL, NULL));
	is("cuLaunchHostFunc", 400, cu.cuLaunchHostFunc(none, function_runs, NULL));
	is("cuStreamAddCallback", 400, cu.cuStreamAddCallback(none, callback_counts, host, 0));
	is("cuEventRecord", 400, cu.cuEventRecord(event, none));
	is("cuStreamWaitEvent", 400, cu.cuStreamWaitEvent(none, event, 0));
	MUST(cuCtxSynchronize());
}

/* The driver goes by the address. */
static void program_calls_the_devices_memory_the_hosts(void)
{
	enum { HOST = 1, BYTES = 1 << 20 };
	CUdeviceptr pointer, other;
	CUDA_MEMCPY2D plane = {
		.src_type = HOST, .src_pitch = 64, .dst_type = HOST, .dst_pitch = 64, .width = 8, .height = 4};
	unsigned word = 0;

	begin();
	MUST(cuMemAlloc_v2(&pointer, BYTES));
	MUST(cuMemAlloc_v2(&other, BYTES));
	MUST(cuMemsetD8_v2(pointer, 5, BYTES));
	for (size_t bytes = 16; bytes <= BYTES; bytes *= BYTES / 16) {
		MUST(cuMemsetD8_v2(other, 0, BYTES));
		MUST(cuMemcpyHtoD_v2(other, (const void *)(uintptr_t)pointer, bytes));
		MUST(cuMemcpyDtoH_v2(&word, other + bytes - 4, 4));
		is("what was copied in", 0x05050505, word);
		MUST(cuMemsetD8_v2(other, 0, BYTES));
		MUST(cuMemcpyDtoH_v2((void *)(uintptr_t)other, pointer, bytes));
		MUST(cuMemcpyDtoH_v2(&word, other + bytes - 4, 4));
		is("what was copied out", 0x05050505, word);
	}
	MUST(cuMemsetD8_v2(other, 0, BYTES));
	plane.src_host = (const void *)(uintptr_t)pointer;
	plane.dst_host = (void *)(uintptr_t)other;
	MUST(cuMemcpy2D_v2(&plane));
	MUST(cuMemcpyDtoH_v2(&word, other + 3 * 64, 4));
	is("a plane", 0x05050505, word);
}

/* The same in graphs: from the one to the other, and to ordinary memory, which is made so and changed. */
static void program_calls_it_so_in_graphs(void)
{
	enum { HOST = 1, BYTES = 64 };
	static unsigned memory[BYTES / sizeof(unsigned)];
	CUDA_MEMCPY3D copy = {.src_type = HOST,
			      .src_pitch = BYTES,
			      .src_height = 1,
			      .dst_type = HOST,
			      .dst_pitch = BYTES,
			      .dst_height = 1,
			      .width = BYTES,
			      .height = 1,
			      .depth = 1};
	CUdeviceptr pointer, other;
	CUgraphNode within, out;
	CUcontext context = NULL;
	CUgraphExec exec = NULL;
	CUgraph graph = NULL;
	unsigned word = 0;

	begin();
	MUST(cuCtxGetCurrent(&context));
	MUST(cuMemAlloc_v2(&pointer, BYTES));
	MUST(cuMemAlloc_v2(&other, BYTES));
	MUST(cuMemsetD8_v2(pointer, 5, BYTES));
	MUST(cuMemsetD8_v2(other, 0, BYTES));
	MUST(cuGraphCreate(&graph, 0));
	copy.src_host = (const void *)(uintptr_t)pointer;
	copy.dst_host = (void *)(uintptr_t)other;
	MUST(cuGraphAddMemcpyNode(&within, graph, NULL, 0, &copy, context));
	MUST(cuGraphMemcpyNodeSetParams(within, &copy));
	copy.dst_host = memory;
	MUST(cuGraphAddMemcpyNode(&out, graph, &within, 1, &copy, context));
	MUST(cuGraphMemcpyNodeSetParams(out, &copy));
	MUST(cuGraphInstantiateWithFlags(&exec, graph, 0));
	MUST(cuGraphLaunch(exec, NULL));
	MUST(cuStreamSynchronize(NULL));
	MUST(cuMemcpyDtoH_v2(&word, other + BYTES - 4, 4));
	is("what a node copied within the device", 0x05050505, word);
	is("what a node copied out", 0x05050505, memory[BYTES / sizeof(unsigned) - 1]);
}

/* What it was told first, it may use as long as the node has the same parameters. */
static void program_asks_for_parameters_twice(void)
{
	static const char text[] =
		".version 6.0\n.target sm_50\n.address_size 64\n"
		".visible .entry fill(.param .u64 to, .param .u32 value, .param .u32 count)\n{\n\tret;\n}\n";
	CUDA_KERNEL_NODE_PARAMS parameters, found = {0}, again = {0};
	CUdeviceptr to = 0;
	unsigned value = 4711, count = 0;
	CUgraphNode node = NULL;
	CUgraph graph = NULL;
	CUmodule module;

	begin();
	memset(&parameters, 0, sizeof(parameters));
	MUST(cuModuleLoadData(&module, text));
	MUST(cuModuleGetFunction(&parameters.function, module, "fill"));
	parameters.grid_x = parameters.grid_y = parameters.grid_z = 1;
	parameters.block_x = parameters.block_y = parameters.block_z = 1;
	parameters.parameters = (void *[]){&to, &value, &count};
	MUST(cuGraphCreate(&graph, 0));
	MUST(cuGraphAddKernelNode_v2(&node, graph, NULL, 0, &parameters));
	MUST(cuGraphKernelNodeGetParams_v2(node, &found));
	MUST(cuGraphKernelNodeGetParams_v2(node, &again));
	is("the first answer", 4711, *(unsigned *)found.parameters[1]);
	MUST(cuGraphKernelNodeSetParams_v2(node, &found));
	MUST(cuGraphKernelNodeGetParams_v2(node, &again));
	is("the last answer", 4711, *(unsigned *)again.parameters[1]);
	/* Into the list that it was given it writes where it has another value. */
	value = 4712;
	found.parameters[1] = &value;
	MUST(cuGraphKernelNodeSetParams_v2(node, &found));
	value = 4713;
	MUST(cuGraphKernelNodeGetParams_v2(node, &again));
	is("the answer behind a change", 4712, *(unsigned *)again.parameters[1]);
}

static void program_has_little_room_for_a_log(void)
{
	enum { ERROR = 5, ERROR_BYTES = 6 };
	int options[] = {ERROR, ERROR_BYTES};
	char log[16];
	void *values[] = {log, (void *)(uintptr_t)8};
	CUmodule module;

	begin();
	memset(log, 'x', sizeof(log));
	is_failure("wrong code", cu.cuModuleLoadDataEx(&module, ".version 6.0\nnonsense\n", 2, options, values));
	is("the end of the log", 0, log[7]);
	is("what is behind it", 'x', log[8]);
	is("the length of the log", 7, (long long)strlen(log));
	for (int option = 0; option < 35; option++)
		if (1ULL << option & (0xfULL << 31 | 0x1fULL << 20 | 1ULL << 16 | 1ULL << 29)) {
			values[0] = (void *)(uintptr_t)1;
			must("an option", cu.cuModuleLoadDataEx(&module, kernels, 1, &option, values));
		}
}

static void function_waits(void *flag)
{
	while (!__atomic_load_n((int *)flag, __ATOMIC_ACQUIRE))
		(void)usleep(1000);
}

struct stuck {
	CUcontext context;
	CUstream stream;
	CUdeviceptr pointer;
	char *memory;
};

enum { STUCK = 3, STUCK_BYTES = 20 << 20 };

static void *thread_copies(void *argument)
{
	const struct stuck *stuck = argument;

	MUST(cuCtxSetCurrent(stuck->context));
	MUST(cuMemcpyDtoHAsync_v2(stuck->memory, stuck->pointer, STUCK_BYTES, stuck->stream));
	return NULL;
}

/* Threads copy much from streams that go on only when another thread has copied. */
static void program_copies_beside_copies_that_wait(void)
{
	struct stuck stuck[STUCK + 1];
	pthread_t thread[STUCK];
	CUevent event = NULL;
	int flag = 0;

	begin();
	MUST(cuEventCreate(&event, 2));
	for (int i = 0; i <= STUCK; i++) {
		MUST(cuCtxGetCurrent(&stuck[i].context));
		MUST(cuStreamCreate(&stuck[i].stream, 1));
		MUST(cuMemAlloc_v2(&stuck[i].pointer, STUCK_BYTES));
		stuck[i].memory = calloc(1, STUCK_BYTES);
	}
	MUST(cuMemsetD8_v2(stuck[0].pointer, 7, STUCK_BYTES));
	/* None of these streams waits for the null stream. */
	MUST(cuCtxSynchronize());
	MUST(cuLaunchHostFunc(stuck[0].stream, function_waits, &flag));
	MUST(cuEventRecord(event, stuck[0].stream));
	for (int i = 0; i < STUCK; i++) {
		MUST(cuStreamWaitEvent(stuck[i].stream, event, 0));
		(void)pthread_create(&thread[i], NULL, thread_copies, &stuck[i]);
	}
	(void)usleep(100000);
	MUST(cuMemcpyHtoDAsync_v2(stuck[STUCK].pointer, stuck[STUCK].memory, STUCK_BYTES, stuck[STUCK].stream));
	MUST(cuMemcpyDtoHAsync_v2(stuck[STUCK].memory, stuck[STUCK].pointer, STUCK_BYTES, stuck[STUCK].stream));
	__atomic_store_n(&flag, 1, __ATOMIC_RELEASE);
	for (int i = 0; i < STUCK; i++)
		(void)pthread_join(thread[i], NULL);
	is("what came of it", 7, stuck[0].memory[STUCK_BYTES - 1]);
}

/* As the CUDA runtime does. */
static void program_asks_for_managed_variables_without_a_context(void)
{
	static const char text[] = ".version 6.0\n.target sm_50\n.address_size 64\n"
				   ".visible .global .attribute(.managed) .align 4 .u32 made = 5;\n";
	CUlibrary code = NULL;
	CUdeviceptr pointer = 0;
	CUcontext context = NULL;

	begin();
	MUST(cuLibraryLoadData(&code, text, NULL, NULL, 0, NULL, NULL, 0));
	MUST(cuCtxSetCurrent(NULL));
	MUST(cuLibraryGetManaged(&pointer, NULL, code, "made"));
	is("the variable", 5, *(volatile unsigned *)(uintptr_t)pointer);
	MUST(cuCtxGetCurrent(&context));
	is("the current context", 0, context != NULL);
}

/* ---- cases ---- */

static const struct {
	const char *title;
	void (*run)(void);
	bool asked_for; /* only with a word of its title: it needs a driver that has faults */
} cases[] = {
	{"that closes all descriptors", program_closes_all, false},
	{"that closes all descriptors and opens others", program_closes_all_and_opens_others, false},
	{"that has a socket of its own in the connection's place", program_has_a_socket_in_the_same_place, false},
	{"that has no standard descriptors", program_has_no_standard_descriptors, false},
	{"that may have few descriptors", program_may_have_few_descriptors, false},
	{"that has a file of its own in the place of NVML's connection", program_closes_what_nvml_has, false},
	{"that forks while a thread begins with NVML", program_forks_while_nvml_begins, false},
	{"that has a child with threads which ask NVML", program_has_a_child_with_threads_that_ask_nvml, false},
	{"that forks while a thread begins", program_forks_while_it_begins, false},
	{"that forks while threads ask", program_forks_while_it_asks, false},
	{"that has a child which writes into its page-locked memory", program_has_a_child_that_writes, false},
	{"that has more threads than places, one after the other", program_has_threads_one_after_the_other, false},
	{"that has more threads than places at once", program_has_too_many_threads_at_once, false},
	{"that has names of any length", program_has_names_of_any_length, false},
	{"that copies what is gone", program_copies_what_is_gone, false},
	{"that names streams that are none", program_names_streams_that_are_none, false},
	{"that blocks a signal after its first calls", program_blocks_signals_later, false},
	{"that wants its waits to sleep", program_wants_waits_to_sleep, false},
	{"that is interrupted while it connects", program_is_interrupted, false},
	{"that unloads the library", program_unloads, false},
	{"whose server crashed", program_goes_on_without_a_server, true},
	{"that asks a child for the driver's version", program_asks_a_child_for_the_version, true},
	{"that is refused what it frees", program_is_refused_a_free, true},
	{"that frees memory in failed contexts", program_frees_in_failed_contexts, true},
	{"that frees memory of a context that has ended in a failed one", program_frees_in_another_failed_context,
	 false},
	{"whose variables stay locked until a reset", program_unloads_what_stays_locked, true},
	{"that hears of an earlier failure", program_gets_earlier_failures, true},
	{"that makes things behind an earlier failure", program_makes_things_behind_a_failure, true},
	{"whose failure comes later, once its capture is gone", program_defers_again_without_its_capture, true},
	{"that has a variable whose copy is a failure", program_has_a_variable_that_is_not_copied, true},
	{"with 20000 functions of the host in graphs", program_has_many_host_nodes, false},
	{"that sets functions of nodes that are none", program_sets_functions_of_nodes_that_are_none, false},
	{"with a graph of 1500 nodes", program_has_a_large_graph, false},
	{"with nodes behind 1200 others", program_has_nodes_with_many_dependencies, false},
	{"with threads that look at many dependencies", program_has_threads_that_look_at_many_dependencies, false},
	{"that registers a file of a disk", program_registers_a_file_of_a_disk, false},
	{"that loads and unloads code 2000 times", program_loads_and_unloads, false},
	{"that loads files which are cut off", program_loads_cut_files, false},
	{"that asks for a variable that is gone", program_asks_for_a_variable_that_is_gone, false},
	{"that calls functions of before CUDA 3.2", program_calls_old_names, false},
	{"that links with many options", program_links_with_many_options, false},
	{"that asks for managed variables without a context", program_asks_for_managed_variables_without_a_context,
	 false},
	{"that calls the device's memory the host's", program_calls_the_devices_memory_the_hosts, false},
	{"that calls it so in graphs", program_calls_it_so_in_graphs, false},
	{"that asks for a kernel's parameters twice", program_asks_for_parameters_twice, false},
	{"that has little room for a log", program_has_little_room_for_a_log, false},
	{"that copies beside copies which wait for it", program_copies_beside_copies_that_wait, false},
	{"that copies planes without end", program_copies_planes_without_end, false},
};
enum { CASES = sizeof(cases) / sizeof(cases[0]) };

static bool run_case(size_t index)
{
	const pid_t child = fork();
	int status = 0;

	if (child == 0) {
		(void)alarm(SOON);
		cases[index].run();
		_exit(0);
	}
	(void)waitpid(child, &status, 0);
	if (status)
		printf("# ended with %#x\n", (unsigned)status);
	return status == 0;
}

int main(int argc, char **argv)
{
	int failures = 0, number = 0;

	for (size_t i = 0; i < CASES; i++) {
		if (argc > 1 ? !strstr(cases[i].title, argv[1]) : cases[i].asked_for)
			continue;
		(void)fflush(stdout);
		if (run_case(i)) {
			printf("ok %d - a program %s\n", ++number, cases[i].title);
		} else {
			printf("not ok %d - a program %s\n", ++number, cases[i].title);
			failures++;
		}
	}
	printf("1..%d\n", number);
	return failures > 0;
}

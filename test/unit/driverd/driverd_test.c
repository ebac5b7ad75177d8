/* SPDX-License-Identifier: Apache-2.0 */

/*
 * ctr-gpu-driverd and its client, with libraries that misbehave in every way thought of (test/unit/driverd/). The build
 * directory is found from the running program: build/test/unit/driverd_test.
 */

#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"
#include "devcgroup/devcgroup.h"
#include "driverd/attempts.h"
#include "driverd/driverd.h"
#include "driverd/protocol.h"
#include "process/seccomp.h"

static char *build; /* directory */
static struct settings settings = {.driver_timeout_ms = 10000};

struct answer {
	int result;
	struct dxg_facts *facts;
	size_t count;
	struct err err;
};

static struct answer ask_path(const char *path)
{
	struct answer answer = {0};

	answer.result = driverd_dxcore_adapters(&settings, path, &answer.facts, &answer.count, &answer.err);
	/* However it ended, there is no child left. */
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
	return answer;
}

static struct answer ask(const char *library)
{
	char *path;
	struct answer answer;

	assert_int_equal(str_format(&path, "%s/test/lib/%s.so", build, library), 0);
	answer = ask_path(path);
	free(path);
	return answer;
}

static void assert_error(const struct answer *answer, int code, const char *words)
{
	const char *message = unit_message(&answer->err);
	size_t lines = 1;

	if (!strstr(message, words))
		print_error("\"%s\" is not in \"%s\"\n", words, message);
	assert_int_equal(answer->result, code);
	assert_non_null(strstr(message, words));
	for (const char *c = message; *c; c++) {
		assert_true(*c == '\n' || (*c >= ' ' && *c <= '~'));
		lines += *c == '\n';
	}
	assert_true(lines == 2 || lines == 3);
}

static void gives_what_the_library_says(void **state)
{
	struct answer answer = ask("works");

	(void)state;
	assert_int_equal(answer.result, 0);
	assert_int_equal(answer.count, 1);
	assert_int_equal(answer.facts->luid.low, 0x1234);
	assert_int_equal(answer.facts->luid.high, -2);
	assert_int_equal(answer.facts->wddm_version, 3100);
	assert_int_equal(answer.facts->type_bits, D3DKMT_TYPE_RENDER | D3DKMT_TYPE_PARAVIRTUALIZED);
	assert_int_equal(answer.facts->vendor_id, 0x10de);
	assert_int_equal(answer.facts->device_id, 0x2684);
	assert_true(answer.facts->has_address);
	assert_int_equal(answer.facts->address.bus, 1);
	/* Of names the kernel is asked, and here is none. */
	assert_null(answer.facts->name);
	assert_string_equal(answer.facts->store, "/usr/lib/wsl/drivers/nv_dispi.inf_amd64_0123456789abcdef");
	dxg_facts_free(answer.facts, answer.count);
}

static void does_without_the_third_enumeration(void **state)
{
	struct answer answer = ask("older");

	(void)state;
	assert_int_equal(answer.result, 0);
	assert_int_equal(answer.count, 1);
	assert_int_equal(answer.facts->luid.low, 0x77);
	dxg_facts_free(answer.facts, answer.count);
}

static void names_a_library_that_is_not_there(void **state)
{
	struct answer answer = ask_path("/nonexistent/libdxcore.so"), relative = ask_path("libdxcore.so");

	(void)state;
	assert_error(&answer, CTR_GPU_E_DRIVER_LIBRARY, "/nonexistent/libdxcore.so cannot be loaded");
	assert_error(&relative, CTR_GPU_E_DRIVER_LIBRARY, "its path is not absolute");
}

static void names_what_a_library_lacks(void **state)
{
	struct answer empty = ask("empty"), undefined = ask("undefined");

	(void)state;
	assert_error(&empty, CTR_GPU_E_DRIVER_LIBRARY, "it has no D3DKMTEnumAdapters2");
	assert_error(&undefined, CTR_GPU_E_DRIVER_LIBRARY, "cannot be loaded");
}

static void names_the_signal_of_a_crash(void **state)
{
	struct answer crash = ask("crashes"), abortion = ask("aborts"), unnamed = ask("signals");

	(void)state;
	assert_error(&crash, CTR_GPU_E_DRIVER_LIBRARY, "crashes.so crashed (SIGSEGV)");
	assert_error(&abortion, CTR_GPU_E_DRIVER_LIBRARY, "aborts.so crashed (SIGABRT)");
	assert_error(&unnamed, CTR_GPU_E_DRIVER_LIBRARY, "signals.so crashed (signal 40)");
}

static void survives_a_library_that_exits(void **state)
{
	struct answer answer = ask("exits");

	(void)state;
	assert_error(&answer, CTR_GPU_E_DRIVER_LIBRARY, "ended with status 0 before");
}

static void gives_up_on_a_library_that_hangs(void **state)
{
	struct timespec start, end;
	struct answer answer;

	(void)state;
	settings.driver_timeout_ms = 200;
	(void)clock_gettime(CLOCK_MONOTONIC, &start);
	answer = ask("hangs");
	(void)clock_gettime(CLOCK_MONOTONIC, &end);
	settings.driver_timeout_ms = 10000;
	assert_error(&answer, CTR_GPU_E_DRIVER_TIMEOUT, "hangs.so did not answer within 0.2 s");
	assert_true(end.tv_sec - start.tv_sec <= 5);
}

static void refuses_counts_beyond_the_room(void **state)
{
	struct answer answer = ask("counts");

	(void)state;
	assert_error(&answer, CTR_GPU_E_DRIVER_LIBRARY, "counts more adapters than it was given room for");
}

static void passes_on_a_refusal(void **state)
{
	struct answer answer = ask("refuses");

	(void)state;
	assert_error(&answer, CTR_GPU_E_DRIVER_LIBRARY, "0xc0000001");
}

static void ends_strings_where_the_buffer_ends(void **state)
{
	struct answer answer = ask("unterminated");

	(void)state;
	assert_int_equal(answer.result, 0);
	assert_int_equal(answer.count, 2);
	assert_null(answer.facts[0].store);
	assert_int_equal(strlen(answer.facts[1].store), D3DKMT_MAX_PATH);
	dxg_facts_free(answer.facts, answer.count);
}

enum { NOBODY = 65534 };

/* Some other service: a program begun as that user, which others of it may look at. */
static pid_t start_neighbour(void)
{
	int pair[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe2(pair, O_CLOEXEC), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		if (setresgid(NOBODY, NOBODY, NOBODY) == 0 && setresuid(NOBODY, NOBODY, NOBODY) == 0)
			(void)execl("/bin/sleep", "sleep", "600", NULL);
		_exit(127);
	}
	(void)close(pair[1]);
	/* Closed by the exec. */
	assert_int_equal(read(pair[0], &byte, 1), 0);
	(void)close(pair[0]);
	return pid;
}

static void keeps_a_library_from_others_of_its_user(void **state)
{
	pid_t neighbour, pid;
	int wait_status;

	(void)state;
	/* Elsewhere what it could reach is the user's own, or the user namespace's. */
	if (!devcgroup_is_privileged())
		skip("needs root outside of user namespaces");
	neighbour = start_neighbour();
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		struct answer answer = ask("escapes");
		unsigned reached = answer.result == 0 ? answer.facts->luid.low : ~0U;

		_exit((reached & ATTEMPT_NEIGHBOURS ? 1 : 0) | (reached & ATTEMPT_THREADS ? 2 : 0));
	}
	assert_int_equal(waitpid(pid, &wait_status, 0), pid);
	assert_int_equal(kill(neighbour, SIGKILL), 0);
	assert_int_equal(waitpid(neighbour, NULL, 0), neighbour);
	assert_int_equal(wait_status, 0);
}

static void keeps_a_library_from_everything_else(void **state)
{
	struct answer answer;

	(void)state;
	assert_int_equal(setenv("CTR_GPU_SECRET", "1", 1), 0);
	assert_true(open("/etc/passwd", O_RDONLY) >= 0); /* not O_CLOEXEC, as in a careless caller */
	answer = ask("escapes");
	assert_int_equal(answer.result, 0);
	assert_int_equal(answer.facts->luid.low & ~(unsigned)(ATTEMPT_NEIGHBOURS | ATTEMPT_THREADS), 0);
	assert_int_equal(answer.facts->luid.high, 1);
	dxg_facts_free(answer.facts, answer.count);
}

/* Kernels before 5.9, and containers whose filter does not know the call. */
static void keeps_descriptors_from_a_library_without_close_range(void **state)
{
	static const unsigned refusals[] = {ENOSYS, EPERM};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(refusals); i++) {
		const struct sock_filter filter[] = {LOAD(nr), JUMP(BPF_JEQ, SYS_close_range, 0, 1),
						     REFUSE(refusals[i]), ALLOW};
		int wait_status;
		pid_t pid = fork();

		assert_true(pid >= 0);
		if (pid == 0) {
			struct answer answer;

			if (seccomp_install(filter, ARRAY_SIZE(filter)) < 0 &&
			    (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
			     seccomp_install(filter, ARRAY_SIZE(filter)) < 0))
				_exit(255);
			if (open("/etc/passwd", O_RDONLY) < 0) /* not O_CLOEXEC */
				_exit(254);
			answer = ask("escapes");
			_exit(answer.result != 0 ? 253 : (answer.facts->luid.low & ATTEMPT_DESCRIPTORS) != 0);
		}
		assert_int_equal(waitpid(pid, &wait_status, 0), pid);
		assert_true(WIFEXITED(wait_status));
		assert_int_equal(WEXITSTATUS(wait_status), 0);
	}
}

/*
 * What the library writes into the socket itself costs this process neither memory nor time: less than 1 MiB, and no longer than it
 * may take to answer.
 */
static void bounds_what_a_library_answers(void **state)
{
	static const char *const ways[] = {"flood", "garbage", "oversized", "empty", "missing",
					   "count", "text",    "behind",    "state", "holds"};
	char directory[] = "/tmp/ctr-gpu-test-XXXXXX";
	char *library;

	(void)state;
	assert_int_equal(str_format(&library, "%s/test/lib/answers.so", build), 0);
	assert_non_null(mkdtemp(directory));
	assert_int_equal(chmod(directory, 0755), 0);
	for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
		const bool holds = streq(ways[i], "holds");
		struct timespec start, end;
		struct rusage before, after;
		struct answer answer;
		char *link;

		settings.driver_timeout_ms = holds ? 1000 : 10000;

		assert_int_equal(str_format(&link, "%s/%s", directory, ways[i]), 0);
		assert_int_equal(symlink(library, link), 0);
		(void)clock_gettime(CLOCK_MONOTONIC, &start);
		assert_int_equal(getrusage(RUSAGE_SELF, &before), 0);
		answer = ask_path(link);
		assert_int_equal(getrusage(RUSAGE_SELF, &after), 0);
		(void)clock_gettime(CLOCK_MONOTONIC, &end);
		assert_int_equal(unlink(link), 0);
		free(link);
		if (after.ru_maxrss - before.ru_maxrss >= 1024)
			print_error("%s: %ld KiB\n", ways[i], after.ru_maxrss - before.ru_maxrss);
		assert_between(after.ru_maxrss - before.ru_maxrss, 0, 1023);
		assert_between(end.tv_sec - start.tv_sec, 0, holds ? 4 : 10);
		assert_error(&answer, holds ? CTR_GPU_E_DRIVER_TIMEOUT : CTR_GPU_E_DRIVER_LIBRARY, ways[i]);
		assert_null(answer.facts);
	}
	settings.driver_timeout_ms = 10000;
	assert_int_equal(rmdir(directory), 0);
	free(library);
}

static void starts_no_program_that_others_may_change(void **state)
{
	char *program = settings.driverd, path[] = "/tmp/ctr-gpu-test-driverd-XXXXXX";
	int fd = mkstemp(path);
	struct answer writable, missing;

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(fchmod(fd, 0775), 0);
	settings.driverd = path;
	writable = ask("works");
	assert_int_equal(unlink(path), 0);
	missing = ask("works");
	settings.driverd = program;
	(void)close(fd);
	assert_error(&writable, CTR_GPU_E_NO_PERMISSION, "others than root and the caller may change it");
	assert_error(&missing, -ENOENT, path);
}

/* A program that ends before it has read the question: the write meets a closed socket. */
static void survives_a_program_that_ends_at_once(void **state)
{
	char *program = settings.driverd;
	struct answer answer;

	(void)state;
	settings.driverd = (char *)"/bin/true";
	for (int i = 0; i < 20; i++) {
		answer = ask("works");
		assert_int_equal(answer.result, CTR_GPU_E_DRIVER_LIBRARY);
	}
	settings.driverd = program;
}

static bool pass_descriptor(int socket, int fd)
{
	char byte = 0, control[CMSG_SPACE(sizeof(fd))] = {0};
	struct iovec data = {&byte, 1};
	struct msghdr message = {
		.msg_iov = &data, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)};
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);

	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof(fd));
	memcpy(CMSG_DATA(header), &fd, sizeof(fd));
	return sendmsg(socket, &message, 0) == 1;
}

static int take_descriptor(int socket)
{
	char byte, control[CMSG_SPACE(sizeof(int))];
	struct iovec data = {&byte, 1};
	struct msghdr message = {
		.msg_iov = &data, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)};
	int fd;

	assert_int_equal(recvmsg(socket, &message, 0), 1);
	assert_non_null(CMSG_FIRSTHDR(&message));
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(fd));
	return fd;
}

/* Starts the program by hand, waiting for a question that nobody asks. Return: its pid; @ret_socket is the asker's end. */
static pid_t start_waiting(const char *milliseconds, int *ret_socket)
{
	int pair[2];
	pid_t pid;

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	pid = fork();
	if (pid == 0) {
		(void)dup2(pair[1], DRIVERD_SOCKET + 10);
		(void)dup2(DRIVERD_SOCKET + 10, DRIVERD_SOCKET);
		(void)execl(settings.driverd, "ctr-gpu-driverd", milliseconds, NULL);
		_exit(127);
	}
	(void)close(pair[1]);
	*ret_socket = pair[0];
	return pid;
}

/* How many filters of system calls a process has: this one may have some itself. */
static int count_filters(pid_t pid)
{
	char path[64], line[128];
	int count = 0;
	FILE *status;

	(void)snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	status = fopen(path, "re");
	while (status && fgets(line, sizeof(line), status))
		(void)sscanf(line, "Seccomp_filters: %d", &count);
	if (status)
		(void)fclose(status);
	return count;
}

/* Return: whether the other end is closed within some seconds. */
static bool is_closed_soon(int socket)
{
	struct pollfd end = {.fd = socket, .events = POLLIN};
	char byte;

	return poll(&end, 1, 60000) == 1 && read(socket, &byte, 1) == 0;
}

static void ends_by_itself_after_its_deadline(void **state)
{
	int socket, status;
	pid_t pid = start_waiting("100", &socket);

	(void)state;
	assert_true(is_closed_soon(socket));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	(void)close(socket);
}

static void ends_when_the_socket_is_closed(void **state)
{
	int socket, status;
	pid_t pid = start_waiting("60000", &socket);

	(void)state;
	(void)close(socket);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 1);
}

/* The parent dies while somebody else holds the asker's end open. */
static void ends_with_its_parent(void **state)
{
	int passing[2], status;
	pid_t parent;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, passing), 0);
	parent = fork();
	if (parent == 0) {
		int socket;
		const pid_t child = start_waiting("600000", &socket);

		(void)pass_descriptor(passing[1], socket);
		for (int i = 0; i < 6000 && count_filters(child) <= count_filters(getpid()); i++)
			(void)usleep(10000);
		_exit(0);
	}
	(void)close(passing[1]);
	passing[1] = take_descriptor(passing[0]);
	assert_int_equal(waitpid(parent, &status, 0), parent);
	assert_true(is_closed_soon(passing[1]));
	(void)close(passing[0]);
	(void)close(passing[1]);
}

static int find_build(void **state)
{
	char path[1024];
	ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);

	(void)state;
	if (length < 0)
		return -1;
	path[length] = '\0';
	for (int i = 0; i < 4; i++)
		*strrchr(path, '/') = '\0';
	build = strdup(path);
	return str_format(&settings.driverd, "%s/bin/ctr-gpu-driverd", build);
}

static int forget_build(void **state)
{
	(void)state;
	free(build);
	free(settings.driverd);
	return 0;
}

/* ---- NVML and libcuda ---- */

static char *library_path(const char *library)
{
	char *path;

	assert_int_equal(str_format(&path, "%s/test/lib/%s.so", build, library), 0);
	return path;
}

static void bounds_what_nvml_says(void **state)
{
	char *path = library_path("nvml");
	struct driverd_name *names = NULL;
	struct err err = {0};
	size_t count = 0;
	int everybodys;

	(void)state;
	/* Of an earlier run that did not come to its end. */
	(void)unlink("/tmp/ctr-gpu-nvml-test");
	(void)unlink("/tmp/ctr-gpu-nvml-everybodys");
	everybodys = open("/tmp/ctr-gpu-nvml-everybodys", O_RDWR | O_CREAT | O_CLOEXEC, 0666);
	assert_int_equal(fchmod(everybodys, 0666), 0);
	assert_int_equal(write(everybodys, "x", 1), 1);
	close(everybodys);
	assert_int_equal(driverd_nvml_names(&settings, path, true, "Do without.", &names, &count, &err), 0);
	assert_int_equal(count, 256);
	assert_int_equal(strlen(names[0].uuid), 96);
	assert_false(names[0].is_part);
	assert_true(names[1].is_part);
	/* A device node could be opened for both, and nothing else was gained. */
	assert_int_equal(names[1].gpu_instance, 1);
	assert_int_equal(access("/tmp/ctr-gpu-nvml-test", F_OK), -1);
	assert_int_equal(unlink("/tmp/ctr-gpu-nvml-everybodys"), 0);
	driverd_names_free(names, count);
	free(path);
}

static void bounds_the_processes_that_nvml_names(void **state)
{
	char *path = library_path("nvml");
	struct driverd_process *processes = NULL;
	struct driverd_name *names = NULL;
	size_t count = 7, process_count = 7;
	struct err err = {0};

	(void)state;
	assert_int_equal(driverd_nvml_processes(&settings, path, &names, &count, &processes, &process_count, &err),
			 CTR_GPU_E_DRIVER_LIBRARY);
	assert_non_null(strstr(err.text, "its answer is longer than one may be"));
	assert_null(names);
	assert_null(processes);
	assert_int_equal(count + process_count, 14);
	free(path);
}

/* What a driver library could answer in ctr-gpu-driverd's place. */
static void reads_processes_of_named_gpus_alone(void **state)
{
	static unsigned char datagram[DRIVERD_DATAGRAM_MAX];
	struct driverd_name name = {.refused = 4};
	struct driverd_process processes[] = {{.pid = 1, .percent = 100, .memory = 5, .draws = true},
					      {.pid = 2, .percent = DRIVERD_UNKNOWN_PERCENT}};
	const struct driverd_reply told = {.names = &name, .name_count = 1, .processes = processes, .process_count = 2};
	struct driverd_reply read = {0};
	size_t size = protocol_write_reply(DRIVERD_NVML_PROCESSES, &told, datagram);

	(void)state;
	assert_true(size > 0);
	assert_true(protocol_read_reply(DRIVERD_NVML_PROCESSES, datagram, size, &read));
	assert_int_equal(read.names[0].refused, 4);
	assert_int_equal(read.process_count, 2);
	assert_int_equal(read.processes[0].memory, 5);
	assert_true(read.processes[0].draws && !read.processes[0].computes);
	driverd_reply_clear(&read);
	processes[1].percent = 101;
	assert_int_equal(protocol_write_reply(DRIVERD_NVML_PROCESSES, &told, datagram), 0);
	processes[1] = (struct driverd_process){.name = 1};
	assert_int_equal(protocol_write_reply(DRIVERD_NVML_PROCESSES, &told, datagram), 0);
}

static void believes_no_absurd_version(void **state)
{
	char *path = library_path("nvml"), *empty = library_path("empty");
	int major = 7, minor = 7;
	struct err err = {0};

	(void)state;
	assert_int_equal(driverd_cuda_version(&settings, path, &major, &minor, &err), CTR_GPU_E_DRIVER_LIBRARY);
	assert_int_equal(driverd_cuda_version(&settings, empty, &major, &minor, &err), CTR_GPU_E_DRIVER_LIBRARY);
	assert_non_null(strstr(err.text, "it has no cuDriverGetVersion"));
	assert_int_equal(major, 7);
	assert_int_equal(minor, 7);
	free(path);
	free(empty);
}

static void names_what_is_no_nvml(void **state)
{
	static const char *const libraries[] = {"empty", "undefined", "works"};
	struct driverd_name *names = NULL;
	size_t count = 7;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(libraries); i++) {
		char *path = library_path(libraries[i]);
		struct err err = {0};

		assert_int_equal(driverd_nvml_names(&settings, path, true, "Do without.", &names, &count, &err),
				 CTR_GPU_E_DRIVER_LIBRARY);
		assert_non_null(strstr(err.text, path));
		assert_null(names);
		assert_int_equal(count, 7);
		free(path);
	}
}

/* All questions of a library; the answer to none, and no child left. */
static void expect_neither(const char *library, int code, const char *words)
{
	struct driverd_process *processes = NULL;
	struct driverd_name *names = NULL;
	char *path = library_path(library);
	struct answer answer = {0};
	int major = 7, minor = 7;
	size_t count = 7;

	answer.result = driverd_nvml_names(&settings, path, true, "Do without.", &names, &count, &answer.err);
	assert_error(&answer, code, words);
	answer.result = driverd_cuda_version(&settings, path, &major, &minor, &answer.err);
	assert_error(&answer, code, words);
	answer.result = driverd_nvml_processes(&settings, path, &names, &count, &processes, &count, &answer.err);
	assert_error(&answer, code, words);
	assert_null(processes);
	assert_null(names);
	assert_int_equal(count, 7);
	assert_int_equal(major, 7);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	free(path);
}

static void outlives_an_nvml_that_crashes(void **state)
{
	(void)state;
	expect_neither("nvml_crashes", CTR_GPU_E_DRIVER_LIBRARY, "nvml_crashes.so crashed (SIGSEGV)");
}

/* Return: what is read of a watch first. */
static int watch(const char *library, struct err *err)
{
	char *path = library_path(library);
	struct driverd_watch watch = DRIVERD_WATCH_NONE;
	struct driverd_event event = {0};
	struct pollfd wait = {.events = POLLIN};
	int r;

	assert_int_equal(driverd_watch_start(&settings, path, "GPU-1,GPU-2", &watch, err), 0);
	wait.fd = watch.socket;
	assert_int_equal(poll(&wait, 1, 20000), 1);
	r = driverd_watch_read(&watch, &event, err);
	free(event.uuid);
	driverd_watch_end(&watch);
	assert_int_equal(watch.pid, 0);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	free(path);
	return r;
}

static void says_why_it_cannot_watch(void **state)
{
	struct err err = {0};

	(void)state;
	assert_int_equal(watch("nvml", &err), CTR_GPU_E_DRIVER_LIBRARY);
	assert_non_null(strstr(err.text, "it has no nvmlEventSetCreate"));
	assert_int_equal(watch("nvml_crashes", &err), CTR_GPU_E_DRIVER_LIBRARY);
	assert_int_equal(watch("aborts", &err), -EPIPE);
}

/* Return: whether a process has its limits by now. @ret_cpu: that of the processor's time, which comes before the last. */
static bool read_limits(pid_t pid, char *ret_cpu, size_t size)
{
	_cleanup_free_ char *path = NULL, *text = NULL;
	const char *cpu, *files;

	assert_int_equal(str_format(&path, "/proc/%d/limits", (int)pid), 0);
	assert_int_equal(fd_read_file_at(AT_FDCWD, path, 8192, &text, NULL), 0);
	files = strstr(text, "Max open files            64 ");
	cpu = strstr(text, "Max cpu time");
	assert_non_null(cpu);
	(void)snprintf(ret_cpu, size, "%.*s", (int)strcspn(cpu, "\n"), cpu);
	return files != NULL;
}

/* A watch goes on for months. */
static void lets_a_watch_have_the_processor_as_long_as_it_lasts(void **state)
{
	_cleanup_free_ char *path = library_path("hangs");
	struct driverd_watch watch = DRIVERD_WATCH_NONE;
	char own[128], cpu[128] = "";
	struct err err = {0};

	(void)state;
	(void)read_limits(getpid(), own, sizeof(own));
	assert_int_equal(driverd_watch_start(&settings, path, "", &watch, &err), 0);
	for (int i = 0; i < 2000 && !read_limits(watch.pid, cpu, sizeof(cpu)); i++)
		(void)poll(NULL, 0, 10);
	driverd_watch_end(&watch);
	assert_string_equal(cpu, own);
}

static void tells_events_in_the_same_bytes(void **state)
{
	static unsigned char datagram[DRIVERD_DATAGRAM_MAX];
	const struct driverd_request asked = {DRIVERD_NVML_WATCH, (char *)"/x", (char *)"GPU-1"};
	struct driverd_reply told = {.event = {DRIVERD_EVENT_XID, (char *)"GPU-1", 79, 2, 3}}, read = {0};
	struct driverd_request question = {0};
	size_t size = protocol_write_reply(DRIVERD_NVML_WATCH, &told, datagram);

	(void)state;
	assert_true(size > 0 && protocol_read_reply(DRIVERD_NVML_WATCH, datagram, size, &read));
	assert_int_equal(read.event.kind, DRIVERD_EVENT_XID);
	assert_string_equal(read.event.uuid, "GPU-1");
	assert_int_equal(read.event.number, 79);
	assert_int_equal(read.event.gpu_instance, 2);
	assert_int_equal(read.event.compute_instance, 3);
	driverd_reply_clear(&read);
	told.event.kind = 4;
	assert_int_equal(protocol_write_reply(DRIVERD_NVML_WATCH, &told, datagram), 0);
	size = protocol_write_request(&asked, datagram);
	assert_true(size > 0 && protocol_read_request(datagram, size, &question));
	assert_string_equal(question.without, "GPU-1");
	free(question.library);
	free(question.without);
}

static void gives_up_on_an_nvml_that_hangs(void **state)
{
	(void)state;
	settings.driver_timeout_ms = 200;
	expect_neither("hangs", CTR_GPU_E_DRIVER_TIMEOUT, "hangs.so did not answer within 0.2 s");
	settings.driver_timeout_ms = 10000;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gives_what_the_library_says),
		cmocka_unit_test(does_without_the_third_enumeration),
		cmocka_unit_test(names_a_library_that_is_not_there),
		cmocka_unit_test(names_what_a_library_lacks),
		cmocka_unit_test(names_the_signal_of_a_crash),
		cmocka_unit_test(survives_a_library_that_exits),
		cmocka_unit_test(gives_up_on_a_library_that_hangs),
		cmocka_unit_test(refuses_counts_beyond_the_room),
		cmocka_unit_test(passes_on_a_refusal),
		cmocka_unit_test(ends_strings_where_the_buffer_ends),
		cmocka_unit_test(keeps_a_library_from_others_of_its_user),
		cmocka_unit_test(keeps_a_library_from_everything_else),
		cmocka_unit_test(keeps_descriptors_from_a_library_without_close_range),
		cmocka_unit_test(bounds_what_a_library_answers),
		cmocka_unit_test(starts_no_program_that_others_may_change),
		cmocka_unit_test(survives_a_program_that_ends_at_once),
		cmocka_unit_test(ends_by_itself_after_its_deadline),
		cmocka_unit_test(ends_when_the_socket_is_closed),
		cmocka_unit_test(bounds_what_nvml_says),
		cmocka_unit_test(bounds_the_processes_that_nvml_names),
		cmocka_unit_test(reads_processes_of_named_gpus_alone),
		cmocka_unit_test(believes_no_absurd_version),
		cmocka_unit_test(names_what_is_no_nvml),
		cmocka_unit_test(outlives_an_nvml_that_crashes),
		cmocka_unit_test(gives_up_on_an_nvml_that_hangs),
		cmocka_unit_test(says_why_it_cannot_watch),
		cmocka_unit_test(lets_a_watch_have_the_processor_as_long_as_it_lasts),
		cmocka_unit_test(tells_events_in_the_same_bytes),
		cmocka_unit_test(ends_with_its_parent),
	};

	return cmocka_run_group_tests(tests, find_build, forget_build);
}

/* SPDX-License-Identifier: Apache-2.0 */

#include "system/program_output.h"

#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/str.h"
#include "model/version.h"
#include "system/machine.h"
#include "system/trusted_file.h"

enum { TICK_MS = 10 };

static _Noreturn void program_output_run(const char *const arguments[], int output)
{
	char *const environment[] = {NULL};
	int null = open("/dev/null", O_RDWR);

	if (null >= 0 && dup2(null, STDIN_FILENO) >= 0 && dup2(output, STDOUT_FILENO) >= 0 &&
	    dup2(null, STDERR_FILENO) >= 0) {
		closefrom(STDERR_FILENO + 1);
		(void)execve(arguments[0], (char *const *)(const void *)arguments, environment);
	}
	_exit(EXIT_FAILURE);
}

/* @end: when its time is over. Return: whether the output came to its end before. */
static bool program_output_receive(int fd, size_t max, long end, char *text, size_t *size)
{
	long left;
	ssize_t part = -1;

	while (*size < max && (left = end - clock_now_ms()) > 0) {
		struct pollfd input = {.fd = fd, .events = POLLIN};

		if (poll(&input, 1, (int)left) <= 0)
			continue;
		part = read(fd, text + *size, max - *size);
		if (part <= 0)
			break;
		*size += (size_t)part;
	}
	text[*size] = '\0';
	return part == 0;
}

/* A program may close its output and go on. Return: its exit status; -1 if it did not end by itself before @end. */
static int program_output_wait(pid_t pid, long end)
{
	_cleanup_close_ int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	struct pollfd process = {.fd = pidfd, .events = POLLIN};
	int wait_status = -1;
	long left;

	while (waitpid(pid, &wait_status, WNOHANG) == 0) {
		left = end - clock_now_ms();
		if (left <= 0) {
			(void)kill(pid, SIGKILL);
			(void)waitpid(pid, NULL, 0);
			return -1;
		}
		(void)poll(&process, 1, pidfd < 0 && left > TICK_MS ? TICK_MS : (int)left);
	}
	return WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : -1;
}

int program_output_read_status(const char *const arguments[], int time_ms, size_t max, char **ret, size_t *ret_size)
{
	const long end = clock_now_ms() + time_ms;
	_cleanup_close_ int ours = -1;
	int pair[2];
	int exit_status;
	bool complete;
	pid_t pid;

	*ret_size = 0;
	*ret = malloc(max + 1);
	if (!*ret)
		return -1;
	(*ret)[0] = '\0';
	if (pipe2(pair, O_CLOEXEC) < 0)
		return -1;
	ours = pair[0];
	pid = fork();
	if (pid == 0)
		program_output_run(arguments, pair[1]);
	(void)close(pair[1]);
	if (pid < 0)
		return -1;
	complete = program_output_receive(ours, max, end, *ret, ret_size);
	exit_status = program_output_wait(pid, complete ? end : 0);
	return complete ? exit_status : -1;
}

bool program_output_read(const char *const arguments[], int time_ms, size_t max, char **ret, size_t *ret_size)
{
	return program_output_read_status(arguments, time_ms, max, ret, ret_size) == 0;
}

/* ---- OCI runtimes ---- */

enum { ANSWER_MAX = 512 };

/* The first versions that hold places, one for each line of releases that got it; the last, and all lines after it. */
static const struct version runc_first[] = {{{1, 2, 8}, 3}, {{1, 3, 3}, 3}, {{1, 4, 0}, 3}};
static const struct version crun_first[] = {{{1, 8, 0}, 3}};

static const struct {
	const char *says; /* in front of its version */
	const struct version *first;
	size_t count;
} runtimes[] = {
	{"runc version ", runc_first, ARRAY_SIZE(runc_first)},
	{"crun version ", crun_first, ARRAY_SIZE(crun_first)},
};

static bool oci_runtime_is_from(const struct version *version, const struct version *first, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (version->parts[0] == first[i].parts[0] && version->parts[1] == first[i].parts[1])
			return version_compare(version, &first[i]) >= 0;
	return version_compare(version, &first[count - 1]) >= 0;
}

/* A candidate of a release is before it. */
static bool oci_runtime_is_candidate(const char *suffix)
{
	const char *candidate = strstr(suffix, "rc");

	return candidate && (size_t)(candidate - suffix) < strcspn(suffix, "\n");
}

bool oci_runtime_is_known(const char *text)
{
	for (size_t i = 0; i < ARRAY_SIZE(runtimes); i++) {
		struct version version;
		size_t length;

		if (!str_has_prefix(text, runtimes[i].says))
			continue;
		text += strlen(runtimes[i].says);
		length = strspn(text, "0123456789.");
		return version_read(text, length, &version) && version.count > 1 &&
		       !oci_runtime_is_candidate(text + length) &&
		       oci_runtime_is_from(&version, runtimes[i].first, runtimes[i].count);
	}
	return false;
}

/* ---- asking ---- */

bool oci_runtime_holds_places(const char *program)
{
	_cleanup_close_ int fd = trusted_file_open(program, S_IFREG, TRUSTED_FILE_ROOT_ONLY, O_PATH);
	const char *const arguments[] = {program, "--version", NULL};
	_cleanup_free_ char *kept = NULL, *identity = NULL, *text = NULL, *answer = NULL;
	char name[40];
	struct stat st;
	size_t size;

	if (fd < 0 || fstat(fd, &st) < 0 ||
	    str_format(&identity, "%" PRIu64 ":%" PRIu64 " %" PRId64 ".%09ld\n", (uint64_t)st.st_dev,
		       (uint64_t)st.st_ino, (int64_t)st.st_ctim.tv_sec, st.st_ctim.tv_nsec) < 0)
		return false;
	(void)snprintf(name, sizeof(name), "runtime-%016" PRIx64, str_hash(program));
	if (boot_cache_read(name, ANSWER_MAX + 128, &kept, &size) == 0 && str_has_prefix(kept, identity))
		return oci_runtime_is_known(kept + strlen(identity));
	(void)program_output_read(arguments, PROGRAM_OUTPUT_USUAL_MS, ANSWER_MAX - 1, &answer, &size);
	if (!answer || !*answer || str_format(&text, "%s%s", identity, answer) < 0)
		return false;
	boot_cache_write(name, text);
	return oci_runtime_is_known(answer);
}

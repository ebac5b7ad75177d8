/* SPDX-License-Identifier: Apache-2.0 */

#include "system/oci_runtime.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "system/machine.h"
#include "system/trusted_file.h"

enum {
	PATIENCE_MS = 5000,
	ANSWER_MAX = 512,
};

/* ---- versions ---- */

struct version {
	unsigned major, minor, patch;
};

static bool oci_runtime_is_from(const struct version *version, unsigned major, unsigned minor, unsigned patch)
{
	if (version->major != major)
		return version->major > major;
	return version->minor != minor ? version->minor > minor : version->patch >= patch;
}

/* The first versions that do, one for each line of releases that got it. */
static bool oci_runtime_runc_is_known(const struct version *version)
{
	if (version->major == 1 && version->minor == 2)
		return version->patch >= 8;
	if (version->major == 1 && version->minor == 3)
		return version->patch >= 3;
	return oci_runtime_is_from(version, 1, 4, 0);
}

static bool oci_runtime_crun_is_known(const struct version *version)
{
	return oci_runtime_is_from(version, 1, 8, 0);
}

bool oci_runtime_is_known(const char *text)
{
	static const struct {
		const char *name;
		bool (*is_known)(const struct version *version);
	} runtimes[] = {{"runc version ", oci_runtime_runc_is_known}, {"crun version ", oci_runtime_crun_is_known}};
	struct version version = {0};
	const char *end = strchr(text, '\n');
	int length = 0;

	for (size_t i = 0; i < ARRAY_SIZE(runtimes); i++) {
		if (!str_has_prefix(text, runtimes[i].name))
			continue;
		text += strlen(runtimes[i].name);
		if (sscanf(text, "%3u.%3u%n.%3u%n", &version.major, &version.minor, &length, &version.patch, &length) <
		    2)
			return false;
		/* A candidate of a release is before it. */
		if (strstr(text + length, "rc") && (!end || strstr(text + length, "rc") < end))
			return false;
		return runtimes[i].is_known(&version);
	}
	return false;
}

/* ---- asking ---- */

static _Noreturn void oci_runtime_run(const char *program, int output)
{
	const char *const arguments[] = {program, "--version", NULL};
	char *const environment[] = {NULL};
	int null = open("/dev/null", O_RDWR);

	if (null >= 0 && dup2(null, STDIN_FILENO) >= 0 && dup2(output, STDOUT_FILENO) >= 0 &&
	    dup2(null, STDERR_FILENO) >= 0) {
		closefrom(STDERR_FILENO + 1);
		(void)execve(program, (char *const *)(const void *)arguments, environment);
	}
	_exit(EXIT_FAILURE);
}

/* Up to the end of the answer, or to the end of patience. */
static void oci_runtime_receive(int fd, char ret[ANSWER_MAX])
{
	struct pollfd input = {.fd = fd, .events = POLLIN};
	size_t size = 0;
	ssize_t part = 1;

	while (part > 0 && size < ANSWER_MAX - 1 && poll(&input, 1, PATIENCE_MS) > 0) {
		part = read(fd, ret + size, ANSWER_MAX - 1 - size);
		size += part > 0 ? (size_t)part : 0;
	}
	ret[size] = '\0';
}

static bool oci_runtime_ask(const char *program, char ret[ANSWER_MAX])
{
	_cleanup_close_ int ours = -1;
	int pair[2];
	pid_t pid;

	if (pipe2(pair, O_CLOEXEC) < 0)
		return false;
	ours = pair[0];
	pid = fork();
	if (pid == 0)
		oci_runtime_run(program, pair[1]);
	(void)close(pair[1]);
	if (pid < 0)
		return false;
	oci_runtime_receive(ours, ret);
	(void)kill(pid, SIGKILL);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	return ret[0];
}

bool oci_runtime_holds_places(const char *program)
{
	_cleanup_close_ int fd = trusted_file_open(program, S_IFREG, TRUSTED_FILE_ROOT_ONLY, O_PATH);
	_cleanup_free_ char *kept = NULL, *identity = NULL, *text = NULL;
	char name[40], answer[ANSWER_MAX];
	struct stat st;
	size_t size;

	if (fd < 0 || fstat(fd, &st) < 0 ||
	    str_format(&identity, "%" PRIu64 ":%" PRIu64 " %" PRId64 ".%09ld\n", (uint64_t)st.st_dev,
		       (uint64_t)st.st_ino, (int64_t)st.st_ctim.tv_sec, st.st_ctim.tv_nsec) < 0)
		return false;
	(void)snprintf(name, sizeof(name), "runtime-%016" PRIx64, str_hash(program));
	if (boot_cache_read(name, ANSWER_MAX + 128, &kept, &size) == 0 && str_has_prefix(kept, identity))
		return oci_runtime_is_known(kept + strlen(identity));
	if (!oci_runtime_ask(program, answer) || str_format(&text, "%s%s", identity, answer) < 0)
		return false;
	boot_cache_write(name, text);
	return oci_runtime_is_known(answer);
}

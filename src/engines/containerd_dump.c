/* SPDX-License-Identifier: Apache-2.0 */

#include "engines/engine.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "engines/daemon.h"
#include "engines/text.h"
#include "system/trusted_file.h"

enum {
	PATIENCE_MS = 5000,
	ANSWER_MAX = 1024 * 1024,
};

static _Noreturn void containerd_dump_run(const char *program, const char *file, int output)
{
	const char *const arguments[] = {"containerd", "--config", file, "config", "dump", NULL};
	char *const environment[] = {NULL};
	int null = open("/dev/null", O_RDWR);

	if (null >= 0 && dup2(null, STDIN_FILENO) >= 0 && dup2(output, STDOUT_FILENO) >= 0 &&
	    dup2(null, STDERR_FILENO) >= 0) {
		closefrom(STDERR_FILENO + 1);
		(void)execve(program, (char *const *)(const void *)arguments, environment);
	}
	_exit(EXIT_FAILURE);
}

static long containerd_dump_now_ms(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Return: whether the answer came to its end in time. */
static bool containerd_dump_receive(int fd, struct text_buffer *text)
{
	long end = containerd_dump_now_ms() + PATIENCE_MS, left;
	ssize_t size = -1;

	text->data = malloc(ANSWER_MAX + 1);
	while (text->data && text->size < ANSWER_MAX && (left = end - containerd_dump_now_ms()) > 0) {
		struct pollfd input = {.fd = fd, .events = POLLIN};

		if (poll(&input, 1, (int)left) <= 0)
			continue;
		size = read(fd, text->data + text->size, ANSWER_MAX - text->size);
		if (size <= 0)
			break;
		text->size += (size_t)size;
	}
	if (text->data)
		text->data[text->size] = '\0';
	return size == 0;
}

/* Return: whether it said something and ended well. */
static bool containerd_dump_ask(const char *program, const char *file, struct text_buffer *text)
{
	_cleanup_close_ int ours = -1;
	int pair[2], wait_status = -1;
	bool complete;
	pid_t pid;

	if (pipe2(pair, O_CLOEXEC) < 0)
		return false;
	ours = pair[0];
	pid = fork();
	if (pid == 0)
		containerd_dump_run(program, file, pair[1]);
	(void)close(pair[1]);
	if (pid < 0)
		return false;
	complete = containerd_dump_receive(ours, text);
	if (!complete)
		(void)kill(pid, SIGKILL);
	while (waitpid(pid, &wait_status, 0) < 0 && errno == EINTR)
		;
	return complete && WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == 0;
}

json_t *containerd_dump(const char *file)
{
	_cleanup_rootfs_ struct rootfs root = ROOTFS_CLOSED;
	_cleanup_text_buffer_ struct text_buffer text = {0};
	_cleanup_program_ struct program program = {0};
	_cleanup_close_ int trusted = -1;
	struct text_buffer_error error;
	json_t *json = NULL;

	if (rootfs_open(AT_FDCWD, "/", &root) < 0 || !path_lookup_find(&root, PATH_LOOKUP_PATH, "containerd", &program))
		return NULL;
	trusted = trusted_file_open(program.path, S_IFREG, TRUSTED_FILE_ROOT_ONLY, O_PATH);
	if (trusted < 0 || !containerd_dump_ask(program.path, file, &text))
		return NULL;
	return toml_parse_read(&text, &json, &error) == 0 ? json : NULL;
}

/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Both ends of a connection that vCUDA's manager brings together, without CUDA, for what the manager does itself: called
 * ctr-gpu-vcuda it is a server, which does what its client says; otherwise the client, `vcuda-standin SOCKET [WORD…]`,
 * which prints what the server answers to each word and stays until its standard input ends.
 */

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "vcuda/protocol/start.h"

enum { WORD_MAX = 256 };

static struct start_quota *quota;
static const struct start_orders *orders;
static struct start start;

static void tell(const char *text)
{
	(void)send(START_CLIENT, text, strlen(text), MSG_NOSIGNAL);
}

static void tell_manager(unsigned kind, const char *text)
{
	struct start_event event = {.kind = kind, .number = 7};

	(void)snprintf(event.text, sizeof(event.text), "%s", text);
	(void)send(START_MANAGER, &event, sizeof(event), MSG_NOSIGNAL);
}

static void greet(void)
{
	char text[WORD_MAX];
	int length = snprintf(text, sizeof(text), "server pid=%d slot=%u uid=%u limit=%llu gpus=", (int)getpid(),
			      start.quota_slot, start.uid, (unsigned long long)orders->limit);

	for (unsigned i = 0; i < start.gpu_count; i++)
		length += snprintf(text + length, sizeof(text) - (size_t)length, "%s%02x%02x%02x%02x", i > 0 ? "," : "",
				   start.gpus[i].uuid[0], start.gpus[i].uuid[1], start.gpus[i].uuid[2],
				   start.gpus[i].uuid[3]);
	tell(text);
}

static void obey(const char *word)
{
	char text[WORD_MAX] = "done";

	if (strncmp(word, "take=", 5) == 0)
		quota->used[start.quota_slot] += strtoull(word + 5, NULL, 10);
	else if (strncmp(word, "busy=", 5) == 0)
		quota->busy[0][start.quota_slot] += strtoull(word + 5, NULL, 10);
	else if (strcmp(word, "crash") == 0)
		(void)raise(SIGSEGV);
	else if (strcmp(word, "refused") == 0)
		tell_manager(START_EVENT_REFUSED, "cuIpcGetMemHandle");
	else if (strcmp(word, "forge") == 0)
		tell_manager(START_EVENT_REFUSED, "\"}\n{\"event\":\"grant\"\x01\xff");
	else if (strcmp(word, "flood") == 0)
		for (int i = 0; i < 2000; i++)
			tell_manager(START_EVENT_TABLE, "x");
	else if (strcmp(word, "descriptors") == 0)
		(void)snprintf(text, sizeof(text), "highest=%d", dup(START_CLIENT));
	else if (strcmp(word, "rights") == 0)
		(void)snprintf(text, sizeof(text), "uid=%d gid=%d groups=%d gain=%d", (int)getuid(), (int)getgid(),
			       getgroups(0, NULL), !prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0));
	else if (strcmp(word, "environment") == 0)
		(void)snprintf(text, sizeof(text), "variables=%s %s", environ[0] ? environ[0] : "",
			       environ[0] && environ[1] ? environ[1] : "");
	else if (strcmp(word, "stay") == 0) {
		(void)signal(SIGTERM, SIG_IGN);
		tell(text);
		for (;;)
			(void)pause();
	}
	tell(text);
}

static int serve(void)
{
	char word[WORD_MAX];
	ssize_t size;

	if (read(START_MANAGER, &start, sizeof(start)) != sizeof(start) || start.magic != START_MAGIC)
		return EXIT_FAILURE;
	/* It sees nothing happen. */
	if (start.flags & START_WATCH)
		return read(START_MANAGER, word, 1) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
	quota = mmap(NULL, sizeof(*quota), PROT_READ | PROT_WRITE, MAP_SHARED, START_QUOTA, 0);
	orders = mmap(NULL, sizeof(*orders), PROT_READ, MAP_SHARED, START_ORDERS, 0);
	if (quota == MAP_FAILED || orders == MAP_FAILED)
		return EXIT_FAILURE;
	greet();
	while ((size = read(START_CLIENT, word, sizeof(word) - 1)) > 0) {
		word[size] = '\0';
		obey(word);
	}
	return EXIT_SUCCESS;
}

static int hear(int fd)
{
	char text[WORD_MAX];
	ssize_t size = read(fd, text, sizeof(text) - 1);

	if (size <= 0) {
		(void)puts("closed");
		return EXIT_FAILURE;
	}
	text[size] = '\0';
	(void)puts(text);
	(void)fflush(stdout);
	return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd, r;
	char byte;

	if (strcmp(program_invocation_short_name, "ctr-gpu-vcuda") == 0)
		return serve();
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", argc > 1 ? argv[1] : START_SOCKET);
	if (fd < 0 || connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0) {
		perror(address.sun_path);
		return EXIT_FAILURE;
	}
	r = hear(fd);
	for (int i = 2; i < argc && r == 0; i++) {
		(void)send(fd, argv[i], strlen(argv[i]), MSG_NOSIGNAL);
		r = hear(fd);
	}
	while (r == 0 && read(STDIN_FILENO, &byte, 1) > 0)
		;
	return r;
}

/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Asks vCUDA's manager for GPUs where it answers users, and may say anything, as a user's hook may; "root=1": where it answers root.
 *
 * usage: ask [NAME=VALUE…]: id, pid, gpu (several), address, name, library, memory, share, clients, host, slot, owner; "keep=1" keeps
 * what was granted; "idle=N" makes N connections that say nothing, "bytes=N" one that sends N bytes of no call, and "linger=N" N
 * that send a socket for whose last bytes is waited when it is closed. It prints what is answered, and ends with its standard input.
 */

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "vcuda_rpc.h"

#include "base/str.h"
#include "vcuda/protocol/control.h"
#include "vcuda/protocol/descriptors.h"

struct wish {
	struct vcudad_request request;
	struct vcudad_gpu gpus[VCUDAD_GPUS_MAX];
	unsigned long idle, bytes, linger;
	int keep, root;
};

static void take(struct wish *wish, const char *name, char *value)
{
	struct vcudad_request *request = &wish->request;
	struct vcudad_gpu *last = &wish->gpus[request->gpus.gpus_len ? request->gpus.gpus_len - 1 : 0];

	if (streq(name, "id"))
		request->id = value;
	else if (streq(name, "pid"))
		request->pid = atoi(value);
	else if (streq(name, "gpu") && request->gpus.gpus_len < VCUDAD_GPUS_MAX)
		wish->gpus[request->gpus.gpus_len++].uuid = value;
	else if (streq(name, "address"))
		last->address = value;
	else if (streq(name, "name"))
		last->name = value;
	else if (streq(name, "library"))
		request->library = value;
	else if (streq(name, "memory"))
		(void)str_parse_size(value, &request->limits.memory);
	else if (streq(name, "share"))
		request->limits.share = (u_int)atoi(value);
	else if (streq(name, "clients"))
		request->limits.max_clients = (u_int)atoi(value);
	else if (streq(name, "host"))
		(void)str_parse_size(value, &request->limits.host_memory);
	else if (streq(name, "owner"))
		request->owner.uid = (u_int)atoi(value);
	else if (streq(name, "slot"))
		request->slot = (u_int)atoi(value);
	else if (streq(name, "keep"))
		wish->keep = 1;
	else if (streq(name, "root"))
		wish->root = 1;
	else if (streq(name, "idle"))
		wish->idle = strtoul(value, NULL, 10);
	else if (streq(name, "bytes"))
		wish->bytes = strtoul(value, NULL, 10);
	else if (streq(name, "linger"))
		wish->linger = strtoul(value, NULL, 10);
}

static int ask_open(bool root)
{
	int fd = -1;
	int r = root ? control_open(&fd) : control_open_for_user(&fd);

	if (r < 0)
		(void)printf("not connected: %s\n", strerror(-r));
	return fd;
}

static void ask_nothing(unsigned long count)
{
	unsigned long open = 0;

	for (unsigned long i = 0; i < count; i++) {
		int fd = -1;

		open += control_open_for_user(&fd) == 0;
	}
	(void)printf("connected=%lu\n", open);
}

static void ask_nonsense(unsigned long count)
{
	int fd = ask_open(false);
	struct pollfd wait = {.fd = fd, .events = POLLIN};
	char answer;

	for (unsigned long i = 0; i < count; i++)
		(void)send(fd, &(char){(char)(i * 37 + 128)}, 1, MSG_NOSIGNAL);
	(void)shutdown(fd, SHUT_WR);
	while (poll(&wait, 1, -1) > 0 && read(fd, &answer, 1) > 0)
		;
	(void)puts("closed");
}

/* Whose other end reads nothing: what is left in it is waited for. */
static int ask_make_lingering(const struct sockaddr_in *address)
{
	static const char data[65536];
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);

	(void)connect(fd, (const struct sockaddr *)address, sizeof(*address));
	(void)poll(&(struct pollfd){.fd = fd, .events = POLLOUT}, 1, -1);
	while (send(fd, data, sizeof(data), MSG_NOSIGNAL) > 0)
		;
	(void)fcntl(fd, F_SETFL, 0);
	return fd;
}

static void ask_with_lingering(unsigned long count)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int listener = socket(AF_INET, SOCK_STREAM, 0);
	socklen_t size = sizeof(address);
	const struct linger linger = {1, 60};
	unsigned long sent = 0;

	if (bind(listener, (const struct sockaddr *)&address, size) < 0 || listen(listener, (int)count) < 0 ||
	    getsockname(listener, (struct sockaddr *)&address, &size) < 0)
		return;
	for (unsigned long i = 0; i < count; i++) {
		int fd = ask_open(false), other = ask_make_lingering(&address);
		bool taken = descriptors_send(fd, "", 1, &other, 1, 0) == 1;

		if (taken)
			(void)setsockopt(other, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
		sent += taken;
		(void)close(other);
		(void)close(fd);
	}
	(void)printf("sent=%lu\n", sent);
}

static void ask_for_grant(struct wish *wish)
{
	struct vcudad_granted granted = {0};
	struct vcudad_done done = {0};
	int fd = ask_open(wish->root);
	int r = fd < 0 ? -ENOTCONN : control_ask(fd, VCUDAD_GRANT, &wish->request, &granted);

	if (r < 0)
		(void)printf("not answered: %s\n", strerror(-r));
	else if (granted.error)
		(void)printf("refused: %s\n", granted.message);
	else
		(void)printf("granted: %s\n", granted.directory);
	(void)fflush(stdout);
	if (r < 0 || granted.error || !wish->keep)
		return;
	r = control_ask(fd, VCUDAD_KEEP, &wish->request.id, &done);
	(void)printf(r == 0 && done.error == 0 ? "kept\n" : "not kept\n");
	(void)close(fd);
}

int main(int argc, char **argv)
{
	static char none[] = "";
	static struct wish wish = {.request = {.limits = {.max_clients = 1}}};
	char end;

	wish.request.id = wish.request.library = none;
	for (int i = 0; i < VCUDAD_GPUS_MAX; i++)
		wish.gpus[i] = (struct vcudad_gpu){none, none, none};
	for (int i = 1; i < argc; i++) {
		char *value = strchr(argv[i], '=');

		if (!value)
			return EXIT_FAILURE;
		*value = '\0';
		take(&wish, argv[i], value + 1);
	}
	wish.request.gpus.gpus_val = wish.gpus;
	if (wish.idle)
		ask_nothing(wish.idle);
	else if (wish.linger)
		ask_with_lingering(wish.linger);
	else if (wish.bytes)
		ask_nonsense(wish.bytes);
	else
		ask_for_grant(&wish);
	(void)fflush(stdout);
	while (read(STDIN_FILENO, &end, 1) > 0)
		;
	return EXIT_SUCCESS;
}

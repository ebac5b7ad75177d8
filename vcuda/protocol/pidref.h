/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Processes that may end while they are looked at, the caller's own children among them. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

/**
 * pidref_open() - a descriptor that becomes readable when the process ends
 * @started: when it was started, as /proc says; 0: whichever process has that number
 * @ret_started: of that process; may be NULL
 *
 * Return: 0; -ESRCH if there is no such process any more; negative errno.
 */
int pidref_open(pid_t pid, uint64_t started, int *ret_pidfd, uint64_t *ret_started);

/**
 * pidref_open_child() - pidref_open() for a child of the caller's that is not waited for, and may have ended
 *
 * Return: 0; negative errno.
 */
int pidref_open_child(pid_t pid, int *ret_pidfd, uint64_t *ret_started);

/**
 * pidref_open_peer() - pidref_open() for whoever connected to a socket
 * @ret_who: as the kernel noted it then, also if that process has ended
 *
 * Linux before 6.5 has nothing but its number, which may be another's by now if it has ended.
 *
 * Return: 0; -ESRCH if it has ended; negative errno.
 */
int pidref_open_peer(int socket_fd, int *ret_pidfd, uint64_t *ret_started, struct ucred *ret_who);

bool pidref_has_ended(int pidfd);

/** Sends a signal to that process and no later one of its number. */
void pidref_signal(int pidfd, int number);

/** Whether it is in this program's pid namespace, where alone its number means something. */
bool pidref_is_of_this_namespace(pid_t pid);

/**
 * Whether a process is a server, or one that is about to become it, or a manager. One that asks the driver to suspend
 * or resume servers is none: it goes on when its manager has ended.
 */
bool pidref_is_ctr_gpu(pid_t pid);

/*
 * Descriptors that lie in a socket, sent and never read, are closed with it, by whoever closes it last; and that takes
 * as long as they have it: what is left in a TCP socket is waited for as long as its SO_LINGER says. Worse is one that
 * was received: at every close(2) its file system is told, and one of a user's own (FUSE) need not answer; the kernel
 * waits for it in such a way that no signal ends that. The manager is not to be kept by what a container has sent.
 */

/** Refuses descriptors that are sent to a socket, or to those that are accepted on it. Before Linux 6.16 it cannot. */
void fd_closer_refuse(int fd);

/** Closes a socket without waiting for what lies in it; below 0 is none. It is -1 then. */
void fd_closer_close(int *fd);

/**
 * fd_closer_receive() - takes a datagram, if one is there
 *
 * Return: how long it is, which may be more than @size; 0 at the end, or if descriptors came with it: they stay in the
 * socket, from which nothing more can be received; -1 with errno.
 */
ssize_t fd_closer_receive(int fd, void *data, size_t size);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The processes that use the simulated device, and which of them opened which file. The kernel binds an open /dev/dxg to
 * the process that opened it; here an open file belongs to the first process seen using it, unless an ancestor holds it
 * under the same number, and then to that ancestor.
 */

#include "device.h"

enum { CLIENT_FILES_MAX = 16 };

struct opened {
	struct opened *next;
	int file; /* a duplicate of the client's descriptor, to compare others with */
	pid_t owner;
	bool orphan; /* the owner is gone; others may still hold the file */
};

struct client {
	struct client *next;
	pid_t pid;
	int pidfd;
	struct memory memory;
	struct handles handles;
	struct {
		int fd;
		struct opened *opened;
	} files[CLIENT_FILES_MAX];
	unsigned next_file;
};

struct clients {
	struct client *first;
	struct opened *opened;
	dev_t device;
	pid_t self;
};

/**
 * clients_find() - the process that a thread belongs to
 * @thread:        one that waits in a trapped call
 * @ret_uncertain: whether the answer holds only if the thread still waits: its number was looked up anew, and may have
 *                 become another's meanwhile
 *
 * Return: owned by @clients; NULL if it is gone.
 */
struct client *clients_find(struct clients *clients, pid_t thread, bool *ret_uncertain);

enum summary {
	VERDICT_OURS,     /* the device, opened by this process */
	VERDICT_FOREIGN,  /* the device, opened by another one */
	VERDICT_NOT_OURS, /* some other file */
};

/** What a descriptor of a client is. */
enum summary client_verdict(struct clients *clients, struct client *client, int fd);

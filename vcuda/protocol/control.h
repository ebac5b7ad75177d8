/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Messages of control.x as ONC RPC has them on a stream (RFC 5531, section 11): one fragment a message. Of libtirpc
 * this uses XDR alone: its client keeps memory for each reply that it does not want, its server waits for slow peers.
 *
 * Values are the structures that rpcgen makes of control.x (vcuda_rpc.h); which one is the procedure's matter.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/paths.h"

#define CONTROL_SOCKET PATH_VCUDAD
#define CONTROL_USERS_SOCKET PATH_VCUDA_USERS_SOCKET

enum {
	CONTROL_MARK = 4, /* bytes in front of a message: its length, and that it is whole */
	CONTROL_CALL_MAX = 16 * 1024,
	CONTROL_REPLY_MAX = 3 << 20,
	CONTROL_PATIENCE_MS = 5000,
};

/* A call as the manager reads it. */
struct control_call {
	uint32_t xid;
	unsigned procedure; /* 0: none of ours */
	void *arguments;    /* released with control_call_clear() */
};

void control_call_clear(struct control_call *call);

/** Return: the length of the message behind these CONTROL_MARK bytes; 0 if it is longer than @max, or in parts. */
size_t control_read_mark(const void *mark, size_t max);

/** @ret: zeroed before; to be cleared in any case. Return: whether it is a call and nothing else. */
bool control_read_call(const void *data, size_t size, struct control_call *ret);

/**
 * control_write_reply() - the answer to a call, with its mark
 * @reply: NULL: the procedure is unknown, or its arguments cannot be read
 * @ret:   of @max bytes
 *
 * Return: how many of them it takes; 0 if they are too few.
 */
size_t control_write_reply(const struct control_call *call, void *reply, void *ret, size_t max);

/** Connects to the manager. Return: 0 or negative errno. */
int control_open(int *ret_fd);

/** The same where it answers users who are not root. Return: 0; -ENOENT if it answers none; negative errno. */
int control_open_for_user(int *ret_fd);

/**
 * control_ask() - a call and its reply
 * @arguments: of the procedure; not changed
 * @ret:       of the procedure, zeroed before; released with control_free_reply()
 *
 * Return: 0; -ETIMEDOUT; -EBADMSG; negative errno.
 */
int control_ask(int fd, unsigned procedure, const void *arguments, void *ret);

/** The same with a limit on the wait: -ETIMEDOUT after @patience_ms. */
int control_ask_within(int fd, unsigned procedure, const void *arguments, int patience_ms, void *ret);

void control_free_reply(unsigned procedure, void *reply);

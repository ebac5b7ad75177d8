/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Users who start containers without root, and what asks for GPUs for these: hooks that have the user's rights. They
 * may say anything. So a process of the manager's, root's as it is, asks in their place: it looks who the user is, what
 * the administrator's settings allow this user, and which GPUs and driver these are on this host; of what the hook says
 * it takes the name of the container, whose process that is, UUIDs of GPUs and lesser amounts. The manager itself reads
 * nothing of a user's.
 *
 * There is a process for each request, since looking at the driver takes its time, and a bounded number of these for
 * each user. Who is no user of the settings has none.
 */

#include <stdbool.h>
#include <sys/types.h>

#include "model/settings.h"

/* Who has a container or speaks for one. */
struct account {
	uid_t uid;
	bool by_root; /* root has made its user namespace, and several users may be in it */
	dev_t device; /* of that, and its inode */
	ino_t inode;
};

/**
 * account_of_peer() - whose user namespace a process is in that has connected
 * @ret_process: its directory in /proc
 *
 * It is the user's who made the outermost one below this process's own: users that are numbered inside it belong to
 * that user. Where root made it, the process counts for itself.
 *
 * Return: 0; -EPERM if it is in no user namespace, or is not the user who made that; negative errno.
 */
int account_of_peer(int connection, struct account *ret, int *ret_process);

/** Return: what the settings allow an account on a connection, whose groups count, too; NULL: nothing. */
const struct vcuda_user *account_find_user(const struct settings *settings, const struct account *account,
					   int connection);

/** Answers one that has connected. Takes what it needs of @settings, which are changed. */
void wish_serve(int connection, const struct account *account, int peer, const struct vcuda_user *user,
		struct settings *settings);

/** Writes a refusal to the peer of a connection; its request need not have been read. */
void wish_refuse(int connection, const char *why);

/**
 * users_start() - begin to answer users, in a process of its own, if the settings name any
 *
 * Return: 0; negative errno. @ret: its number; 0: there are none
 */
int users_start(pid_t *ret);

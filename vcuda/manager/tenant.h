/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Containers with granted GPUs. Each has a directory with a socket that everybody may connect to; the directory above
 * is root's alone, so it is reached by whoever has it mounted: the socket is the right to use the GPUs.
 */

#include "vcuda/manager/manager.h"

/** Return: the container of that name which has not ended; NULL. */
struct tenant *tenant_find(const struct manager *manager, const char *id);

/**
 * tenant_match() - as an administrator names it
 * @ret_several: whether none is returned since the text is the beginning of several names
 *
 * Return: the container of that name, or the only one whose name begins so and which has not ended; NULL.
 */
struct tenant *tenant_match(const struct manager *manager, const char *text, bool *ret_several);

/** Whether a name may be that of a directory of ours. */
bool tenant_is_name(const char *id);

/** Return: one with nothing in it but the name, not among the manager's yet; NULL without memory. */
struct tenant *tenant_new(const char *id);

/** Appends a GPU; "" is not known. Return: 0; -EINVAL if it is no UUID; -E2BIG; -ENOMEM. */
int tenant_add_gpu(struct tenant *tenant, const char *uuid, const char *address, const char *name);

/**
 * tenant_open() - give it a user, a quota and its socket, and take it among the manager's
 * @quota: a quota that its servers have already, taken in any case; -1: a new one
 *
 * Return: 0, and it is the manager's; -ENOSPC if there are too many; negative errno.
 */
int tenant_open(struct manager *manager, struct tenant *tenant, int quota);

/**
 * tenant_open_quota() - the quota that a server has, which lives
 *
 * Return: a descriptor; -EBADF if it has something else in that place; negative errno.
 */
int tenant_open_quota(pid_t server);

/** Whether no container has servers of that user, and no process is left that is that user. */
bool tenant_may_use_uid(const struct manager *manager, uid_t uid);

/** Releases one that is not the manager's. */
void tenant_free(struct tenant *tenant);
void tenant_freep(struct tenant **tenant);
#define _cleanup_tenant_ __attribute__((cleanup(tenant_freep)))

/** Sets how much memory its programs may have together. */
void tenant_set_memory(struct tenant *tenant, uint64_t memory);

/** Return: how much they have. */
uint64_t tenant_sum_memory(const struct tenant *tenant);

/** Whether it may connect now, by the rate. @ret_wait_ms: until it may */
bool tenant_may_connect(struct tenant *tenant, int64_t now, int *ret_wait_ms);

/** Whether it may have another server: of all places, one is kept for each container that has none. */
bool tenant_has_place(const struct manager *manager, const struct tenant *tenant);

/** Accepts a connection, and has it served or refuses it. */
void tenant_accept(struct manager *manager, struct tenant *tenant);

/** Writes down refused connections of which nobody was told yet, once a second at most. */
void tenant_tell_denied(struct tenant *tenant, int64_t now);

/** Takes away its socket and ends its servers. @why: for the audit */
void tenant_end(struct manager *manager, struct tenant *tenant, const char *why);

/** Takes one that has ended and has no servers any more out of the manager's, and releases it. */
void tenant_remove(struct manager *manager, struct tenant *tenant);

/** Removes what is left of containers of which the manager knows nothing. */
void tenant_sweep(const struct manager *manager);

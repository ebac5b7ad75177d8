/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * statmount(2) of Linux 6.8, declared here since the installed linux/mount.h may be older than the running kernel. It
 * gives for one mount what mountinfo has for all.
 */

#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_statmount
#define SYS_statmount 457
#endif

enum {
	STATMOUNT_BASIC = 2,     /* STATMOUNT_MNT_BASIC */
	STATX_UNIQUE_ID = 0x4000 /* STATX_MNT_ID_UNIQUE: a number that no later mount gets */
};

struct statmount_request {
	uint32_t size, spare;
	uint64_t mount, asked;
};

struct statmount_answer {
	uint32_t size, spare;
	uint64_t told;
	uint32_t device_major, device_minor;
	uint64_t magic;
	uint32_t flags, type;
	uint64_t mount, parent;
	uint32_t old_mount, old_parent;
	uint64_t attributes, propagation, peers, master, from;
	uint32_t root, point;
	uint64_t later[50]; /* what newer kernels tell: the kernel fills 512 bytes and no more */
};
_Static_assert(sizeof(struct statmount_answer) == 512, "as in linux/mount.h");

/** Return: whether the kernel knows; then @ret is whether the mount that @fd is on is shared. */
static inline bool statmount_is_shared(int fd, bool *ret)
{
	struct statmount_request request = {.size = sizeof(request), .asked = STATMOUNT_BASIC};
	struct statmount_answer answer;
	struct statx stx;

	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_UNIQUE_ID, &stx) < 0 ||
	    !(stx.stx_mask & STATX_UNIQUE_ID))
		return false;
	request.mount = stx.stx_mnt_id;
	if (syscall(SYS_statmount, &request, &answer, sizeof(answer), 0) < 0 || !(answer.told & STATMOUNT_BASIC))
		return false;
	*ret = answer.propagation & MS_SHARED;
	return true;
}

/** The number that mountinfo has of a mount. @number: of statx(2), unique or not. Return: whether it may be there. */
static inline bool statmount_find_id(uint64_t number, uint64_t *ret)
{
	struct statmount_request request = {.size = sizeof(request), .mount = number, .asked = STATMOUNT_BASIC};
	struct statmount_answer answer;

	*ret = number;
	/* Unique ones begin behind the others. */
	if (number <= INT32_MAX)
		return true;
	if (syscall(SYS_statmount, &request, &answer, sizeof(answer), 0) < 0 || !(answer.told & STATMOUNT_BASIC))
		return false;
	*ret = answer.old_mount;
	return true;
}

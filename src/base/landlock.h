/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Landlock as the kernel takes it (linux/landlock.h), whose headers are older than the kernels that programs run on.
 * Each version knows more rights; what a kernel does not know cannot be asked of it.
 */

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_add_rule 445
#define SYS_landlock_restrict_self 446
#endif

enum {
	LANDLOCK_WRITE_FILE = 1 << 1,
	LANDLOCK_READ_FILE = 1 << 2,
	LANDLOCK_READ_DIR = 1 << 3,
	LANDLOCK_IOCTL_DEV = 1 << 15,
	LANDLOCK_FIRST = (1 << 13) - 1, /* the rights of version 1 */
	LANDLOCK_REFER = 1 << 13,
	LANDLOCK_TRUNCATE = 1 << 14,
	LANDLOCK_TCP = 3,     /* bind, connect */
	LANDLOCK_SCOPES = 3,  /* abstract sockets and signals, of and to others */
	LANDLOCK_VERSION = 1, /* a flag */
	LANDLOCK_BENEATH = 1, /* a kind of rule */
};

struct landlock_rules {
	uint64_t files, network, scopes;
};

struct landlock_beneath {
	uint64_t allowed;
	int32_t parent;
} __attribute__((packed));

/** Return: the kernel's version of it; 0: it has none, or it is switched off. */
static inline int landlock_version(void)
{
	const long r = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_VERSION);

	return r < 0 ? 0 : (int)r;
}

/** Return: all rights over files that the kernel knows. */
static inline uint64_t landlock_rights(void)
{
	const int version = landlock_version();

	return (uint64_t)LANDLOCK_FIRST | (version >= 2 ? (uint64_t)LANDLOCK_REFER : 0) |
	       (version >= 3 ? (uint64_t)LANDLOCK_TRUNCATE : 0) | (version >= 5 ? (uint64_t)LANDLOCK_IOCTL_DEV : 0);
}

/** Return: a descriptor of rules by which nothing is allowed yet; negative errno. */
static inline int landlock_open(void)
{
	const int version = landlock_version();
	const struct landlock_rules rules = {
		.files = landlock_rights(), .network = LANDLOCK_TCP, .scopes = LANDLOCK_SCOPES};
	const size_t bytes = version >= 6 ? sizeof(rules) : version >= 4 ? 16 : 8;
	const long r = syscall(SYS_landlock_create_ruleset, &rules, bytes, 0);

	return r < 0 ? -errno : (int)r;
}

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A container that is being created: its first process, its root filesystem, its environment. */

#include <stdbool.h>
#include <sys/types.h>

#include "base/str.h"

struct ctr_gpu_container {
	pid_t pid;       /* 0: the caller's own mount namespace */
	int pidfd;       /* -1 without a pid; opened first, so that the pid cannot come to mean another process unnoticed */
	char *rootfs;    /* absolute path in the mount namespace of the process */
	bool leave_cgroup;
	struct strv environment; /* of config.json; the array has a NULL behind its last item */
};

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Whether this process may open a node of a simulated native host, which has no driver behind it. */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

enum { NODES_MAX = 32 };

/* The device cgroup is asked before a driver is looked for: ENXIO means that it allowed the node. */
static inline int node_reachable(const char *path)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);

	if (fd < 0)
		return errno == ENXIO || errno == ENODEV;
	(void)close(fd);
	return 1;
}

/* The minors of the GPUs that can be opened. */
static inline int nodes_reachable(int *ret)
{
	int count = 0;

	for (int i = 0; i < NODES_MAX; i++) {
		char path[32];

		(void)snprintf(path, sizeof(path), "/dev/nvidia%d", i);
		if (node_reachable(path))
			ret[count++] = i;
	}
	return count;
}

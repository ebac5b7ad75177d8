/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The machine as a simulated host sees it: a private mount namespace in which /dev, /etc and /usr are the machine's
 * own with a few things laid over them. Nothing is written to the machine, and nothing of it outlives the last process.
 */

#include <stdbool.h>
#include <sys/types.h>

#include "profile.h"

struct space {
	const struct profile *profile;
	const char *files; /* the directory with what hosts are made of, test/hosts/files of the build */
	dev_t device;      /* number of the node that is called /dev/dxg */
	bool cgroup2;
};

/** Leaves the machine's mount namespace for the host's. Return: 0; -1 after a message on standard error. */
int space_enter(const struct space *space);

/**
 * space_default_device() - a device that can be opened without effect and that containers may not open by default
 *
 * Return: its number; 0 if the machine has none that is known.
 */
dev_t space_default_device(void);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "engines/daemon.h"
#include "root/rootfs.h"

/** The files that a daemon sees; ours if its own are not to be entered, or none runs. Return: 0 or negative errno. */
int daemon_open_root(const struct daemon *daemon, struct rootfs *ret);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "engines/daemon.h"
#include "root/rootfs.h"

/** daemon_open_root() - the files that a daemon sees; ours where its own are not to be entered, or none was found. Return: 0 or negative errno. */
int daemon_open_root(const struct daemon *daemon, struct rootfs *ret);

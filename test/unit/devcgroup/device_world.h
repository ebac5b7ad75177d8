/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A cgroup of either version with a process in it that opens devices when told to, for tests of what it may open. */

#include <linux/bpf.h>
#include <sys/types.h>

struct device_world {
	int version;
	char path[128]; /* of the cgroup's directory */
	int fd;
	pid_t member;
	int socket;
	char nodes[32]; /* where nodes for the member are made, by us, who may */
};

/** Whether this machine lets us: root, and the version can be had. For version 2 the mount namespace is left. */
int device_world_possible(int version);

/** Makes a cgroup below @parent (a path in the hierarchy, "" for the top), with a member. */
void device_world_start(struct device_world *world, int version, const char *parent);
void device_world_stop(struct device_world *world);

/** Return: the errno with which the member failed to open a device, or 0. */
int device_world_open(const struct device_world *world, char type, unsigned major, unsigned minor, int flags);

int device_world_load(const struct bpf_insn *insns, size_t count);

/** Loads and attaches a device program. Return: its descriptor. */
int device_world_attach(const struct device_world *world, const struct bpf_insn *insns, size_t count, unsigned flags);

/** Attaches a loaded program by a bpf_link, which holds as long as the descriptor that is returned. */
int device_world_link(const struct device_world *world, int program_fd);

/** How many programs are attached, and the instructions of all of them. */
unsigned device_world_programs(const struct device_world *world, unsigned *ret_insns);

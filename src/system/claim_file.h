/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Which container has a GPU that one container at a time may have: a file for each such GPU, in a directory that root
 * alone can enter. A claim counts while the first process of its container lives, whatever ends that, so nothing has to
 * be done at a container's end. Claims end with the boot, as processes do.
 */

#include <sys/types.h>
#include <time.h>

#include "base/paths.h"
#include "system/machine.h"

#define CLAIM_DIRECTORY PATH_RUN "/assigned"

enum {
	CLAIM_GPU_SIZE = 64,
	CLAIM_CONTAINER_SIZE = 72, /* engines' ids have 64 characters */
};

struct claim {
	char process[PROCESS_KEY_SIZE];
	char container[CLAIM_CONTAINER_SIZE]; /* its engine's name for it; "": not known */
	time_t since;
};

/** Makes their directory where it is missing. Return: descriptor; negative errno. */
int claim_file_open_directory(void);

/**
 * claim_file_lock() - have this process alone look at claims, and change them
 * @ret_holder: of -ETIMEDOUT: the process that did not let go of them
 *
 * Return: descriptor of their directory, which close(2) releases; -ETIMEDOUT; -EPERM or another errno for a process
 * that is not root's.
 */
int claim_file_lock(pid_t *ret_holder);

/** Who has a GPU. Return: 0; -ENOENT: no container; negative errno. */
int claim_file_read(int directory, const char *gpu, struct claim *ret);

/**
 * claim_file_write() - have a container have a GPU
 *
 * A claim that is there is replaced. Return: 0 or negative errno.
 */
int claim_file_write(int directory, const char *gpu, const struct claim *claim);

/** Return: 0, also if there is none; negative errno. */
int claim_file_remove(int directory, const char *gpu);

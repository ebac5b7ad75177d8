/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The mount option noexec. Mounts keep the options of those that they are made of, so a container's loader can map
 * nothing of such a one for a program to run.
 */

#include <stdbool.h>

#include "base/str.h"
#include "model/plan.h"

/**
 * noexec_is_set() - whether the mount has it that an open directory is on
 * @directory: opened for reading
 *
 * The file system is not asked: statvfs(3) costs a round trip to Windows on 9p.
 */
bool noexec_is_set(int directory);

/** Cuts a path to the mount that it is on: what must be mounted anew. */
void noexec_find_mount(char *path);

/** Has a plan say that the driver's files in a directory cannot be used. @path: of it. Return: 0 or -ENOMEM. */
int noexec_add(struct plan *plan, const char *path);

/** noexec_add() if it is so; the directory may be missing. Return: 0 or -ENOMEM. */
int noexec_check(struct plan *plan, const char *path);

/**
 * noexec_check_around() - the same of the directory that a file is in
 * @seen: the directory that was looked at last, and is not looked at again; NULL at first, owned by the caller
 */
int noexec_check_around(struct plan *plan, const char *file, char **seen);

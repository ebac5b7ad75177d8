/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* fsopen(2) and its like, as glibc has them since 2.36. */

#include_next <sys/mount.h>

#include <linux/mount.h>
#include <stddef.h>

int fsopen(const char *type, unsigned flags);
int fsconfig(int fd, unsigned command, const char *key, const void *value, int aux);
int fsmount(int fd, unsigned flags, unsigned attributes);
int move_mount(int from, const char *from_path, int to, const char *to_path, unsigned flags);
int open_tree(int directory, const char *path, unsigned flags);
int mount_setattr(int directory, const char *path, unsigned flags, struct mount_attr *attributes, size_t size);

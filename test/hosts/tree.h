/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Files of a simulated host, below a directory. All return 0, or -1 after a message on standard error. */

#include <sys/types.h>

#include "profile.h"

int tree_mkdir(const char *path);
int tree_write(const char *path, const char *text);

/** Makes a character device in place of what is there. */
int tree_node(const char *path, mode_t mode, dev_t device);

int tree_symlink(const char *points_to, const char *path);

/** A directory with all above it that are missing. */
int tree_mkdirs(const char *path);

/** Copies the regular files of a directory over what is there, giving each @mode. */
int tree_copy(const char *from, const char *to, mode_t mode);

/** Copies one regular file from one directory to another. */
int tree_copy_one(const char *from, const char *to, const char *name, mode_t mode);

/** Makes the symlinks of a directory in another one. */
int tree_copy_links(const char *from, const char *to);

/** What Windows keeps in FileRepository: the stores of the adapters, among directories of other drivers. */
int tree_drivers(const struct profile *profile, const char *files, const char *to);

/** What lies in /usr/lib/wsl/lib. */
int tree_links(const char *from, const char *to); /* a symlink in @to for every entry of @from */
int tree_lib(const struct profile *profile, const char *files, const char *to);

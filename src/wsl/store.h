/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Driver stores: the directories of the Windows host's driver packages, shared with or copied to this machine. */

#include <stdbool.h>

#include "model/adapter.h"

/**
 * store_directory() - where on this machine a store is
 * @told: what the driver says: a Windows path with a component "FileRepository" in any case, or a path below
 *        /usr/lib/wsl/drivers; hostile
 * @ret:  new string, owned by the caller; nothing says that it exists
 *
 * Return: 0; -EINVAL for anything else, for a component "..", and for characters that no Windows path has; -ENOMEM.
 */
int store_directory(const char *told, char **ret);

/** Whether a file in a store is called like a shared library: "libcuda.so.1.1". */
bool store_is_library(const char *name);

enum store_content {
	STORE_MISSING,
	STORE_WITHOUT_LIBRARY, /* files for Windows alone, or none */
	STORE_HAS_LIBRARY,     /* in it, or a directory down; or it cannot be read by us, so that nobody knows */
};

/** What is at @path. @ret: untouched unless all of it could be read; released with the adapter. */
enum store_content store_look(const char *path, struct adapter_store *ret);

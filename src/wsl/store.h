/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Driver stores: the directories of the Windows host's driver packages, shared with or copied to this machine. */

#include <stdbool.h>

/**
 * store_directory() - where on this machine a store is
 * @told: what the driver says: a Windows path with a component "FileRepository" in any case, or a path below
 *        /usr/lib/wsl/drivers; hostile
 * @ret:  new string, owned by the caller; nothing says that it exists
 *
 * Return: 0; -EINVAL for anything else, for a component "..", and for characters that no Windows path has; -ENOMEM.
 */
int store_directory(const char *told, char **ret);

/** Whether there is a directory at @path. */
bool store_exists(const char *path);

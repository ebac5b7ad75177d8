/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Files in /run/ctr-gpu: what is kept until the next boot. Only root can have made them. */

#include <stddef.h>

/**
 * boot_cache_read() - what was kept under a name
 *
 * Return: as fd_read_all(); -ENOENT; -EPERM if somebody else could have written it.
 */
int boot_cache_read(const char *name, size_t max, char **ret_data, size_t *ret_size);

/** Keeps a text, whole or not at all, if the caller is root. */
void boot_cache_write(const char *name, const char *text);

/** What is another one after a boot, which /run outlives where it is no tmpfs. NULL if it cannot be read. */
char *boot_cache_boot(void);

/** Removes it, if the caller is root. */
void boot_cache_remove(const char *name);

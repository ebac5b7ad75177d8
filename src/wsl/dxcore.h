/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The inventory from libdxcore, which ctr-gpu-driverd loads. */

#include "base/err.h"
#include "base/paths.h"
#include "dxg/d3dkmt.h"
#include "model/settings.h"

/* The loader's own (glibc elf/dl-load.c, with the subdirectories of the distributions), PATH_WSL_LIB, and NULL. */
extern const char *const dxcore_directories[];

/**
 * dxcore_find() - the libdxcore.so of this machine
 * @ret: its path, owned by the caller; NULL if there is none
 *
 * Looked for where the loader would, then in /usr/lib/wsl/lib, which not every host's loader knows, then in
 * settings->library_dirs.
 *
 * Return: 0 or -ENOMEM.
 */
int dxcore_find(const struct settings *settings, char **ret);

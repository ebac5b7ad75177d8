/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A loader cache as bytes, in the new format. */

#include <stddef.h>

#include "ldcache/edit.h"
#include "ldcache/image.h"

/** Writes @image with @edits done to it. Return: 0; -ENOMEM; -E2BIG. */
int cache_write(const struct cache_image *image, const struct cache_edits *edits, unsigned char **ret_data, size_t *ret_size);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A loader cache as bytes, in the new format. The strings of the image are not copied. */

#include "ldcache/edit.h"
#include "ldcache/image.h"
#include "ldcache/ldcache.h"

/** Writes @image with @edits done to it. Return: 0; -ENOMEM; -E2BIG. */
int cache_write(const struct cache_image *image, const struct cache_edits *edits, struct ldcache_merged *ret);

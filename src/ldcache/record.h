/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * How a merge can be taken back. A cache that we wrote has a section of its own. It says how long the image's strings
 * were, where our entries are, and what entries of the image were taken out. From it the next start, perhaps with
 * another driver, restores the image's own cache exactly: nothing of the old driver stays, nothing that it shadowed is
 * lost, and nothing grows. An ldconfig run in the container writes a cache without the section.
 *
 * The section comes from the image and is as hostile as the rest; it is used if all of it makes sense.
 */

#include <stddef.h>
#include <stdint.h>

#include "ldcache/edit.h"
#include "ldcache/image.h"

/** Return: the bytes that cache_record_write() takes. */
size_t cache_record_size(const struct cache_edits *edits);

void cache_record_write(const struct cache_image *image, const struct cache_edits *edits, unsigned char *to);

/**
 * cache_record_undo() - turn a merged cache back into the image's own
 *
 * Return: 1; 0, with @image as it was, if it has no record or an invalid one; -ENOMEM.
 */
int cache_record_undo(struct cache_image *image);

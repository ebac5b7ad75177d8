/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Read, take back what an earlier merge did, add, write. The image's entries are copied and their offsets shifted;
 * names are compared only where a binary search with one of ours looks.
 */

#include "ldcache/ldcache.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "ldcache/edit.h"
#include "ldcache/image.h"
#include "ldcache/record.h"
#include "ldcache/write.h"

int ldcache_merge(const struct span *old, const struct strv *former, const struct ldcache_library *libraries,
		  size_t count, struct ldcache_merged *ret)
{
	_cleanup_(cache_image_clear) struct cache_image image = {0};
	_cleanup_(cache_edits_clear) struct cache_edits edits = {0};
	int r;

	r = cache_image_read(old, &image);
	if (r < 0)
		return r;
	r = cache_record_undo(&image);
	if (r == 0 && former && former->count > 0)
		r = cache_image_forget(&image, former);
	if (r < 0)
		return r;
	r = cache_edits_make(&image, libraries, count, &edits);
	if (r < 0)
		return r;
	return cache_write(&image, &edits, ret);
}

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>

/*
 * The container's root, where that is another user than this process. What is created belongs to it, and is created
 * with no more rights than that user has: as a user that idmapped mounts know, and unable to touch what a volume holds
 * of others.
 */
struct mapped_root {
	bool other;
	unsigned uid, gid;
};

/** From here on files are the owner's; mapped_root_end() ends it. */
void mapped_root_begin(const struct mapped_root *owner);
void mapped_root_end(const struct mapped_root *owner);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What openat2(2) does with RESOLVE_IN_ROOT, in user space, for kernels before 5.6 and for seccomp filters that refuse
 * that call. Each component is opened with O_NOFOLLOW from a held parent; a symlink's text is put in front of what is
 * left of the path; ".." goes back to a directory that is still held and so can never leave the root.
 */

/** Opens @path inside the directory @root, as open(2) with @flags. Return: descriptor; negative errno. */
int rootwalk_open(int root, const char *path, int flags);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * openat2(2) with RESOLVE_IN_ROOT, done in user space, for kernels before 5.6 and seccomp filters that refuse the call.
 * Each component is opened with O_NOFOLLOW from a held parent; a symlink's text is put in front of what is
 * left of the path; ".." goes back to a directory that is still held and so can never leave the root.
 */

/** Opens @path inside the directory @root, as open(2) with @flags. Return: descriptor; negative errno. */
int openat2_fallback_open(int root, const char *path, int flags);

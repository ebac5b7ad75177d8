/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Files of the host that only root could have put where they are. Root is uid 0 and the owner of "/": in a user
 * namespace that is the overflow uid.
 */

#include <stdbool.h>
#include <sys/types.h>

/* No other user than root is trusted. */
#define TRUSTED_FILE_ROOT_ONLY ((uid_t)-1)

/**
 * trusted_file_open() - a file of the host, if root, or one other user, put it there
 * @path:  absolute
 * @type:  S_IFREG, S_IFDIR or S_IFSOCK: what it must be
 * @other: user who is trusted as root is; TRUSTED_FILE_ROOT_ONLY
 * @flags: of open(2), O_CLOEXEC is added; nothing but O_PATH for a socket
 *
 * Every directory on the way must belong to root or @other, and only they may write to it. In a sticky directory that
 * every user may write to, such as /tmp, only their own directories count: no other user can move those there. A link
 * is followed where they alone could make it. The file itself must belong to them; if it is not a socket, only they may
 * write to it. A socket may also lie in the directory that root gave to its owner, such as a service's in /run. Nothing
 * is opened before its type is known.
 *
 * Return: descriptor; -ENOENT if it is missing where they alone could make it; -EPERM if others could have put it
 * there, or could now; -EINVAL if it is of another type; negative errno.
 */
int trusted_file_open(const char *path, mode_t type, uid_t other, int flags);

/**
 * trusted_file_look() - whether root, or one other user, put there what is at a path; its owner may be any user
 *
 * Return: 0; -ENOENT if it is missing where they alone could make it; -EPERM if others could have put it there, or
 * could now; negative errno.
 */
int trusted_file_look(const char *path, uid_t other);

/* Small files of this machine, read for checks. */

enum { FILE_TEXT_MAX = 256 * 1024 };

/** The content of a regular file. Return: NULL if it is missing or cannot be read. */
char *file_text(const char *path);

/** The first number in a file. Return: @otherwise if there is none. */
long file_number(const char *path, long otherwise);

bool file_exists(const char *path);

/** Whether there is a character device. */
bool file_is_device(const char *path);

/** Whether the caller may open a node for reading and writing. */
bool file_may_open(const char *path);

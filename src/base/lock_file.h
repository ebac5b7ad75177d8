/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Locks between processes of one user. A process that can open a file or a directory can lock it for ever. So a lock is
 * a file of its own that only its owner can open, in a directory that only its owner can enter. Every wait has an end.
 */

#include <sys/types.h>

/**
 * lock_file_open_directory() - the directory of a lock
 *
 * One that lets others in, as older versions made it, is closed to them.
 *
 * Return: descriptor; -EPERM if it is another user's; negative errno.
 */
int lock_file_open_directory(const char *path);

/**
 * lock_file_take() - locks a file below @directory, which is made where it is missing
 * @wait_ms:    how long to wait at most
 * @ret_holder: of -ETIMEDOUT: the process that has it; 0: it has not written its number yet
 *
 * File systems without locks have none.
 *
 * Return: descriptor that holds the lock; -ETIMEDOUT; -EINTR if a signal came meanwhile; -ENOENT if the directory was
 * removed; negative errno.
 */
int lock_file_take(int directory, const char *name, unsigned wait_ms, pid_t *ret_holder);

/**
 * lock_file_take_directory() - locks a directory that its owner alone can open: lock_file_open_directory()
 *
 * It needs no file, so a process that is killed leaves none. Parameters and results as above.
 */
int lock_file_take_directory(int directory, unsigned wait_ms, pid_t *ret_holder);

/** Removes the file, so that the directory can be removed, and gives the lock back. @fd: of lock_file_take() */
void lock_file_release(int directory, const char *name, int fd);

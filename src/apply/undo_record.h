/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What was done to a root filesystem by hand, written down so that a later process can take it back. Below a directory
 * that root alone may write, each root filesystem has a directory, with a numbered one for each time. That contains the
 * deeds in JSON, and what was replaced.
 */

#include "root/rootfs.h"
#include "root/undo_log.h"

/**
 * undo_record_write() - write down what was done
 * @directory: absolute, made where missing
 * @undo_log: the record is added to them, and goes if they are taken back
 * @ret_holder: of -ETIMEDOUT: the process that did not let go of the records
 *
 * Return: 0, also where there is nothing to take back; negative errno.
 */
int undo_record_write(const char *directory, const struct rootfs *rootfs, struct undo_log *undo_log, pid_t *ret_holder);

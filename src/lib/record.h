/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What was done to a root filesystem by hand, written down so that a later process can take it back: a directory for
 * each root filesystem below one that root alone may write, in it one for each time, numbered, with the deeds in JSON
 * and what was replaced.
 */

#include "root/deeds.h"
#include "root/rootfs.h"

/**
 * record_write() - write down what was done
 * @directory: absolute, made where missing
 * @deeds: the record is added to them, and goes if they are taken back
 *
 * Return: 0, also where there is nothing to take back; negative errno.
 */
int record_write(const char *directory, const struct rootfs *rootfs, struct deeds *deeds);

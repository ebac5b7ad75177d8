/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The kernel's place: answers the trapped ioctls of a process tree. The processes wait in real system calls; what they
 * pass is read from and written to their memory.
 */

#include <sys/types.h>

#include "profile.h"

struct dxgd;

/**
 * dxgd_new() - start to answer for a host's /dev/dxg
 * @listener: of filter_install(), borrowed
 * @device:   number of the node that stands for /dev/dxg
 *
 * Return: never freed, since it serves until its process ends; NULL without memory.
 */
struct dxgd *dxgd_new(const struct profile *profile, int listener, dev_t device);

/** Answers one call; to be called when the listener is readable. */
void dxgd_answer(struct dxgd *dxgd);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The inventory from /dev/dxg itself, without any library. */

#include <stdbool.h>

#include "base/err.h"
#include "base/paths.h"
#include "dxg/d3dkmt.h"

/** The query of an adapter, of an open device and one of the process's handles. Return: 0 or negative errno. */
int ioctl_query(int fd, struct d3dkmt_queryadapterinfo *arguments);

/**
 * ioctl_adapters() - what the kernel says of the adapters
 * @ret: array of facts, owned by the caller (dxg_facts_free())
 *
 * Return: 0; negative errno with @err set.
 */
int ioctl_adapters(struct dxg_facts **ret, size_t *ret_count, struct err *err);

/** Whether opening the device fails as it does where the host has no adapter for this machine. */
bool ioctl_has_no_adapters(void);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The client's side of ctr-gpu-driverd, the only program that loads vendor code. It is started for one request, asked over
 * ONC RPC on a socketpair that it inherits, and gone before the answer is used. A library that hangs or crashes costs that
 * child and a bounded wait.
 */

#include "base/d3dkmt.h"
#include "base/err.h"
#include "base/settings.h"

/**
 * driverd_dxcore_adapters() - what libdxcore says of the adapters
 * @library:   absolute path of libdxcore.so, for the child to load
 * @ret:       array of facts, owned by the caller (dxg_facts_free())
 *
 * Return: 0; CTR_GPU_E_DRIVER_LIBRARY if the library cannot be loaded, lacks symbols, or crashed its process;
 * CTR_GPU_E_DRIVER_TIMEOUT after settings->driver_timeout_ms; -ETIMEDOUT if moreover the child cannot be killed, so that it
 * is the kernel's device that hangs and would hang for anybody; negative errno. @err is set and names the library.
 */
int driverd_dxcore_adapters(const struct settings *settings, const char *library, struct dxg_facts **ret, size_t *ret_count,
			    struct err *err);

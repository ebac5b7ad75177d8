/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Microsoft's libdxcore.so, loaded into this process. */

#include "driverd/protocol.h"

/** Loads the library at @path and fills in @answer, whose members belong to the caller. */
void dxcore_describe_adapters(const char *path, struct driverd_reply *answer);

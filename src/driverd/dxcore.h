/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Microsoft's libdxcore.so, loaded into this process. */

#include "driverd/protocol.h"

/** Loads the library at @path and fills in @answer, whose members belong to the caller (xdr_free()). */
void dxcore_describe_adapters(const char *path, driverd_dxcore_answer *answer);

/** Makes @answer a failure with a message of printable ASCII. */
void answer_failure(driverd_dxcore_answer *answer, driverd_status status, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

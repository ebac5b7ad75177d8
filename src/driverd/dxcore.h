/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Microsoft's libdxcore.so, loaded into this process. */

struct driverd_dxcore_answer; /* of protocol.x */

/** Loads the library at @path and fills in @answer, whose members belong to the caller (xdr_free()). */
void dxcore_describe_adapters(const char *path, struct driverd_dxcore_answer *answer);

/** Makes @answer a failure, a driverd_status, with a message of printable ASCII. */
void answer_failure(struct driverd_dxcore_answer *answer, int status, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

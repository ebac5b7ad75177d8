/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The words of an answer that is a failure. */

#include "driverd/protocol.h"

/** Makes @answer a failure, with a message of printable ASCII and bounded length. */
void answer_failure(struct driverd_reply *answer, enum driverd_status status, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The UUIDs of adapters. */

#include "model/backend.h"

/** As struct backend's identify(). */
int uuid_identify(const struct settings *settings, struct adapter *adapters, size_t count, struct err *err);

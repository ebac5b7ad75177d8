/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The kinds of hosts, in the order of their adapters' numbers. A new one is a folder, and its name in this line. By its
 * name X(name) makes the list of what every kind has: struct backend backend_NAME, struct backend_load loader_NAME.
 */

#include "model/backend.h"

#define BACKENDS(X) X(gpu_pv) X(nvidia) X(drm)

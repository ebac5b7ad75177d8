/* SPDX-License-Identifier: Apache-2.0 */

/* Behaves. */

#include "fake.h"

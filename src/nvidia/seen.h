/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What a native host showed when its GPUs were listed. A plan and facts follow from it, so that a start asks once. */

#include "base/str.h"
#include "nvidia/known.h"
#include "nvidia/mig.h"
#include "nvidia/module.h"

struct seen {
	struct module module;
	struct strv gpus; /* PCI addresses of all that the module drives, usable or not */
	struct mig_parts parts;
	struct known known;
};

/** Return: NULL. */
struct seen *seen_free(struct seen *seen);

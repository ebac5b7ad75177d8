/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What a native host showed when its GPUs were listed. A plan and facts follow from it, so that a start asks once. */

#include "base/str.h"
#include "nvidia/cache.h"
#include "nvidia/mig.h"
#include "nvidia/module.h"

struct nvidia_probe {
	struct module module;
	struct strv gpus; /* PCI addresses of all that the module drives, usable or not */
	struct mig_parts parts;
	struct nvidia_cache known;
};

/** Return: NULL. */
struct nvidia_probe *nvidia_probe_free(struct nvidia_probe *seen);

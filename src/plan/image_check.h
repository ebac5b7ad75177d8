/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Fits a plan to the image: programs in some images do not read the files that list libraries. */

#include "base/log.h"
#include "model/plan.h"
#include "oci/oci.h"
#include "root/rootfs.h"

/** For a container whose process cannot be changed any more: says what it should have. Return: 0; negative errno. */
int image_check_warn(const struct plan *plan, const struct rootfs *rootfs, const struct oci_config *config,
		     const struct log *log);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a GPU's model name and PCI id tell of it, where that is safe, so that requirements on brand and architecture can
 * be judged without the vendor's library.
 */

#include <stdint.h>

/** Return: "tesla", "geforce", "geforcertx", … as NVIDIA_REQUIRE_* spells them; NULL if the name does not tell. */
const char *brand_of(const char *model);

/** Return: the compute capability, "9.0"; NULL if the PCI device id does not tell. */
const char *architecture_of(uint32_t device_id);

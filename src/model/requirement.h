/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What an image demands of the driver: "cuda>=12.4 brand=tesla,driver>=470,driver<471". A space is "or", a comma "and";
 * keys are cuda, driver and arch, which are versions, with =, !=, <, <=, >, >=, and brand, a word, with = and !=.
 * A condition with another key cannot be checked.
 */

#include "base/err.h"
#include "model/backend.h"

enum requirement_result {
	/* from good to bad */
	REQUIREMENT_MET,
	REQUIREMENT_MINOR_ONLY, /* not met, but CUDA's minor-version compatibility makes such an image work */
	REQUIREMENT_UNKNOWN,    /* the host does not tell what would decide it */
	REQUIREMENT_UNMET,
};

/** Return: 0; CTR_GPU_E_BAD_REQUIREMENT with @err set. */
int requirement_check_syntax(const char *requirement, struct err *err);

/** Holds a requirement of correct syntax against the driver. */
enum requirement_result requirement_check(const char *requirement, const struct driver_facts *facts);

/** Whether a newer driver may meet a requirement that this one does not meet. */
bool requirement_asks_for_newer(const char *requirement, const struct driver_facts *facts);

/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The variables that user-mode drivers need on GPU-PV hosts: one table. */

#include "model/plan.h"
#include "model/request.h"

struct adapter;

/**
 * environment_plan() - add the variables for these adapters
 * @selected: of this backend; if the plan is for others, too, what would keep programs from those is left out
 *
 * Return: 0 or -ENOMEM.
 */
int environment_plan(const struct request *request, const struct adapter *const *selected, size_t count,
		     struct plan *plan);

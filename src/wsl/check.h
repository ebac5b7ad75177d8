/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Between the files of GPU-PV's checks. */

#include "model/check.h"

/** Whether this is WSL, and not another guest; for advice only. */
bool check_is_wsl(void);

void check_stores(struct doctor_context *examination);
void check_guard(struct doctor_context *examination);

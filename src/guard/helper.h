/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Whether this machine can hold a choice, and having ctr-gpu-guard see to it. The hook is static and without libbpf, so
 * what takes that is a program of its own, which is run where the guard is not loaded yet.
 */

#include <stdbool.h>

#include "base/err.h"

/** Whether the programs are loaded, as far as the caller may see. */
bool helper_is_loaded(void);

/**
 * helper_check() - whether the guard is loaded, or could be, and would hold
 * @ret_obstacle: why not, a clause, owned by the caller; NULL if so
 *
 * Loads nothing; root's answer is kept (verdict.h). Return: 0 or -ENOMEM.
 */
int helper_check(char **ret_obstacle);

/** Loads the guard, unless it is loaded. Return: 0; CTR_GPU_E_GUARD or negative errno with @err set. */
int helper_load(struct err *err);

/** The same; choices of cgroups that are gone are removed besides. */
int helper_refresh(struct err *err);

/** Return: the path of ctr-gpu-guard, owned by the caller; NULL if it is not installed. */
char *helper_find(void);

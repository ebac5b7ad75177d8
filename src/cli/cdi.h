/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The commands of `ctr-gpu cdi`. */

#include "cli/globals.h"

/* What engines read unless they are told otherwise; of two specs of one device the later directory's counts. */
extern const char *const cdi_directories[];

int cdi_generate(struct globals *globals, int argc, char **argv);
int cdi_list(struct globals *globals, int argc, char **argv);
int cdi_check(struct globals *globals, int argc, char **argv);

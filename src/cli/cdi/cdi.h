/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The commands of `ctr-gpu cdi`. */

#include <stdbool.h>

#include "cli/session.h"

/* What engines read unless they are told otherwise; of two specs of one device the later directory's counts. */
extern const char *const cdi_directories[];

/** Where specs are written: the first of these directories or, on a machine whose /etc is read-only, the second. */
const char *cdi_directory(void);

/** Whether that is gone after a boot, when `ctr-gpu refresh` writes there again. */
bool cdi_is_volatile(void);

int cdi_verb_generate(struct global_options *globals, int argc, char **argv);

/* SPDX-License-Identifier: Apache-2.0 */

/* Aborts while it is loaded. */

#include <stdlib.h>

#include "fake.h"

__attribute__((constructor)) static void fail(void)
{
	abort();
}

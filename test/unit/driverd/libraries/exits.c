/* SPDX-License-Identifier: Apache-2.0 */

/* Ends the process, politely. */

#include <stdlib.h>

#include "fake.h"

__attribute__((constructor)) static void leave(void)
{
	exit(0);
}

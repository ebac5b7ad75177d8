/* SPDX-License-Identifier: Apache-2.0 */

/* Ends by a signal without a name while it is loaded. */

#include <signal.h>

#include "fake.h"

__attribute__((constructor)) static void fail(void)
{
	(void)raise(40);
}

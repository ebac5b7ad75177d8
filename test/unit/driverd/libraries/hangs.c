/* SPDX-License-Identifier: Apache-2.0 */

/* Never returns from its static initialiser, as when the host does not answer on the VM bus. */

#include <signal.h>
#include <unistd.h>

#include "fake.h"

__attribute__((constructor)) static void hang(void)
{
	sigset_t all;

	sigfillset(&all);
	(void)sigprocmask(SIG_BLOCK, &all, NULL);
	for (;;)
		(void)pause();
}

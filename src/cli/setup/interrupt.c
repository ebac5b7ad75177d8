/* SPDX-License-Identifier: Apache-2.0 */

#include "cli/setup/setup.h"

#include <signal.h>
#include <stdio.h>

#include "base/cleanup.h"

static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
static struct sigaction before[ARRAY_SIZE(signals)];
static volatile sig_atomic_t came;
static bool held;

static void interrupt_note(int number)
{
	came = number;
}

void interrupt_hold(void)
{
	const struct sigaction action = {.sa_handler = interrupt_note, .sa_flags = (int)SA_RESETHAND};

	for (size_t i = 0; i < ARRAY_SIZE(signals) && !held; i++) {
		(void)sigaction(signals[i], NULL, &before[i]);
		/* As nohup(1) leaves it. */
		if (before[i].sa_handler != SIG_IGN)
			(void)sigaction(signals[i], &action, NULL);
	}
	held = true;
}

bool interrupt_came(void)
{
	return came;
}

void interrupt_let_go(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(signals) && held; i++)
		(void)sigaction(signals[i], &before[i], NULL);
	held = false;
	if (!came)
		return;
	/* What was done has been said. */
	(void)fflush(stdout);
	(void)raise(came);
}

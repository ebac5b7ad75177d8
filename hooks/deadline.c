/* SPDX-License-Identifier: Apache-2.0 */

#include "deadline.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

static const char *volatile last_words;

/* Only what signal-safety(7) allows. */
static void say(const char *text)
{
	ssize_t written;

	written = write(STDERR_FILENO, text, strlen(text));
	(void)written;
}

static void give_up(int number)
{
	(void)number;
	say(last_words);
	say("\n");
	_exit(1);
}

void deadline_set(unsigned seconds, const char *sentence)
{
	if (!last_words)
		(void)signal(SIGALRM, give_up);
	last_words = sentence;
	(void)alarm(seconds);
}

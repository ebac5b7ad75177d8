/* SPDX-License-Identifier: Apache-2.0 */

#include "process/deadline.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

enum { INHERITED_MAX = 1024 };

static const char *volatile last_words;

/* Only what signal-safety(7) allows. */
static void deadline_print(const char *text)
{
	ssize_t written;

	written = write(STDERR_FILENO, text, strlen(text));
	(void)written;
}

static void deadline_give_up(int number)
{
	(void)number;
	deadline_print(last_words);
	deadline_print("\n");
	_exit(1);
}

void deadline_set(unsigned seconds, const char *sentence)
{
	if (!last_words)
		(void)signal(SIGALRM, deadline_give_up);
	last_words = sentence;
	(void)alarm(seconds);
}

void deadline_let_go(void)
{
	for (int fd = 0; fd < INHERITED_MAX; fd++)
		if (fcntl(fd, F_GETFD) == 0)
			(void)close(fd);
}

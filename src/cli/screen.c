/* SPDX-License-Identifier: Apache-2.0 */

/* What is shown once, or on a terminal again and again until the user has seen enough. */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/str.h"
#include "cli/output.h"
#include "cli/verbs.h"

enum { SCREEN_SECOND_MS = 1000, SCREEN_LINES = 24 };

#define SCREEN_CLEAR "\033[H\033[2J"

static volatile sig_atomic_t screen_ended;
static bool screen_has_keys;
static struct termios screen_before, screen_quiet; /* how the terminal is, and how it is while this runs */

static void screen_end(int number)
{
	(void)number;
	screen_ended = 1;
}

/* Ctrl-Z. Who has the terminal meanwhile has it as it was. */
static void screen_stop(int number)
{
	const int before = errno;

	(void)number;
	(void)tcsetattr(STDIN_FILENO, TCSANOW, &screen_before);
	(void)raise(SIGSTOP);
	(void)tcsetattr(STDIN_FILENO, TCSANOW, &screen_quiet);
	errno = before;
}

static void screen_catch_signals(void)
{
	static const int ends[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
	const struct sigaction end = {.sa_handler = screen_end}, stop = {.sa_handler = screen_stop};

	for (size_t i = 0; i < ARRAY_SIZE(ends); i++)
		(void)sigaction(ends[i], &end, NULL);
	(void)sigaction(SIGTSTP, &stop, NULL);
}

/* Return: how much of the text fits into the terminal. */
static size_t screen_cut(const char *text)
{
	struct winsize size = {0};
	const char *end = text;

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0 || size.ws_row < 2)
		size.ws_row = SCREEN_LINES;
	for (int lines = 1; *end && lines < size.ws_row; lines++)
		end = strchrnul(end, '\n') + (*strchrnul(end, '\n') == '\n');
	return (size_t)(end - text);
}

/* Written when it is whole. Return: 0 or the exit status. */
static int screen_show(int (*look)(void *data, FILE *file), void *data, bool terminal)
{
	struct memstream stream;
	FILE *file = memstream_open(&stream);
	_cleanup_free_ char *text = NULL;
	int r = file ? look(data, file) : 0;

	if (!file || memstream_close(&stream, &text, NULL) < 0)
		return output_no_memory();
	if (r || screen_ended)
		return r;
	if (terminal)
		(void)printf(SCREEN_CLEAR "%.*s", (int)screen_cut(text), text);
	else
		(void)fputs(text, stdout);
	(void)fflush(stdout);
	return 0;
}

bool screen_wait(void)
{
	struct pollfd keys = {.fd = STDIN_FILENO, .events = POLLIN};
	char key = '\0';

	if (!screen_ended && poll(&keys, screen_has_keys, SCREEN_SECOND_MS) > 0 &&
	    (read(STDIN_FILENO, &key, 1) <= 0 || key == 'q' || key == 'Q'))
		screen_ended = 1;
	return !screen_ended;
}

void screen_read_program(pid_t pid, char ret[static SCREEN_PROGRAM_SIZE])
{
	_cleanup_free_ char *name = NULL;
	char path[32];

	ret[0] = '\0';
	(void)snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
	if (pid > 0 && fd_read_kernel_file(AT_FDCWD, path, SCREEN_PROGRAM_SIZE - 1, &name) == 0)
		(void)snprintf(ret, SCREEN_PROGRAM_SIZE, "%.*s", (int)strcspn(name, "\n"), name);
}

int screen_run(int (*look)(void *data, FILE *file), void *data)
{
	int r = 0;

	if (!isatty(STDOUT_FILENO) || tcgetattr(STDIN_FILENO, &screen_before) < 0)
		return screen_show(look, data, false);
	screen_has_keys = true;
	screen_quiet = screen_before;
	screen_quiet.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	screen_catch_signals();
	(void)tcsetattr(STDIN_FILENO, TCSANOW, &screen_quiet);
	do
		r = screen_show(look, data, true);
	while (!r && screen_wait());
	(void)tcsetattr(STDIN_FILENO, TCSANOW, &screen_before);
	return r;
}

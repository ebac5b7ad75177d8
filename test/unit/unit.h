/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What every unit test includes: cmocka and the headers it needs in front of it. */

#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
/* Of cmocka 2, and as a macro it takes the word from everybody. */
#undef stop
/* With the reason, which test/run shows. */
#undef skip
#define skip(why) (print_message("# SKIP %s\n", why), _skip(__FILE__, __LINE__))
/* cmocka 2 has deprecated it, and 1 has nothing in its place. */
#undef assert_in_range
#define assert_between(value, least, most) \
	unit_check_between((intmax_t)(value), (intmax_t)(least), (intmax_t)(most), #value, __FILE__, __LINE__)

#include "base/cleanup.h"

static inline void unit_check_between(intmax_t value, intmax_t least, intmax_t most, const char *what, const char *file,
				      int line)
{
	if (value >= least && value <= most)
		return;
	print_error("%s is %jd, and not between %jd and %jd\n", what, value, least, most);
	_fail(file, line);
}

/* Both parts of an error, as users read it. */
#define unit_message(err) err_message((err), (char[ERR_MESSAGE_MAX]){0})

/* What a test has open. */
static inline unsigned unit_count_descriptors(void)
{
	unsigned count = 0;

	for (int fd = 0; fd < 1024; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

#define UNIT_NO_USER_NAMESPACES "needs user namespaces, which a plain chroot has not"

/* Processes in a chroot may not make one: user_namespaces(7). */
static inline bool unit_has_user_namespaces(void)
{
	int status = -1;
	pid_t child = fork();

	if (child == 0)
		_exit(unshare(CLONE_NEWUSER) < 0);
	if (child > 0 && waitpid(child, &status, 0) == child && status == 0)
		return true;
	return false;
}

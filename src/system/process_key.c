/* SPDX-License-Identifier: Apache-2.0 */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/str.h"
#include "system/machine.h"

static const char digits[] = "0123456789";

/* The fields behind the name, which may have blanks and brackets in it (proc_pid_stat(5)). */
static int process_key_read(int process, char *ret_state, unsigned long long *ret_start)
{
	enum { STAT_MAX = 4096, STATE = 3, START = 22 };
	_cleanup_free_ char *text = NULL;
	const char *end, *field;
	int r = fd_read_kernel_file(process, "stat", STAT_MAX, &text);

	if (r < 0)
		return r;
	field = end = strrchr(text, ')');
	for (int number = STATE - 1; field && number < START; number++)
		field = strchr(field + 1, ' ');
	if (!field)
		return -EINVAL;
	*ret_state = end[2];
	*ret_start = strtoull(field + 1, NULL, 10);
	return 0;
}

int process_key_start(int process, unsigned long long *ret)
{
	char state;

	return process_key_read(process, &state, ret);
}

static void process_key_print(pid_t pid, unsigned long long start, char ret[PROCESS_KEY_SIZE])
{
	(void)snprintf(ret, PROCESS_KEY_SIZE, "%d-%llu", (int)pid, start);
}

int process_key_make(pid_t pid, int process, char ret[PROCESS_KEY_SIZE])
{
	unsigned long long start;
	int r = process_key_start(process, &start);

	if (r == 0)
		process_key_print(pid, start, ret);
	return r;
}

bool process_key_is_valid(const char *text)
{
	size_t pid = strspn(text, digits), start = text[pid] == '-' ? strspn(text + pid + 1, digits) : 0;

	return pid > 0 && start > 0 && !text[pid + 1 + start] && pid + 1 + start < PROCESS_KEY_SIZE;
}

pid_t process_key_pid(const char *key)
{
	return (pid_t)strtol(key, NULL, 10);
}

bool process_key_is_over(const char *key)
{
	const pid_t pid = process_key_pid(key);
	char path[32], now[PROCESS_KEY_SIZE], state;
	_cleanup_close_ int process = -1;
	unsigned long long start;
	int r;

	(void)snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	process = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (process < 0)
		return errno == ENOENT;
	r = process_key_read(process, &state, &start);
	if (r < 0)
		return r == -ESRCH || r == -ENOENT;
	process_key_print(pid, start, now);
	return !streq(now, key) || state == 'Z' || state == 'X';
}

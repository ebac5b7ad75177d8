/* SPDX-License-Identifier: Apache-2.0 */

#include "nvidia/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/str.h"

char *program_find(const char *programs, const char *name)
{
	_cleanup_strv_ struct strv directories = {0};

	if (strv_split(programs, ":", &directories) < 0)
		return NULL;
	for (size_t i = 0; i < directories.count; i++) {
		_cleanup_free_ char *path = NULL;
		struct stat st;

		if (str_format(&path, "%s/%s", directories.items[i], name) < 0)
			return NULL;
		if (stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0)
			return steal_ptr(path);
	}
	return NULL;
}

int program_spawn(const char *path, char *const *arguments, int errors, pid_t *ret)
{
	static char *const environment[] = {NULL};
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t all, none;
	int r;

	(void)sigfillset(&all);
	(void)sigemptyset(&none);
	if (posix_spawn_file_actions_init(&actions) != 0)
		return -ENOMEM;
	if (posix_spawnattr_init(&attributes) != 0) {
		(void)posix_spawn_file_actions_destroy(&actions);
		return -ENOMEM;
	}
	(void)posix_spawnattr_setsigdefault(&attributes, &all);
	(void)posix_spawnattr_setsigmask(&attributes, &none);
	(void)posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
	r = posix_spawn_file_actions_adddup2(&actions, errors, STDERR_FILENO);
	if (r == 0)
		r = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDWR, 0);
	if (r == 0)
		r = posix_spawn_file_actions_adddup2(&actions, STDIN_FILENO, STDOUT_FILENO);
	if (r == 0)
		r = posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
	if (r == 0)
		r = posix_spawn(ret, path, &actions, &attributes, arguments, environment);
	(void)posix_spawnattr_destroy(&attributes);
	(void)posix_spawn_file_actions_destroy(&actions);
	return -r;
}

int program_wait(pid_t pid)
{
	int wait_status, r;

	do
		r = waitpid(pid, &wait_status, 0) < 0 ? -errno : 0;
	while (r == -EINTR);
	/* A caller that ignores SIGCHLD gets no status; /proc shows whether the module is loaded. */
	if (r < 0)
		return r == -ECHILD ? 0 : r;
	return !WIFEXITED(wait_status) || WEXITSTATUS(wait_status) != 0;
}

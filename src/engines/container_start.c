/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Containers that are being made. Until an OCI runtime has run a container's hooks it need not have written down that
 * there is one, so these are known by their processes: the first one has a mount namespace of its own already, and is
 * the runtime still, which waits for it.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "engines/engine.h"
#include "system/machine.h"

enum { WORDS_SIZE = 64 * 1024, STATUS_SIZE = 16 * 1024, LOOK_MS = 20 };

/* The clock of process_key_start(). */
static unsigned long long container_start_now(void)
{
	struct timespec now = {0};
	const unsigned long long ticks = (unsigned long long)sysconf(_SC_CLK_TCK);

	(void)clock_gettime(CLOCK_BOOTTIME, &now);
	return (unsigned long long)now.tv_sec * ticks + (unsigned long long)now.tv_nsec * ticks / 1000000000;
}

/* Whether two processes have the same file there: a program, a namespace. */
static bool container_start_shares(int one, int other, const char *file)
{
	struct stat a, b;

	return fstatat(one, file, &a, 0) == 0 && fstatat(other, file, &b, 0) == 0 && a.st_dev == b.st_dev &&
	       a.st_ino == b.st_ino;
}

/* Whether one of the words of its command line is among those of a list, which ends with NULL. */
static bool container_start_has_word(int process, const char *const *words)
{
	_cleanup_free_ char *line = NULL;
	size_t size = 0;

	if (fd_read_file_at(process, "cmdline", WORDS_SIZE, &line, &size) < 0)
		return false;
	for (const char *word = line; word < line + size; word += strlen(word) + 1)
		for (size_t i = 0; words[i]; i++)
			if (streq(word, words[i]))
				return true;
	return false;
}

/* Return: a descriptor of its directory in procfs; negative. */
static int container_start_open_parent(int proc, int process)
{
	_cleanup_free_ char *status = NULL;
	const char *line;
	char name[16];

	if (fd_read_file_at(process, "status", STATUS_SIZE, &status, NULL) < 0 || !(line = strstr(status, "\nPPid:")))
		return -1;
	(void)snprintf(name, sizeof(name), "%d", atoi(line + strlen("\nPPid:")));
	return openat(proc, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/*
 * Another user, or a program in a container, can have processes that look like it and make the caller wait. The
 * owner of a directory in procfs says little: it is root's where a process is not to be looked into.
 */
static bool container_start_is_callers(int process, int own)
{
	_cleanup_free_ char *status = NULL;
	const char *line;
	unsigned real, effective;

	if (!container_start_shares(process, own, "ns/pid") || !container_start_shares(process, own, "ns/user") ||
	    fd_read_file_at(process, "status", STATUS_SIZE, &status, NULL) < 0 || !(line = strstr(status, "\nUid:")))
		return false;
	return sscanf(line, "\nUid: %u %u", &real, &effective) == 2 && real == geteuid() && effective == geteuid();
}

/* runc is a copy of itself there, and says so. */
static bool container_start_is_first(int proc, int process, int own)
{
	static const char *const makes[] = {"create", "run", NULL}, *const begins[] = {"init", NULL};
	_cleanup_close_ int parent = container_start_open_parent(proc, process);

	return parent >= 0 && container_start_is_callers(parent, own) &&
	       !container_start_shares(process, parent, "ns/mnt") &&
	       (container_start_shares(process, parent, "exe") || container_start_has_word(process, begins)) &&
	       container_start_has_word(parent, makes);
}

/* Of our own, which has the settings by now. @own: this one's directory in procfs */
static bool container_start_is_giver(int process, int own)
{
	static const char *const gives[] = {"attach", "configure", NULL};

	return container_start_is_callers(process, own) && container_start_shares(process, own, "exe") &&
	       container_start_has_word(process, gives);
}

/* Return: a process that makes one and began before; 0: none does. */
static pid_t container_start_find(unsigned long long before)
{
	_cleanup_dir_ DIR *proc = opendir("/proc");
	_cleanup_close_ int own = proc ? openat(dirfd(proc), "self", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	const struct dirent *entry;

	while (proc && (entry = readdir(proc))) {
		const pid_t pid = atoi(entry->d_name);
		_cleanup_close_ int process = pid > 0 && pid != getpid() ? openat(dirfd(proc), entry->d_name,
										  O_RDONLY | O_DIRECTORY | O_CLOEXEC)
									 : -1;
		unsigned long long started;

		if (process >= 0 && process_key_start(process, &started) == 0 && started <= before &&
		    (container_start_is_first(dirfd(proc), process, own) || container_start_is_giver(process, own)))
			return pid;
	}
	return 0;
}

pid_t container_start_wait(int milliseconds, const volatile sig_atomic_t *stop)
{
	const unsigned long long before = container_start_now();
	const int64_t until = clock_now_ms() + milliseconds;
	const struct timespec moment = {.tv_nsec = LOOK_MS * 1000000L};
	pid_t pid;

	while ((pid = container_start_find(before)) > 0 && clock_now_ms() < until && !(stop && *stop))
		(void)nanosleep(&moment, NULL);
	return pid;
}

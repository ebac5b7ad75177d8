/* SPDX-License-Identifier: Apache-2.0 */

#include "doctor/process.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "doctor/file.h"

enum { PROCESS_FILE_MAX = 128 * 1024 };

void process_clear(struct process *process)
{
	strv_clear(&process->arguments);
	free(process->path);
	free(process->home);
	rootfs_close(&process->root);
	*process = (struct process){.root = ROOTFS_CLOSED};
}

static char *read_file(pid_t pid, const char *name, size_t *ret_size)
{
	char path[64], *data;

	(void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	return fd_read_file_at(AT_FDCWD, path, PROCESS_FILE_MAX, &data, ret_size) == 0 ? data : NULL;
}

static bool is_called(pid_t pid, const char *name)
{
	size_t size, length = strlen(name);
	_cleanup_free_ char *comm = read_file(pid, "comm", &size);

	return comm && size == length + 1 && strncmp(comm, name, length) == 0;
}

/* Inside a container, with a pid namespace of its own, a daemon is no engine of this machine: "NSpid:\t4711\t1". */
static bool is_in_container(pid_t pid)
{
	_cleanup_free_ char *status = read_file(pid, "status", NULL);
	const char *line = status ? strstr(status, "\nNSpid:\t") : NULL;

	if (!line)
		return false;
	line += strlen("\nNSpid:\t");
	return line[strcspn(line, "\t\n")] == '\t';
}

/* Anybody may have a process of this name: root's counts most, then that of whoever asks, and others' not at all. */
static int rank(pid_t pid)
{
	char path[32];
	struct stat st;

	(void)snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	if (stat(path, &st) < 0 || is_in_container(pid))
		return 0;
	if (st.st_uid == 0)
		return 2;
	return st.st_uid == geteuid() ? 1 : 0;
}

static pid_t find_pid(const char *name)
{
	DIR *directory = opendir("/proc");
	const struct dirent *entry;
	pid_t found = 0;
	int best = 0;

	while (directory && (entry = readdir(directory))) {
		pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);

		if (pid > 0 && is_called(pid, name) && rank(pid) > best) {
			best = rank(pid);
			found = pid;
		}
	}
	if (directory)
		(void)closedir(directory);
	return found;
}

/* Strings with a NUL behind each. */
static void read_arguments(struct process *process)
{
	size_t size = 0;
	_cleanup_free_ char *data = read_file(process->pid, "cmdline", &size);

	for (size_t i = 0; data && i < size; i += strlen(data + i) + 1)
		if (strv_add(&process->arguments, data + i) < 0)
			return;
}

static void read_environment(struct process *process)
{
	size_t size = 0;
	_cleanup_free_ char *data = read_file(process->pid, "environ", &size);

	for (size_t i = 0; data && i < size; i += strlen(data + i) + 1) {
		if (str_has_prefix(data + i, "PATH=") && !process->path)
			process->path = strdup(data + i + strlen("PATH="));
		else if (str_has_prefix(data + i, "HOME=") && !process->home)
			process->home = strdup(data + i + strlen("HOME="));
	}
}

/* proc(5): field 22 of stat is ticks since boot, counted behind the name, which may have blanks; btime is when that was. */
static void read_start(struct process *process)
{
	_cleanup_free_ char *stat = read_file(process->pid, "stat", NULL), *system = file_text("/proc/stat");
	const char *field = stat ? strrchr(stat, ')') : NULL, *boot = system ? strstr(system, "\nbtime ") : NULL;

	for (int i = 2; field && i < 22; i++)
		field = strchr(field + 1, ' ');
	if (field && boot)
		process->started = (time_t)(strtoll(boot + strlen("\nbtime "), NULL, 10) + strtoll(field, NULL, 10) / sysconf(_SC_CLK_TCK));
}

static int open_root(struct process *process)
{
	char path[64];
	struct stat own, other;

	process->root_is_ours = true;
	(void)snprintf(path, sizeof(path), "/proc/%d/root", (int)process->pid);
	if (process->pid == 0 || rootfs_open(AT_FDCWD, path, &process->root) < 0)
		return rootfs_open(AT_FDCWD, "/", &process->root);
	process->root_is_ours = stat("/", &own) == 0 && fstat(process->root.fd, &other) == 0 && own.st_dev == other.st_dev && own.st_ino == other.st_ino;
	return 0;
}

int process_find(const char *name, struct process *ret)
{
	struct process process = {.pid = find_pid(name), .root = ROOTFS_CLOSED};
	char path[32];
	struct stat st;
	int r;

	(void)snprintf(path, sizeof(path), "/proc/%d", (int)process.pid);
	if (process.pid > 0 && stat(path, &st) == 0) {
		process.uid = st.st_uid;
		read_arguments(&process);
		read_environment(&process);
		read_start(&process);
	}
	r = open_root(&process);
	if (r < 0)
		process_clear(&process);
	else
		*ret = process;
	return r;
}

const char *process_option(const struct process *process, const char *name, const char *letter)
{
	size_t length = strlen(name);

	for (size_t i = 1; i < process->arguments.count; i++) {
		const char *argument = process->arguments.items[i];

		if (strncmp(argument, name, length) == 0 && argument[length] == '=')
			return argument + length + 1;
		if ((streq(argument, name) || (letter && streq(argument, letter))) && i + 1 < process->arguments.count)
			return process->arguments.items[i + 1];
	}
	return NULL;
}

bool process_has_argument(const struct process *process, const char *part)
{
	for (size_t i = 0; i < process->arguments.count; i++)
		if (strstr(process->arguments.items[i], part))
			return true;
	return false;
}

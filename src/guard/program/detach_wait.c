/* SPDX-License-Identifier: Apache-2.0 */

#include "guard/program/detach_wait.h"

#include <bpf/bpf.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"

/* Of the links; the maps have no such names. */
#define PROGRAM_PREFIX "guard_"

enum { WAIT_ROUNDS = 1000, WAIT_USEC = 10000 };

static void detach_wait_add(const char *directory, const char *name, struct detach_wait *running)
{
	struct bpf_link_info info = {0};
	__u32 size = sizeof(info);
	_cleanup_close_ int fd = -1;
	char path[256];

	(void)snprintf(path, sizeof(path), "%s/%s", directory, name);
	fd = bpf_obj_get(path);
	if (fd >= 0 && running->count < DETACH_WAIT_MAX && bpf_obj_get_info_by_fd(fd, &info, &size) == 0)
		running->programs[running->count++] = info.prog_id;
}

void detach_wait_read(const char *directory, struct detach_wait *ret)
{
	_cleanup_dir_ DIR *dir = fd_open_directory(AT_FDCWD, directory, O_NOFOLLOW);
	const struct dirent *entry;

	*ret = (struct detach_wait){0};
	while (dir && (entry = readdir(dir)))
		if (str_has_prefix(entry->d_name, PROGRAM_PREFIX))
			detach_wait_add(directory, entry->d_name, ret);
}

static bool detach_wait_is(unsigned program)
{
	_cleanup_close_ int fd = bpf_prog_get_fd_by_id(program);

	return fd >= 0;
}

void detach_wait_wait(const struct detach_wait *running)
{
	size_t gone = 0;

	for (int round = 0; round < WAIT_ROUNDS && gone < running->count; round++) {
		while (gone < running->count && !detach_wait_is(running->programs[gone]))
			gone++;
		if (gone < running->count)
			(void)usleep(WAIT_USEC);
	}
}

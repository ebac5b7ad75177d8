/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Mounts a directory once more, idmapped: idmap SOURCE TARGET FIRST COUNT. What belongs to 0 there belongs to FIRST here, and so on,
 * for users and groups. Ends with 77 if this kernel or file system cannot.
 */

#include <fcntl.h>
#include <linux/mount.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef AT_RECURSIVE
#define AT_RECURSIVE 0x8000
#endif

enum { CANNOT = 77 };

static int fail(const char *what)
{
	perror(what);
	return CANNOT;
}

static int write_map(pid_t pid, const char *map, const char *first, const char *count)
{
	char path[64], line[64];
	int fd, length = snprintf(line, sizeof(line), "0 %s %s\n", first, count);

	(void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, map);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	length = write(fd, line, (size_t)length) == length ? 0 : -1;
	(void)close(fd);
	return length;
}

/* Return: a descriptor of a new user namespace, in which nothing runs any more; -1. */
static int make_namespace(const char *first, const char *count)
{
	char path[64];
	int ready[2], fd = -1;
	pid_t pid;
	char byte;

	if (pipe(ready) < 0)
		return -1;
	pid = fork();
	if (pid == 0) {
		if (unshare(CLONE_NEWUSER) == 0 && write(ready[1], "", 1) == 1)
			(void)pause();
		_exit(1);
	}
	(void)close(ready[1]);
	(void)snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)pid);
	if (pid > 0 && read(ready[0], &byte, 1) == 1 && write_map(pid, "uid_map", first, count) == 0 &&
	    write_map(pid, "gid_map", first, count) == 0)
		fd = open(path, O_RDONLY | O_CLOEXEC);
	if (pid > 0) {
		(void)kill(pid, SIGKILL);
		(void)waitpid(pid, NULL, 0);
	}
	return fd;
}

int main(int argc, char **argv)
{
	struct mount_attr attributes = {.attr_set = MOUNT_ATTR_IDMAP};
	int namespace, tree;

	if (argc != 5) {
		fputs("usage: idmap SOURCE TARGET FIRST COUNT\n", stderr);
		return 2;
	}
	namespace = make_namespace(argv[3], argv[4]);
	if (namespace < 0)
		return fail("user namespace");
	attributes.userns_fd = (unsigned)namespace;
	tree = (int)syscall(SYS_open_tree, AT_FDCWD, argv[1], OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	if (tree < 0)
		return fail(argv[1]);
	if (syscall(SYS_mount_setattr, tree, "", AT_EMPTY_PATH, &attributes, sizeof(attributes)) < 0)
		return fail("mount_setattr");
	if (syscall(SYS_move_mount, tree, "", AT_FDCWD, argv[2], MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return fail(argv[2]);
	return 0;
}

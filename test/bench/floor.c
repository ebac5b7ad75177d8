/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The floor under the hook: the system calls without which a container does not get a GPU-PV adapter, and nothing else.
 * What the hook has to find out is known here beforehand: which directories, where the cgroup is, what the loader cache
 * will be. Errors end it; nothing is checked, undone or explained.
 *
 *	floor PID ROOTFS CGROUP CACHE DROP-IN [SOURCE TARGET]…
 *
 * CGROUP is a version 1 devices.allow file, or "-" where the container may open any device. CACHE and DROP-IN are files
 * with the future contents of /etc/ld.so.cache and of /etc/ld.so.conf.d/ctr-gpu.conf. A SOURCE that is a directory ends
 * in a slash.
 */

#include <err.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <linux/openat2.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

enum { MOUNTS_MAX = 16, CONTENT_MAX = 4 << 20 };

struct content {
	char *data;
	size_t size;
};

static int check(const char *what, long result)
{
	if (result < 0)
		err(1, "%s", what);
	return (int)result;
}

static struct content read_content(const char *path)
{
	struct content content = { NULL, 0 };
	int fd = check(path, open(path, O_RDONLY | O_CLOEXEC));
	struct stat st;

	check(path, fstat(fd, &st));
	content.size = (size_t)st.st_size < CONTENT_MAX ? (size_t)st.st_size : CONTENT_MAX;
	content.data = malloc(content.size + 1);
	if (!content.data)
		err(1, "malloc");
	check(path, read(fd, content.data, content.size));
	close(fd);
	return content;
}

static int take_tree(const char *path, unsigned long long flags)
{
	struct mount_attr attr = { .attr_set = flags, .propagation = MS_PRIVATE };
	int tree = check(path, syscall(SYS_open_tree, AT_FDCWD, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC));

	check("mount_setattr", syscall(SYS_mount_setattr, tree, "", AT_EMPTY_PATH, &attr, sizeof(attr)));
	return tree;
}

static int open_in_root(int root, const char *path, unsigned long long flags)
{
	struct open_how how = { .flags = flags | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };

	return (int)syscall(SYS_openat2, root, path, &how, sizeof(how));
}

/* A directory that is missing costs one call per component; one that is there, one call in all. */
static int make_directory(int root, const char *path)
{
	int parent, fd = open_in_root(root, path, O_PATH | O_DIRECTORY);
	char *copy, *slash;

	if (fd >= 0)
		return fd;
	copy = strdup(path);
	slash = copy ? strrchr(copy, '/') : NULL;
	if (!slash)
		err(1, "%s", path);
	*slash = '\0';
	parent = *copy ? make_directory(root, copy) : dup(root);
	check(path, mkdirat(parent, slash + 1, 0755));
	fd = check(path, openat(parent, slash + 1, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
	close(parent);
	free(copy);
	return fd;
}

static void attach(int tree, int target)
{
	check("move_mount", syscall(SYS_move_mount, tree, "", target, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH));
	close(tree);
	close(target);
}

static int make_file(int root, const char *directory, const char *name)
{
	int parent = make_directory(root, directory);
	int target;

	close(check(name, openat(parent, name, O_RDONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644)));
	target = check(name, openat(parent, name, O_PATH | O_NOFOLLOW | O_CLOEXEC));
	close(parent);
	return target;
}

static int make_target(int root, const char *source, char *target)
{
	char *slash = strrchr(target, '/');

	if (source[strlen(source) - 1] == '/')
		return make_directory(root, target);
	*slash = '\0';
	return make_file(root, target, slash + 1);
}

static void write_file(int root, const char *directory, const char *name, const struct content *content)
{
	int parent = make_directory(root, directory);
	int fd = check(name, openat(parent, ".new", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));

	if (write(fd, content->data, content->size) != (ssize_t)content->size)
		err(1, "%s", name);
	close(fd);
	check(name, renameat(parent, ".new", parent, name));
	close(parent);
}

static void allow_device(const char *cgroup, const char *device)
{
	struct stat st;
	char rule[64];
	int fd, length;

	if (strcmp(cgroup, "-") == 0)
		return;
	check(device, stat(device, &st));
	length = snprintf(rule, sizeof(rule), "c %u:%u rw", major(st.st_rdev), minor(st.st_rdev));
	fd = check(cgroup, open(cgroup, O_WRONLY | O_CLOEXEC));
	check(cgroup, write(fd, rule, (size_t)length));
	close(fd);
}

static void enter_mount_namespace(const char *pid)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%s/ns/mnt", pid);
	fd = check(path, open(path, O_RDONLY | O_CLOEXEC));
	check("setns", setns(fd, CLONE_NEWNS));
	close(fd);
}

int main(int argc, char **argv)
{
	struct content cache, drop_in;
	int trees[MOUNTS_MAX], device, root, count = (argc - 6) / 2;
	char **mounts = argv + 6;

	if (argc < 8 || argc % 2 || count > MOUNTS_MAX)
		errx(2, "usage: floor PID ROOTFS CGROUP CACHE DROP-IN [SOURCE TARGET]...");
	cache = read_content(argv[4]);
	drop_in = read_content(argv[5]);
	device = take_tree("/dev/dxg", MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC);
	for (int i = 0; i < count; i++)
		trees[i] = take_tree(mounts[2 * i], MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
	allow_device(argv[3], "/dev/dxg");
	enter_mount_namespace(argv[1]);
	root = check(argv[2], open(argv[2], O_PATH | O_DIRECTORY | O_CLOEXEC));

	for (int i = 0; i < count; i++)
		attach(trees[i], make_target(root, mounts[2 * i], mounts[2 * i + 1]));
	attach(device, make_file(root, "/dev", "dxg"));
	write_file(root, "/etc/ld.so.conf.d", "ctr-gpu.conf", &drop_in);
	write_file(root, "/etc", "ld.so.cache", &cache);
	return 0;
}

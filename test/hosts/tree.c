/* SPDX-License-Identifier: Apache-2.0 */

#include "tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"

enum { TREE_PATH_MAX = 512 };

static inline void cleanup_closedirp(DIR **directory)
{
	if (*directory)
		(void)closedir(*directory);
}

static int complain(const char *what, const char *path)
{
	(void)fprintf(stderr, "enter: %s %s: %s\n", what, path, strerror(errno));
	return -1;
}

int tree_mkdir(const char *path)
{
	return mkdir(path, 0755) < 0 && errno != EEXIST ? complain("mkdir", path) : 0;
}

int tree_mkdirs(const char *path)
{
	char part[TREE_PATH_MAX];

	for (const char *at = path + 1;; at++) {
		if (*at != '/' && *at != '\0')
			continue;
		(void)snprintf(part, sizeof(part), "%.*s", (int)(at - path), path);
		if (tree_mkdir(part) < 0)
			return -1;
		if (*at == '\0')
			return 0;
	}
}

int tree_node(const char *path, mode_t mode, dev_t device)
{
	(void)unlink(path);
	/* The umask has no say in what a driver makes. */
	return mknod(path, S_IFCHR | mode, device) < 0 || chmod(path, mode) < 0 ? complain("mknod", path) : 0;
}

int tree_symlink(const char *points_to, const char *path)
{
	return symlink(points_to, path) < 0 ? complain("symlink", path) : 0;
}

int tree_write(const char *path, const char *text)
{
	_cleanup_close_ int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	return fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text) ? complain("write", path) : 0;
}

int tree_links(const char *from, const char *to)
{
	_cleanup_(cleanup_closedirp) DIR *directory = opendir(from);
	const struct dirent *entry;

	if (!directory)
		return complain("open", from);
	while ((entry = readdir(directory))) {
		char points_to[TREE_PATH_MAX], path[TREE_PATH_MAX];

		(void)snprintf(points_to, sizeof(points_to), "%s/%s", from, entry->d_name);
		(void)snprintf(path, sizeof(path), "%s/%s", to, entry->d_name);
		if (entry->d_name[0] != '.' && tree_symlink(points_to, path) < 0)
			return -1;
	}
	return 0;
}

static int copy_directory(int from, int to, mode_t mode);

static int copy_below(int from, int to, const char *name, mode_t mode)
{
	_cleanup_close_ int target = -1;

	if (mkdirat(to, name, 0755) < 0 && errno != EEXIST)
		return complain("mkdir", name);
	target = openat(to, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return target < 0 ? complain("open", name)
			  : copy_directory(openat(from, name, O_RDONLY | O_CLOEXEC), target, mode);
}

static int copy_file(int from, int to, const char *name, mode_t mode)
{
	_cleanup_close_ int in = openat(from, name, O_RDONLY | O_CLOEXEC), out = -1;
	struct stat st;

	if (in < 0 || fstat(in, &st) < 0)
		return complain("open", name);
	if (S_ISDIR(st.st_mode) && name[0] != '.')
		return copy_below(from, to, name, mode);
	if (!S_ISREG(st.st_mode))
		return 0;
	(void)unlinkat(to, name, 0);
	out = openat(to, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
	if (out < 0 || sendfile(out, in, NULL, (size_t)st.st_size) != st.st_size || fchmod(out, mode) < 0)
		return complain("copy", name);
	return 0;
}

/* Closes @from. */
static int copy_directory(int from, int to, mode_t mode)
{
	_cleanup_(cleanup_closedirp) DIR *directory = from < 0 ? NULL : fdopendir(from);
	const struct dirent *entry;

	if (!directory)
		return complain("open", "what is to be copied");
	while ((entry = readdir(directory)))
		if (copy_file(directory_fd(directory), to, entry->d_name, mode) < 0)
			return -1;
	return 0;
}

int tree_copy(const char *from, const char *to, mode_t mode)
{
	_cleanup_close_ int target = open(to, O_PATH | O_DIRECTORY | O_CLOEXEC);

	return target < 0 ? complain("open", to) : copy_directory(open(from, O_RDONLY | O_CLOEXEC), target, mode);
}

int tree_copy_one(const char *from, const char *to, const char *name, mode_t mode)
{
	_cleanup_close_ int source = open(from, O_PATH | O_DIRECTORY | O_CLOEXEC);
	_cleanup_close_ int target = open(to, O_PATH | O_DIRECTORY | O_CLOEXEC);

	return source < 0 || target < 0 ? complain("open", source < 0 ? from : to)
					: copy_file(source, target, name, mode);
}

int tree_copy_links(const char *from, const char *to)
{
	_cleanup_(cleanup_closedirp) DIR *directory = opendir(from);
	const struct dirent *entry;

	if (!directory)
		return complain("open", from);
	while ((entry = readdir(directory))) {
		char points_to[TREE_PATH_MAX] = "", path[TREE_PATH_MAX];

		if (entry->d_type != DT_LNK)
			continue;
		(void)snprintf(path, sizeof(path), "%s/%s", to, entry->d_name);
		if (readlinkat(directory_fd(directory), entry->d_name, points_to, sizeof(points_to) - 1) < 0)
			return complain("readlink", entry->d_name);
		if (tree_symlink(points_to, path) < 0)
			return -1;
	}
	return 0;
}

static int store(const struct profile_adapter *adapter, const char *files, const char *drivers)
{
	char from[TREE_PATH_MAX], to[TREE_PATH_MAX];

	if (!adapter->store || adapter->on_disk == FILES_ABSENT)
		return 0;
	(void)snprintf(to, sizeof(to), "%s/%s", drivers, adapter->store);
	if (access(to, F_OK) == 0)
		return 0; /* of two adapters with one driver */
	if (tree_mkdir(to) < 0)
		return -1;
	if (adapter->on_disk == FILES_EMPTY || !adapter->files)
		return 0;
	(void)snprintf(from, sizeof(from), "%s/store-%s", files, adapter->files);
	return tree_copy(from, to, 0555);
}

static int other_driver(const char *drivers, unsigned number)
{
	static const char *const names[] = {"hdaudio", "netwtw10", "usbport", "prnms003",
					    "bth",     "iaahcic",  "wvid",    "mdmcpq"};
	const char *name = names[number % (sizeof(names) / sizeof(names[0]))];
	char directory[TREE_PATH_MAX], path[TREE_PATH_MAX + 32];

	(void)snprintf(directory, sizeof(directory), "%s/%s.inf_amd64_%08x%08x", drivers, name, number * 2654435761u,
		       ~number);
	if (tree_mkdir(directory) < 0)
		return -1;
	(void)snprintf(path, sizeof(path), "%s/%s.inf", directory, name);
	if (tree_write(path, "; a driver that is none of a container's business\n") < 0)
		return -1;
	(void)snprintf(path, sizeof(path), "%s/%s.sys", directory, name);
	return tree_write(path, "MZ\n");
}

int tree_drivers(const struct profile *profile, const char *files, const char *to)
{
	for (unsigned i = 0; i < profile->repository; i++)
		if (other_driver(to, i) < 0)
			return -1;
	for (size_t i = 0; i < profile->adapter_count; i++)
		if (store(&profile->adapters[i], files, to) < 0)
			return -1;
	return 0;
}

int tree_lib(const struct profile *profile, const char *files, const char *to)
{
	char from[TREE_PATH_MAX];

	for (size_t i = 0; i < profile->lib_count; i++) {
		(void)snprintf(from, sizeof(from), "%s/lib-%s", files, profile->lib[i]);
		if (tree_copy(from, to, 0555) < 0)
			return -1;
	}
	if (!profile->libdxcore)
		return 0;
	(void)snprintf(from, sizeof(from), "%s/dxcore-%s", files, profile->libdxcore);
	return tree_copy(from, to, 0555);
}

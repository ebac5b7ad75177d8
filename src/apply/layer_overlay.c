/* SPDX-License-Identifier: Apache-2.0 */

#include "apply/internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/fd.h"
#include "root/mountinfo.h"

enum { NAMES_MAX = 4096 }; /* of a directory of the layer that are looked at */

#ifndef OVERLAYFS_SUPER_MAGIC
#define OVERLAYFS_SUPER_MAGIC 0x794c7630
#endif

void layer_overlay_close(struct layer_overlay *overlay)
{
	for (size_t i = 0; i < overlay->times_count; i++) {
		free(overlay->times[i].path);
		(void)close(overlay->times[i].fd);
	}
	free(overlay->times);
	strv_clear(&overlay->lowers);
	rootfs_close(&overlay->upper);
	rootfs_close(&overlay->merged);
}

/* ---- what it is made of ---- */

/* A path of the mount's options. They write "\:" and "\," within one, which no engine has. */
static char *layer_overlay_path(struct mountinfo_field text, const char *above)
{
	char *path = mountinfo_unescape(text), *whole;

	if (!path || path[0] == '/')
		return path;
	if (str_format(&whole, "%s/%s", above, path) < 0)
		whole = NULL;
	free(path);
	return whole;
}

/* Two directories above @path: where engines that give relative paths have the working directory meanwhile. */
static int layer_overlay_find_base(const char *path, char **ret)
{
	const char *end = strrchr(path, '/');

	while (end && end > path && *--end != '/')
		;
	*ret = end && end > path ? strndup(path, (size_t)(end - path)) : strdup("/");
	return *ret ? 0 : -ENOMEM;
}

static bool layer_overlay_take_option(struct mountinfo_field option, const char *name, struct mountinfo_field *ret)
{
	size_t length = strlen(name);

	if (option.size <= length || memcmp(option.text, name, length) != 0)
		return false;
	*ret = (struct mountinfo_field){option.text + length, option.size - length};
	return true;
}

static int layer_overlay_add_lower(struct layer_overlay *overlay, struct mountinfo_field text, const char *base)
{
	char *lower = layer_overlay_path(text, base);

	return lower ? strv_take(&overlay->lowers, lower) : -ENOMEM;
}

/*
 * All in one option, with colons between them; or, as mounted by fsconfig(2) since Linux 6.8, each in one of its own,
 * in which a colon is one of the path.
 */
static int layer_overlay_read_lowers(struct layer_overlay *overlay, struct mountinfo_field options, const char *base)
{
	struct mountinfo_field value;
	int r = 0;

	while (r == 0 && options.size) {
		struct mountinfo_field option = mountinfo_field_take(&options, ',');

		if (layer_overlay_take_option(option, "lowerdir+=", &value))
			r = layer_overlay_add_lower(overlay, value, base);
		else if (layer_overlay_take_option(option, "lowerdir=", &value))
			while (r == 0 && value.size)
				r = layer_overlay_add_lower(overlay, mountinfo_field_take(&value, ':'), base);
	}
	return r;
}

static int layer_overlay_read_options(struct layer_overlay *overlay, struct mountinfo_field options, const char *path)
{
	_cleanup_free_ char *base = NULL, *upper = NULL, *lower_base = NULL;
	struct mountinfo_field rest = options, value;
	int r;

	r = layer_overlay_find_base(path, &base);
	if (r < 0)
		return r;
	while (rest.size) {
		struct mountinfo_field option = mountinfo_field_take(&rest, ',');

		if (layer_overlay_take_option(option, "upperdir=", &value) && !upper)
			upper = layer_overlay_path(value, base);
	}
	if (!upper)
		return -EOPNOTSUPP;
	r = rootfs_open(AT_FDCWD, upper, &overlay->upper);
	if (r == 0)
		r = layer_overlay_find_base(upper, &lower_base);
	return r == 0 ? layer_overlay_read_lowers(overlay, options, lower_base) : r;
}

/* A runtime mounts the whole overlayfs for the container. Any other mount there is another program's. */
static bool layer_overlay_is_whole(const struct mountinfo_line *line)
{
	return mountinfo_field_is(line->type, "overlay") && mountinfo_field_is(line->root, "/");
}

/* @dev: of the file system. Return: whether the line is of the mount that is looked for. */
static bool layer_overlay_is_line(const struct layer_overlay *overlay, const struct mountinfo_line *line,
				  const dev_t *dev)
{
	uint64_t id;
	dev_t other;

	if (dev)
		return layer_overlay_is_whole(line) && mountinfo_dev(line, &other) && other == *dev;
	return mountinfo_id(line, &id) && id == overlay->merged.mount;
}

/*
 * Only among this process's mounts: another mount namespace has other directories by the same paths, and a container
 * that may mount says which.
 *
 * @path: where the mount is; NULL: what its line says
 */
static int layer_overlay_find(struct layer_overlay *overlay, const dev_t *dev, const char *path)
{
	_cleanup_free_ char *text = NULL, *point = NULL;
	struct mountinfo_field rest;
	struct mountinfo_line line;
	int r = fd_read_file_at(AT_FDCWD, "/proc/self/mountinfo", MOUNTINFO_MAX, &text, NULL);

	if (r < 0)
		return r;
	rest = mountinfo_field_of(text);
	while (mountinfo_next(&rest, &line)) {
		if (!layer_overlay_is_line(overlay, &line, dev))
			continue;
		point = path ? NULL : mountinfo_unescape(line.point);
		if (!path && !point)
			return -ENOMEM;
		return layer_overlay_is_whole(&line)
			       ? layer_overlay_read_options(overlay, line.options, path ? path : point)
			       : -EOPNOTSUPP;
	}
	return -EOPNOTSUPP;
}

static int layer_overlay_check(const struct layer_overlay *overlay, dev_t *ret_dev)
{
	struct statfs fs;
	struct statx stx;

	if (fstatfs(overlay->merged.fd, &fs) < 0 || fs.f_type != OVERLAYFS_SUPER_MAGIC || !overlay->merged.mount ||
	    statx(overlay->merged.fd, "", AT_EMPTY_PATH, STATX_INO, &stx) < 0 ||
	    !(stx.stx_attributes & STATX_ATTR_MOUNT_ROOT))
		return -EOPNOTSUPP;
	*ret_dev = makedev(stx.stx_dev_major, stx.stx_dev_minor);
	return 0;
}

int layer_overlay_open(struct layer_overlay *overlay, const char *path)
{
	dev_t dev;
	int r = layer_overlay_check(overlay, &dev);

	return r == 0 ? layer_overlay_find(overlay, NULL, path) : r;
}

int layer_overlay_open_running(struct layer_overlay *overlay)
{
	dev_t dev;
	int r = layer_overlay_check(overlay, &dev);

	return r == 0 ? layer_overlay_find(overlay, &dev, NULL) : r;
}

/* ---- who uses it ---- */

static bool layer_overlay_is_pid(const char *name)
{
	return name[strspn(name, "0123456789")] == '\0';
}

bool layer_overlay_is_lived_in(const struct layer_overlay *overlay)
{
	_cleanup_dir_ DIR *processes = fd_open_directory(AT_FDCWD, "/proc", 0);
	const struct dirent *entry;
	struct stat own, its;
	char path[32];

	if (!processes || fstat(overlay->merged.fd, &own) < 0)
		return true;
	while ((entry = readdir(processes))) {
		if (!layer_overlay_is_pid(entry->d_name) ||
		    snprintf(path, sizeof(path), "%.16s/root/", entry->d_name) >= (int)sizeof(path))
			continue;
		if (fstatat(directory_fd(processes), path, &its, 0) == 0 && its.st_dev == own.st_dev &&
		    its.st_ino == own.st_ino)
			return true;
	}
	return false;
}

/* ---- what is removed ---- */

static const struct layer_times *layer_overlay_find_times(const struct layer_overlay *overlay, int fd)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return NULL;
	for (size_t i = 0; i < overlay->times_count; i++)
		if (overlay->times[i].before.st_ino == st.st_ino && overlay->times[i].before.st_dev == st.st_dev)
			return &overlay->times[i];
	return NULL;
}

int layer_overlay_keep_times(struct layer_overlay *overlay, const char *path, int fd)
{
	struct layer_times *list, new = {.fd = -1};

	if (layer_overlay_find_times(overlay, fd))
		return 0;
	list = array_grow(overlay->times, overlay->times_count, sizeof(*list));
	if (!list)
		return -ENOMEM;
	overlay->times = list;
	new.fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	new.path = strdup(path);
	if (!new.path || new.fd < 0 || fstat(fd, &new.before) < 0) {
		free(new.path);
		cleanup_closep(&new.fd);
		return -ENOMEM;
	}
	list[overlay->times_count++] = new;
	return 0;
}

void layer_overlay_uncover(const struct layer_overlay *overlay, int parent, const char *name)
{
	const struct layer_times *times = layer_overlay_find_times(overlay, parent);
	_cleanup_close_ int upper =
		times ? rootfs_open_unlinked(&overlay->upper, times->path, O_RDONLY | O_DIRECTORY) : -1;
	struct stat st;

	if (upper >= 0 && fstatat(upper, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISCHR(st.st_mode) && st.st_rdev == 0)
		(void)unlinkat(upper, name, 0);
}

/* ---- times ---- */

/* What the image has at a path: the newest layer that has something there. */
static bool layer_overlay_look_below(const struct layer_overlay *overlay, const char *path, struct stat *ret)
{
	for (size_t i = 0; i < overlay->lowers.count; i++) {
		_cleanup_rootfs_ struct rootfs lower = ROOTFS_CLOSED;
		_cleanup_close_ int fd = -1;

		if (rootfs_open(AT_FDCWD, overlay->lowers.items[i], &lower) < 0)
			return false;
		fd = rootfs_open_unlinked(&lower, path, O_PATH | O_NOFOLLOW);
		if (fd >= 0)
			return fstat(fd, ret) == 0;
	}
	return false;
}

/* Whether the layer has in a directory nothing but directories that the image has, too. */
static bool layer_overlay_is_bare(const struct layer_overlay *overlay, const char *path)
{
	int fd = rootfs_open_unlinked(&overlay->upper, path, O_RDONLY | O_DIRECTORY);
	_cleanup_dir_ DIR *names = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;
	size_t count = 0;

	if (!names && fd >= 0)
		(void)close(fd);
	while (names && (entry = readdir(names))) {
		_cleanup_free_ char *inner = NULL;
		struct stat st;

		if (streq(entry->d_name, ".") || streq(entry->d_name, ".."))
			continue;
		if (++count > NAMES_MAX || entry->d_type != DT_DIR ||
		    str_format(&inner, "%s/%s", streq(path, "/") ? "" : path, entry->d_name) < 0 ||
		    !layer_overlay_look_below(overlay, inner, &st) || !S_ISDIR(st.st_mode))
			return false;
	}
	return names != NULL;
}

static void layer_overlay_restore_one(const struct layer_overlay *overlay, const struct layer_times *times)
{
	struct timespec new[] = {{.tv_nsec = UTIME_OMIT}, times->before.st_mtim};
	const struct mapped_root owner = {times->before.st_uid != geteuid(), times->before.st_uid,
					  times->before.st_gid};
	struct stat below;

	if (layer_overlay_look_below(overlay, times->path, &below) && S_ISDIR(below.st_mode) &&
	    layer_overlay_is_bare(overlay, times->path))
		new[1] = below.st_mtim;
	mapped_root_begin(&owner);
	(void)futimens(times->fd, new);
	mapped_root_end(&owner);
}

void layer_overlay_restore_times(const struct layer_overlay *overlay)
{
	for (size_t i = 0; i < overlay->times_count; i++)
		layer_overlay_restore_one(overlay, &overlay->times[i]);
}

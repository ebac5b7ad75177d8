/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The record of what a start made in a container's layer, and its removal when the container has ended.
 *
 * Only a layer of overlayfs is cleaned, as nothing else tells what is the image's. All is removed through the mounted
 * file system. Where the image has something of the same name, that leaves a whiteout in the layer's own directory,
 * which is removed there: overlayfs has forgotten the name by then, and finds the image's file again.
 *
 * The container had its layer for itself, and may have left anything there. So a directory goes if it is empty, a link
 * if it says what ours said, a file if it has our content; the worst that another can have done is to have such a thing
 * of its own removed from its own layer.
 */

#include "apply/internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"
#include "devcgroup/devcgroup.h"
#include "ldcache/loader.h"
#include "lib/container.h"
#include "lib/context.h"
#include "root/mount.h"
#include "root/mount_class.h"
#include "root/mountinfo.h"
#include "root/rootfs.h"
#include "system/trusted_file.h"

/* ---- the overlayfs ---- */

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

/* ---- the overlayfs: what it is made of ---- */

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

/*
 * layer_overlay_open() - finds what the file system is made of
 * @overlay: with @merged, whose mount's number is known
 * @path:    of @merged; engines that have many layers give the kernel relative paths, which count from above it
 *
 * Return: 0; -EOPNOTSUPP if it is not an overlayfs, or only a part of one; negative errno.
 */
static int layer_overlay_open(struct layer_overlay *overlay, const char *path)
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

/* ---- the overlayfs: who uses it ---- */

static bool layer_overlay_is_pid(const char *name)
{
	return name[strspn(name, "0123456789")] == '\0';
}

/* Whether a process has it as its root directory, as one of another container on the same root filesystem. */
static bool layer_overlay_is_lived_in(const struct layer_overlay *overlay)
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

/* ---- the overlayfs: what is removed ---- */

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

/*
 * layer_overlay_uncover() - what the image has at a name just removed is seen again
 * @parent: of layer_overlay_keep_times()
 *
 * Not while a process lives in it: overlayfs keeps what that has looked up meanwhile, and so the name stays gone.
 */
static void layer_overlay_uncover(const struct layer_overlay *overlay, int parent, const char *name)
{
	const struct layer_times *times = layer_overlay_find_times(overlay, parent);
	_cleanup_close_ int upper =
		times ? rootfs_open_unlinked(&overlay->upper, times->path, O_RDONLY | O_DIRECTORY) : -1;
	struct stat st;

	if (upper >= 0 && fstatat(upper, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISCHR(st.st_mode) && st.st_rdev == 0)
		(void)unlinkat(upper, name, 0);
}

/* ---- the overlayfs: times ---- */

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

/* ---- the record ---- */

enum {
	RECORD_MAX = 256 * 1024, /* of some starts of one bundle */
	CONTENT_MAX = 1 << 20,   /* of a file that is compared */
};

#define FIRST_LINE "ctr-gpu layer 1"

/* ---- writing ---- */

void layer_begin(struct undo_log *undo_log, const char *bundle, const char *rootfs)
{
	if (!bundle || strlen(bundle) + sizeof("/" LAYER_RECORD) > sizeof(undo_log->record))
		return;
	(void)stpcpy(stpcpy(undo_log->record, bundle), "/" LAYER_RECORD);
	undo_log_note(undo_log, 'r', rootfs, "");
}

/* Who can move a directory above might have root make the file elsewhere. */
static int layer_create(const char *path)
{
	const struct open_how how = {
		.flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
		.mode = 0600,
		.resolve = RESOLVE_NO_SYMLINKS,
	};
	const char *slash = strrchr(path, '/');
	_cleanup_free_ char *directory = NULL;
	_cleanup_close_ int home = -1;
	int fd = (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));

	if (fd >= 0 || (errno != ELOOP && errno != ENOSYS && errno != EPERM))
		return fd < 0 ? -errno : fd;
	directory = strndup(path, (size_t)(slash - path));
	if (!directory)
		return -ENOMEM;
	home = trusted_file_open(directory, S_IFDIR, geteuid(), O_PATH);
	if (home < 0)
		return home;
	fd = openat(home, slash + 1, (int)how.flags, how.mode);
	return fd < 0 ? -errno : fd;
}

/* Return: whether the file is the calling user's alone; then it has been read. */
static bool layer_read_record(const char *path, char **ret, size_t *ret_size)
{
	_cleanup_close_ int fd = fd_open_file_at(AT_FDCWD, path, O_NOFOLLOW);
	struct stat st;

	return fd >= 0 && fstat(fd, &st) == 0 && st.st_uid == geteuid() && !(st.st_mode & 077) && st.st_nlink == 1 &&
	       fd_read_all(fd, RECORD_MAX, ret, ret_size) == 0 && *ret_size > sizeof(FIRST_LINE) &&
	       memcmp(*ret, FIRST_LINE, sizeof(FIRST_LINE)) == 0;
}

struct note {
	char kind;
	const char *path, *detail;
};

/* Return: false at the end. */
static bool layer_next_note(struct span *rest, struct note *ret)
{
	const char *path, *detail;

	if (rest->size < 1)
		return false;
	path = span_string(rest, 1);
	detail = path ? span_string(rest, 1 + strlen(path) + 1) : NULL;
	if (!detail || path[0] != '/')
		return false;
	*ret = (struct note){(char)rest->data[0], path, detail};
	rest->data = (const unsigned char *)detail + strlen(detail) + 1;
	rest->size -= 2 + strlen(path) + 1 + strlen(detail);
	return true;
}

static bool layer_has_note(struct span notes, const struct note *note)
{
	struct note other;

	while (layer_next_note(&notes, &other))
		if (other.kind == note->kind && streq(other.path, note->path) && streq(other.detail, note->detail))
			return true;
	return false;
}

/* The notes that a record does not have yet: a container that starts again mostly makes the same. */
static struct span layer_list_new(struct span notes, struct span old, unsigned char buffer[UNDO_LOG_MADE_MAX])
{
	struct span new = {buffer, 0};
	struct note note;

	for (struct span rest = notes; layer_next_note(&rest, &note); notes = rest) {
		const size_t size = (size_t)(rest.data - notes.data);

		if (layer_has_note(old, &note))
			continue;
		memcpy(buffer + new.size, notes.data, size);
		new.size += size;
	}
	return new;
}

/* What would make it longer than it is ever read stays in the layer. Return: whether it is to be written anew. */
static bool layer_join(const char *path, struct span parts[2], unsigned char buffer[UNDO_LOG_MADE_MAX], char **ret_old)
{
	struct span old;

	if (!layer_read_record(path, ret_old, &parts[0].size))
		return false;
	parts[0].data = (const unsigned char *)*ret_old;
	old = (struct span){parts[0].data + sizeof(FIRST_LINE), parts[0].size - sizeof(FIRST_LINE)};
	parts[1] = layer_list_new(parts[1], old, buffer);
	return parts[1].size > 0 && parts[0].size + parts[1].size <= RECORD_MAX && unlink(path) == 0;
}

void layer_save(const struct undo_log *undo_log, bool ends)
{
	unsigned char buffer[UNDO_LOG_MADE_MAX];
	_cleanup_free_ char *old = NULL;
	_cleanup_close_ int fd = -1;
	struct span parts[] = {{(const unsigned char *)FIRST_LINE, sizeof(FIRST_LINE)},
			       {(const unsigned char *)undo_log->made, undo_log->made_size}};

	if (!undo_log->record[0] || undo_log->made_count < 2)
		return;
	fd = layer_create(undo_log->record);
	if (fd == -EEXIST && layer_join(undo_log->record, parts, buffer, &old))
		fd = layer_create(undo_log->record);
	if (fd >= 0)
		(void)fd_write_parts(fd, parts, ARRAY_SIZE(parts));
	if (ends)
		(void)steal_fd(&fd);
}

/* ---- taking back ---- */

/* A note's place by now. */
struct place {
	int parent; /* in the mounted file system; -1: nowhere */
	const char *name;
};

static bool layer_find_place(struct layer_overlay *overlay, const struct note *note, struct place *ret)
{
	_cleanup_free_ char *above = NULL, *real = NULL;
	const char *slash = strrchr(note->path, '/');
	_cleanup_close_ int fd = -1;

	above = strndup(note->path, slash == note->path ? 1 : (size_t)(slash - note->path));
	if (!above || !slash[1] || rootfs_real_path(&overlay->merged, above, &real) < 0)
		return false;
	fd = rootfs_open_unlinked(&overlay->merged, real, O_RDONLY | O_DIRECTORY);
	if (fd < 0 || !mount_class_is_root(&overlay->merged, fd) || layer_overlay_keep_times(overlay, real, fd) < 0)
		return false;
	*ret = (struct place){steal_fd(&fd), slash + 1};
	return true;
}

static bool layer_is_our_link(const struct place *place, const char *says)
{
	_cleanup_free_ char *text = NULL;

	return fd_read_link_at(place->parent, place->name, &text) == 0 && streq(text, says);
}

static bool layer_is_our_file(const struct layer_overlay *overlay, const struct place *place, const char *mark)
{
	_cleanup_close_ int handle = openat(place->parent, place->name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	_cleanup_free_ char *data = NULL;
	char own[ROOTFS_MARK_SIZE];
	struct span content;
	size_t size;

	if (!*mark || handle < 0 || rootfs_read_handle(&overlay->merged, handle, CONTENT_MAX, &data, &size) < 0)
		return false;
	content = (struct span){(const unsigned char *)data, size};
	rootfs_mark_content(&content, own);
	return streq(own, mark);
}

static void layer_take_back(struct layer_overlay *overlay, const struct note *note, const struct place *place)
{
	int flags = note->kind == ROOTFS_NOTE_DIRECTORY ? AT_REMOVEDIR : 0;

	if (note->kind == ROOTFS_NOTE_SYMLINK && !layer_is_our_link(place, note->detail))
		return;
	if (note->kind == ROOTFS_NOTE_FILE && !layer_is_our_file(overlay, place, note->detail))
		return;
	if (unlinkat(place->parent, place->name, flags) == 0)
		layer_overlay_uncover(overlay, place->parent, place->name);
}

/* ---- the loader's cache ---- */

/* The directories that an ldconfig run in the container has found by our files. */
static int layer_read_former(const struct layer_overlay *overlay, struct strv *ret)
{
	static const char *const files[] = {LOADER_CONF_FIRST, LOADER_CONF_LAST};
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(files) && r == 0; i++) {
		_cleanup_free_ char *text = NULL;

		if (rootfs_read_file(&overlay->merged, files[i], LOADER_CONF_MAX_SIZE, &text, NULL) == 0)
			r = loader_conf_parse(text, ret);
	}
	return r;
}

/* Of a list of libraries, in its order. */
struct sum {
	size_t count;
	uint64_t value;
};

static void layer_add_library(void *user, const char *name, const char *path)
{
	struct sum *sum = user;

	sum->count++;
	sum->value = (sum->value * 31 + str_hash(name)) * 31 + str_hash(path);
}

static struct sum layer_sum_up(const struct span *parts, size_t count)
{
	_cleanup_free_ char *whole = NULL;
	struct sum sum = {0};
	size_t size = 0;
	struct span span;

	for (size_t i = 0; i < count; i++)
		size += parts[i].size;
	whole = malloc(size + 1);
	if (!whole)
		return sum;
	span = (struct span){(const unsigned char *)whole, size};
	size = 0;
	for (size_t i = 0; i < count; i++) {
		memcpy(whole + size, parts[i].data, parts[i].size);
		size += parts[i].size;
	}
	ldcache_each(&span, layer_add_library, &sum);
	return sum;
}

/*
 * What the cache would be without us is the image's, unless an ldconfig ran in the container, in this start or an
 * earlier one. Then it is written in its place. The image's own is seen by now.
 */
/* @owner: of the one that was there */
static void layer_put_back_cache(const struct layer_overlay *overlay, const struct place *place,
				 const struct mapped_root *owner, const struct ldcache_merged *without)
{
	_cleanup_close_ int handle = openat(place->parent, place->name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	const struct sum own = layer_sum_up(without->parts, LDCACHE_PARTS);
	_cleanup_free_ char *data = NULL;
	struct sum image = {0};
	struct span content;
	size_t size;
	_cleanup_close_ int fd = -1;

	if (handle >= 0 && rootfs_read_handle(&overlay->merged, handle, LDCACHE_MAX_SIZE, &data, &size) == 0) {
		content = (struct span){(const unsigned char *)data, size};
		image = layer_sum_up(&content, 1);
	}
	if (own.count == image.count && own.value == image.value)
		return;
	if (handle >= 0)
		(void)unlinkat(place->parent, place->name, 0);
	mapped_root_begin(owner);
	fd = openat(place->parent, place->name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
	mapped_root_end(owner);
	if (fd >= 0)
		(void)fd_write_parts(fd, without->parts, LDCACHE_PARTS);
}

static void layer_take_back_cache(struct layer_overlay *overlay, const struct place *place, const struct strv *former)
{
	_cleanup_close_ int handle = openat(place->parent, place->name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct ldcache_merged without = {0};
	_cleanup_free_ char *data = NULL;
	struct span content;
	struct mapped_root owner;
	size_t size;
	struct stat st;

	if (handle < 0 || rootfs_read_handle(&overlay->merged, handle, LDCACHE_MAX_SIZE, &data, &size) < 0)
		return;
	content = (struct span){(const unsigned char *)data, size};
	if (fstat(handle, &st) < 0 || ldcache_merge(&content, former, NULL, 0, &without) < 0)
		return;
	owner = (struct mapped_root){st.st_uid != geteuid() || st.st_gid != getegid(), st.st_uid, st.st_gid};
	if (unlinkat(place->parent, place->name, 0) == 0) {
		layer_overlay_uncover(overlay, place->parent, place->name);
		layer_put_back_cache(overlay, place, &owner, &without);
	}
	free(without.owned);
}

/* ---- all of it ---- */

/* The newest first. */
static void layer_take_back_all(struct layer_overlay *overlay, struct span notes)
{
	_cleanup_strv_ struct strv former = {0};
	_cleanup_free_ struct note *list = NULL;
	struct note note;
	size_t count = 0;

	if (layer_read_former(overlay, &former) < 0)
		return;
	while (layer_next_note(&notes, &note)) {
		struct note *longer = array_grow(list, count, sizeof(*list));

		if (!longer)
			return;
		list = longer;
		list[count++] = note;
	}
	while (count-- > 0) {
		struct place place;

		if (list[count].kind == 'r' || !layer_find_place(overlay, &list[count], &place))
			continue;
		if (streq(list[count].path, LOADER_CACHE))
			layer_take_back_cache(overlay, &place, &former);
		else
			layer_take_back(overlay, &list[count], &place);
		(void)close(place.parent);
	}
}

/* Return: 0, also where nothing is to be cleaned; -EBUSY if a process has it as its root directory. */
static int layer_clean(struct ctr_gpu_context *context, struct span notes)
{
	_cleanup_(layer_overlay_close) struct layer_overlay overlay = LAYER_OVERLAY_NONE;
	struct ctr_gpu_container container = {.process = -1};
	struct note first;
	int r;

	if (!layer_next_note(&notes, &first) || first.kind != 'r')
		return 0;
	container.rootfs = (char *)first.path;
	r = container_open_rootfs(&container, &overlay.merged, &context->err);
	if (r == 0)
		r = layer_overlay_open(&overlay, first.path);
	if (r != 0)
		return r;
	if (layer_overlay_is_lived_in(&overlay))
		return -EBUSY;
	layer_take_back_all(&overlay, notes);
	layer_overlay_restore_times(&overlay);
	return 0;
}

int ctr_gpu_container_clean(struct ctr_gpu_context *context, const char *state, size_t size)
{
	_cleanup_(oci_state_clear) struct oci_state parsed = {0};
	_cleanup_free_ char *path = NULL, *record = NULL;
	size_t record_size;
	int r;

	r = oci_parse_state_ended(state, size, &parsed, &context->err);
	if (r != 0)
		return r;
	devcgroup_tidy();
	if (str_format(&path, "%s/" LAYER_RECORD, parsed.bundle) < 0)
		return err_set(&context->err, -ENOMEM, "%m");
	if (!layer_read_record(path, &record, &record_size))
		return 0;
	r = layer_clean(context, (struct span){(const unsigned char *)record + sizeof(FIRST_LINE),
					       record_size - sizeof(FIRST_LINE)});
	if (r == 0)
		(void)unlink(path);
	else
		log_debug(&context->settings.log, "the layer of %s stays as it is (%d)", parsed.bundle, r);
	return 0;
}

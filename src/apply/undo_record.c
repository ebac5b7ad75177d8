/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A record has the undo log as it is in memory, with paths in the place of descriptors. To take them back, the paths
 * are opened again below the root directory, where the image may have changed them: whatever is found is judged by its
 * mount, as when it was made, and what a step's undo() does not find as it was left stays.
 */

#include "apply/internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/json.h"
#include "base/lock_file.h"
#include "lib/container.h"
#include "lib/context.h"
#include "root/mount.h"
#include "root/mount_class.h"
#include "root/mountinfo.h"
#include "root/statmount.h"
#include "system/machine.h"

enum {
	UNDO_RECORD_MAX = 16 << 20,
	LOST_NAME_SIZE = 64,
};

#define LIST "deeds.json"
#define UNFINISHED "new"
#define LOST "lost-"
#define UNDONE "undone" /* in memory alone: a step was found as it was left */

static const struct {
	const char *name;
	void (*undo)(const struct undo_log *undo_log, const struct undo_step *undo_step);
} kinds[] = {
	{"mount", mount_undo},
	{"directory", rootfs_undo_directory},
	{"file", rootfs_undo_file},
	{"symlink", rootfs_undo_symlink},
	{"replacement", rootfs_undo_replacement},
	{"mode", write_files_undo_mode},
	{"own-directory", own_directory_undo_writable},
};
enum { KIND_MOUNT, KIND_REPLACEMENT = 4, KIND_MODE, KIND_OWN_DIRECTORY };

/* Of statx(2) since Linux 6.8; this C library's header may not know it. */
#ifndef STATX_MNT_ID_UNIQUE
#define STATX_MNT_ID_UNIQUE 0x00004000U
#endif

/* Older kernels have only a number that another mount may get later, before the next boot. */
static int undo_record_find_mount(const struct rootfs *rootfs, int fd, json_int_t *ret)
{
	struct statx stx;
	uint64_t number;
	int r;

	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_MNT_ID_UNIQUE, &stx) == 0 &&
	    (stx.stx_mask & STATX_MNT_ID_UNIQUE)) {
		*ret = (json_int_t)stx.stx_mnt_id;
		return 0;
	}
	r = mount_class_find_mount(rootfs, fd, &number);
	if (r == 0)
		*ret = (json_int_t)number;
	return r;
}

/* Mounts and their numbers end with the boot. */
static int undo_record_read_boot(char **ret)
{
	*ret = boot_cache_boot();
	return *ret ? 0 : -ENOENT;
}

static int undo_record_read_path(int proc_self_fd, int fd, char **ret)
{
	char number[16];

	(void)snprintf(number, sizeof(number), "%d", fd);
	return fd_read_link_at(proc_self_fd, number, ret);
}

/* ---- paths, which are bytes, in JSON, which is UTF-8 ---- */

/* Bytes that are not printable ASCII, and backslashes, as \ooo in octal. Return: new string; NULL. */
static char *undo_record_escape(const char *path)
{
	char *text = malloc(strlen(path) * (sizeof("\\ooo") - 1) + 1), *end = text;

	if (!text)
		return NULL;
	for (; *path; path++)
		if (*path < ' ' || *path > '~' || *path == '\\')
			end += snprintf(end, sizeof("\\ooo"), "\\%03o", (unsigned char)*path);
		else
			*end++ = *path;
	*end = '\0';
	return text;
}

/* Return: 0; -ENOMEM. */
static int undo_record_set_path(json_t *object, const char *key, const char *path)
{
	_cleanup_free_ char *text = undo_record_escape(path);

	return text && json_object_set_new(object, key, json_string(text)) == 0 ? 0 : -ENOMEM;
}

/* The object has the path's own bytes then, which is for reading alone. Return: 0; -ENOMEM. */
static int undo_record_unescape(json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));
	_cleanup_free_ char *path = text ? mountinfo_unescape(mountinfo_field_of(text)) : NULL;

	if (!text)
		return 0;
	return path && json_object_set_new(object, key, json_string_nocheck(path)) == 0 ? 0 : -ENOMEM;
}

/* ---- writing ---- */

struct writer {
	const struct rootfs *rootfs;
	struct undo_log *undo_log;
	char *root; /* path */
	int home;   /* of the record */
	char *boot;
	json_t *list;
	json_t *more; /* borrowed; NULL: nothing */
};

/*
 * If the file differs from this record when it is read, another process has changed it since, and it is left alone. A
 * replaced file is kept as a copy with owner and mode, a symlink as another one; other kinds are not kept.
 */
static int undo_record_write_replacement(const struct writer *writer, const struct undo_step *undo_step, size_t number,
					 json_t *entry)
{
	_cleanup_free_ char *link = NULL;
	_cleanup_close_ int fd = -1;
	const int old = undo_step->fds[1];
	char name[32];
	struct stat st;
	int r = 0;

	if (fstatat(undo_step->fds[0], undo_step->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	(void)json_object_set_new(entry, "inode", json_integer((json_int_t)st.st_ino));
	(void)json_object_set_new(entry, "changed",
				  json_sprintf("%jd.%09ld", (intmax_t)st.st_ctim.tv_sec, st.st_ctim.tv_nsec));
	if (old < 0)
		return 0;
	(void)snprintf(name, sizeof(name), "old-%zu", number);
	if (fstat(old, &st) < 0)
		return -errno;
	if (S_ISLNK(st.st_mode)) {
		r = fd_read_link_at(old, "", &link);
		if (r == 0 && symlinkat(link, writer->home, name) < 0)
			r = -errno;
	} else if (S_ISREG(st.st_mode)) {
		fd = openat(writer->home, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
		r = fd < 0 ? -errno : fd_copy(old, fd, ROOTFS_REPLACED_MAX);
		if (r == 0 && (fchown(fd, st.st_uid, st.st_gid) < 0 || fchmod(fd, st.st_mode & 07777) < 0))
			r = -errno;
	} else {
		return 0;
	}
	return r < 0 ? r : json_object_set_new(entry, "old", json_string(name));
}

/* Return: 0; 1 if it is gone, such as a mount that was needed for a moment; negative errno. */
static int undo_record_write_step(const struct writer *writer, const struct undo_step *undo_step, size_t kind,
				  size_t number, json_t *entry)
{
	_cleanup_free_ char *path = NULL;
	json_int_t mount = 0;
	struct stat st;
	int r;

	r = undo_record_read_path(writer->undo_log->proc_self_fd, undo_step->fds[0], &path);
	if (r < 0)
		return r;
	if (!str_is_below(path, writer->root))
		return 1;
	(void)json_object_set_new(entry, "kind", json_string(kinds[kind].name));
	r = undo_record_set_path(entry, "path", path + strlen(writer->root));
	if (r < 0)
		return r;
	if (kind == KIND_MOUNT || kind == KIND_OWN_DIRECTORY) {
		r = undo_record_find_mount(writer->rootfs, undo_step->fds[0], &mount);
		if (r == 0 && fstat(undo_step->fds[0], &st) == 0 && S_ISCHR(st.st_mode))
			(void)json_object_set_new(entry, "device", json_integer((json_int_t)st.st_rdev));
		return r < 0 ? r : json_object_set_new(entry, "mount", json_integer(mount));
	}
	(void)json_object_set_new(entry, "number", json_integer(undo_step->number));
	r = undo_record_set_path(entry, "name", undo_step->name);
	if (r < 0)
		return r;
	return kind == KIND_REPLACEMENT ? undo_record_write_replacement(writer, undo_step, number, entry) : 0;
}

static int undo_record_write_steps(const struct writer *writer)
{
	for (size_t i = 0; i < writer->undo_log->count; i++) {
		const struct undo_step *undo_step = &writer->undo_log->items[i];
		_cleanup_json_ json_t *entry = json_object();
		size_t kind = 0;
		int r;

		while (kind < ARRAY_SIZE(kinds) && kinds[kind].undo != undo_step->undo)
			kind++;
		if (kind == ARRAY_SIZE(kinds))
			continue;
		r = entry ? undo_record_write_step(writer, undo_step, kind, i, entry) : -ENOMEM;
		if (r == 0 && json_array_append(writer->list, entry) < 0)
			r = -ENOMEM;
		if (r < 0)
			return r;
	}
	return 0;
}

static int undo_record_write_list(const struct writer *writer)
{
	_cleanup_free_ char *text = NULL;
	_cleanup_json_ json_t *record = NULL;
	_cleanup_close_ int fd = -1;
	int r;

	record = json_pack("{s:s, s:O}", "boot", writer->boot, "deeds", writer->list);
	if (record && undo_record_set_path(record, "rootfs", writer->root) < 0)
		return -ENOMEM;
	if (record && writer->more && json_object_set(record, "running", writer->more) < 0)
		return -ENOMEM;
	r = record ? json_print(record, JSON_INDENT(1), &text) : -ENOMEM;
	if (r < 0)
		return r;
	fd = openat(writer->home, LIST, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	return fd < 0 ? -errno : fd_write_all(fd, text, strlen(text));
}

/* What was done is taken back after all: an unfinished record says nothing, and goes with the next one. */
static void undo_record_undo(const struct undo_log *undo_log, const struct undo_step *undo_step)
{
	(void)undo_log;
	(void)renameat(undo_step->fds[0], undo_step->name, undo_step->fds[0], UNFINISHED);
}

static const char *undo_record_text(const json_t *entry, const char *name)
{
	const char *text = json_string_value(json_object_get(entry, name));

	return text ? text : "";
}

/* Whether a record has mounts only, which ended with an earlier boot. */
static bool undo_record_is_over(int all, const char *name, const char *boot)
{
	_cleanup_close_ int home = openat(all, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	_cleanup_free_ char *text = NULL;
	_cleanup_json_ json_t *record = NULL;
	const json_t *entry;
	size_t size, i;

	if (home < 0 || fd_read_file_at(home, LIST, UNDO_RECORD_MAX, &text, &size) < 0 ||
	    json_parse(text, size, &record, NULL) < 0 || streq(undo_record_text(record, "boot"), boot))
		return false;
	json_array_foreach (json_object_get(record, "deeds"), i, entry)
		if (!streq(undo_record_text(entry, "kind"), kinds[KIND_MOUNT].name))
			return false;
	return true;
}

/* Until it is whole, a record has no number. When it has one, @all and its lock are the step's. */
static int undo_record_give_number(const struct writer *writer, struct undo_records *all)
{
	const struct undo_step undo_step = {.undo = undo_record_undo, .fds = {all->fd, all->lock, -1}};
	const struct undo_records_age age = {undo_record_is_over, writer->boot};
	char name[16];
	int r = undo_records_find_number(all->fd, &age, name);

	if (r == 0)
		r = undo_log_add(writer->undo_log, &undo_step, name);
	if (r < 0)
		return r;
	if (renameat(all->fd, UNFINISHED, all->fd, name) < 0) {
		r = -errno;
		undo_log_pop(writer->undo_log);
		return r;
	}
	*all = UNDO_RECORDS_CLOSED;
	return 0;
}

static int undo_record_write_new(struct writer *writer, struct undo_records *all)
{
	int r;

	undo_records_remove(all->fd, UNFINISHED);
	if (mkdirat(all->fd, UNFINISHED, 0700) < 0)
		return -errno;
	writer->home = openat(all->fd, UNFINISHED, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	r = writer->home < 0 ? -errno : undo_record_write_steps(writer);
	if (r == 0)
		r = undo_record_write_list(writer);
	if (r == 0 && (json_array_size(writer->list) > 0 || json_is_true(json_object_get(writer->more, "changed"))))
		r = undo_record_give_number(writer, all);
	if (all->fd >= 0)
		undo_records_remove(all->fd, UNFINISHED);
	return r;
}

static int undo_record_write_all(struct writer *writer, const char *directory, pid_t *ret_holder)
{
	_cleanup_free_ char *path = NULL;
	struct undo_records all = UNDO_RECORDS_CLOSED;
	int r;

	if (str_format(&path, "%s/%016" PRIx64, directory, str_hash(writer->root)) < 0)
		return -ENOMEM;
	r = undo_records_make(path, &all);
	*ret_holder = all.holder;
	if (r == 0)
		r = undo_record_write_new(writer, &all);
	undo_records_close(&all, AT_FDCWD, path);
	return r;
}

static void undo_record_writer_close(struct writer *writer)
{
	cleanup_closep(&writer->home);
	json_decref(writer->list);
	free(writer->root);
	free(writer->boot);
}

int undo_record_write(const char *directory, const struct rootfs *rootfs, struct undo_log *undo_log, pid_t *ret_holder)
{
	struct writer writer = {.rootfs = rootfs, .undo_log = undo_log, .home = -1, .list = json_array()};
	int r;

	r = writer.list ? undo_record_read_path(undo_log->proc_self_fd, rootfs->fd, &writer.root) : -ENOMEM;
	if (r == 0)
		r = undo_record_read_boot(&writer.boot);
	if (r == 0)
		r = undo_record_write_all(&writer, directory, ret_holder);
	undo_record_writer_close(&writer);
	return r;
}

/* Paths are the container's, whose root is its namespace's. */
int undo_record_write_running(struct undo_records *records, const struct rootfs *rootfs, struct undo_log *undo_log,
			      json_t *more)
{
	struct writer writer = {.rootfs = rootfs,
				.undo_log = undo_log,
				.root = strdup(""),
				.home = -1,
				.boot = strdup(""),
				.list = json_array(),
				.more = more};
	int r = writer.root && writer.boot && writer.list ? undo_record_write_new(&writer, records) : -ENOMEM;

	undo_record_writer_close(&writer);
	return r;
}

/* ---- taking back ---- */

struct reader {
	struct rootfs rootfs;
	struct mount_map mount_map;
	struct undo_log *undo_log;
	json_t *record;
	int home;
	bool same_boot;        /* as when it was written */
	struct strv *restored; /* borrowed: files that later records, undone before this one, have brought back */
};

/*
 * Where a mount is by now: what is above it may have been renamed. @number: of undo_record_find_mount(). Return: 0;
 * -ENOENT if it is gone; negative errno.
 */
static int undo_record_locate(const struct rootfs *rootfs, json_int_t number, char **ret)
{
	struct mountinfo_line line;
	_cleanup_free_ char *text = NULL;
	struct mountinfo_field rest;
	uint64_t wanted, id;
	int r;

	if (!statmount_find_id((uint64_t)number, &wanted))
		return -ENOENT;
	/* Of the namespace that was entered, and not by a path that the container may have as well. */
	r = fd_read_file_at(rootfs->proc_self_fd, "../mountinfo", MOUNTINFO_MAX, &text, NULL);
	if (r < 0)
		return r;
	rest = mountinfo_field_of(text);
	while (mountinfo_next(&rest, &line)) {
		if (!mountinfo_id(&line, &id) || id != wanted)
			continue;
		*ret = mountinfo_unescape(line.point);
		return *ret ? 0 : -ENOMEM;
	}
	return -ENOENT;
}

/*
 * Whether a later record has brought a file back that this one had written: as a copy, which does not show that it is
 * the same. Notes it for earlier records if it is going to be brought back by this one.
 */
static int undo_record_note_restored(const struct reader *reader, const json_t *entry, bool note, bool *ret)
{
	_cleanup_free_ char *path = NULL;
	int r = str_format(&path, "%s/%s", undo_record_text(entry, "path"), undo_record_text(entry, "name"));

	if (r < 0)
		return r;
	*ret = strv_contains(reader->restored, path);
	return note && !*ret ? strv_add(reader->restored, path) : 0;
}

/*
 * Whether an earlier try has not brought back what was replaced, as on a full disk, and the name is free for it since.
 * Its copy in the record is called so from then on.
 */
static bool undo_record_is_lost(const struct reader *reader, const json_t *entry)
{
	char name[LOST_NAME_SIZE];

	(void)snprintf(name, sizeof(name), LOST "%s", undo_record_text(entry, "old"));
	return faccessat(reader->home, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Whether it is on the mount that the step was done on. */
static bool undo_record_is_same_mount(const struct reader *reader, const json_t *entry, int fd)
{
	json_int_t mount;

	return reader->same_boot && undo_record_find_mount(&reader->rootfs, fd, &mount) == 0 &&
	       mount == json_integer_value(json_object_get(entry, "mount"));
}

/* An older version has written no mount: then what is there by now is taken for ours. */
static bool undo_record_is_own_directory(const struct reader *reader, const json_t *entry, int fd)
{
	return (!json_object_get(entry, "mount") || undo_record_is_same_mount(reader, entry, fd)) &&
	       mount_set_read_only(reader->rootfs.proc_self_fd, fd, false) == 0;
}

/* Whether what is found is what the step was done on. */
static bool undo_record_is_same(const struct reader *reader, const json_t *entry, size_t kind, int fd)
{
	char changed[64];
	bool restored = false;
	struct stat st;

	if (kind == KIND_MOUNT)
		return undo_record_is_same_mount(reader, entry, fd);
	if (mount_class_check_create(&reader->rootfs, fd) < 0)
		return false;
	if (kind == KIND_OWN_DIRECTORY)
		return undo_record_is_own_directory(reader, entry, fd);
	if (kind != KIND_REPLACEMENT)
		return true;
	if (undo_record_note_restored(reader, entry, false, &restored) == 0 && restored)
		return true;
	if (fstatat(fd, undo_record_text(entry, "name"), &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT && undo_record_is_lost(reader, entry);
	(void)snprintf(changed, sizeof(changed), "%jd.%09ld", (intmax_t)st.st_ctim.tv_sec, st.st_ctim.tv_nsec);
	return (json_int_t)st.st_ino == json_integer_value(json_object_get(entry, "inode")) &&
	       streq(changed, undo_record_text(entry, "changed"));
}

/* What lies over a mount, and what has come in its place, has another number. Return: descriptor; -1. */
static int undo_record_open_mount(const struct reader *reader, const json_t *entry)
{
	_cleanup_free_ char *point = NULL;
	_cleanup_close_ int fd = -1;

	if (!reader->same_boot ||
	    undo_record_locate(&reader->rootfs, json_integer_value(json_object_get(entry, "mount")), &point) < 0)
		return -1;
	fd = open(point, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	return fd >= 0 && undo_record_is_same(reader, entry, KIND_MOUNT, fd) ? steal_fd(&fd) : -1;
}

/* Where it was made, or where it is by now. Return: descriptor of what the step was done on; -1. */
static int undo_record_open_place(const struct reader *reader, const json_t *entry, size_t kind)
{
	const char *path = undo_record_text(entry, "path");
	/* fchmod(2) wants more than O_PATH. */
	const int flags = kind == KIND_MODE ? O_RDONLY | O_DIRECTORY : O_PATH;
	_cleanup_close_ int fd = rootfs_open_path(&reader->rootfs, *path ? path : "/", flags);

	if (fd >= 0 && undo_record_is_same(reader, entry, kind, fd))
		return steal_fd(&fd);
	return kind == KIND_MOUNT ? undo_record_open_mount(reader, entry) : -1;
}

/* Return: what was replaced; -1 without it. */
static int undo_record_open_old(const struct reader *reader, const char *old)
{
	const char *const prefixes[] = {"", LOST};
	const int flags[] = {O_RDONLY, O_PATH};
	int fd = -1;

	for (size_t i = 0; *old && fd < 0 && i < ARRAY_SIZE(prefixes) * ARRAY_SIZE(flags); i++) {
		char name[LOST_NAME_SIZE];

		(void)snprintf(name, sizeof(name), "%s%s", prefixes[i / 2], old);
		fd = openat(reader->home, name, flags[i % 2] | O_NOFOLLOW | O_CLOEXEC);
	}
	return fd;
}

/* Whether a step was done on what its path names; others were done on a name in that directory. */
static bool undo_record_is_whole(size_t kind)
{
	return kind == KIND_MOUNT || kind == KIND_MODE || kind == KIND_OWN_DIRECTORY;
}

/* The step again, if what it was done on is still there. Our names have no slash, but a file may be damaged. */
static int undo_record_read_step(struct reader *reader, json_t *entry)
{
	const char *name = undo_record_text(entry, "name"), *old = undo_record_text(entry, "old");
	struct undo_step undo_step = {.fds = {-1, -1, -1}};
	bool restored = false;
	size_t kind = 0;
	int r;

	while (kind < ARRAY_SIZE(kinds) && !streq(kinds[kind].name, undo_record_text(entry, "kind")))
		kind++;
	if (kind == ARRAY_SIZE(kinds) || !json_object_get(entry, "path") || strchr(name, '/') || strchr(old, '/') ||
	    (!undo_record_is_whole(kind) && !*name))
		return 0;
	undo_step.undo = kinds[kind].undo;
	undo_step.as_owner = reader->rootfs.owned && !undo_record_is_whole(kind);
	undo_step.number = (unsigned)json_integer_value(json_object_get(entry, "number"));
	undo_step.fds[0] = undo_record_open_place(reader, entry, kind);
	if (undo_step.fds[0] < 0)
		return 0;
	undo_step.fds[1] = undo_record_open_old(reader, old);
	r = kind == KIND_REPLACEMENT ? undo_record_note_restored(reader, entry, true, &restored) : 0;
	if (r == 0)
		r = undo_log_add(reader->undo_log, &undo_step, *name ? name : NULL);
	if (r == 0 && json_object_set_new(entry, UNDONE, json_true()) < 0)
		return -ENOMEM;
	for (size_t i = 0; r != 0 && i < UNDO_STEP_FDS; i++)
		cleanup_closep(&undo_step.fds[i]);
	return r;
}

/* Whether an earlier step of the record was done on the same name: that one says what has to be there at the end. */
static bool undo_record_is_repeated(const struct reader *reader, const json_t *entry)
{
	const json_t *other;
	size_t i;

	json_array_foreach (json_object_get(reader->record, "deeds"), i, other) {
		if (other == entry)
			return false;
		if (streq(undo_record_text(other, "path"), undo_record_text(entry, "path")) &&
		    streq(undo_record_text(other, "name"), undo_record_text(entry, "name")))
			return true;
	}
	return false;
}

/* Whether the file that a step had replaced is missing, now that all is undone. */
static bool undo_record_lacks(const struct reader *reader, const json_t *entry)
{
	const char *path = undo_record_text(entry, "path"), *old = undo_record_text(entry, "old");
	_cleanup_close_ int fd = -1;
	struct stat st;

	if (!json_is_true(json_object_get(entry, UNDONE)) || !*old || undo_record_is_repeated(reader, entry))
		return false;
	fd = rootfs_open_path(&reader->rootfs, *path ? path : "/", O_PATH);
	return fd >= 0 && fstatat(fd, undo_record_text(entry, "name"), &st, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT;
}

/* The record stays, and with it the copy. Return: 0; negative errno with @err set if a file is not brought back. */
static int undo_record_check_files(const struct reader *reader, int reason, struct err *err)
{
	const bool full = reason == ENOSPC || reason == EDQUOT;
	const json_t *entry;
	size_t i;
	int r = 0;

	json_array_foreach (json_object_get(reader->record, "deeds"), i, entry) {
		const char *old = undo_record_text(entry, "old");
		char lost[LOST_NAME_SIZE];

		if (!undo_record_lacks(reader, entry))
			continue;
		(void)snprintf(lost, sizeof(lost), LOST "%s", old);
		(void)renameat(reader->home, old, reader->home, lost);
		r = err_set_advised(err, -reason,
				    ("%s/%s could not be brought back: %m.", undo_record_text(entry, "path"),
				     undo_record_text(entry, "name")),
				    ("%s, and try again: what it was is still written down.",
				     full ? "Make room there" : "See what hinders that"));
	}
	return r;
}

/* Return: 0; -EBUSY with @err set if a mount stays, which something may lie over. */
static int undo_record_check_mounts(const struct reader *reader, const char *root, struct err *err)
{
	const json_t *entry;
	size_t i;

	json_array_foreach (json_object_get(reader->record, "deeds"), i, entry) {
		_cleanup_free_ char *point = NULL;

		if (streq(undo_record_text(entry, "kind"), kinds[KIND_MOUNT].name) && reader->same_boot &&
		    undo_record_locate(&reader->rootfs, json_integer_value(json_object_get(entry, "mount")), &point) ==
			    0)
			return err_set_advised(
				err, -EBUSY, ("the mount on %s stays, which was made for %s: %m.", point, root),
				("Unmount what was mounted over it since, and try again: it is still written down."));
	}
	return 0;
}

/* As undo_record_undo_running(). */
static int undo_record_undo_steps(const struct reader *reader, const char *root, int *lost, struct err *err)
{
	struct err *first = *lost == 0 ? err : NULL;
	int reason = ENOENT, files, r; /* it was brought back, and removed again, unless there is another */

	reader->undo_log->restore_errno = &reason;
	undo_log_undo(reader->undo_log);
	reader->undo_log->restore_errno = NULL;
	/* In any case, as it marks the copies of lost files for another try. */
	files = undo_record_check_files(reader, reason, first);
	r = undo_record_check_mounts(reader, root, first);
	if (r == 0 && *lost == 0)
		*lost = files;
	return r;
}

static int undo_record_read_list(int home, json_t **ret)
{
	_cleanup_free_ char *text = NULL;
	_cleanup_json_ json_t *record = NULL;
	json_t *entry;
	size_t size, i;
	int r;

	r = fd_read_file_at(home, LIST, UNDO_RECORD_MAX, &text, &size);
	if (r == 0)
		r = json_parse(text, size, &record, NULL);
	if (r == 0)
		r = undo_record_unescape(record, "rootfs");
	json_array_foreach (json_object_get(record, "deeds"), i, entry) {
		if (r == 0)
			r = undo_record_unescape(entry, "path");
		if (r == 0)
			r = undo_record_unescape(entry, "name");
	}
	if (r == 0)
		*ret = steal_ptr(record);
	return r;
}

static int undo_record_read(struct reader *reader, const char *root, const char *boot)
{
	json_t *entry;
	size_t i;
	int r = undo_record_read_list(reader->home, &reader->record);

	if (r < 0 || !streq(undo_record_text(reader->record, "rootfs"), root))
		return r < 0 ? r : -EINVAL;
	reader->same_boot = streq(boot, undo_record_text(reader->record, "boot"));
	json_array_foreach (json_object_get(reader->record, "deeds"), i, entry) {
		r = undo_record_read_step(reader, entry);
		if (r < 0)
			return r;
	}
	return 0;
}

/* What was done at one time. @fd: of the root that was named; others: as undo_record_undo_running() */
static int undo_record_undo_one(int all, const char *name, const char *root, int fd, struct strv *restored, int *lost,
				struct err *err)
{
	struct reader reader = {.rootfs = ROOTFS_CLOSED,
				.mount_map = MOUNT_MAP_NONE,
				.undo_log = undo_log_new(false),
				.home = -1,
				.restored = restored};
	_cleanup_free_ char *boot = NULL;
	struct stat st, now;
	int r;

	if (!reader.undo_log)
		return -ENOMEM;
	reader.undo_log->proc_self_fd = mount_open_proc_self_fd(-1);
	r = reader.undo_log->proc_self_fd < 0 ? reader.undo_log->proc_self_fd
					      : rootfs_open(AT_FDCWD, root, &reader.rootfs);
	/*
	 * If the first change has mounted the root over itself, the path now opens this mount, which lies on top. The
	 * owner of a directory on the way can make the path lead elsewhere, so both roots are compared.
	 */
	if (r == 0 && (fstat(fd, &st) < 0 || fstat(reader.rootfs.fd, &now) < 0))
		r = -errno;
	else if (r == 0 && (st.st_dev != now.st_dev || st.st_ino != now.st_ino))
		r = -ESTALE;
	reader.rootfs.mount_map = &reader.mount_map;
	reader.rootfs.proc_self_fd = reader.undo_log->proc_self_fd;
	reader.home = openat(all, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (r == 0)
		r = reader.home < 0 ? -errno : undo_record_read_boot(&boot);
	if (r == 0)
		r = undo_record_read(&reader, root, boot);
	if (r == 0)
		r = undo_record_undo_steps(&reader, root, lost, err);
	(void)undo_log_free(reader.undo_log);
	json_decref(reader.record);
	rootfs_close(&reader.rootfs);
	mount_map_clear(&reader.mount_map);
	cleanup_closep(&reader.home);
	return r;
}

static int undo_record_open_running(const struct undo_records *records, unsigned number)
{
	char name[16];
	int fd;

	(void)snprintf(name, sizeof(name), "%u", number);
	fd = openat(records->fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int undo_record_read_running(const struct undo_records *records, unsigned number, json_t **ret)
{
	_cleanup_close_ int home = undo_record_open_running(records, number);

	return home < 0 ? home : undo_record_read_list(home, ret);
}

int undo_record_undo_running(const struct undo_records *records, unsigned number, const struct rootfs *rootfs,
			     struct strv *restored, int *lost, struct err *err)
{
	_cleanup_close_ int home = undo_record_open_running(records, number);
	struct reader reader = {.rootfs = *rootfs, .undo_log = undo_log_new(false), .home = home, .restored = restored};
	int r = home;

	if (!reader.undo_log)
		return -ENOMEM;
	reader.undo_log->owner = rootfs->undo_log->owner;
	reader.undo_log->proc_self_fd = fcntl(rootfs->proc_self_fd, F_DUPFD_CLOEXEC, 0);
	if (r >= 0)
		r = reader.undo_log->proc_self_fd < 0 ? -errno : undo_record_read(&reader, "", "");
	if (r == 0)
		r = undo_record_undo_steps(&reader, "the container", lost, err);
	(void)undo_log_free(reader.undo_log);
	json_decref(reader.record);
	return r;
}

void undo_record_remove_running(const struct undo_records *records, unsigned number)
{
	char name[16];

	(void)snprintf(name, sizeof(name), "%u", number);
	undo_records_remove(records->fd, name);
}

/* The last first. Return: how many there were; negative errno, with a sentence in @err if there is one for it. */
static int undo_record_undo_each(int all, const char *root, int fd, struct err *err)
{
	bool numbers[UNDO_RECORDS_MAX] = {0};
	_cleanup_strv_ struct strv restored = {0};
	int r = undo_records_list(all, numbers), taken = 0, lost = 0;

	for (unsigned i = UNDO_RECORDS_MAX; i-- > 0 && r == 0;) {
		char name[16];

		if (!numbers[i])
			continue;
		(void)snprintf(name, sizeof(name), "%u", i);
		r = undo_record_undo_one(all, name, root, fd, &restored, &lost, err);
		if (r == 0 && lost == 0)
			undo_records_remove(all, name);
		taken++;
	}
	if (lost < 0)
		return lost;
	return r < 0 ? r : taken;
}

static int undo_record_undo_all(struct ctr_gpu_context *context, const char *path, const char *root, int fd)
{
	struct undo_records all = UNDO_RECORDS_CLOSED;
	int r;

	context->err = (struct err){0};
	r = undo_records_open(path, &all);
	if (r == -ETIMEDOUT)
		r = err_set_advised(&context->err, r,
				    ("process %d has %s for more than %d s: %m.", (int)all.holder, path,
				     UNDO_RECORDS_WAIT_MS / 1000),
				    ("See what it waits for, or end it; then try again."));
	else if (r < 0 && r != -ENOENT)
		r = err_set(&context->err, r, "cannot open %s: %m", path);
	if (r != 0) {
		undo_records_close(&all, AT_FDCWD, path);
		return r;
	}
	r = undo_record_undo_each(all.fd, root, fd, &context->err);
	undo_records_remove(all.fd, UNFINISHED);
	undo_records_close(&all, AT_FDCWD, path);
	return r >= 0 || context->err.text[0]
		       ? r
		       : err_set_advised(&context->err, r, ("cannot take back what was done to %s: %m", root),
					 ("%s has what was written down.", path));
}

int ctr_gpu_undo(struct ctr_gpu_context *context, const char *rootfs, const char *directory)
{
	_cleanup_free_ char *root = NULL, *path = NULL;
	_cleanup_close_ int fd = -1, proc_self_fd = -1;
	int r;

	proc_self_fd = mount_open_proc_self_fd(-1);
	fd = open(rootfs, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (proc_self_fd < 0 || fd < 0)
		return err_set_advised(&context->err, CTR_GPU_E_BAD_ROOTFS,
				       ("the root filesystem %s cannot be opened: %m", rootfs), ("%s", ROOTFS_ADVICE));
	r = undo_record_read_path(proc_self_fd, fd, &root);
	if (r == 0)
		r = str_format(&path, "%s/%016" PRIx64, directory, str_hash(root));
	if (r != 0)
		return err_set(&context->err, r, "%m");
	r = undo_record_undo_all(context, path, root, fd);
	if (r == 0 || (r == -ENOENT && !context->err.text[0]))
		return err_set_advised(
			&context->err, CTR_GPU_E_BAD_ARGUMENT,
			("nothing is written down in %s of what was done to %s.", directory, root),
			("Name the directory that \"ctr-gpu configure\" was given; what engines' hooks do ends with "
			 "the container."));
	return r < 0 ? r : 0;
}

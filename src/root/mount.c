/* SPDX-License-Identifier: Apache-2.0 */

#include "root/mount.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <linux/magic.h>
#include <linux/openat2.h>

#include "base/fd.h"
#include "base/str.h"

enum { NUMBER_MAX = 16 }; /* a descriptor in decimal */

struct tmpfs {
	const char *mode;
	struct mapped_root owner; /* of its root directory; not other: this process */
};

/* Users who share the mount namespace could make the stage's files before we do. */
static const struct tmpfs stage_tmpfs = {.mode = "0700"};

/* What a kind of mount is not allowed to do, in the words of mount_setattr(2), mount(2) and statvfs(3). */
static const struct {
	unsigned attributes;
	unsigned long flags;
} kinds[] = {
	[MOUNT_READ_ONLY] = {MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV,
			     MS_RDONLY | MS_NOSUID | MS_NODEV},
	[MOUNT_DEVICE] = {MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, MS_NOSUID | MS_NOEXEC},
	[MOUNT_DATA] = {MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC,
			MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC},
};
/* statvfs(3) reports these under the numbers of mount(2). */
#define SAME(a, b) ((unsigned long)(a) == (unsigned long)(b))
_Static_assert(SAME(ST_RDONLY, MS_RDONLY) && SAME(ST_NOSUID, MS_NOSUID) && SAME(ST_NODEV, MS_NODEV) &&
		       SAME(ST_NOEXEC, MS_NOEXEC) && SAME(ST_NOATIME, MS_NOATIME) && SAME(ST_NODIRATIME, MS_NODIRATIME),
	       "flags of statvfs are flags of mount");

static unsigned long mount_flags(const struct mount_source *source)
{
	return kinds[source->kind].flags | (source->noexec ? MS_NOEXEC : 0);
}

static bool mount_is_same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Kernels before 5.2 and 5.12. Seccomp filters that do not know the calls answer EPERM; then mount(2) decides. */
static bool mount_lacks_call(int error)
{
	return error == ENOSYS || error == EPERM;
}

void mount_source_close(struct mount_source *source)
{
	cleanup_closep(&source->tree);
}

int mount_open_proc_self_fd(int process)
{
	const struct open_how how = {
		.flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
		.resolve = RESOLVE_NO_XDEV | RESOLVE_NO_MAGICLINKS,
	};
	_cleanup_close_ int fd = process < 0 ? -1 : (int)syscall(SYS_openat2, process, "../self/fd", &how, sizeof(how));
	struct statfs fs;

	/* What is reached without coming to another mount is on the same file system. */
	if (fd >= 0)
		return steal_fd(&fd);
	fd = open("/proc/self/fd", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || fstatfs(fd, &fs) < 0)
		return -errno;
	return fs.f_type == PROC_SUPER_MAGIC ? steal_fd(&fd) : -ENOTDIR;
}

/* ---- detached mounts ---- */

static int mount_restrict_tree(const struct mount_source *source, int tree)
{
	struct mount_attr attributes = {
		.attr_set = kinds[source->kind].attributes | (source->noexec ? MOUNT_ATTR_NOEXEC : 0),
		.propagation = MS_PRIVATE,
	};

	return mount_setattr(tree, "", AT_EMPTY_PATH, &attributes, sizeof(attributes)) < 0 ? -errno : 0;
}

/* A copy of the mount at @path below @dirfd, with its flags. Leaves tree at -1 where the kernel cannot do that. */
static int mount_clone_tree(struct mount_source *source, int dirfd, const char *path)
{
	_cleanup_close_ int tree = -1;
	int r;

	tree = open_tree(dirfd, path, AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	r = tree < 0 ? -errno : mount_restrict_tree(source, tree);
	if (r < 0)
		return mount_lacks_call(-r) ? 0 : r;
	source->tree = steal_fd(&tree);
	return 0;
}

/* Looks at the clone. Without one, what mount(2) finds at the path later is compared with this. */
static int mount_inspect(struct mount_source *source)
{
	if (source->tree >= 0)
		return fstat(source->tree, &source->st) < 0 ? -errno : 0;
	return stat(source->path, &source->st) < 0 ? -errno : 0;
}

int mount_source_open(const char *path, enum mount_kind kind, bool noexec, struct mount_source *ret)
{
	struct mount_source source = {.tree = -1, .path = path, .kind = kind, .noexec = noexec};
	int r;

	r = mount_clone_tree(&source, AT_FDCWD, path);
	if (r == 0)
		r = mount_inspect(&source);
	if (r < 0) {
		mount_source_close(&source);
		return r;
	}
	*ret = source;
	return 0;
}

bool mount_is_present(const struct mount_source *source, int target, bool any_flags)
{
	bool device = source->kind == MOUNT_DEVICE;
	struct statvfs fs;
	struct stat st;

	if (fstat(target, &st) < 0)
		return false;
	if (device ? !S_ISCHR(st.st_mode) || st.st_rdev != source->st.st_rdev : !mount_is_same_file(&st, &source->st))
		return false;
	if (fstatvfs(target, &fs) < 0)
		return false;
	if (device)
		return !(fs.f_flag & ST_NODEV);
	return any_flags || (fs.f_flag & mount_flags(source)) == mount_flags(source);
}

/* ---- mount(2) between descriptors ---- */

/*
 * mount(2) takes paths only, so the working directory becomes /proc/self/fd, where "7" is descriptor 7. Return: a
 * handle of the old working directory, for mount_leave_fds(); negative errno.
 */
static int mount_enter_fds(int proc_self_fd)
{
	_cleanup_close_ int old = -1;

	old = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (old < 0 || fchdir(proc_self_fd) < 0)
		return -errno;
	return steal_fd(&old);
}

static void mount_leave_fds(int old)
{
	if (fchdir(old) < 0 && chdir("/") < 0)
		abort(); /* a relative path would now name our descriptors */
	(void)close(old);
}

/* One mount(2) on descriptor @target, from descriptor @origin if that is not -1. */
static int mount_fds_with(int proc_self_fd, int origin, int target, const char *type, unsigned long flags,
			  const char *options)
{
	char from[NUMBER_MAX], onto[NUMBER_MAX];
	int old, r;

	(void)snprintf(from, sizeof(from), "%d", origin);
	(void)snprintf(onto, sizeof(onto), "%d", target);
	old = mount_enter_fds(proc_self_fd);
	if (old < 0)
		return old;
	r = mount(origin < 0 ? "none" : from, onto, type, flags, options) < 0 ? -errno : 0;
	mount_leave_fds(old);
	return r;
}

static int mount_fds(int proc_self_fd, int origin, int target, const char *type, unsigned long flags)
{
	return mount_fds_with(proc_self_fd, origin, target, type, flags, NULL);
}

static int mount_unmount_fd(int proc_self_fd, int fd)
{
	char number[NUMBER_MAX];
	int old, r;

	(void)snprintf(number, sizeof(number), "%d", fd);
	old = mount_enter_fds(proc_self_fd);
	if (old < 0)
		return old;
	r = umount2(number, MNT_DETACH) < 0 ? -errno : 0;
	mount_leave_fds(old);
	return r;
}

/* umount2(2) refuses what was not attached, because it is not a mount of this namespace. */
void mount_undo(const struct undo_log *undo_log, const struct undo_step *undo_step)
{
	(void)mount_unmount_fd(undo_log->proc_self_fd, undo_step->fds[0]);
}

/* Writes down that @mount is about to be attached, or was a moment ago. */
static int mount_log_undo(struct undo_log *undo_log, int mount)
{
	const struct undo_step undo_step = {.undo = mount_undo, .fds = {mount, -1, -1}};

	return undo_log_add(undo_log, &undo_step, NULL);
}

static int mount_move_fds(int mount, int target)
{
	return move_mount(mount, "", target, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0 ? -errno : 0;
}

/* Takes over @mount when it is attached. @old: with mount(2), from where it is in this namespace. */
static int mount_attach_tree(struct undo_log *undo_log, int *mount, int target, bool old)
{
	int r = mount_log_undo(undo_log, *mount);

	if (r < 0)
		return r;
	r = old ? mount_fds(undo_log->proc_self_fd, *mount, target, NULL, MS_MOVE) : mount_move_fds(*mount, target);
	if (r < 0)
		undo_log_pop(undo_log);
	else
		(void)steal_fd(mount);
	return r;
}

/* Until it is remounted, a bind mount has the flags of its source; some may be locked, so all are kept. */
static int mount_restrict_bind(const struct mount_source *source, int proc_self_fd, int fd)
{
	const unsigned long kept = ST_RDONLY | ST_NOSUID | ST_NODEV | ST_NOEXEC | ST_NOATIME | ST_NODIRATIME;
	unsigned long flags;
	struct statvfs fs;
	int r;

	if (fstatvfs(fd, &fs) < 0)
		return -errno;
	flags = (fs.f_flag & kept) | (fs.f_flag & ST_RELATIME ? MS_RELATIME : 0) | mount_flags(source);
	r = mount_fds(proc_self_fd, -1, fd, NULL, MS_REMOUNT | MS_BIND | flags);
	if (r == 0)
		r = mount_fds(proc_self_fd, -1, fd, NULL, MS_PRIVATE);
	return r;
}

int mount_set_propagation(int proc_self_fd, int fd, unsigned long type)
{
	struct mount_attr attributes = {.propagation = type & ~(unsigned long)MS_REC};

	if (mount_setattr(fd, "", AT_EMPTY_PATH | (type & MS_REC ? AT_RECURSIVE : 0), &attributes,
			  sizeof(attributes)) == 0)
		return 0;
	return mount_lacks_call(errno) ? mount_fds(proc_self_fd, -1, fd, NULL, type) : -errno;
}

/*
 * A descriptor of what was mounted over @directory, which itself goes on meaning what is below. The way there is by the
 * name of the directory in the one above it.
 */
static int mount_open_cover(int proc_self_fd, int directory)
{
	_cleanup_close_ int above = -1, fd = -1;
	char number[NUMBER_MAX];
	_cleanup_free_ char *path = NULL;
	int r;

	(void)snprintf(number, sizeof(number), "%d", directory);
	r = fd_read_link_at(proc_self_fd, number, &path);
	if (r < 0)
		return r;
	above = openat(directory, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (above < 0 || !strrchr(path, '/'))
		return above < 0 ? -errno : -ESTALE;
	fd = openat(above, strrchr(path, '/') + 1, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? -errno : steal_fd(&fd);
}

/* ---- the stage ---- */

static int mount_set_tmpfs_owner(int context, const struct mapped_root *owner)
{
	char uid[NUMBER_MAX], gid[NUMBER_MAX];

	if (!owner->other)
		return 0;
	(void)snprintf(uid, sizeof(uid), "%u", owner->uid);
	(void)snprintf(gid, sizeof(gid), "%u", owner->gid);
	return fsconfig(context, FSCONFIG_SET_STRING, "uid", uid, 0) < 0 ||
			       fsconfig(context, FSCONFIG_SET_STRING, "gid", gid, 0) < 0
		       ? -errno
		       : 0;
}

static int mount_make_tmpfs(const struct tmpfs *tmpfs)
{
	_cleanup_close_ int context = -1;
	int fd, r;

	context = fsopen("tmpfs", FSOPEN_CLOEXEC);
	if (context < 0 || fsconfig(context, FSCONFIG_SET_STRING, "mode", tmpfs->mode, 0) < 0)
		return -errno;
	r = mount_set_tmpfs_owner(context, &tmpfs->owner);
	if (r < 0)
		return r;
	if (fsconfig(context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return -errno;
	fd = fsmount(context, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
	return fd < 0 ? -errno : fd;
}

/* With mount(2). The device number shows whether the new tmpfs was found. */
static int mount_cover_with_tmpfs(struct undo_log *undo_log, int directory, const struct tmpfs *tmpfs)
{
	_cleanup_close_ int fd = -1;
	struct stat st, covered;
	struct statfs fs;
	char options[64];
	int r;

	if (tmpfs->owner.other)
		(void)snprintf(options, sizeof(options), "mode=%s,uid=%u,gid=%u", tmpfs->mode, tmpfs->owner.uid,
			       tmpfs->owner.gid);
	else
		(void)snprintf(options, sizeof(options), "mode=%s", tmpfs->mode);
	r = mount_fds_with(undo_log->proc_self_fd, -1, directory, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, options);
	if (r < 0)
		return r;
	fd = mount_open_cover(undo_log->proc_self_fd, directory);
	if (fd < 0)
		return steal_fd(&fd);
	if (fstat(fd, &st) < 0 || fstat(directory, &covered) < 0 || fstatfs(fd, &fs) < 0)
		return -errno;
	if (fs.f_type != TMPFS_MAGIC || st.st_dev == covered.st_dev)
		return -ESTALE;
	r = mount_log_undo(undo_log, fd);
	if (r < 0)
		(void)mount_unmount_fd(undo_log->proc_self_fd, fd);
	return r < 0 ? r : steal_fd(&fd);
}

/* A descriptor of it, which the undo log owns. */
static int mount_tmpfs(struct undo_log *undo_log, int directory, const struct tmpfs *tmpfs)
{
	_cleanup_close_ int made = mount_make_tmpfs(tmpfs);
	int fd = made, r = made < 0 ? made : mount_attach_tree(undo_log, &made, directory, false);

	if (r < 0 && mount_lacks_call(-r))
		return mount_cover_with_tmpfs(undo_log, directory, tmpfs);
	return r < 0 ? r : fd;
}

/* open_tree(2) copies from mounts of the namespace only (until 6.15), and so does mount(2). */
static int mount_stage_open(struct mount_stage *stage)
{
	int fd = stage->tmpfs < 0 ? mount_tmpfs(stage->undo_log, stage->root, &stage_tmpfs) : stage->tmpfs;

	if (fd < 0)
		return fd;
	stage->tmpfs = fd;
	return 0;
}

int mount_own_tmpfs(struct undo_log *undo_log, int directory, const struct mapped_root *owner)
{
	const struct tmpfs tmpfs = {.mode = "0755", .owner = *owner};

	return mount_tmpfs(undo_log, directory, &tmpfs);
}

int mount_set_read_only(int proc_self_fd, int fd, bool read_only)
{
	const unsigned long flags = MS_REMOUNT | MS_BIND | MS_NOSUID | MS_NODEV | MS_NOEXEC;
	struct mount_attr attributes = {
		.attr_set = read_only ? MOUNT_ATTR_RDONLY : 0,
		.attr_clr = read_only ? 0 : MOUNT_ATTR_RDONLY,
	};

	if (mount_setattr(fd, "", AT_EMPTY_PATH, &attributes, sizeof(attributes)) == 0)
		return 0;
	return mount_lacks_call(errno) ? mount_fds(proc_self_fd, -1, fd, NULL, flags | (read_only ? MS_RDONLY : 0))
				       : -errno;
}

/* The step stays, as it is not the newest any more; what is not mounted cannot be taken away a second time. */
void mount_stage_close(struct mount_stage *stage)
{
	if (stage->tmpfs >= 0)
		(void)mount_unmount_fd(stage->undo_log->proc_self_fd, stage->tmpfs);
	stage->tmpfs = -1;
}

/* Makes a file or directory with a name of its own. Return: descriptor, a file's for writing; negative errno. */
static int mount_stage_make(struct mount_stage *stage, bool directory, char name[NUMBER_MAX])
{
	int fd, r;

	r = mount_stage_open(stage);
	if (r < 0)
		return r;
	(void)snprintf(name, NUMBER_MAX, "%u", stage->count++);
	if (directory && mkdirat(stage->tmpfs, name, 0755) < 0)
		return -errno;
	fd = directory ? openat(stage->tmpfs, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
		       : openat(stage->tmpfs, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
	return fd < 0 ? -errno : fd;
}

/* A bind mount in the stage, with its flags. It becomes the source's tree. */
static int mount_stage_bind(struct mount_stage *stage, struct mount_source *source, int origin)
{
	_cleanup_close_ int place = -1, fd = -1;
	char name[NUMBER_MAX];
	struct stat st;
	int r;

	place = mount_stage_make(stage, S_ISDIR(source->st.st_mode), name);
	if (place < 0)
		return place;
	r = mount_fds(stage->undo_log->proc_self_fd, origin, place, NULL, MS_BIND);
	if (r < 0)
		return r;
	fd = openat(stage->tmpfs, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	r = mount_is_same_file(&st, &source->st) ? mount_restrict_bind(source, stage->undo_log->proc_self_fd, fd)
						 : -ESTALE;
	if (r < 0)
		return r; /* it goes with the stage, which no process can reach */
	source->tree = steal_fd(&fd);
	source->staged = true;
	return 0;
}

/* ---- attaching ---- */

/* The kernel binds only what lies in the current mount namespace, so the path is opened again and compared. */
static int mount_bind_again(struct mount_source *source, struct mount_stage *stage)
{
	_cleanup_close_ int origin = -1;
	struct stat st;

	origin = open(source->path, O_PATH | O_CLOEXEC);
	if (origin < 0 || fstat(origin, &st) < 0)
		return -errno;
	return mount_is_same_file(&st, &source->st) ? mount_stage_bind(stage, source, origin) : -ESTALE;
}

int mount_attach(struct mount_source *source, struct mount_stage *stage, int target)
{
	int r = source->tree < 0 ? mount_bind_again(source, stage) : 0;

	if (r == 0)
		r = mount_attach_tree(stage->undo_log, &source->tree, target, source->staged);
	mount_stage_close(stage);
	return r;
}

/* With mount(2). */
static int mount_bind_itself(struct undo_log *undo_log, int directory)
{
	_cleanup_close_ int fd = -1;
	struct stat st, cover;
	int r;

	r = mount_fds(undo_log->proc_self_fd, directory, directory, NULL, MS_BIND);
	if (r < 0)
		return r;
	fd = mount_open_cover(undo_log->proc_self_fd, directory);
	if (fd < 0)
		return steal_fd(&fd);
	if (fstat(fd, &cover) < 0 || fstat(directory, &st) < 0)
		return -errno;
	r = mount_is_same_file(&cover, &st) ? mount_log_undo(undo_log, fd) : -ESTALE;
	if (r < 0)
		(void)mount_unmount_fd(undo_log->proc_self_fd, fd);
	return r < 0 ? r : steal_fd(&fd);
}

/* A clone is not found again by its name, which the owner of the directory above could give to another file. */
int mount_bind_over_itself(struct undo_log *undo_log, int directory)
{
	_cleanup_close_ int tree = -1, fd = -1;
	int r, own;

	tree = own = open_tree(directory, "", AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	r = tree < 0 ? -errno : mount_attach_tree(undo_log, &tree, directory, false);
	if (r < 0 && mount_lacks_call(-r))
		r = own = mount_bind_itself(undo_log, directory);
	if (r < 0)
		return r;
	fd = fcntl(own, F_DUPFD_CLOEXEC, 0);
	r = fd < 0 ? -errno : mount_set_propagation(undo_log->proc_self_fd, fd, MS_PRIVATE);
	return r < 0 ? r : steal_fd(&fd);
}

int mount_bind_recursive(int proc_self_fd, int from, int to)
{
	_cleanup_close_ int tree = -1;
	int r;

	tree = open_tree(from, "", AT_EMPTY_PATH | AT_RECURSIVE | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	r = tree < 0 ? -errno : mount_set_propagation(proc_self_fd, tree, MS_PRIVATE | MS_REC);
	if (r == 0)
		return mount_move_fds(tree, to);
	/* If the mount is shared, this one is its peer until all mounts of the root are made private. */
	return mount_lacks_call(-r) || r == -EINVAL ? mount_fds(proc_self_fd, from, to, NULL, MS_BIND | MS_REC) : r;
}

/* ---- what is made here ---- */

/* A clone of @origin, which is in the stage, or a bind mount of it. */
static int mount_take_staged(struct mount_stage *stage, int origin, struct mount_source *ret)
{
	struct mount_source source = {.tree = -1, .kind = MOUNT_DATA};
	int r;

	if (fstat(origin, &source.st) < 0)
		return -errno;
	r = mount_clone_tree(&source, origin, "");
	if (r == 0 && source.tree < 0)
		r = mount_stage_bind(stage, &source, origin);
	if (r == 0)
		*ret = source;
	return r;
}

int mount_make_data(struct mount_stage *stage, const struct span *parts, size_t count, struct mount_source *ret)
{
	_cleanup_close_ int fd = -1;
	char name[NUMBER_MAX];
	int r;

	fd = mount_stage_make(stage, false, name);
	if (fd < 0)
		return fd;
	r = fd_write_parts(fd, parts, count);
	if (r == 0 && fchmod(fd, 0644) < 0)
		r = -errno;
	return r < 0 ? r : mount_take_staged(stage, fd, ret);
}

int mount_make_empty(struct mount_stage *stage, struct mount_source *ret)
{
	_cleanup_close_ int fd = -1;
	char name[NUMBER_MAX];

	fd = mount_stage_make(stage, true, name);
	return fd < 0 ? fd : mount_take_staged(stage, fd, ret);
}

/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Doing what a plan says. What is done is kept in three places that can each take their part back: the mounts, in the
 * order of attaching; the device cgroup; and the root filesystem, which knows what was created and replaced in it.
 */

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/devcgroup.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mount.h"
#include "base/rootfs.h"
#include "lib/container.h"
#include "lib/context.h"
#include "lib/plan.h"
#include "lib/plan_fit.h"
#include "lib/root_writer.h"

enum { ID_MAP_MAX = 1 << 16 };

struct apply {
	const struct plan *plan;
	const struct ctr_gpu_container *container;
	const struct log *log;
	struct err *err;
	struct mount_source *sources; /* the plan's mounts, then its devices */
	size_t source_count;
	struct rootfs rootfs;
	struct devcgroup *cgroup;
	struct ctr_gpu_context *context;
	struct deeds *deeds;
	struct owner *owner; /* of the deeds */
};

/* ---- what went wrong ---- */

static int mount_error(const struct apply *apply, const char *source, const char *target, int r)
{
	errno = -r;
	if (r == -EPERM || r == -EACCES)
		return err_set(apply->err, CTR_GPU_E_NO_PERMISSION,
			       "mounting %s on %s in the container was refused: %m.\n"
			       "Run this as root with CAP_SYS_ADMIN; a security module (AppArmor, SELinux) may forbid it too.",
			       source, target);
	if (r == -ENOSYS)
		return err_set(apply->err, CTR_GPU_E_KERNEL_TOO_OLD, "this kernel cannot mount %s: %m\nUpdate the kernel; on WSL: wsl --update.", source);
	return err_set(apply->err, r, "cannot mount %s on %s in the container: %m", source, target);
}

static int changed(const struct apply *apply, const char *path)
{
	return err_set(apply->err, -ESTALE, "%s is not what it was a moment ago: %m.\nTry again when the driver update is done.",
		       path);
}

/* ---- sources ---- */

static int take_source(struct apply *apply, const char *path, enum mount_kind kind, bool noexec)
{
	struct mount_source *source = &apply->sources[apply->source_count];
	int r;

	deeds_step(apply->deeds, "reading %s of this host", path);
	r = mount_source_open(path, kind, noexec, source);
	if (r < 0)
		return mount_error(apply, path, path, r);
	apply->source_count++;
	return 0;
}

static int take_mount(struct apply *apply, const struct plan_mount *entry)
{
	int r = take_source(apply, entry->source, MOUNT_READ_ONLY, entry->flags & PLAN_MOUNT_NOEXEC);
	const struct stat *st = &apply->sources[apply->source_count - (r == 0)].st;

	if (r != 0)
		return r;
	if (st->st_dev != entry->device || st->st_ino != entry->inode || S_ISDIR(st->st_mode) != entry->directory)
		return changed(apply, entry->source);
	return 0;
}

static int take_device(struct apply *apply, const struct plan_device *entry)
{
	int r = take_source(apply, entry->path, MOUNT_DEVICE, true);
	const struct stat *st = &apply->sources[apply->source_count - (r == 0)].st;

	if (r != 0)
		return r;
	return S_ISCHR(st->st_mode) && st->st_rdev == entry->number ? 0 : changed(apply, entry->path);
}

static int take_sources(struct apply *apply)
{
	const struct plan *plan = apply->plan;
	int r = 0;

	for (size_t i = 0; i < plan->mount_count && r == 0; i++)
		r = take_mount(apply, &plan->mounts[i]);
	for (size_t i = 0; i < plan->device_count && r == 0; i++)
		r = take_device(apply, &plan->devices[i]);
	return r;
}

/* ---- the container's side ---- */

static int find_cgroup(struct apply *apply)
{
	int r;

	if (apply->container->leave_cgroup || !apply->container->pid || !apply->plan->device_count)
		return 0;
	r = devcgroup_open(apply->container->pid, &apply->cgroup, apply->err);
	/* It was found by number; the number still means our process. */
	return r == 0 ? container_check_alive(apply->container, apply->err) : r;
}

/* The identity that @inside 0 has outside, by a line of uid_map(5): "inside outside count". */
static int read_root_id(const struct apply *apply, const char *map, unsigned *ret)
{
	_cleanup_free_ char *text = NULL;
	unsigned inside, outside, count;
	int r;

	r = fd_read_file_at(apply->container->process, map, ID_MAP_MAX, &text, NULL);
	if (r < 0)
		return r;
	for (const char *line = text; line && *line; line = strchr(line, '\n'), line += line != NULL)
		if (sscanf(line, "%u %u %u", &inside, &outside, &count) == 3 && inside == 0)
			*ret = outside;
	return 0;
}

static int find_owner(struct apply *apply)
{
	int r;

	if (apply->container->enter_user_namespace || !container_has_own_user_namespace(apply->container))
		return 0;
	*apply->owner = (struct owner){.uid = geteuid(), .gid = getegid()};
	r = read_root_id(apply, "uid_map", &apply->owner->uid);
	if (r == 0)
		r = read_root_id(apply, "gid_map", &apply->owner->gid);
	if (r < 0)
		return err_set(apply->err, r, "cannot read the user namespace of process %d: %m", (int)apply->container->pid);
	apply->owner->other = apply->owner->uid != geteuid() || apply->owner->gid != getegid();
	return 0;
}

/* @ret_fd: of the namespace, for who takes deeds back */
static int join(const struct apply *apply, const char *name, int type, int *ret_fd)
{
	_cleanup_close_ int fd = -1;
	int r;

	fd = openat(apply->container->process, name, O_RDONLY | O_CLOEXEC);
	if (fd >= 0 && setns(fd, type) == 0) {
		*ret_fd = steal_fd(&fd);
		return 0;
	}
	r = -errno;
	if (r == -ENOENT || r == -ESRCH)
		return container_check_alive(apply->container, apply->err);
	if (r == -EPERM || r == -EACCES)
		return err_set(apply->err, CTR_GPU_E_NO_PERMISSION,
			       "user %d may not enter the namespaces of process %d (%s).\n"
			       "Run this as root, or in the user namespace that the container was started from.",
			       (int)geteuid(), (int)apply->container->pid, name);
	return err_set(apply->err, r, "cannot enter %s of process %d: %m", name, (int)apply->container->pid);
}

static int enter(struct apply *apply)
{
	int r = 0;

	if (apply->container->process < 0)
		return 0;
	if (apply->container->enter_user_namespace)
		r = join(apply, "ns/user", CLONE_NEWUSER, &apply->deeds->namespaces[0]);
	return r == 0 ? join(apply, "ns/mnt", CLONE_NEWNS, &apply->deeds->namespaces[1]) : r;
}

/* The host's side is copied before the container's is entered, unless only there is anything permitted. */
static int cross(struct apply *apply)
{
	int (*const steps[2])(struct apply *) = {take_sources, enter};
	bool late = apply->container->enter_user_namespace;
	int r = steps[late](apply);

	return r == 0 ? steps[!late](apply) : r;
}

static int open_rootfs(struct apply *apply)
{
	int r = container_open_rootfs(apply->container, &apply->rootfs, apply->err);

	apply->rootfs.proc_self_fd = apply->deeds->proc_self_fd;
	apply->rootfs.deeds = apply->deeds;
	apply->rootfs.owned = apply->owner->other;
	if (r != 0)
		return r;
	r = plan_fit_warn(apply->plan, &apply->rootfs, &apply->container->config.environment, apply->log);
	return r < 0 ? err_set(apply->err, r, "%m") : 0;
}

static int open_fds(struct apply *apply)
{
	int fd = apply->deeds->proc_self_fd;

	if (fd < 0)
		fd = apply->deeds->proc_self_fd = mount_open_proc_self_fd();
	return fd < 0 ? err_set(apply->err, fd, "cannot open /proc/self/fd: %m") : 0;
}

/* ---- mounts and links ---- */

/*
 * Whether the image leads a path that is not of a kernel's filesystem into one. A mount there could have the runtime write
 * the container's security label to a file of the image's choice.
 */
static bool is_led_astray(const char *path, int target)
{
	struct statfs fs;

	if (str_has_prefix(path, "/proc/") || str_has_prefix(path, "/sys/"))
		return false;
	if (fstatfs(target, &fs) < 0)
		return true;
	return fs.f_type == PROC_SUPER_MAGIC || fs.f_type == SYSFS_MAGIC || fs.f_type == CGROUP_SUPER_MAGIC ||
	       fs.f_type == CGROUP2_SUPER_MAGIC;
}

static int make_target(struct apply *apply, const char *path, bool directory, int *ret_fd)
{
	int r;

	owner_begin(apply->owner);
	r = directory ? rootfs_make_directory(&apply->rootfs, path, 0755, ret_fd) :
			rootfs_make_file(&apply->rootfs, path, 0644, ret_fd);
	owner_end(apply->owner);
	if (r < 0)
		return root_writer_error(apply->err, path, r);
	if (!is_led_astray(path, *ret_fd))
		return 0;
	return err_set(apply->err, CTR_GPU_E_BAD_ROOTFS,
		       "the image leads %s into /proc, /sys or a cgroup, where nothing may be mounted.\n"
		       "Remove the symlink from the image.", path);
}

static int attach(struct apply *apply, struct mount_source *source, const char *path)
{
	_cleanup_close_ int target = -1;
	int r;

	deeds_step(apply->deeds, "mounting %s in the container", path);
	r = make_target(apply, path, S_ISDIR(source->st.st_mode), &target);
	if (r != 0)
		return r;
	if (mount_is_there(source, target)) {
		log_debug(apply->log, "%s is there already", path);
		return 0;
	}
	r = mount_attach(source, &apply->rootfs, path, target);
	if (r < 0)
		return mount_error(apply, source->path, path, r);
	log_debug(apply->log, "mounted %s on %s", source->path, path);
	return 0;
}

static int attach_all(struct apply *apply)
{
	const struct plan *plan = apply->plan;
	int r = 0;

	for (size_t i = 0; i < plan->mount_count && r == 0; i++)
		r = attach(apply, &apply->sources[i], plan->mounts[i].target);
	for (size_t i = 0; i < plan->device_count && r == 0 && !apply->container->leave_devices; i++)
		r = attach(apply, &apply->sources[plan->mount_count + i], plan->devices[i].path);
	return r;
}

/*
 * A file or directory of the kernel's own in the container. A volume over /proc may hold anything; what is not procfs is
 * left alone, as is what is missing there. Return: descriptor; -ENOENT; other negative errno.
 */
static int open_procfs(struct apply *apply, const char *path)
{
	_cleanup_close_ int fd = -1;
	struct statfs fs;

	fd = rootfs_open_path(&apply->rootfs, path, O_PATH);
	if (fd < 0)
		return fd;
	if (fstatfs(fd, &fs) < 0)
		return -errno;
	return fs.f_type == PROC_SUPER_MAGIC ? steal_fd(&fd) : -ENOENT;
}

/* Whether the container has a file that says the same already, as it does when a plan is applied twice. */
static bool says_so(const struct apply *apply, const struct plan_file *file)
{
	_cleanup_free_ char *content = NULL;
	size_t size;

	return rootfs_read_file(&apply->rootfs, file->target, strlen(file->content), &content, &size) == 0 &&
	       streq(content, file->content);
}

static int lay_file(struct apply *apply, const struct plan_file *file)
{
	struct span content = span_text(file->content);
	_cleanup_close_ int target = -1;
	int r;

	if (says_so(apply, file))
		return 0;
	if (file->on_procfs)
		target = open_procfs(apply, file->target);
	if (file->on_procfs && target < 0)
		return target == -ENOENT ? 0 : root_writer_error(apply->err, file->target, target);
	r = file->on_procfs ? 0 : make_target(apply, file->target, false, &target);
	if (r != 0)
		return r;
	r = mount_attach_data(&apply->rootfs, file->target, target, &content, 1);
	if (r < 0)
		return mount_error(apply, "a file of ours", file->target, r);
	log_debug(apply->log, "mounted a file over %s", file->target);
	return 0;
}

static int hide(struct apply *apply, const struct plan_hidden *hidden)
{
	_cleanup_close_ int target = -1;
	int r;

	target = open_procfs(apply, hidden->path);
	if (target < 0)
		return target == -ENOENT ? 0 : root_writer_error(apply->err, hidden->path, target);
	r = mount_attach_empty(&apply->rootfs, hidden->path, target);
	if (r < 0)
		return mount_error(apply, "an empty directory", hidden->path, r);
	log_debug(apply->log, "covered %s", hidden->path);
	return 0;
}

static int lay_files(struct apply *apply)
{
	const struct plan *plan = apply->plan;
	int r = 0;

	for (size_t i = 0; i < plan->file_count && r == 0; i++)
		r = lay_file(apply, &plan->files[i]);
	for (size_t i = 0; i < plan->hidden_count && r == 0; i++)
		r = hide(apply, &plan->hidden[i]);
	return r;
}

static int allow_devices(struct apply *apply)
{
	const struct plan *plan = apply->plan;
	_cleanup_free_ struct devcgroup_rule *rules = NULL;

	if (!apply->cgroup)
		return 0;
	rules = calloc(plan->device_count, sizeof(*rules));
	if (!rules)
		return err_set(apply->err, -ENOMEM, "%m");
	for (size_t i = 0; i < plan->device_count; i++)
		rules[i] = (struct devcgroup_rule){
			.type = 'c',
			.major = major(plan->devices[i].number),
			.minor = minor(plan->devices[i].number),
			.access = plan->devices[i].access,
			.path = plan->devices[i].path,
		};
	return devcgroup_allow(apply->cgroup, rules, plan->device_count, apply->deeds, apply->err);
}

/* ---- loader files ---- */

static int cover_file(void *user, const struct loader_file *file)
{
	struct apply *apply = user;
	_cleanup_close_ int target = -1;
	int r;

	target = rootfs_open_path(&apply->rootfs, file->path, O_PATH);
	if (target == -ENOENT && file->optional)
		return 0;
	if (target < 0)
		return root_writer_error(apply->err, file->path, target == -ENOENT ? -EROFS : target);
	r = mount_attach_data(&apply->rootfs, file->path, target, file->parts, ARRAY_SIZE(file->parts));
	if (r < 0)
		return mount_error(apply, "a new version", file->path, r);
	log_debug(apply->log, "mounted a new version of %s over it", file->path);
	return 0;
}

static struct root_writer writer_of(struct apply *apply)
{
	return (struct root_writer){
		.rootfs = &apply->rootfs,
		.plan = apply->plan,
		.owner = apply->owner,
		.log = apply->log,
		.err = apply->err,
		.cover = cover_file,
		.user = apply,
	};
}

static int make_symlinks(struct apply *apply)
{
	struct root_writer writer = writer_of(apply);

	deeds_step(apply->deeds, "making symlinks in the container");
	return root_writer_make_symlinks(&writer);
}

static int write_loader_files(struct apply *apply)
{
	struct root_writer writer = writer_of(apply);

	deeds_step(apply->deeds, "writing the loader's files in the container's /etc");
	return root_writer_make_loader_files(&writer);
}

/* ---- all of it ---- */

static int (*const steps[])(struct apply *) = {
	find_cgroup, find_owner, open_fds, cross, open_rootfs, attach_all, lay_files, make_symlinks, allow_devices,
	write_loader_files, /* nothing may fail after the loader's cache is in its place */
};

static void clear(struct apply *apply)
{
	for (size_t i = 0; i < apply->source_count; i++)
		mount_source_close(&apply->sources[i]);
	free(apply->sources);
	devcgroup_free(apply->cgroup);
	rootfs_close(&apply->rootfs);
	context_end_deeds(apply->context, apply->deeds);
}

static int apply_all(struct apply *apply)
{
	const struct plan *plan = apply->plan;
	mode_t mask;
	int r = 0;

	apply->deeds = context_begin_deeds(apply->context);
	apply->sources = calloc(plan->mount_count + plan->device_count + 1, sizeof(*apply->sources));
	if (!apply->deeds || !apply->sources)
		return err_set(apply->err, -ENOMEM, "%m");
	apply->owner = &apply->deeds->owner;
	mask = umask(022);
	for (size_t i = 0; i < ARRAY_SIZE(steps) && r == 0; i++)
		r = steps[i](apply);
	if (r != 0)
		deeds_undo(apply->deeds);
	(void)umask(mask);
	return r;
}

int ctr_gpu_plan_apply(struct ctr_gpu_context *context, const struct ctr_gpu_plan *plan, struct ctr_gpu_container *container)
{
	struct apply apply = {
		.plan = &plan->data,
		.container = container,
		.log = &context->settings.log,
		.err = &context->err,
		.rootfs = ROOTFS_CLOSED,
		.context = context,
	};
	int r;

	deeds_step(context->deeds, "looking at the container");
	r = container_check(container, &context->err);
	if (r != 0)
		return r;
	for (size_t i = 0; i < plan->data.warnings.count; i++)
		log_warning(apply.log, "%s", plan->data.warnings.items[i]);
	r = apply_all(&apply);
	clear(&apply);
	return r;
}

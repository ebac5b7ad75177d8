/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Doing what a plan says. Mounts, device rules, and what is created and replaced in the root filesystem are written
 * down as deeds, so that all of it can be taken back.
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

#include "base/fd.h"
#include "base/log.h"
#include "devcgroup/devcgroup.h"
#include "guard/choice.h"
#include "lib/container.h"
#include "lib/context.h"
#include "lib/plan.h"
#include "lib/plan_fit.h"
#include "lib/record.h"
#include "lib/root_writer.h"
#include "process/phase.h"
#include "process/sanitise.h"
#include "root/ground.h"
#include "root/mount.h"
#include "root/rootfs.h"
#include "vcuda/backend.h"
#include "vcuda/grant.h"

enum { ID_MAP_MAX = 1 << 16, KEPT_MAX = 64 };

struct apply {
	const struct plan *plan;
	const struct ctr_gpu_container *container;
	const struct log *log;
	struct err *err;
	struct mount_source *sources; /* the plan's mounts, its devices, then the directory of a grant */
	size_t source_count;
	struct rootfs rootfs;
	struct ground ground;
	struct mount_stage stage;
	struct devcgroup *cgroup;
	struct ctr_gpu_context *context;
	struct deeds *deeds;
	struct owner *owner; /* of the deeds */
	struct root_writer writer;
	char *grant;  /* directory of the container's socket; NULL: none */
	int grant_fd; /* of the deeds */
};

/* ---- what went wrong ---- */

static int apply_mount_error(const struct apply *apply, const char *source, const char *target, int r)
{
	errno = -r;
	if (r == -EPERM || r == -EACCES)
		return err_set(
			apply->err, CTR_GPU_E_NO_PERMISSION,
			"mounting %s on %s in the container was refused: %m.\n"
			"Run this as root with CAP_SYS_ADMIN; a security module (AppArmor, SELinux) may forbid it too.",
			source, target);
	if (r == -ENOSYS)
		return err_set(apply->err, CTR_GPU_E_KERNEL_TOO_OLD,
			       "this kernel cannot mount %s: %m\nUpdate the kernel; on WSL: wsl --update.", source);
	return err_set(apply->err, r, "cannot mount %s on %s in the container: %m", source, target);
}

/* ---- vCUDA ---- */

/* The manager takes back what was granted when the connection ends, and the deed holds that. */
static void apply_undo_grant(const struct deeds *deeds, const struct deed *deed)
{
	(void)deeds;
	(void)deed;
}

static int apply_take_grant(struct apply *apply)
{
	const struct ctr_gpu_container *container = apply->container;
	struct deed deed = {.undo = apply_undo_grant, .fds = {-1, -1, -1}};
	int r;

	if (apply->plan->grant_count == 0)
		return 0;
	if (!container->pid)
		return err_set(apply->err, CTR_GPU_E_BAD_ARGUMENT,
			       "vCUDA serves a container as long as its first process lives, and none is named.\n"
			       "Name it: --pid PID, or start the container by an engine.");
	deeds_step(apply->deeds, "asking vCUDA's manager for a socket", NULL);
	r = grant_ask(apply->plan, container->id, container->pid, &deed.fds[0], &apply->grant, apply->err);
	if (r != 0)
		return r;
	r = deeds_add(apply->deeds, &deed, "vCUDA's grant");
	if (r < 0)
		return err_set(apply->err, r, "%m");
	apply->grant_fd = deed.fds[0];
	return 0;
}

static int apply_open_grant(struct apply *apply)
{
	int r = apply->grant
			? mount_source_open(apply->grant, MOUNT_READ_ONLY, true, &apply->sources[apply->source_count])
			: 0;

	if (r < 0)
		return apply_mount_error(apply, apply->grant, VCUDA_SOCKET_DIR, r);
	apply->source_count += apply->grant != NULL;
	return 0;
}

static int apply_keep_grant(struct apply *apply)
{
	return apply->grant ? grant_keep(apply->grant_fd, apply->container->id, apply->container->pid, apply->err) : 0;
}

/* ---- sources ---- */

/* What is opened must be what the plan was made of. */
static bool apply_is_planned(const struct stat *st, const struct plan_mount *mount, const struct plan_device *device)
{
	if (!mount)
		return S_ISCHR(st->st_mode) && st->st_rdev == device->number;
	return st->st_dev == mount->device && st->st_ino == mount->inode && S_ISDIR(st->st_mode) == mount->directory;
}

static int apply_take_sources(struct apply *apply)
{
	const struct plan *plan = apply->plan;

	for (size_t i = 0; i < plan->mount_count + plan->device_count; i++) {
		const struct plan_mount *mount = i < plan->mount_count ? &plan->mounts[i] : NULL;
		const struct plan_device *device = mount ? NULL : &plan->devices[i - plan->mount_count];
		const char *path = mount ? mount->source : device->path;
		int r;

		deeds_step(apply->deeds, "reading %s of this host", path);
		r = mount_source_open(path, mount ? MOUNT_READ_ONLY : MOUNT_DEVICE,
				      !mount || mount->flags & PLAN_MOUNT_NOEXEC, &apply->sources[i]);
		if (r < 0 && r != -ENOENT && r != -ESTALE)
			return apply_mount_error(apply, path, path, r);
		apply->source_count += r == 0;
		if (r < 0 || !apply_is_planned(&apply->sources[i].st, mount, device))
			return err_set(
				apply->err, r < 0 ? r : -ESTALE,
				"%s is not what it was a moment ago: %m.\nTry again when the driver update is done.",
				path);
	}
	return apply_open_grant(apply);
}

/* ---- the container's side ---- */

/* Volumes come from the namespace that the runtime is in, which is this one until the container's is entered. */
static int apply_open_mounts(struct apply *apply)
{
	const struct oci_config *config = &apply->container->config;

	if (config->root) {
		apply->ground.binds = &config->binds;
		apply->ground.tmpfs = &config->tmpfs;
	}
	if (apply->container->process < 0)
		return 0;
	apply->ground.outside_fd = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
	return apply->ground.outside_fd < 0 ? err_set(apply->err, -errno, "cannot open /proc/self/mountinfo: %m") : 0;
}

static void apply_undo_choice(const struct deeds *deeds, const struct deed *deed)
{
	const struct choices choices = {deed->fds[0], deed->fds[1]};
	struct guard_key key;

	(void)deeds;
	if (choice_key(deed->fds[2], &key) == 0)
		(void)choice_remove(&choices, &key);
}

/* Whether the process that does this is in that cgroup as well: then it is not the container's own. */
static bool apply_is_own_cgroup(const struct guard_key *key)
{
	struct devcgroup *cgroup = NULL;
	struct guard_key own = {0};
	size_t depth;

	if (devcgroup_open(getpid(), -1, &cgroup, NULL) == 0 && cgroup)
		(void)choice_key(devcgroup_directory(cgroup, &depth), &own);
	devcgroup_free(cgroup);
	return own.cgroup == key->cgroup && own.hierarchy == key->hierarchy;
}

/* Return: what is in the way of the guard; NULL: nothing. */
static const char *apply_find_key(const struct apply *apply, int *ret_fd, struct guard_key *ret)
{
	size_t depth;

	if (!apply->cgroup)
		return "the container has no cgroup with device rules";
	*ret_fd = devcgroup_directory(apply->cgroup, &depth);
	if (choice_key(*ret_fd, ret) < 0 || apply_is_own_cgroup(ret))
		return "the container has no cgroup of its own";
	return depth > GUARD_LEVELS_MAX ? "the container's cgroup is too far below the root" : NULL;
}

static int apply_explain_choice(const struct apply *apply, const char *obstacle, int r)
{
	if (apply->plan->choice.strict)
		return err_set(apply->err, CTR_GPU_E_GUARD,
			       "the choice of GPUs cannot be held: %s%s%s\n"
			       "Choose all GPUs, or set \"choice\" to \"auto\" in ctr-gpu's configuration.",
			       obstacle, r < 0 ? ": " : "", r < 0 ? err_name(r) : "");
	log_warning(apply->log, "the choice of GPUs is not held: %s%s%s", obstacle, r < 0 ? ": " : "",
		    r < 0 ? err_name(r) : "");
	return 0;
}

/* The list of deeds owns the maps' descriptors, or they are closed. */
static int apply_write_choice(struct apply *apply, int cgroup, const struct guard_key *key,
			      const struct choices *choices)
{
	const struct plan_choice *choice = &apply->plan->choice;
	const struct deed deed = {.undo = apply_undo_choice,
				  .fds = {choices->map, choices->counts, fcntl(cgroup, F_DUPFD_CLOEXEC, 0)}};
	int r = deed.fds[2] < 0 ? -errno : deeds_add(apply->deeds, &deed, "the guard's choice");

	for (size_t i = 0; i < DEED_FDS && r < 0; i++)
		cleanup_closep(&deed.fds[i]);
	return r < 0 ? r : choice_set(choices, key, choice->luids, choice->luid_count);
}

/* Before the container has the device. The cgroup's end takes the choice away. */
static int apply_hold_choice(struct apply *apply)
{
	struct choices choices;
	const char *obstacle;
	struct guard_key key;
	int cgroup = -1, r;

	if (apply->plan->choice.luid_count == 0)
		return 0;
	deeds_step(apply->deeds, "telling the guard of the choice", NULL);
	obstacle = apply_find_key(apply, &cgroup, &key);
	if (obstacle)
		return apply_explain_choice(apply, obstacle, 0);
	r = choices_open(&choices);
	if (r < 0)
		return apply_explain_choice(apply, "the guard's map cannot be opened", r);
	r = apply_write_choice(apply, cgroup, &key, &choices);
	return r < 0 ? apply_explain_choice(apply, "the guard's map cannot be written", r) : 0;
}

static int apply_find_cgroup(struct apply *apply)
{
	const struct ctr_gpu_container *container = apply->container;

	if (container->leave_cgroup || !container->pid || !apply->plan->device_count)
		return 0;
	return devcgroup_open(container->pid, container->process, &apply->cgroup, apply->err);
}

/* The identity that @inside 0 has outside, by a line of uid_map(5): "inside outside count". */
static int apply_read_root_id(const struct apply *apply, const char *map, unsigned *ret)
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

static int apply_find_owner(struct apply *apply)
{
	int r;

	if (apply->container->enter_user_namespace || !container_has_own_user_namespace(apply->container))
		return 0;
	*apply->owner = (struct owner){.uid = geteuid(), .gid = getegid()};
	r = apply_read_root_id(apply, "uid_map", &apply->owner->uid);
	if (r == 0)
		r = apply_read_root_id(apply, "gid_map", &apply->owner->gid);
	if (r < 0)
		return err_set(apply->err, r, "cannot read the user namespace of process %d: %m",
			       (int)apply->container->pid);
	apply->owner->other = apply->owner->uid != geteuid() || apply->owner->gid != getegid();
	return 0;
}

/* @ret_fd: the namespace, for the process that undoes deeds */
static int apply_join(const struct apply *apply, const char *name, int type, int *ret_fd)
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

static int apply_enter(struct apply *apply)
{
	int r = 0;

	if (apply->container->process < 0)
		return 0;
	if (apply->container->enter_user_namespace)
		r = apply_join(apply, "ns/user", CLONE_NEWUSER, &apply->deeds->namespaces[0]);
	/* A process that enters a user namespace gets all capabilities. */
	if (r == 0 && apply->container->enter_user_namespace)
		r = phase_limit(PHASE_GIVE);
	return r == 0 ? apply_join(apply, "ns/mnt", CLONE_NEWNS, &apply->deeds->namespaces[1]) : r;
}

/*
 * The host's files are cloned before the container's namespaces are entered, unless mounting is permitted only there.
 */
static int apply_cross(struct apply *apply)
{
	int (*const steps[2])(struct apply *) = {apply_take_sources, apply_enter};
	bool late = apply->container->enter_user_namespace;
	int r = steps[late](apply);

	return r == 0 ? steps[!late](apply) : r;
}

static int apply_settle(struct apply *apply)
{
	/* A mount of the caller's own namespace is not to be changed for good. */
	int r = ground_settle(&apply->rootfs, apply->container->process < 0 && !apply->container->inside);

	apply->stage = (struct mount_stage){.deeds = apply->deeds, .root = apply->rootfs.fd, .tmpfs = -1};
	return r < 0 ? apply_mount_error(apply, apply->container->rootfs, apply->container->rootfs, r) : 0;
}

static int apply_open_rootfs(struct apply *apply)
{
	int r = container_open_rootfs(apply->container, &apply->rootfs, apply->err);

	apply->rootfs.proc_self_fd = apply->deeds->proc_self_fd;
	apply->rootfs.ground = &apply->ground;
	apply->rootfs.deeds = apply->deeds;
	apply->rootfs.owned = apply->owner->other;
	if (r != 0)
		return r;
	r = plan_fit_warn(apply->plan, &apply->rootfs, &apply->container->config, apply->log);
	return r < 0 ? err_set(apply->err, r, "%m") : 0;
}

static int apply_open_fds(struct apply *apply)
{
	int fd = apply->deeds->proc_self_fd;

	if (fd < 0)
		fd = apply->deeds->proc_self_fd = mount_open_proc_self_fd(apply->container->process);
	return fd < 0 ? err_set(apply->err, fd, "cannot open /proc/self/fd: %m") : 0;
}

/* ---- targets ---- */

/* Found, or made where it is missing. */
static int apply_target_make(struct apply *apply, const char *path, bool directory, struct rootfs_place *ret)
{
	int r;

	owner_begin(apply->owner);
	r = (directory ? rootfs_make_directory : rootfs_make_file)(&apply->rootfs, path, directory ? 0755 : 0644, ret);
	owner_end(apply->owner);
	return r;
}

/*
 * A file or directory of procfs in the container. A volume over /proc may contain anything: what is not procfs, or is
 * missing, is left alone. Return: as apply_target_make(); -ENOENT.
 */
static int apply_target_find_procfs(const struct apply *apply, const char *path, struct rootfs_place *ret)
{
	int fd = rootfs_open_path(&apply->rootfs, path, O_PATH);
	struct statfs fs;

	if (fd >= 0 && (fstatfs(fd, &fs) < 0 || fs.f_type != PROC_SUPER_MAGIC)) {
		(void)close(fd);
		return -ENOENT;
	}
	return rootfs_take_place(&apply->rootfs, fd, ret);
}

/*
 * Whether nothing may be mounted there. Where the image leads another path into a kernel's filesystem, a mount could
 * have the runtime write the container's security label to a file of the image's choice.
 */
static bool apply_target_is_forbidden(const struct rootfs_place *target, const char *path)
{
	return target->ground == GROUND_SHARED ||
	       (target->ground == GROUND_KERNEL && !str_has_prefix(path, "/proc/") && !str_has_prefix(path, "/sys/"));
}

static int apply_target_refuse(const struct apply *apply, const struct rootfs_place *target, const char *path)
{
	if (target->ground == GROUND_KERNEL)
		return err_set(apply->err, CTR_GPU_E_BAD_ROOTFS,
			       "the image leads %s into /proc, /sys or a cgroup, where nothing may be mounted.\n"
			       "Remove the symlink from the image.",
			       path);
	return err_set(apply->err, CTR_GPU_E_VOLUME,
		       "%s is in a volume that shares its mounts with the host, where whatever is mounted would stay.\n"
		       "Give the container that volume without \"shared\" (rslave will do), or remove the symlink that "
		       "leads there.",
		       path);
}

/* ---- mounts and links ---- */

/* Attaches a source that the caller has among its own. */
static int apply_attach_to(struct apply *apply, struct mount_source *source, const struct rootfs_place *target,
			   const char *path)
{
	int r;

	if (apply_target_is_forbidden(target, path))
		return apply_target_refuse(apply, target, path);
	r = mount_attach(source, &apply->stage, target->fd);
	if (S_ISDIR(source->st.st_mode))
		rootfs_forget_parent(&apply->rootfs);
	return r < 0 ? apply_mount_error(apply, source->path ? source->path : "what ctr-gpu made", path, r) : 0;
}

/*
 * Something that the container works without: whether the engine's mounts leave no place for it. @r: of making @target
 */
static bool apply_leave_out(const struct apply *apply, const char *path, int r, const struct rootfs_place *target)
{
	if (r != -EROFS && r != -EXDEV && !(r == 0 && apply_target_is_forbidden(target, path)))
		return false;
	log_warning(apply->log, "%s is left out: its place is %s", path, r == -EROFS ? "read-only" : "in a volume");
	return true;
}

/* @optional: the container works without. */
static int apply_attach(struct apply *apply, struct mount_source *source, const char *path, bool optional)
{
	_cleanup_place_ struct rootfs_place target = ROOTFS_NOWHERE;
	int r;

	deeds_step(apply->deeds, "mounting %s in the container", path);
	r = apply_target_make(apply, path, S_ISDIR(source->st.st_mode), &target);
	if (optional && apply_leave_out(apply, path, r, &target))
		return 0;
	if (r < 0)
		return root_writer_error(apply->err, path, r);
	/* A volume that the user gave for this stays as it is. */
	if (!target.made && mount_is_there(source, target.fd, target.ground == GROUND_SHARED)) {
		log_debug(apply->log, "%s is there already", path);
		return 0;
	}
	r = apply_attach_to(apply, source, &target, path);
	if (r == 0)
		log_debug(apply->log, "mounted %s on %s", source->path, path);
	if (apply->context->ends && apply->source_count < KEPT_MAX)
		(void)steal_fd(&target.fd); /* it goes with the program */
	return r;
}

static int apply_attach_all(struct apply *apply)
{
	const struct plan *plan = apply->plan;
	int r = 0;

	for (size_t i = 0; i < plan->mount_count && r == 0; i++)
		r = apply_attach(apply, &apply->sources[i], plan->mounts[i].target,
				 plan->mounts[i].kind == PLAN_PROGRAM);
	for (size_t i = 0; i < plan->device_count && r == 0 && !apply->container->leave_devices; i++)
		r = apply_attach(apply, &apply->sources[plan->mount_count + i], plan->devices[i].path, false);
	if (r == 0 && apply->grant)
		r = apply_attach(apply, &apply->sources[plan->mount_count + plan->device_count], VCUDA_SOCKET_DIR,
				 false);
	return r;
}

/* Lays bytes of ours over a target. */
static int apply_cover(struct apply *apply, const struct span *parts, size_t count, const struct rootfs_place *target,
		       const char *path)
{
	struct mount_source source = MOUNT_NONE;
	int r;

	if (apply_target_is_forbidden(target, path))
		return apply_target_refuse(apply, target, path);
	r = mount_make_data(&apply->stage, parts, count, &source);
	r = r < 0 ? apply_mount_error(apply, "what ctr-gpu made", path, r)
		  : apply_attach_to(apply, &source, target, path);
	mount_source_close(&source);
	if (r == 0)
		log_debug(apply->log, "mounted over %s", path);
	return r;
}

/*
 * What the plan lays over files and directories of the container. Paths are looked up first, since the stage covers the
 * root and an image's ".." would lead into it; then all is made in one stage; then, without the stage, it is attached.
 */
struct apply_lay {
	const char *path;
	const struct plan_file *file; /* NULL: the path is a directory, which is to be empty */
	struct rootfs_place target;   /* nowhere: nothing is to be done */
	struct mount_source source;
};

/* The file says so already when a plan is applied twice; then procfs is not found, as it is covered. */
static bool apply_says_so(const struct apply *apply, const struct rootfs_place *target, const struct plan_file *file)
{
	_cleanup_free_ char *old = NULL;

	return !file->on_procfs && !target->made &&
	       rootfs_read_handle(&apply->rootfs, target->fd, strlen(file->content), &old, NULL) == 0 &&
	       streq(old, file->content);
}

static int apply_find_file(struct apply *apply, const struct plan_file *file, struct apply_lay *ret)
{
	_cleanup_place_ struct rootfs_place target = ROOTFS_NOWHERE;
	int r;

	r = file->on_procfs ? apply_target_find_procfs(apply, file->target, &target)
			    : apply_target_make(apply, file->target, false, &target);
	if (!file->on_procfs && apply_leave_out(apply, file->target, r, &target))
		return 0;
	if (r < 0)
		return r == -ENOENT && file->on_procfs ? 0 : root_writer_error(apply->err, file->target, r);
	if (apply_says_so(apply, &target, file))
		return 0;
	if (apply_target_is_forbidden(&target, file->target))
		return apply_target_refuse(apply, &target, file->target);
	*ret = (struct apply_lay){file->target, file, target, MOUNT_NONE};
	target = ROOTFS_NOWHERE;
	return 0;
}

static int apply_find_hidden(struct apply *apply, const struct plan_hidden *hidden, struct apply_lay *ret)
{
	_cleanup_place_ struct rootfs_place target = ROOTFS_NOWHERE;
	int r;

	r = apply_target_find_procfs(apply, hidden->path, &target);
	if (r < 0)
		return r == -ENOENT ? 0 : root_writer_error(apply->err, hidden->path, r);
	*ret = (struct apply_lay){hidden->path, NULL, target, MOUNT_NONE};
	target = ROOTFS_NOWHERE;
	return 0;
}

static int apply_find_lays(struct apply *apply, struct apply_lay *lays)
{
	const struct plan *plan = apply->plan;
	int r = 0;

	for (size_t i = 0; i < plan->file_count && r == 0; i++)
		r = apply_find_file(apply, &plan->files[i], lays++);
	for (size_t i = 0; i < plan->hidden_count && r == 0; i++)
		r = apply_find_hidden(apply, &plan->hidden[i], lays++);
	return r;
}

static int apply_attach_lay(struct apply *apply, struct apply_lay *lay)
{
	int r = apply_attach_to(apply, &lay->source, &lay->target, lay->path);

	mount_source_close(&lay->source);
	if (r == 0)
		log_debug(apply->log, "mounted over %s", lay->path);
	return r;
}

/* Without open_tree(2) the source is a mount in the stage, and leaves it at once. */
static int apply_make_lay(struct apply *apply, struct apply_lay *lay)
{
	struct span content = span_text(lay->file ? lay->file->content : "");
	int r = lay->file ? mount_make_data(&apply->stage, &content, 1, &lay->source)
			  : mount_make_empty(&apply->stage, &lay->source);

	if (r < 0)
		return apply_mount_error(apply, "what ctr-gpu made", lay->path, r);
	return lay->source.staged ? apply_attach_lay(apply, lay) : 0;
}

static int apply_lay_all(struct apply *apply, struct apply_lay *lays, size_t count)
{
	int r = apply_find_lays(apply, lays);

	for (size_t i = 0; i < count && r == 0; i++)
		if (lays[i].target.fd >= 0)
			r = apply_make_lay(apply, &lays[i]);
	mount_stage_close(&apply->stage);
	for (size_t i = 0; i < count && r == 0; i++)
		if (lays[i].source.tree >= 0)
			r = apply_attach_lay(apply, &lays[i]);
	return r;
}

static int apply_lay_files(struct apply *apply)
{
	const size_t count = apply->plan->file_count + apply->plan->hidden_count;
	_cleanup_free_ struct apply_lay *lays = calloc(count + 1, sizeof(*lays));
	int r;

	if (!lays)
		return err_set(apply->err, -ENOMEM, "%m");
	for (size_t i = 0; i < count; i++)
		lays[i] = (struct apply_lay){NULL, NULL, ROOTFS_NOWHERE, MOUNT_NONE};
	r = apply_lay_all(apply, lays, count);
	for (size_t i = 0; i < count; i++) {
		rootfs_place_close(&lays[i].target);
		mount_source_close(&lays[i].source);
	}
	return r;
}

static void apply_undo_mode(const struct deeds *deeds, const struct deed *deed)
{
	(void)deeds;
	(void)fchmod(deed->fds[0], (mode_t)deed->number);
}

/*
 * Only of what runtimes make: a directory in a tmpfs of this container. A volume, or what an image leads to, may be the
 * host's.
 */
static int apply_change_modes(struct apply *apply)
{
	int r = 0;

	for (size_t i = 0; i < apply->plan->mode_count && r == 0; i++) {
		const struct plan_mode *mode = &apply->plan->modes[i];
		struct deed deed = {.undo = apply_undo_mode, .fds = {-1, -1, -1}};
		_cleanup_place_ struct rootfs_place target = ROOTFS_NOWHERE;
		struct stat st;

		r = rootfs_take_place(&apply->rootfs,
				      rootfs_open_path(&apply->rootfs, mode->path, O_RDONLY | O_DIRECTORY), &target);
		if (r < 0 || !str_has_prefix(mode->path, "/dev/") || target.ground != GROUND_OWN ||
		    fstat(target.fd, &st) < 0) {
			log_warning(apply->log,
				    "chmod: %s is not a directory of the container's /dev; it stays as it is",
				    mode->path);
			r = 0;
			continue;
		}
		deed.number = st.st_mode & 07777;
		deed.fds[0] = fcntl(target.fd, F_DUPFD_CLOEXEC, 0);
		r = deed.fds[0] < 0 ? -errno : deeds_add(apply->deeds, &deed, NULL);
		if (r == 0 && fchmod(target.fd, mode->mode) < 0)
			r = -errno;
		if (r < 0)
			return err_set(apply->err, r, "cannot change the mode of %s in the container: %m", mode->path);
	}
	return 0;
}

static int apply_allow_devices(struct apply *apply)
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

/* What was read is what is covered. */
static int apply_cover_file(void *user, const struct loader_file *file, int r)
{
	_cleanup_place_ struct rootfs_place target = ROOTFS_NOWHERE;
	struct apply *apply = user;

	if (file->handle < 0)
		return file->optional ? 0 : root_writer_error(apply->err, file->path, r);
	r = rootfs_take_place(&apply->rootfs, fcntl(file->handle, F_DUPFD_CLOEXEC, 0), &target);
	if (r < 0)
		return root_writer_error(apply->err, file->path, r);
	if (file->optional && apply_target_is_forbidden(&target, file->path))
		return 0;
	return apply_cover(apply, file->parts, ARRAY_SIZE(file->parts), &target, file->path);
}

static int apply_make_symlinks(struct apply *apply)
{
	deeds_step(apply->deeds, "making symlinks in the container", NULL);
	return root_writer_make_symlinks(&apply->writer);
}

static int apply_write_loader_files(struct apply *apply)
{
	deeds_step(apply->deeds, "writing the loader's files in the container's /etc", NULL);
	return root_writer_make_loader_files(&apply->writer);
}

/* ---- all of it ---- */

/* A container is made even where no record can be written. */
static int apply_write_record(struct apply *apply)
{
	const char *directory = apply->container->record;
	int r;

	if (directory)
		deeds_step(apply->deeds, "writing down in %s what was done", directory);
	r = directory ? record_write(directory, &apply->rootfs, apply->deeds) : 0;
	errno = -r;
	if (r == -EACCES || r == -EPERM || r == -EROFS)
		log_warning(apply->log,
			    "what was done cannot be taken back later, as it cannot be written down in %s: %m",
			    directory);
	else if (r < 0)
		return err_set(apply->err, r, "cannot write down in %s what was done: %m", directory);
	return 0;
}

static int (*const steps[])(struct apply *) = {
	apply_open_mounts,  apply_find_cgroup,   apply_hold_choice,  apply_find_owner,    apply_open_fds,
	apply_take_grant,   apply_cross,         apply_open_rootfs,  apply_settle,        apply_attach_all,
	apply_lay_files,    apply_make_symlinks, apply_change_modes, apply_allow_devices, apply_write_loader_files,
	apply_write_record, apply_keep_grant,
};

static int apply_do_all(struct apply *apply)
{
	const struct plan *plan = apply->plan;
	mode_t mask;
	int r = 0;

	apply->deeds = context_begin_deeds(apply->context);
	apply->sources = calloc(plan->mount_count + plan->device_count + 2, sizeof(*apply->sources));
	if (!apply->deeds || !apply->sources)
		return err_set(apply->err, -ENOMEM, "%m");
	apply->owner = &apply->deeds->owner;
	apply->writer = (struct root_writer){
		.rootfs = &apply->rootfs,
		.plan = plan,
		.owner = apply->owner,
		.log = apply->log,
		.err = apply->err,
		.cover = apply_cover_file,
		.user = apply,
	};
	mask = sanitise_has_mask() ? 022 : umask(022);
	for (size_t i = 0; i < ARRAY_SIZE(steps) && r == 0; i++)
		r = steps[i](apply);
	if (r != 0)
		deeds_undo(apply->deeds);
	if (!apply->context->ends && mask != 022)
		(void)umask(mask);
	return r;
}

int ctr_gpu_plan_apply(struct ctr_gpu_context *context, const struct ctr_gpu_plan *plan,
		       struct ctr_gpu_container *container)
{
	struct apply apply = {
		.plan = &plan->data,
		.container = container,
		.log = &context->settings.log,
		.err = &context->err,
		.rootfs = ROOTFS_CLOSED,
		.ground = GROUND_UNKNOWN,
		.stage = {.tmpfs = -1},
		.context = context,
	};
	int r;

	deeds_step(context->deeds, "looking at the container", NULL);
	r = container_check(container, &context->err);
	if (r != 0)
		return r;
	for (size_t i = 0; i < plan->data.warnings.count; i++)
		log_warning(apply.log, "%s", plan->data.warnings.items[i]);
	r = apply_do_all(&apply);
	mount_stage_close(&apply.stage);
	if (context->ends)
		return r;
	for (size_t i = 0; i < apply.source_count; i++)
		mount_source_close(&apply.sources[i]);
	free(apply.sources);
	free(apply.grant);
	devcgroup_free(apply.cgroup);
	rootfs_close(&apply.rootfs);
	ground_clear(&apply.ground);
	context_end_deeds(context, apply.deeds);
	return r;
}

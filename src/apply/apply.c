/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Doing what a plan says. Mounts, device rules, and what is created and replaced in the root filesystem are written
 * down as deeds, so that all of it can be taken back.
 */

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "apply/lay.h"
#include "apply/placing.h"
#include "apply/record.h"
#include "apply/root_writer.h"
#include "apply/tell.h"
#include "base/fd.h"
#include "base/log.h"
#include "devcgroup/devcgroup.h"
#include "lib/container.h"
#include "lib/context.h"
#include "plan/plan.h"
#include "plan/plan_fit.h"
#include "process/phase.h"
#include "process/sanitise.h"
#include "root/ground.h"
#include "root/mount.h"
#include "root/rootfs.h"
#include "vcuda/grant/backend.h"
#include "vcuda/grant/grant.h"

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
	struct placing placing;
	struct devcgroup *cgroup;
	struct ctr_gpu_context *context;
	struct deeds *deeds;
	struct owner *owner; /* of the deeds */
	struct root_writer writer;
	char *grant;  /* directory of the container's socket; NULL: none */
	int grant_fd; /* of the deeds */
};

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
		return placing_error(&apply->placing, apply->grant, VCUDA_SOCKET_DIR, r);
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
			return placing_error(&apply->placing, path, path, r);
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

static int apply_tell_guard(struct apply *apply)
{
	const struct tell tell = {&apply->plan->choice, apply->cgroup, apply->deeds, apply->log, apply->err};

	return tell_guard(&tell);
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
	return r < 0 ? placing_error(&apply->placing, apply->container->rootfs, apply->container->rootfs, r) : 0;
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

/* ---- mounts and links ---- */

/* @optional: the container works without. */
static int apply_attach(struct apply *apply, struct mount_source *source, const char *path, bool optional)
{
	_cleanup_place_ struct rootfs_place target = ROOTFS_NOWHERE;
	int r;

	deeds_step(apply->deeds, "mounting %s in the container", path);
	r = placing_make(&apply->placing, path, S_ISDIR(source->st.st_mode), &target);
	if (optional && placing_can_do_without(&apply->placing, path, r, &target))
		return 0;
	if (r < 0)
		return root_writer_error(apply->err, path, r);
	/* A volume that the user gave for this stays as it is. */
	if (!target.made && mount_is_there(source, target.fd, target.ground == GROUND_SHARED)) {
		log_debug(apply->log, "%s is there already", path);
		return 0;
	}
	r = placing_attach(&apply->placing, source, &target, path);
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

static int apply_lay_files(struct apply *apply)
{
	return lay_all(&apply->placing, apply->plan);
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
	if (file->optional && placing_is_forbidden(&target, file->path))
		return 0;
	return placing_cover(&apply->placing, file->parts, ARRAY_SIZE(file->parts), &target, file->path);
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
	apply_open_mounts,  apply_find_cgroup,   apply_tell_guard,   apply_find_owner,    apply_open_fds,
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
	apply->placing = (struct placing){&apply->rootfs, &apply->stage, apply->owner, apply->log, apply->err};
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

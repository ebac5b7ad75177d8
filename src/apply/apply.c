/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Doing what a plan says. Mounts, device rules, and what is created and replaced in the root filesystem are written
 * down in the undo log, so that all of it can be taken back.
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

#include "apply/internal.h"
#include "base/fd.h"
#include "base/log.h"
#include "devcgroup/devcgroup.h"
#include "lib/container.h"
#include "lib/context.h"
#include "plan/plan.h"
#include "process/phase.h"
#include "process/sanitise.h"
#include "root/mount.h"
#include "root/mount_class.h"
#include "root/rootfs.h"
#include "vcuda/grant/backend.h"
#include "vcuda/grant/grant.h"

enum { SOURCES_MAX = 64 };

struct apply {
	const struct plan *plan;
	const struct ctr_gpu_container *container;
	const struct log *log;
	struct err *err;
	struct mount_source *sources; /* the plan's mounts, its devices, then the directory of a grant */
	size_t source_count;
	struct rootfs rootfs;
	struct mount_map mount_map;
	struct mount_stage stage;
	struct own_directory own;
	struct attach_context attach_context;
	struct devcgroup *cgroup;
	struct ctr_gpu_context *context;
	struct undo_log *undo_log;
	struct mapped_root *owner; /* of the undo log */
	struct file_writer writer;
	char *grant;  /* directory of the container's socket; NULL: none */
	int grant_fd; /* of the undo log */
	/* Of a container that runs: where its record is written, and what the guard held before. */
	struct undo_records records;
	int records_home; /* the directory of all containers' */
	char records_key[CONTAINER_KEY_SIZE];
	struct guard_rule_before guard_before;
	struct strv claims; /* GPUs that it alone may have from now on */
};

/* ---- vCUDA ---- */

/* The manager takes back what was granted when the connection ends, and the undo step holds that. */
static void apply_undo_grant(const struct undo_log *undo_log, const struct undo_step *undo_step)
{
	(void)undo_log;
	(void)undo_step;
}

static int apply_take_grant(struct apply *apply)
{
	const struct ctr_gpu_container *container = apply->container;
	struct undo_step undo_step = {.undo = apply_undo_grant, .fds = {-1, -1, -1}};
	int r;

	if (apply->plan->grant_count == 0)
		return 0;
	if (container->running)
		return err_set_advised(apply->err, CTR_GPU_E_BAD_ARGUMENT,
				       ("vCUDA's socket can be given to a container only when it is made."),
				       ("Start the container with the GPU, or attach one by its device."));
	undo_log_progress(apply->undo_log, "asking vCUDA's manager for a socket", NULL);
	r = grant_ask(apply->plan, container->id, container->pid, &undo_step.fds[0], &apply->grant, apply->err);
	if (r != 0)
		return r;
	r = undo_log_add(apply->undo_log, &undo_step, "vCUDA's grant");
	if (r < 0)
		return err_set(apply->err, r, "%m");
	apply->grant_fd = undo_step.fds[0];
	return 0;
}

static int apply_open_grant(struct apply *apply)
{
	int r = apply->grant
			? mount_source_open(apply->grant, MOUNT_READ_ONLY, true, &apply->sources[apply->source_count])
			: 0;

	if (r < 0)
		return attach_target_error(&apply->attach_context, apply->grant, VCUDA_SOCKET_DIR, r);
	apply->source_count += apply->grant != NULL;
	return 0;
}

static int apply_commit_grant(struct apply *apply)
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

/*
 * A file that comes along with a directory is mounted only where the image has another file in its place. It is then
 * looked up again and compared, as on a kernel without open_tree(2).
 */
static bool apply_can_wait(const struct apply *apply, const struct plan_mount *mount, struct mount_source *ret)
{
	if (!mount || mount->directory || apply->container->enter_user_namespace ||
	    !own_directory_is_reachable(apply->plan, mount))
		return false;
	*ret = (struct mount_source){
		.tree = -1,
		.path = mount->source,
		.st = {.st_dev = mount->device, .st_ino = mount->inode, .st_mode = S_IFREG},
		.kind = MOUNT_READ_ONLY,
		.noexec = mount->flags & PLAN_MOUNT_NOEXEC,
	};
	return true;
}

static int apply_take_sources(struct apply *apply)
{
	const struct plan *plan = apply->plan;

	for (size_t i = 0; i < plan->mount_count + plan->device_count; i++) {
		const struct plan_mount *mount = i < plan->mount_count ? &plan->mounts[i] : NULL;
		const struct plan_device *device = mount ? NULL : &plan->devices[i - plan->mount_count];
		const char *path = mount ? mount->source : device->path;
		int r;

		if (apply_can_wait(apply, mount, &apply->sources[i])) {
			apply->source_count++;
			continue;
		}
		undo_log_progress(apply->undo_log, "reading %s of this host", path);
		r = mount_source_open(path, mount ? MOUNT_READ_ONLY : MOUNT_DEVICE,
				      !mount || mount->flags & PLAN_MOUNT_NOEXEC, &apply->sources[i]);
		if (r < 0 && r != -ENOENT && r != -ESTALE)
			return attach_target_error(&apply->attach_context, path, path, r);
		apply->source_count += r == 0;
		if (r < 0 || !apply_is_planned(&apply->sources[i].st, mount, device))
			return err_set_advised(apply->err, r < 0 ? r : -ESTALE,
					       ("%s is not what it was a moment ago: %m.", path),
					       ("Try again when the driver update is done."));
	}
	return apply_open_grant(apply);
}

/* ---- the container's side ---- */

/* Volumes come from the namespace that the runtime is in, which is this one until the container's is entered. */
static int apply_open_mounts(struct apply *apply)
{
	const struct oci_config *config = &apply->container->config;

	if (config->root) {
		apply->mount_map.binds = &config->binds;
		apply->mount_map.tmpfs = &config->tmpfs;
	}
	if (apply->container->process < 0)
		return 0;
	apply->mount_map.outside_fd = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
	return apply->mount_map.outside_fd < 0 ? err_set(apply->err, -errno, "cannot open /proc/self/mountinfo: %m")
					       : 0;
}

/* Of the adapters behind the one device: no choice was made among them. */
static bool apply_gives_all_adapters(const struct plan *plan)
{
	bool any = false;

	for (size_t i = 0; i < plan->device_count; i++)
		any = any || streq(plan->devices[i].path, PATH_DXG);
	return any && !plan->choice.grade;
}

static int apply_guard_rule(struct apply *apply)
{
	const bool running = apply->container->running;
	const struct guard_rule rule = {
		.choice = &apply->plan->choice,
		.cgroup = apply->cgroup,
		.before = running ? &apply->guard_before : NULL,
		.has_device = running && running_has_device(apply->plan, apply->container),
		.all = running && apply_gives_all_adapters(apply->plan),
		.undo_log = apply->undo_log,
		.log = apply->log,
		.err = apply->err,
	};

	return guard_rule_guard(&rule);
}

static int apply_claim_gpus(struct apply *apply)
{
	const struct claim_gpus gpus = {apply->plan, apply->container, apply->undo_log, apply->err, &apply->claims};

	return apply->plan->claim_count == 0 ? 0 : claim_gpus_take(&gpus);
}

static int apply_find_cgroup(struct apply *apply)
{
	const struct ctr_gpu_container *container = apply->container;

	if (container->leave_cgroup || !container->pid || !apply->plan->device_count)
		return 0;
	return devcgroup_open(container->pid, container->process, &apply->cgroup, apply->err);
}

static int apply_find_owner(struct apply *apply)
{
	return namespaces_find_owner(apply->container, apply->owner, apply->err);
}

/*
 * The mount namespace of a container that runs has none of the host's files. Where mounting is permitted in its user
 * namespace only, they are cloned in a copy of this mount namespace, which belongs to that one.
 */
static int apply_copy_mounts(struct apply *apply)
{
	if (!apply->container->running || !apply->container->enter_user_namespace || unshare(CLONE_NEWNS) == 0)
		return 0;
	return err_set(apply->err, -errno, "cannot make a mount namespace: %m");
}

/*
 * The host's files are cloned before the container's namespaces are entered, unless mounting is permitted only there.
 */
static int apply_open_sources_and_enter(struct apply *apply)
{
	const struct ctr_gpu_container *container = apply->container;
	const bool late = container->enter_user_namespace && !container->running;
	int *const fds = apply->undo_log->namespaces;
	int r = namespaces_enter_user(container, fds, apply->err);

	if (r == 0)
		r = apply_copy_mounts(apply);
	if (r == 0)
		r = late ? namespaces_enter_mounts(container, fds, apply->err) : apply_take_sources(apply);
	if (r != 0)
		return r;
	return late ? apply_take_sources(apply) : namespaces_enter_mounts(container, fds, apply->err);
}

static int apply_make_private(struct apply *apply)
{
	/* A mount of the caller's own namespace is not to be changed for good. */
	int r = mount_map_make_private(&apply->rootfs, apply->container->process < 0 && !apply->container->inside);

	apply->stage = (struct mount_stage){.undo_log = apply->undo_log, .root = apply->rootfs.fd, .tmpfs = -1};
	return r < 0 ? attach_target_error(&apply->attach_context, apply->container->rootfs, apply->container->rootfs,
					   r)
		     : 0;
}

/*
 * In a container that runs: files would be made in a volume, were that the root directory, and not be found again,
 * since a record has the paths of the namespace.
 */
static int apply_check_namespace_root(const struct apply *apply)
{
	/* Of a chroot it may be the machine's. */
	static const struct stat any;
	_cleanup_rootfs_ struct rootfs root = ROOTFS_CLOSED;
	struct stat its, st;
	int r = rootfs_open(AT_FDCWD, "/", &root);

	r = r < 0 ? err_set(apply->err, r, "cannot open the root directory of process %d: %m",
			    (int)apply->container->pid)
		  : container_check_root(&root, "/", &any, apply->err);
	if (r != 0)
		return r;
	if (fstat(apply->rootfs.fd, &its) == 0 && fstat(root.fd, &st) == 0 && its.st_dev == st.st_dev &&
	    its.st_ino == st.st_ino && apply->rootfs.mount == root.mount)
		return 0;
	return err_set_advised(
		apply->err, CTR_GPU_E_BAD_ROOTFS,
		("process %d has left the root directory of its mount namespace (chroot).", (int)apply->container->pid),
		("Name another process of the container by its number; or, for a chroot, see \"ctr-gpu configure\"."));
}

static int apply_open_rootfs(struct apply *apply)
{
	int r = container_open_rootfs(apply->container, &apply->rootfs, apply->err);

	if (r == 0 && apply->container->running)
		r = apply_check_namespace_root(apply);
	apply->rootfs.proc_self_fd = apply->undo_log->proc_self_fd;
	apply->rootfs.mount_map = &apply->mount_map;
	apply->rootfs.undo_log = apply->undo_log;
	apply->rootfs.owned = apply->owner->other;
	if (r != 0)
		return r;
	apply->rootfs.noted = apply->container->bundle != NULL;
	layer_begin(apply->undo_log, apply->container->bundle, apply->container->rootfs);
	r = image_check_obstacles(apply->plan, &apply->rootfs, &apply->container->config.environment, apply->err);
	if (r == 0 && apply->container->running)
		r = running_check(apply->plan, &apply->rootfs, apply->err);
	if (r != 0)
		return r;
	r = image_check_warn(apply->plan, &apply->rootfs, &apply->container->config, apply->log);
	return r < 0 ? err_set(apply->err, r, "%m") : 0;
}

static int apply_open_fds(struct apply *apply)
{
	int fd = apply->undo_log->proc_self_fd;

	if (fd < 0)
		fd = apply->undo_log->proc_self_fd = mount_open_proc_self_fd(apply->container->process);
	return fd < 0 ? err_set(apply->err, fd, "cannot open /proc/self/fd: %m") : 0;
}

/* ---- mounts and links ---- */

/* @optional: the container works without. */
static int apply_attach(struct apply *apply, struct mount_source *source, const char *path, bool optional)
{
	_cleanup_target_ struct rootfs_target target = ROOTFS_TARGET_NONE;
	int r;

	undo_log_progress(apply->undo_log, "mounting %s in the container", path);
	r = attach_target_make(&apply->attach_context, path, S_ISDIR(source->st.st_mode), &target);
	if (optional && attach_target_can_do_without(&apply->attach_context, path, r, &target))
		return 0;
	if (r < 0)
		return write_files_error(apply->err, &apply->rootfs, path, r);
	/* A volume that the user gave for this stays as it is. */
	if (!target.made && mount_is_present(source, target.fd, target.mount_class == MOUNT_CLASS_SHARED)) {
		log_debug(apply->log, "%s is there already", path);
		return 0;
	}
	r = attach_target_attach(&apply->attach_context, source, &target, path);
	if (r == 0)
		log_debug(apply->log, "mounted %s on %s", source->path, path);
	if (apply->context->ends && apply->source_count < SOURCES_MAX)
		(void)steal_fd(&target.fd); /* it goes with the program */
	return r;
}

/* A directory that is made, to be mounted on, is empty in the image: that does no harm. */
static int apply_attach_mount(struct apply *apply, const struct plan_mount *mount, struct mount_source *source)
{
	bool there = !mount->directory && own_directory_is_reachable(apply->plan, mount);
	_cleanup_free_ char *other = NULL;
	int r = 0;

	if (!mount->directory)
		r = attach_target_link(&apply->attach_context, mount->target, there ? mount->source : NULL, &other);
	if (r == 0 && !(other && there))
		return apply_attach(apply, source, other ? other : mount->target, mount->kind == PLAN_PROGRAM);
	if (r == 0)
		log_debug(apply->log, "%s is a symlink to %s", mount->target, other);
	return r;
}

static int apply_attach_all(struct apply *apply)
{
	const struct plan *plan = apply->plan;
	int r = 0;

	for (size_t i = 0; i < plan->mount_count && r == 0; i++)
		r = apply_attach_mount(apply, &plan->mounts[i], &apply->sources[i]);
	for (size_t i = 0; i < plan->device_count && r == 0 && !apply->container->leave_devices; i++)
		r = apply_attach(apply, &apply->sources[plan->mount_count + i], plan->devices[i].path, false);
	if (r == 0 && apply->grant)
		r = apply_attach(apply, &apply->sources[plan->mount_count + plan->device_count], VCUDA_SOCKET_DIR,
				 false);
	return r;
}

static int apply_cover_files(struct apply *apply)
{
	return cover_all(&apply->attach_context, apply->plan);
}

static int apply_change_modes(struct apply *apply)
{
	return write_files_change_modes(&apply->attach_context, apply->plan);
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
	return devcgroup_allow(apply->cgroup, rules, plan->device_count, apply->undo_log, apply->err);
}

/* ---- loader files ---- */

/* What was read is what is covered. */
static int apply_cover_file(void *user, const struct loader_file *file, int r)
{
	_cleanup_target_ struct rootfs_target target = ROOTFS_TARGET_NONE;
	struct apply *apply = user;

	if (file->handle < 0)
		return file->optional ? 0 : write_files_error(apply->err, &apply->rootfs, file->path, r);
	r = rootfs_target_from_fd(&apply->rootfs, fcntl(file->handle, F_DUPFD_CLOEXEC, 0), &target);
	if (r < 0)
		return write_files_error(apply->err, &apply->rootfs, file->path, r);
	if (file->optional && attach_target_is_forbidden(&target, file->path))
		return 0;
	return attach_target_cover(&apply->attach_context, file->parts, ARRAY_SIZE(file->parts), &target, file->path);
}

static int apply_make_symlinks(struct apply *apply)
{
	undo_log_progress(apply->undo_log, "making symlinks in the container", NULL);
	return write_files_make_symlinks(&apply->writer);
}

static int apply_write_loader_files(struct apply *apply)
{
	undo_log_progress(apply->undo_log, "writing the loader's files in the container's /etc", NULL);
	return write_files_make_loader_files(&apply->writer);
}

/* ---- all of it ---- */

static int apply_close_own(struct apply *apply)
{
	int r = own_directory_close(&apply->own, &apply->rootfs);

	return r < 0 ? attach_target_error(&apply->attach_context, "a tmpfs", PLAN_OWN_DIRECTORY, r) : 0;
}

static int apply_explain_holder(struct apply *apply, const char *directory, pid_t holder)
{
	return err_set_advised(apply->err, -ETIMEDOUT,
			       ("cannot write down in %s what was done, as process %d does not let go of it: %m.",
				directory, (int)holder),
			       ("See what it waits for, or end it; then try again."));
}

/* The record of a container that runs is opened while this is in no container, and its lock held to the end. */
static int apply_open_record(struct apply *apply)
{
	const struct ctr_gpu_container *container = apply->container;
	_cleanup_free_ char *path = NULL;
	int r;

	if (!container->running || !container->record)
		return 0;
	running_drop_ended(container->record);
	r = container_key(container, apply->records_key);
	if (r == 0)
		r = str_format(&path, "%s/%s", container->record, apply->records_key);
	if (r == 0)
		r = undo_records_make(path, &apply->records);
	if (r == 0) {
		apply->records_home = open(container->record, O_PATH | O_DIRECTORY | O_CLOEXEC);
		r = apply->records_home < 0 ? -errno : 0;
	}
	errno = -r;
	if (r == -ETIMEDOUT)
		return apply_explain_holder(apply, path, apply->records.holder);
	return r < 0 ? err_set(apply->err, r, "cannot write down in %s what is done: %m", container->record) : 0;
}

/* In the container's mount namespace the path of the records would be another's. One that has records stays. */
static void apply_close_record(struct apply *apply)
{
	undo_records_close(&apply->records, apply->records_home, apply->records_key);
	cleanup_closep(&apply->records_home);
}

/* A container that runs is given nothing that could not be taken back. */
static int apply_write_running(struct apply *apply)
{
	const struct running_rules rules = {apply->cgroup, &apply->guard_before, apply->plan, &apply->claims};
	_cleanup_json_ json_t *more = NULL;
	int r = running_describe(&rules, &more);

	if (r == 0)
		r = undo_record_write_running(&apply->records, &apply->rootfs, apply->undo_log, more);
	errno = -r;
	return r < 0 ? err_set(apply->err, r, "cannot write down in %s what was done: %m", apply->container->record)
		     : 0;
}

/* A container is made even where no record can be written. */
static int apply_write_record(struct apply *apply)
{
	const char *directory = apply->container->record;
	pid_t holder = 0;
	int r;

	if (directory)
		undo_log_progress(apply->undo_log, "writing down in %s what was done", directory);
	if (directory && apply->container->running)
		return apply_write_running(apply);
	r = directory ? undo_record_write(directory, &apply->rootfs, apply->undo_log, &holder) : 0;
	errno = -r;
	if (r == -EACCES || r == -EPERM || r == -EROFS)
		log_warning(apply->log,
			    "what was done cannot be taken back later, as it cannot be written down in %s: %m",
			    directory);
	else if (r == -ETIMEDOUT)
		return apply_explain_holder(apply, directory, holder);
	else if (r < 0)
		return err_set(apply->err, r, "cannot write down in %s what was done: %m", directory);
	return 0;
}

/* Last, since it cannot be taken back. The container has its devices without it. */
static int apply_tell_systemd(struct apply *apply)
{
	int r;

	undo_log_progress(apply->undo_log, "telling systemd of the devices", NULL);
	r = devcgroup_finish(apply->cgroup, apply->container->running);
	if (r < 0)
		log_debug(apply->log, "systemd knows of the devices after its next daemon-reload only: %s",
			  err_name(r));
	return 0;
}

static int (*const steps[])(struct apply *) = {
	apply_open_mounts,        apply_open_record,
	apply_claim_gpus, /* before the container has anything of a GPU */
	apply_find_cgroup,        apply_guard_rule,
	apply_find_owner,         apply_open_fds,
	apply_allow_devices, /* before the container is entered, whose files may have the names of the host's */
	apply_take_grant,         apply_open_sources_and_enter,
	apply_open_rootfs,        apply_make_private,
	apply_attach_all,         apply_cover_files,
	apply_make_symlinks,      apply_change_modes,
	apply_write_loader_files, apply_close_own,
	apply_write_record,       apply_commit_grant,
	apply_tell_systemd,
};

static int apply_do_all(struct apply *apply)
{
	const struct plan *plan = apply->plan;
	mode_t mask;
	int r = 0;

	apply->undo_log = context_begin_undo_log(apply->context);
	apply->sources = calloc(plan->mount_count + plan->device_count + 2, sizeof(*apply->sources));
	if (!apply->undo_log || !apply->sources)
		return err_set(apply->err, -ENOMEM, "%m");
	apply->undo_log->ends = apply->context->ends;
	apply->owner = &apply->undo_log->owner;
	apply->attach_context = (struct attach_context){&apply->rootfs, &apply->stage, &apply->own,
							apply->owner,   apply->log,    apply->err};
	apply->writer = (struct file_writer){
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
		undo_log_undo(apply->undo_log);
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
		.mount_map = MOUNT_MAP_NONE,
		.stage = {.tmpfs = -1},
		.own = OWN_DIRECTORY_NONE,
		.context = context,
		.records = UNDO_RECORDS_CLOSED,
		.records_home = -1,
	};
	int r;

	undo_log_progress(context->undo_log, "looking at the container", NULL);
	r = container_check(container, &context->err);
	if (r != 0)
		return r;
	for (size_t i = 0; i < plan->data.warnings.count; i++)
		log_warning(apply.log, "%s", plan->data.warnings.items[i]);
	r = apply_do_all(&apply);
	mount_stage_close(&apply.stage);
	apply_close_record(&apply);
	if (context->ends)
		return r;
	for (size_t i = 0; i < apply.source_count; i++)
		mount_source_close(&apply.sources[i]);
	free(apply.sources);
	free(apply.grant);
	strv_clear(&apply.claims);
	devcgroup_free(apply.cgroup);
	rootfs_close(&apply.rootfs);
	mount_map_clear(&apply.mount_map);
	context_end_undo_log(context, apply.undo_log);
	return r;
}

/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Doing what a plan says to a container that does not exist yet. What a runtime does itself goes into config.json; the
 * rest is written into the root filesystem. What needs the container itself is left to ctr-gpu-hook. It is registered
 * in config.json only then: it costs another process, and does all of apply.c.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "apply/internal.h"
#include "base/fd.h"
#include "devcgroup/devcgroup.h"
#include "lib/container.h"
#include "lib/context.h"
#include "oci/edit.h"
#include "plan/plan.h"
#include "root/mount.h"

struct bundle_apply {
	struct ctr_gpu_bundle *bundle;
	const struct plan *plan;
	const struct log *log;
	struct err *err;
	struct plan placed;  /* the plan, with files where the image is spared their places; mounts are its own */
	struct strv targets; /* of these */
	struct stat *nodes;  /* of the plan's devices */
	struct rootfs rootfs;
	struct undo_log *undo_log;
	const char *hook_reason; /* why the hook has to do the rest; NULL: everything is done */
	bool hook_mounts;        /* and mounts and devices, too */
	int hook_timeout_s;
};

/* ---- devices ---- */

static int bundle_look_at_nodes(struct bundle_apply *apply)
{
	const struct plan *plan = apply->plan;

	apply->nodes = calloc(plan->device_count + 1, sizeof(*apply->nodes));
	if (!apply->nodes)
		return err_set(apply->err, -ENOMEM, "%m");
	for (size_t i = 0; i < plan->device_count; i++) {
		const struct plan_device *device = &plan->devices[i];

		if (stat(device->path, &apply->nodes[i]) < 0)
			return err_set(apply->err, -errno, "cannot look at %s: %m", device->path);
		if (!S_ISCHR(apply->nodes[i].st_mode) || apply->nodes[i].st_rdev != device->number)
			return err_set_advised(apply->err, -ESTALE,
					       ("%s is not what it was a moment ago: %m.", device->path),
					       ("Try again."));
	}
	return 0;
}

/*
 * runc passes devices to systemd by their names in /dev/char, and leaves out a device without such a name
 * (libcontainer/cgroups/systemd/common.go). systemd's next daemon-reload then takes the device away. udev makes these
 * names, but not for NVIDIA's nodes.
 */
static bool bundle_is_hidden_from_systemd(const struct bundle_apply *apply)
{
	const json_t *linux_part = json_object_get(apply->bundle->tree, "linux");
	const char *cgroup = json_string_value(json_object_get(linux_part, "cgroupsPath"));
	char name[64];

	/* "slice:prefix:name", as opposed to a path. */
	if (!cgroup || cgroup[0] == '/' || !strchr(cgroup, ':'))
		return false;
	for (size_t i = 0; i < apply->plan->device_count; i++) {
		const dev_t number = apply->plan->devices[i].number;

		(void)snprintf(name, sizeof(name), "/dev/char/%u:%u", major(number), minor(number));
		if (access(name, F_OK) < 0)
			return true;
	}
	return false;
}

/* ---- the root filesystem ---- */

/* The identity that the container's root has outside, by "uidMappings" or "gidMappings". */
static bool bundle_read_root_id(const json_t *linux_part, const char *name, unsigned *ret)
{
	const json_t *map;
	size_t i;

	json_array_foreach (json_object_get(linux_part, name), i, map) {
		json_int_t id = json_integer_value(json_object_get(map, "hostID"));

		if (json_integer_value(json_object_get(map, "containerID")) != 0 || id < 0 || id >= ~0U)
			continue;
		*ret = (unsigned)id;
		return true;
	}
	return false;
}

/* What a user's runtime makes of a user namespace of which nothing is said (crun): its root is that user. */
static bool bundle_maps_caller(const json_t *linux_part, const json_t *namespace)
{
	return geteuid() != 0 && !json_object_get(namespace, "path") && !json_object_get(linux_part, "uidMappings") &&
	       !json_object_get(linux_part, "gidMappings");
}

/* Return: whether the owner is known. It is not known if the container joins an existing user namespace. */
static bool bundle_find_owner(struct bundle_apply *apply)
{
	const json_t *linux_part = json_object_get(apply->bundle->tree, "linux"), *item;
	struct mapped_root owner = {.uid = geteuid(), .gid = getegid()};
	size_t i;

	json_array_foreach (json_object_get(linux_part, "namespaces"), i, item) {
		const char *type = json_string_value(json_object_get(item, "type"));

		if (!type || !streq(type, "user") || bundle_maps_caller(linux_part, item))
			continue;
		if (!bundle_read_root_id(linux_part, "uidMappings", &owner.uid) ||
		    !bundle_read_root_id(linux_part, "gidMappings", &owner.gid))
			return false;
	}
	owner.other = owner.uid != geteuid() || owner.gid != getegid();
	apply->undo_log->owner = owner;
	apply->rootfs.owned = owner.other;
	return true;
}

/* Runtimes may resolve any other spelling of a path differently. */
static bool bundle_is_plain_path(const char *path)
{
	return path && path[0] == '/' && !strstr(path, "//") && !strstr(path, "/.");
}

/* Whether a link of the image or a mount of the engine lies, or may lie, over files that the loader reads. */
static bool bundle_hides_loader_files(const struct bundle_apply *apply)
{
	const json_t *mount;
	struct stat st;
	size_t i;

	json_array_foreach (json_object_get(apply->bundle->tree, "mounts"), i, mount) {
		const char *path = json_string_value(json_object_get(mount, "destination"));

		if (!bundle_is_plain_path(path) || str_is_below("/etc", path) || str_has_prefix(path, "/etc/ld"))
			return true;
	}
	return fstatat(apply->rootfs.fd, "etc", &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode);
}

/*
 * A runtime mounts wherever the image's links lead, and makes what is missing there, on the host if that is a volume.
 * So where a path of the plan leads elsewhere, or into a volume, the hook mounts: it can tell them apart.
 */
static bool bundle_leads_to(const struct bundle_apply *apply, const char *path, const char *real)
{
	_cleanup_free_ char *found = NULL;

	return rootfs_real_path(&apply->rootfs, path, &found) == 0 && streq(found, real);
}

static bool bundle_has_volume_in_the_way(const struct bundle_apply *apply)
{
	const json_t *mount;
	size_t i;

	json_array_foreach (json_object_get(apply->bundle->tree, "mounts"), i, mount) {
		const char *destination = json_string_value(json_object_get(mount, "destination"));
		_cleanup_free_ char *real = NULL;

		if (!oci_edit_is_volume(mount, apply->plan))
			continue;
		if (!bundle_is_plain_path(destination) || rootfs_real_path(&apply->rootfs, destination, &real) < 0)
			return true;
		for (size_t j = 0; j < apply->plan->mount_count; j++)
			if (str_is_below(apply->plan->mounts[j].target, real))
				return true;
		for (size_t j = 0; j < apply->plan->device_count; j++)
			if (str_is_below(apply->plan->devices[j].path, real))
				return true;
	}
	return false;
}

static bool bundle_has_link_in_the_way(const struct bundle_apply *apply)
{
	const struct plan *plan = apply->plan;
	/* Runtimes follow such a link with their own /dev, too. */
	bool own_dev = oci_edit_has_own_dev(apply->bundle->tree) && bundle_leads_to(apply, "/dev", "/dev");

	for (size_t i = 0; i < plan->mount_count; i++)
		if (!bundle_leads_to(apply, plan->mounts[i].target, plan->mounts[i].target) &&
		    (plan->mounts[i].directory || !own_directory_is_linked(&apply->rootfs, plan, &plan->mounts[i])))
			return true;
	for (size_t i = 0; i < plan->device_count && !own_dev; i++)
		if (!bundle_leads_to(apply, plan->devices[i].path, plan->devices[i].path))
			return true;
	return false;
}

/* Why the root filesystem must be left alone until it is the container's; NULL if it need not. */
static const char *bundle_find_obstacle(struct bundle_apply *apply)
{
	apply->hook_mounts = !apply->bundle->makes_mounts;
	if (apply->hook_mounts)
		return "the runtime may follow a link that another process puts there meanwhile";
	apply->hook_mounts = bundle_has_link_in_the_way(apply) || bundle_has_volume_in_the_way(apply);
	if (apply->hook_mounts)
		return "a link of the image or a volume is in the way";
	if (bundle_hides_loader_files(apply))
		return "something is mounted over the loader's files";
	if (!bundle_find_owner(apply))
		return "the container's user namespace is another user's";
	return NULL;
}

/* ---- places for files ---- */

/* Return: 1 if it has to be mounted; 0 if a symlink leads to it; -ENOMEM. */
static int bundle_place_file(struct bundle_apply *apply, struct plan_mount *mount)
{
	bool there = own_directory_is_reachable(apply->plan, mount);
	char *other;
	int r;

	r = own_directory_link(&apply->rootfs, &apply->undo_log->owner, mount->target, there ? mount->source : NULL,
			       &other);
	if (r < 0 || !other)
		return r < 0 ? r : 1;
	mount->target = other;
	r = strv_take(&apply->targets, other);
	return r < 0 ? r : !there;
}

static int bundle_place_mounts(struct bundle_apply *apply)
{
	const struct plan *plan = apply->plan;
	struct plan *placed = &apply->placed;
	int r = 1;

	placed->mounts = calloc(plan->mount_count + 1, sizeof(*placed->mounts));
	placed->mount_count = 0;
	for (size_t i = 0; placed->mounts && i < plan->mount_count && r >= 0; i++) {
		struct plan_mount mount = plan->mounts[i];

		r = mount.directory || apply->hook_mounts ? 1 : bundle_place_file(apply, &mount);
		if (r > 0)
			placed->mounts[placed->mount_count++] = mount;
	}
	return placed->mounts && r >= 0 ? 0 : err_set(apply->err, -ENOMEM, "%m");
}

/* ---- what is to be taken back ---- */

static char *bundle_read_path(const struct bundle_apply *apply, int fd)
{
	char number[16], *path;

	(void)snprintf(number, sizeof(number), "%d", fd);
	return fd_read_link_at(apply->rootfs.proc_self_fd, number, &path) == 0 ? path : NULL;
}

/* In the bundle that the engine's runtime tells its hooks of. */
static void bundle_begin_layer(struct bundle_apply *apply)
{
	_cleanup_free_ char *bundle = bundle_read_path(apply, apply->bundle->directory);
	_cleanup_free_ char *rootfs = bundle_read_path(apply, apply->rootfs.fd);

	apply->rootfs.noted = bundle && rootfs && apply->bundle->hook;
	if (apply->rootfs.noted)
		layer_begin(apply->undo_log, bundle, rootfs);
}

/* A runtime makes what is missing on the way to where it mounts. */
static int bundle_note_place(const struct bundle_apply *apply, const char *target, bool directory)
{
	_cleanup_free_ char *path = strdup(target);

	for (char *slash = path ? path + 1 : NULL; slash; slash++) {
		_cleanup_close_ int fd = -1;
		char cut;

		slash += strcspn(slash, "/");
		cut = *slash;
		*slash = '\0';
		fd = rootfs_open_path(&apply->rootfs, path, O_PATH);
		if (fd == -ENOENT)
			rootfs_note_place(&apply->rootfs, path, cut || directory);
		*slash = cut;
		if (!cut)
			return 0;
	}
	return -ENOMEM;
}

static int bundle_note_places(const struct bundle_apply *apply)
{
	const struct plan *placed = &apply->placed;
	bool own = false;
	int r = 0;

	for (size_t i = 0; i < placed->mount_count && r == 0; i++) {
		const struct plan_mount *mount = &placed->mounts[i];
		bool is_own = str_is_below(mount->target, PLAN_OWN_DIRECTORY);

		if (!is_own || !own)
			r = bundle_note_place(apply, is_own ? PLAN_OWN_DIRECTORY : mount->target,
					      is_own || mount->directory);
		own = own || is_own;
	}
	return r < 0 ? err_set(apply->err, r, "%m") : 0;
}

static int bundle_leave_to_hook(void *user, const struct loader_file *file, int r)
{
	struct bundle_apply *apply = user;

	(void)file;
	(void)r;
	apply->hook_reason = "a file of the loader cannot be written";
	return 0;
}

/* By it a file of the image is opened as what was looked at, whatever is in its place by then. */
static int bundle_open_fds(struct bundle_apply *apply)
{
	int *fd = &apply->undo_log->proc_self_fd;

	if (*fd < 0)
		*fd = mount_open_proc_self_fd(-1);
	apply->rootfs.proc_self_fd = *fd;
	return *fd < 0 ? err_set(apply->err, *fd, "cannot open /proc/self/fd: %m") : 0;
}

/* If it cannot be opened, the runtime complains about it. */
static int bundle_change_root(struct bundle_apply *apply)
{
	const struct file_writer writer = {
		.rootfs = &apply->rootfs,
		.plan = apply->plan,
		.owner = &apply->undo_log->owner,
		.log = apply->log,
		.err = apply->err,
		.leave_own = true,
		.cover = bundle_leave_to_hook,
		.user = apply,
	};
	const char *path = apply->bundle->config.root;
	int r;

	if (!apply->plan->library_dir_count && !apply->plan->symlink_count && !apply->plan->mount_count &&
	    !apply->plan->device_count)
		return 0;
	undo_log_progress(apply->undo_log, "writing the loader's files in the root filesystem %s", path);
	r = container_open_bundle_root(apply->bundle, &apply->rootfs, apply->err);
	if (r < 0)
		return 0;
	apply->rootfs.undo_log = apply->undo_log;
	if (r == 0)
		r = bundle_open_fds(apply);
	if (r == 0)
		r = container_check_root(&apply->rootfs, path, NULL, apply->err);
	if (r == 0)
		r = image_check_obstacles(apply->plan, &apply->rootfs, &apply->bundle->config.environment, apply->err);
	if (r != 0)
		return r;
	apply->hook_reason = bundle_find_obstacle(apply);
	if (apply->hook_reason)
		return 0;
	bundle_begin_layer(apply);
	r = bundle_place_mounts(apply);
	if (r == 0)
		r = bundle_note_places(apply);
	if (r == 0)
		r = write_files_make_symlinks(&writer);
	return r == 0 ? write_files_make_loader_files(&writer) : r;
}

/* ---- config.json ---- */

/* Return: why the hook has to run in this container, too; NULL if it has not. */
static const char *bundle_explain_hook(const struct bundle_apply *apply)
{
	const struct plan *plan = apply->plan;

	if (plan->file_count || plan->hidden_count || plan->mode_count)
		return "there is something to cover in /proc";
	for (size_t i = 0; i < plan->symlink_count; i++)
		if (str_is_below(plan->symlinks[i].path, PLAN_OWN_DIRECTORY))
			return "there are symlinks beside the driver's libraries";
	if (plan->choice.luid_count)
		return "the guard has to be told of the container's cgroup";
	if (plan->claim_count)
		return "one container at a time may have the GPU, which is known by its first process";
	if (plan->grant_count)
		return "vCUDA's manager has to be asked for a socket";
	/* Device rules do not exist in user namespaces. */
	if (plan->device_count && !oci_edit_has_device_rules(apply->bundle->tree) && devcgroup_is_privileged())
		return "the engine has no device rules to add to";
	if (bundle_is_hidden_from_systemd(apply) && devcgroup_is_privileged())
		return "systemd does not know the devices";
	return apply->hook_reason;
}

/*
 * crun 1.8 cannot bind "linux.devices" for a user who has no user namespace yet; and where the image's /dev is not
 * covered, runtimes leave a file of the image in a device's place, and follow a symlink in the place of /dev to
 * wherever it leads. Such containers get the host's nodes mounted.
 */
static int bundle_edit_tree(struct bundle_apply *apply)
{
	json_t *tree = apply->bundle->tree;
	const struct stat *nodes = geteuid() == 0 && oci_edit_has_own_dev(tree) ? apply->nodes : NULL;
	int r;

	apply->hook_reason = bundle_explain_hook(apply);
	if (apply->hook_reason)
		log_debug(apply->log, "ctr-gpu-hook does the rest: %s", apply->hook_reason);
	if (apply->hook_reason && !apply->bundle->hook)
		return err_set_advised(apply->err, -ENOENT,
				       ("ctr-gpu-hook is needed and missing: %s.", apply->hook_reason),
				       ("Install ctr-gpu as a whole."));
	r = apply->hook_mounts ? oci_edit_apply_rules(tree, apply->plan, apply->err)
			       : oci_edit_apply(tree, &apply->placed, nodes, apply->err);
	return r == 0 ? oci_edit_set_hooks(tree,
					   &(struct oci_edit_hook){apply->bundle->hook, apply->hook_reason != NULL,
								   apply->hook_timeout_s},
					   apply->err)
		      : r;
}

static int bundle_write_tree(struct bundle_apply *apply)
{
	_cleanup_free_ char *text = NULL;
	struct span part;
	int r;

	undo_log_progress(apply->undo_log, "writing %s", apply->bundle->config_path);
	r = oci_print_config(apply->bundle->tree, apply->bundle->data, &text);
	if (r < 0)
		return err_set(apply->err, r, "%m");
	part = span_text(text);
	r = rootfs_rewrite_file(&apply->bundle->config_home, apply->bundle->config_name, &part, 1);
	if (r == -ELOOP)
		return err_set_advised(apply->err, CTR_GPU_E_BAD_STATE,
				       ("%s is a symlink; its target is not written.", apply->bundle->config_path),
				       ("Put the file itself there."));
	if (r < 0)
		return err_set(apply->err, r, "cannot write %s: %m", apply->bundle->config_path);
	return 0;
}

/* ---- all of it ---- */

static int (*const steps[])(struct bundle_apply *) = {bundle_look_at_nodes, bundle_change_root, bundle_edit_tree,
						      bundle_write_tree};

static int bundle_apply_all(struct bundle_apply *apply)
{
	mode_t mask;
	int r = 0;

	if (!apply->undo_log)
		return err_set(apply->err, -ENOMEM, "%m");
	apply->bundle->config_home.undo_log = apply->undo_log;
	mask = umask(022);
	for (size_t i = 0; i < ARRAY_SIZE(steps) && r == 0; i++)
		r = steps[i](apply);
	if (r != 0)
		undo_log_undo(apply->undo_log);
	(void)umask(mask);
	rootfs_forget(&apply->bundle->config_home);
	apply->bundle->config_home.undo_log = NULL;
	return r;
}

int ctr_gpu_plan_apply_to_bundle(struct ctr_gpu_context *context, const struct ctr_gpu_plan *plan,
				 struct ctr_gpu_bundle *bundle)
{
	struct bundle_apply apply = {
		.bundle = bundle,
		.plan = &plan->data,
		.placed = plan->data,
		.log = &context->settings.log,
		.err = &context->err,
		.hook_timeout_s = settings_hook_timeout(&context->settings),
		.rootfs = ROOTFS_CLOSED,
		.undo_log = context_begin_undo_log(context),
	};
	int r;

	for (size_t i = 0; i < plan->data.warnings.count; i++)
		log_warning(apply.log, "%s", plan->data.warnings.items[i]);
	r = bundle_apply_all(&apply);
	context_end_undo_log(context, apply.undo_log);
	rootfs_close(&apply.rootfs);
	if (apply.placed.mounts != plan->data.mounts)
		free(apply.placed.mounts);
	strv_clear(&apply.targets);
	free(apply.nodes);
	return r;
}

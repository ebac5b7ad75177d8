/* SPDX-License-Identifier: Apache-2.0 */

/*
 * GPUs of a container that runs. They are given as to one that is being created, and what was done is written down, as
 * the container does not end with it. To take it back there are two children: one in the container's mount namespace,
 * for mounts and files, and one outside, for the rules of its cgroup, the guard, and the layer, which the container
 * cannot see. Each is killed if it does not end.
 *
 * What is read in the container may have changed since; a record says where to look and what was there. What another
 * has put in its place stays.
 */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "apply/internal.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/print.h"
#include "guard/choice.h"
#include "ldcache/loader.h"
#include "lib/container.h"
#include "lib/context.h"
#include "model/request.h"
#include "process/phase.h"
#include "root/mount_class.h"

enum { COMMAND_SIZE = 64, NAMES_MAX = 4096 };

/* ---- what can be given ---- */

/*
 * The loader's files list what is in the plan alone, so libraries of other GPUs that the container has would not be
 * found any more.
 */
static int running_check_directories(const struct plan *plan, const struct rootfs *rootfs, const struct strv *listed,
				     struct err *err)
{
	for (size_t i = 0; i < listed->count; i++) {
		_cleanup_close_ int fd = rootfs_open_path(rootfs, listed->items[i], O_PATH | O_DIRECTORY);
		size_t same = 0;

		while (same < plan->library_dir_count && !streq(plan->library_dirs[same].path, listed->items[i]))
			same++;
		if (fd < 0 || same < plan->library_dir_count || mount_class_is_root(rootfs, fd))
			continue;
		return err_set_advised(err, CTR_GPU_E_BAD_ARGUMENT,
				       ("the container has a GPU already whose libraries are in %s.", listed->items[i]),
				       ("Name that GPU, too: --device takes several, as 0,1."));
	}
	return 0;
}

/* The directories that ldconfig in the container has from our files. */
static int running_list_directories(const struct rootfs *rootfs, struct strv *ret)
{
	static const char *const files[] = {LOADER_CONF_FIRST, LOADER_CONF_LAST};
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(files) && r == 0; i++) {
		_cleanup_free_ char *text = NULL;

		if (rootfs_read_file(rootfs, files[i], LOADER_CONF_MAX_SIZE, &text, NULL) == 0)
			r = loader_conf_parse(text, ret);
	}
	return r;
}

int running_check(const struct plan *plan, const struct rootfs *rootfs, struct err *err)
{
	_cleanup_strv_ struct strv listed = {0};
	int r;

	if (!plan->library_dir_count)
		return 0;
	r = running_list_directories(rootfs, &listed);
	return r < 0 ? err_set(err, r, "%m") : running_check_directories(plan, rootfs, &listed, err);
}

bool running_has_device(const struct plan *plan, const struct ctr_gpu_container *container)
{
	_cleanup_rootfs_ struct rootfs rootfs = ROOTFS_CLOSED;
	_cleanup_close_ int fd = -1;
	struct stat st;

	if (plan->device_count == 0 || container_open_rootfs(container, &rootfs, NULL) != 0)
		return false;
	fd = rootfs_open_path(&rootfs, plan->devices[0].path, O_PATH);
	return fd >= 0 && fstat(fd, &st) == 0 && S_ISCHR(st.st_mode) && st.st_rdev == plan->devices[0].number;
}

/* ---- the rules in a record ---- */

static json_t *running_print_guard(const struct guard_rule_before *guard)
{
	json_t *list = guard->changed ? json_array() : json_null();

	for (size_t i = 0; guard->changed && list && i < guard->count; i++)
		if (json_array_append_new(list, json_sprintf("%" PRIx64, guard->luids[i])) < 0)
			return json_decref(list), NULL;
	return list;
}

/* Where the guard's choice is: the container's own cgroup, or where that was. */
static json_t *running_print_cgroup(const struct running_rules *rules)
{
	struct devcgroup_id id = {0};
	size_t depth;

	if (!rules->guard->changed || !rules->cgroup ||
	    additions_identify(devcgroup_directory(rules->cgroup, &depth), &id) < 0)
		return json_null();
	return additions_print_id(&id);
}

static json_t *running_print_directories(const struct plan *plan)
{
	json_t *list = json_array();

	for (size_t i = 0; list && i < plan->library_dir_count; i++)
		if (json_array_append_new(list, json_string(plan->library_dirs[i].path)) < 0)
			return json_decref(list), NULL;
	return list;
}

/* By which the same can be asked for again. */
static json_t *running_print_capabilities(const struct plan *plan)
{
	const struct request request = {.capabilities = plan->capabilities};
	_cleanup_strv_ struct strv names = {0};

	return request_list_capabilities(&request, &names) < 0 ? NULL : print_strings(&names);
}

int running_describe(const struct running_rules *rules, json_t **ret)
{
	static const struct devcgroup_additions none;
	const struct devcgroup_additions *additions = rules->cgroup ? devcgroup_additions_of(rules->cgroup) : &none;
	json_t *json = json_pack(
		"{s:b, s:o, s:s?, s:o, s:o, s:o, s:o, s:o}", "changed",
		additions->count > 0 || additions->drop_in || rules->guard->changed || rules->claims->count > 0,
		"additions", additions_print(additions), "dropIn", additions->drop_in, "guard",
		running_print_guard(rules->guard), "guardCgroup", running_print_cgroup(rules), "claims",
		print_strings(rules->claims), "libraryDirectories", running_print_directories(rules->plan), "adapters",
		print_strings(&rules->plan->adapters), "capabilities", running_print_capabilities(rules->plan));

	if (!json)
		return -ENOMEM;
	*ret = json;
	return 0;
}

static const char *running_text(const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));

	return text ? text : "";
}

/* ---- taking back ---- */

/* Shared with the children. */
struct running_result {
	int r;
	bool used;       /* a process has a device open all the same */
	bool begun;      /* the GPU is taken, whatever becomes of files in the container */
	bool kept;       /* what stays in the container may be all that it needs to use the GPU */
	unsigned undone; /* what these records and those above have in the container is undone */
	struct err err;
};

struct running {
	struct ctr_gpu_context *context;
	const struct ctr_gpu_container *container;
	struct undo_records records;
	bool taken[UNDO_RECORDS_MAX];
	bool force;
	struct running_result *result;
};

/* ---- who uses a device ---- */

static bool running_is_number(const char *name)
{
	return *name && name[strspn(name, "0123456789")] == '\0';
}

/* The devices whose nodes the records have, as far as a start of the container has not given them. */
static int running_list_devices(const struct running *running, dev_t **ret, size_t *ret_count)
{
	dev_t *devices = NULL;
	size_t count = 0;

	for (unsigned number = 0; number < UNDO_RECORDS_MAX; number++) {
		_cleanup_json_ json_t *record = NULL;
		const json_t *entry;
		size_t i;

		if (!running->taken[number] || undo_record_read_running(&running->records, number, &record) < 0)
			continue;
		json_array_foreach (json_object_get(record, "deeds"), i, entry) {
			const json_t *device = json_object_get(entry, "device");
			dev_t *longer = device ? array_grow(devices, count, sizeof(*devices)) : devices;

			if (device && !longer) {
				free(devices);
				return -ENOMEM;
			}
			devices = longer;
			if (device)
				devices[count++] = (dev_t)json_integer_value(device);
		}
	}
	*ret = devices;
	*ret_count = count;
	return 0;
}

/* Devices that are looked for in processes of a container, which can have any number of files open. */
struct search {
	const dev_t *devices;
	size_t count;
	int64_t end; /* by clock_now_ms() */
};

/*
 * What a descriptor is of is asked of no file system: one that the container has mounted (FUSE) may not answer. Return:
 * whether it is one of the devices.
 */
static bool running_is_device(const struct search *search, int fds, const char *name, dev_t *ret)
{
	struct statx stx;
	dev_t device;

	if (statx(fds, name, AT_STATX_DONT_SYNC, STATX_TYPE, &stx) < 0 || !S_ISCHR(stx.stx_mode))
		return false;
	device = makedev(stx.stx_rdev_major, stx.stx_rdev_minor);
	for (size_t i = 0; i < search->count; i++)
		if (search->devices[i] == device) {
			*ret = device;
			return true;
		}
	return false;
}

/* Return: 1 if the process has one of the devices open; 0; -ETIMEDOUT. */
static int running_process_uses(const struct search *search, int process, dev_t *ret)
{
	_cleanup_dir_ DIR *fds = fd_open_directory(process, "fd", 0);
	const struct dirent *entry;

	while (fds && (entry = readdir(fds))) {
		if (clock_now_ms() > search->end)
			return -ETIMEDOUT;
		if (running_is_number(entry->d_name) &&
		    running_is_device(search, directory_fd(fds), entry->d_name, ret))
			return 1;
	}
	return 0;
}

/* Of the container are the processes of its mount or pid namespace. */
static bool running_is_inside(const struct ctr_gpu_container *container, int process)
{
	static const char *const namespaces[] = {"ns/mnt", "ns/pid"};

	for (size_t i = 0; i < ARRAY_SIZE(namespaces); i++) {
		struct stat its, own, ours;

		if (fstatat(container->process, namespaces[i], &own, 0) == 0 &&
		    fstatat(process, namespaces[i], &its, 0) == 0 &&
		    fstatat(AT_FDCWD, "/proc/self/ns/pid", &ours, 0) == 0 && own.st_ino == its.st_ino &&
		    own.st_ino != ours.st_ino)
			return true;
	}
	return false;
}

/* Return: the first process that has one open; 0; -ETIMEDOUT. @ret_name: its name */
static pid_t running_find_user(const struct running *running, const struct search *search, dev_t *ret_device,
			       char ret_name[COMMAND_SIZE])
{
	_cleanup_dir_ DIR *processes = fd_open_directory(AT_FDCWD, "/proc", 0);
	const struct dirent *entry;

	while (search->count > 0 && processes && (entry = readdir(processes))) {
		_cleanup_close_ int process = -1;
		_cleanup_free_ char *name = NULL;
		int r;

		if (!running_is_number(entry->d_name))
			continue;
		process = openat(directory_fd(processes), entry->d_name, O_PATH | O_DIRECTORY | O_CLOEXEC);
		r = process < 0 || !running_is_inside(running->container, process)
			    ? 0
			    : running_process_uses(search, process, ret_device);
		if (r < 0)
			return r;
		if (r == 0)
			continue;
		(void)fd_read_kernel_file(process, "comm", COMMAND_SIZE - 1, &name);
		(void)snprintf(ret_name, COMMAND_SIZE, "%.*s", name ? (int)strcspn(name, "\n") : 0, name ? name : "");
		if (!printable_is_all(ret_name))
			ret_name[0] = '\0';
		return (pid_t)strtol(entry->d_name, NULL, 10);
	}
	return 0;
}

static int running_check_unused(const struct running *running, struct err *err)
{
	/* The other half is for taking back. */
	const unsigned half_ms = running->context->settings.deadline_s * 1000 / 2;
	struct search search = {.end = clock_now_ms() + half_ms};
	_cleanup_free_ dev_t *devices = NULL;
	char name[COMMAND_SIZE] = "";
	dev_t device = 0;
	pid_t pid;
	int r = running_list_devices(running, &devices, &search.count);

	if (r < 0)
		return err_set(err, r, "%m");
	search.devices = devices;
	pid = running_find_user(running, &search, &device, name);
	/* What is not known may be so. */
	running->result->used = pid != 0;
	if (!pid || running->force)
		return 0;
	if (pid < 0)
		return err_set_advised(
			err, -EBUSY,
			("the container has so many files open that %u s are too short to look for the GPU among them.",
			 half_ms / 1000),
			("End its processes; or take the GPU away by --force: what is open stays open."));
	return err_set_advised(err, -EBUSY,
			       ("process %d (%s) in the container has the GPU open (device %u:%u), so it stays.",
				(int)pid, name, major(device), minor(device)),
			       ("End that process; or take the GPU away by --force: what is open stays open."));
}

/* ---- in the container ---- */

/*
 * An ldconfig in the container, since, has written the cache anew, with our libraries in it. Those of directories that
 * the loader's files do not list any more go.
 */
static int running_clean_cache(struct rootfs *rootfs, const json_t *more)
{
	_cleanup_strv_ struct strv gone = {0}, listed = {0};
	_cleanup_free_ char *data = NULL;
	struct ldcache_merged without = {0};
	const json_t *item;
	struct span content;
	size_t size, i, left = 0;
	int r = running_list_directories(rootfs, &listed);

	json_array_foreach (json_object_get(more, "libraryDirectories"), i, item) {
		const char *path = json_string_value(item);

		if (r == 0 && path && !strv_contains(&listed, path))
			r = strv_add(&gone, path);
	}
	if (r < 0 || gone.count == 0 || rootfs_read_file(rootfs, LOADER_CACHE, LDCACHE_MAX_SIZE, &data, &size) < 0)
		return r;
	content = (struct span){(const unsigned char *)data, size};
	r = ldcache_merge(&content, &gone, NULL, 0, &without);
	for (i = 0; r == 0 && i < LDCACHE_PARTS; i++)
		left += without.parts[i].size;
	if (r == 0 && left < size) {
		mapped_root_begin(&rootfs->undo_log->owner);
		r = rootfs_replace_file(rootfs, LOADER_CACHE, without.parts, LDCACHE_PARTS, 0644);
		mapped_root_end(&rootfs->undo_log->owner);
	}
	free(without.owned);
	return r == -ENOMEM ? r : 0;
}

static int running_undo_one(const struct running *running, unsigned number, struct rootfs *rootfs,
			    struct strv *restored, int *lost, struct err *err)
{
	_cleanup_json_ json_t *record = NULL;
	int r = undo_record_undo_running(&running->records, number, rootfs, restored, lost, err);

	if (r < 0 || *lost < 0)
		return r;
	r = undo_record_read_running(&running->records, number, &record);
	return r == 0 ? running_clean_cache(rootfs, json_object_get(record, "running")) : r;
}

/*
 * An earlier version gave GPUs to a chroot in a mount namespace of its own, too, whose root is the machine's. Its
 * records have the paths of the process.
 */
static int running_open_root(const struct ctr_gpu_container *container, struct rootfs *ret, struct err *err)
{
	int r = namespaces_open_root(container, ret, err);

	if (r != CTR_GPU_E_BAD_ROOTFS)
		return r;
	*err = (struct err){0};
	return container_open_rootfs(container, ret, err);
}

static int running_undo_inside(struct running *running, struct err *err)
{
	struct mount_map mount_map = MOUNT_MAP_NONE;
	_cleanup_rootfs_ struct rootfs rootfs = ROOTFS_CLOSED;
	_cleanup_strv_ struct strv restored = {0};
	_cleanup_close_ int proc_self_fd = -1;
	struct undo_log *undo_log = undo_log_new(false);
	int namespaces[2] = {-1, -1}, lost = 0, r = undo_log ? 0 : -ENOMEM;

	if (r == 0)
		r = running_check_unused(running, err);
	running->result->begun = r == 0;
	if (r == 0) {
		mount_map.outside_fd = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
		proc_self_fd = mount_open_proc_self_fd(running->container->process);
		r = mount_map.outside_fd < 0 || proc_self_fd < 0 ? err_set(err, -EBADF, "cannot open /proc/self: %m")
								 : 0;
	}
	if (r == 0)
		r = namespaces_find_owner(running->container, &undo_log->owner, err);
	if (r == 0)
		r = namespaces_enter(running->container, namespaces, err);
	if (r == 0)
		r = running_open_root(running->container, &rootfs, err);
	rootfs.mount_map = &mount_map;
	rootfs.proc_self_fd = proc_self_fd;
	rootfs.undo_log = undo_log;
	rootfs.owned = undo_log && undo_log->owner.other;
	for (unsigned number = UNDO_RECORDS_MAX; number-- > 0 && r == 0;) {
		if (running->taken[number])
			r = running_undo_one(running, number, &rootfs, &restored, &lost, err);
		if (r == 0 && lost == 0)
			running->result->undone = number;
	}
	(void)undo_log_free(undo_log);
	mount_map_clear(&mount_map);
	return lost < 0 ? lost : r;
}

/* ---- outside ---- */

/* A program that has the device open goes on, with the adapters that it has. */
static int running_restore_guard(const struct running *running, const json_t *more, const struct devcgroup *cgroup)
{
	const struct devcgroup_id id = additions_read_id(json_object_get(more, "guardCgroup"));
	const json_t *before = json_object_get(more, "guard"), *item;
	_cleanup_choices_ struct choices choices = CHOICES_NONE;
	uint64_t luids[GUARD_RULE_BEFORE_MAX];
	size_t count = 0, i;

	if (!json_is_array(before) || !cgroup || running->result->used || choices_open(&choices) < 0)
		return 0;
	json_array_foreach (before, i, item)
		if (count < GUARD_RULE_BEFORE_MAX && json_string_value(item))
			luids[count++] = strtoull(json_string_value(item), NULL, 16);
	return guard_rule_restore(&choices, devcgroup_find_open(cgroup, &id), luids, count);
}

/* A directory in which something was made or replaced. */
static void running_keep_times(struct layer_overlay *overlay, const json_t *entry)
{
	const char *path = running_text(entry, "path");
	_cleanup_close_ int fd = rootfs_open_unlinked(&overlay->merged, *path ? path : "/", O_RDONLY | O_DIRECTORY);

	if (fd >= 0 && mount_class_is_root(&overlay->merged, fd))
		(void)layer_overlay_keep_times(overlay, *path ? path : "/", fd);
}

/*
 * Directories of which the layer has nothing any more have the image's times. A file that was replaced stays in the
 * layer, with the image's content: overlayfs allows no change below it while a process looks up names in it.
 */
static void running_clean_layer(const struct running *running, const json_t *steps)
{
	_cleanup_(layer_overlay_close) struct layer_overlay overlay = LAYER_OVERLAY_NONE;
	_cleanup_close_ int fds = mount_open_proc_self_fd(-1);
	const json_t *entry;
	size_t i;

	if (container_open_rootfs(running->container, &overlay.merged, NULL) != 0 ||
	    layer_overlay_open_running(&overlay) != 0)
		return;
	overlay.merged.proc_self_fd = fds;
	json_array_foreach (steps, i, entry)
		running_keep_times(&overlay, entry);
	layer_overlay_restore_times(&overlay);
}

/* Return: 0, with no object if there is nothing to take back in cgroups; as devcgroup_open_again(). */
static int running_open_cgroup(const struct running *running, const json_t *more,
			       const struct devcgroup_additions *additions, struct devcgroup **ret, struct err *err)
{
	const struct ctr_gpu_container *container = running->container;
	_cleanup_free_ struct devcgroup_id *ids = calloc(additions->count + 1, sizeof(*ids));
	size_t count = 0;

	if (!ids)
		return err_set(err, -ENOMEM, "%m");
	for (; count < additions->count; count++)
		ids[count] = additions->items[count].cgroup;
	if (json_is_array(json_object_get(more, "guard")))
		ids[count++] = additions_read_id(json_object_get(more, "guardCgroup"));
	return devcgroup_open_again(container->pid, container->process, ids, count, ret, err);
}

/* What the kernel holds for the container's cgroup: device rules, and the guard's choice. */
static int running_restore_rules(const struct running *running, const json_t *more, struct err *err)
{
	struct devcgroup_additions additions = {0};
	struct devcgroup *cgroup = NULL;
	int r = additions_read(more, &additions), guard;

	r = r < 0 ? err_set(err, r, "cannot read what was written down: %m")
		  : running_open_cgroup(running, more, &additions, &cgroup, err);
	if (r == 0)
		r = devcgroup_take_back(cgroup, &additions, err);
	guard = r == 0 ? running_restore_guard(running, more, cgroup) : 0;
	if (guard < 0)
		log_warning(&running->context->settings.log, "the guard's choice stays as it was: %s", err_name(guard));
	devcgroup_free(cgroup);
	additions_clear(&additions);
	return r;
}

/* In a record whose rules, choice and claims are taken back, and which stays for files and mounts alone. */
#define RUNNING_OUTSIDE_DONE "%u/outside-done"

/* A second time would take what another container in the same unit has been given since. */
static bool running_is_outside_done(const struct undo_records *records, unsigned number)
{
	struct stat st;
	char name[32];

	(void)snprintf(name, sizeof(name), RUNNING_OUTSIDE_DONE, number);
	return fstatat(records->fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

/* On a full disk it is not noted; then all is taken back once more. */
static void running_note_outside_done(const struct undo_records *records, unsigned number)
{
	_cleanup_close_ int fd = -1;
	char name[32];

	(void)snprintf(name, sizeof(name), RUNNING_OUTSIDE_DONE, number);
	fd = openat(records->fd, name, O_RDONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
}

/* Whether the container can use the GPU no more once the rules are taken back, whatever stays in it. */
static bool running_is_held(const struct running *running, const json_t *more)
{
	return json_array_size(json_object_get(more, "additions")) > 0 ||
	       (json_is_array(json_object_get(more, "guard")) && !running->result->used);
}

static int running_restore_one(struct running *running, unsigned number, struct err *err)
{
	_cleanup_json_ json_t *record = NULL;
	const bool stays = number < running->result->undone;
	const json_t *more;
	int r = undo_record_read_running(&running->records, number, &record);
	bool kept;

	if (r < 0)
		return err_set(err, r, "cannot read what was written down: %m");
	more = json_object_get(record, "running");
	kept = stays && !running_is_held(running, more);
	running->result->kept = running->result->kept || kept;
	if (!running_is_outside_done(&running->records, number)) {
		r = running_restore_rules(running, more, err);
		if (r != 0)
			return r;
		if (!kept)
			claim_gpus_release(running->container, json_object_get(more, "claims"));
	}
	if (stays) {
		if (!kept)
			running_note_outside_done(&running->records, number);
		return 0;
	}
	running_clean_layer(running, json_object_get(record, "deeds"));
	undo_record_remove_running(&running->records, number);
	return 0;
}

static int running_undo_outside(struct running *running, struct err *err)
{
	int r = 0;

	for (unsigned number = UNDO_RECORDS_MAX; number-- > 0 && r == 0;)
		if (running->taken[number])
			r = running_restore_one(running, number, err);
	return r;
}

/* ---- the children ---- */

/* The number behind the result's errno or code, and its sentence, are the parent's to report. */
static int running_do(struct running *running, int (*work)(struct running *running, struct err *err))
{
	struct running_result *result = running->result;
	int r = phase_enter(PHASE_GIVE);

	if (r < 0)
		r = err_set(&result->err, r, "cannot give up capabilities: %m");
	if (r == 0)
		r = work(running, &result->err);
	/* Whatever failed without a sentence. */
	if (r < 0 && !result->err.text[0])
		r = err_set(&result->err, r, "cannot take back what was done to the container: %m");
	result->r = r;
	return r != 0;
}

static int running_work_inside(void *user)
{
	return running_do(user, running_undo_inside);
}

static int running_work_outside(void *user)
{
	return running_do(user, running_undo_outside);
}

/* Return: 0; what failed, with the context's error set. */
static int running_run(struct running *running, int (*work)(void *user))
{
	struct running_result *result = running->result;
	int exit_status = 0, r;

	result->err = (struct err){0};
	result->r = 0;
	running->context->takes_back = true;
	r = ctr_gpu_run_in_child(running->context, work, running, &exit_status);
	running->context->takes_back = false;
	if (r != 0 || result->r == 0)
		return r;
	running->context->err = result->err;
	return result->r;
}

/*
 * The container may hinder what is done in it for as long as it likes, by a file that it removes or a mount over ours.
 * It does not keep the GPU by that: what is outside is taken back all the same, and the records stay for another try.
 */
static int running_undo_all(struct running *running)
{
	struct ctr_gpu_context *context = running->context;
	struct err inside_err;
	int inside, r;

	running->result->undone = UNDO_RECORDS_MAX;
	inside = running_run(running, running_work_inside);
	/* A signal to this process is not the container's doing. */
	if (inside != 0 && (!running->result->begun || (inside == -EINTR && running->result->r == 0)))
		return inside;
	inside_err = context->err;
	r = running_run(running, running_work_outside);
	if (r != 0 || inside == 0)
		return r;
	log_warning(&context->settings.log, "%s",
		    running->result->kept ? "some files and mounts stay in the container, which may still have the GPU"
					  : "the container has no GPU any more, but some of its files and mounts stay");
	context->err = inside_err;
	return inside;
}

/* Return: as ctr_gpu_undo_running(), with @err set. */
static int running_open_records(struct running *running, const char *path, const char *name, struct err *err)
{
	int r = undo_records_open(path, &running->records);
	bool any = false;

	if (r == 0)
		r = undo_records_list(running->records.fd, running->taken);
	for (unsigned number = 0; number < UNDO_RECORDS_MAX && r == 0; number++)
		any = any || running->taken[number];
	if (r == -ENOENT || (r == 0 && !any))
		return err_set_advised(err, CTR_GPU_E_BAD_ARGUMENT,
				       ("nothing was given to process %d since its container was started.",
					(int)running->container->pid),
				       ("What a container was started with ends with it."));
	if (r == -ETIMEDOUT)
		return err_set_advised(err, r,
				       ("process %d has %s for more than %d s: %m.", (int)running->records.holder, name,
					UNDO_RECORDS_WAIT_MS / 1000),
				       ("See what it waits for, or end it; then try again."));
	return r < 0 ? err_set(err, r, "cannot open %s: %m", path) : 0;
}

int ctr_gpu_undo_running(struct ctr_gpu_context *context, struct ctr_gpu_container *container, const char *directory,
			 bool force)
{
	struct running running = {.context = context, .container = container, .records = UNDO_RECORDS_CLOSED};
	char key[CONTAINER_KEY_SIZE];
	_cleanup_free_ char *path = NULL;
	int r = container->running ? 0 : -EINVAL;

	running.force = force;
	if (r == 0)
		r = container_key(container, key);
	if (r == 0)
		r = str_format(&path, "%s/%s", directory, key);
	if (r < 0)
		return err_set(&context->err, r, "cannot look at the container: %m");
	running.result = mmap(NULL, sizeof(*running.result), PROT_READ | PROT_WRITE, MAP_ANONYMOUS | MAP_SHARED, -1, 0);
	if (running.result == MAP_FAILED)
		return err_set(&context->err, -ENOMEM, "%m");
	r = running_open_records(&running, path, path, &context->err);
	if (r == 0)
		r = running_undo_all(&running);
	undo_records_close(&running.records, AT_FDCWD, path);
	(void)munmap(running.result, sizeof(*running.result));
	return r;
}

/* ---- what was given ---- */

static int running_list_records(const struct undo_records *records, json_t *list)
{
	bool taken[UNDO_RECORDS_MAX];
	int r = undo_records_list(records->fd, taken);

	for (unsigned number = 0; number < UNDO_RECORDS_MAX && r == 0; number++) {
		_cleanup_json_ json_t *record = NULL;
		json_t *more;
		char name[16];
		struct stat st;

		(void)snprintf(name, sizeof(name), "%u", number);
		/* It is read without the lock, so it may be gone by now. */
		if (!taken[number] || running_is_outside_done(records, number) ||
		    fstatat(records->fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
		    undo_record_read_running(records, number, &record) < 0)
			continue;
		more = json_object_get(record, "running");
		if (json_object_set_new(more, "since", json_integer((json_int_t)st.st_mtim.tv_sec)) < 0 ||
		    json_array_append(list, more) < 0)
			r = json_is_object(more) ? -ENOMEM : 0;
	}
	return r;
}

int running_read_records(const struct ctr_gpu_container *container, const char *directory, json_t **ret)
{
	struct undo_records records = UNDO_RECORDS_CLOSED;
	_cleanup_json_ json_t *list = json_array();
	_cleanup_free_ char *path = NULL;
	_cleanup_close_ int fd = -1;
	char key[CONTAINER_KEY_SIZE];
	int r = list ? container_key(container, key) : -ENOMEM;

	if (r == 0)
		r = str_format(&path, "%s/%s", directory, key);
	if (r < 0)
		return r;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 && errno != ENOENT)
		return -errno;
	records.fd = fd;
	r = fd < 0 ? 0 : running_list_records(&records, list);
	if (r == 0)
		*ret = steal_ptr(list);
	return r;
}

/* ---- containers that have ended ---- */

static void running_drop_records(const char *path)
{
	struct undo_records records = UNDO_RECORDS_CLOSED;
	bool taken[UNDO_RECORDS_MAX] = {0};
	int r = undo_records_open(path, &records);

	if (r == 0)
		r = undo_records_list(records.fd, taken);
	for (unsigned number = 0; number < UNDO_RECORDS_MAX && r == 0; number++)
		if (taken[number])
			undo_record_remove_running(&records, number);
	undo_records_close(&records, AT_FDCWD, path);
}

void running_drop_ended(const char *directory)
{
	_cleanup_strv_ struct strv keys = {0};

	(void)fd_list_names(AT_FDCWD, directory, process_key_is_valid, NAMES_MAX, &keys);
	for (size_t i = 0; i < keys.count; i++) {
		_cleanup_free_ char *path = NULL;

		if (process_key_is_over(keys.items[i]) && str_format(&path, "%s/%s", directory, keys.items[i]) == 0)
			running_drop_records(path);
	}
}

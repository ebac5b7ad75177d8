/* SPDX-License-Identifier: Apache-2.0 */

#include "devcgroup/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>

#include "base/fd.h"
#include "base/str.h"
#include "devcgroup/cgroup_path.h"
#include "root/mountinfo.h"

enum { MEMBERSHIP_MAX = 16 * 1024, MEMBERS_MAX = 4096 };

const struct devcgroup_additions *devcgroup_additions_of(const struct devcgroup *cgroup)
{
	return &cgroup->additions;
}

struct devcgroup *devcgroup_free(struct devcgroup *cgroup)
{
	if (!cgroup)
		return NULL;
	additions_clear(&cgroup->additions);
	if (cgroup->version)
		cgroup->version->close(cgroup);
	for (size_t i = 0; i < cgroup->level_count; i++) {
		if (!cgroup->levels[i].kept)
			(void)close(cgroup->levels[i].fd);
		free(cgroup->levels[i].path);
	}
	cleanup_closep(&cgroup->systemd_fd);
	free(cgroup->told);
	free(cgroup->unit);
	free(cgroup);
	return NULL;
}

DEFINE_CLEANUP(struct devcgroup *, devcgroup_free)

/* Return: as fd_read_file_at(). Part of a path is another cgroup's. */
static int devcgroup_read_membership(pid_t pid, int process, char **ret)
{
	_cleanup_free_ char *text = NULL;
	char path[32];
	int r;

	(void)snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)pid);
	if (process < 0)
		return fd_read_file_at(AT_FDCWD, path, MEMBERSHIP_MAX, ret, NULL);
	r = fd_read_kernel_file(process, "cgroup", MEMBERSHIP_MAX, &text);
	if (r == 0 && strlen(text) == MEMBERSHIP_MAX)
		r = -EFBIG;
	if (r == 0)
		*ret = steal_ptr(text);
	return r;
}

static bool devcgroup_is_of_version(int fd, int version)
{
	struct statfs fs;

	return fstatfs(fd, &fs) == 0 && fs.f_type == (version == 1 ? CGROUP_SUPER_MAGIC : CGROUP2_SUPER_MAGIC);
}

/* Opens the cgroup by its whole path, without knowing its mount. devcgroup_has() checks who is in it. */
static int devcgroup_open_usual(const struct cgroup_place *place, const char *path, int *ret_fd)
{
	const struct open_how how = {
		.flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC,
		.resolve = RESOLVE_NO_SYMLINKS,
	};
	_cleanup_close_ int fd = strstr(path, "/..") ? -1 : (int)syscall(SYS_openat2, -1, path, &how, sizeof(how));

	if (fd < 0 || !devcgroup_is_of_version(fd, place->version))
		return -ESTALE;
	*ret_fd = steal_fd(&fd);
	return 0;
}

/* The kernel makes all below a cgroup mount: directories, and no links. What differs is not that mount. */
static int devcgroup_open_below(int mount_fd, const char *below, int *ret_fd)
{
	struct open_how how = {
		.flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_XDEV | RESOLVE_NO_SYMLINKS,
	};
	int fd = (int)syscall(SYS_openat2, mount_fd, *below ? below : ".", &how, sizeof(how));

	/* Linux before 5.6. */
	if (fd < 0 && errno == ENOSYS)
		fd = openat(mount_fd, *below ? below : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return -errno;
	*ret_fd = fd;
	return 0;
}

/* Opens where a place is mounted. Return: -ESTALE if another mount lies over it. */
static int devcgroup_open_mount(const struct cgroup_place *place, int *ret_fd)
{
	_cleanup_close_ int fd = open(place->point, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (st.st_dev != place->dev || !devcgroup_is_of_version(fd, place->version))
		return -ESTALE;
	*ret_fd = steal_fd(&fd);
	return 0;
}

static int devcgroup_add_level(struct devcgroup *cgroup, const struct cgroup_place *place, int mount_fd, size_t size)
{
	_cleanup_free_ char *below = strndup(place->below, size), *path = NULL;
	_cleanup_close_ int fd = -1;
	int r;

	if (!below)
		return -ENOMEM;
	r = str_format(&path, "%s/%s", place->point, below);
	if (r == 0)
		r = mount_fd < 0 ? devcgroup_open_usual(place, path, &fd) : devcgroup_open_below(mount_fd, below, &fd);
	if (r < 0)
		return r;
	cgroup->levels[cgroup->level_count++] = (struct devcgroup_level){.fd = steal_fd(&fd), .path = steal_ptr(path)};
	return 0;
}

/* Opens the cgroup itself and those above it up to the unit's. */
static int devcgroup_open_levels(struct devcgroup *cgroup, const struct cgroup_place *place)
{
	_cleanup_close_ int mount_fd = -1;
	size_t all = strlen(place->below), size = all;
	int r = place->dev ? devcgroup_open_mount(place, &mount_fd) : 0;

	if (r == 0)
		r = devcgroup_find_unit(place->below, DEVCGROUP_TRANSIENT, &cgroup->unit, &size);
	if (r < 0)
		return r;
	if (!cgroup->unit)
		size = all;
	for (;;) {
		if (cgroup->level_count == DEVCGROUP_LEVELS_MAX)
			return -E2BIG;
		r = devcgroup_add_level(cgroup, place, mount_fd, size);
		if (r < 0 || size == all)
			return r;
		size += 1 + strcspn(place->below + size + 1, "/");
	}
}

/* ---- cgroups that are known ---- */

static bool devcgroup_id_is(const struct devcgroup_id *a, const struct devcgroup_id *b)
{
	return a->device == b->device && a->inode == b->inode;
}

static const struct devcgroup_level *devcgroup_find_level(const struct devcgroup *cgroup, const struct devcgroup_id *id)
{
	for (size_t i = 0; i < cgroup->level_count; i++) {
		struct devcgroup_id own = {0};

		if (additions_identify(cgroup->levels[i].fd, &own) == 0 && devcgroup_id_is(&own, id))
			return &cgroup->levels[i];
	}
	return NULL;
}

int devcgroup_find_open(const struct devcgroup *cgroup, const struct devcgroup_id *id)
{
	const struct devcgroup_level *level = devcgroup_find_level(cgroup, id);

	return level ? level->fd : -1;
}

/* Which cgroup to open for a process. */
struct devcgroup_search {
	pid_t pid;
	const char *membership;
	const struct devcgroup_id
		*ids; /* these, on the way to its own; NULL: its own, and those above up to the unit's */
	size_t id_count;
};

/* Keeps the directory if it is looked for. @size: how much of the place's path leads to it */
static int devcgroup_keep_wanted(struct devcgroup *cgroup, const struct devcgroup_search *search,
				 const struct cgroup_place *place, int fd, size_t size)
{
	struct devcgroup_level level = {.fd = -1};
	struct devcgroup_id id = {0};
	size_t i = 0;
	int r = additions_identify(fd, &id);

	if (r < 0)
		return r;
	while (i < search->id_count && !devcgroup_id_is(&search->ids[i], &id))
		i++;
	if (i == search->id_count)
		return 0;
	if (cgroup->level_count == DEVCGROUP_LEVELS_MAX)
		return -E2BIG;
	r = str_format(&level.path, "%s/%.*s", place->point, (int)size, place->below);
	if (r < 0)
		return r;
	level.fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	cgroup->levels[cgroup->level_count++] = level;
	return level.fd < 0 ? -errno : 0;
}

static bool devcgroup_has_all(const struct devcgroup *cgroup, const struct devcgroup_search *search)
{
	for (size_t i = 0; i < search->id_count; i++)
		if (!devcgroup_find_level(cgroup, &search->ids[i]))
			return false;
	return true;
}

/*
 * Goes down from the mount. How deep its cgroup is, a process of the container decides, and it may remove what is below
 * the one that was given devices at any time. Return: 0; -ESTALE if one of them is not on the way.
 */
static int devcgroup_open_wanted(struct devcgroup *cgroup, const struct devcgroup_search *search,
				 const struct cgroup_place *place)
{
	_cleanup_close_ int fd = -1;
	size_t size = 0;
	int r = place->dev ? devcgroup_open_mount(place, &fd) : devcgroup_open_usual(place, place->point, &fd);

	while (r == 0) {
		const size_t start = size + (place->below[size] == '/');
		_cleanup_free_ char *name = NULL;
		int below = -1;

		r = devcgroup_keep_wanted(cgroup, search, place, fd, size);
		if (r < 0 || devcgroup_has_all(cgroup, search))
			return r;
		size = start + strcspn(place->below + start, "/");
		name = strndup(place->below + start, size - start);
		if (!name)
			return -ENOMEM;
		r = *name ? devcgroup_open_below(fd, name, &below) : -ESTALE;
		if (r == 0) {
			(void)close(fd);
			fd = below;
		}
	}
	return r;
}

/* ---- where it is ---- */

static int devcgroup_open_place(const struct devcgroup_search *search, const struct cgroup_place *place,
				struct devcgroup **ret)
{
	_cleanup_(devcgroup_freep) struct devcgroup *cgroup = calloc(1, sizeof(*cgroup));
	int r;

	if (!cgroup)
		return -ENOMEM;
	cgroup->systemd_fd = -1;
	r = search->ids ? devcgroup_open_wanted(cgroup, search, place) : devcgroup_open_levels(cgroup, place);
	if (r < 0)
		return r;
	cgroup->version = place->version == 1 ? &devcgroup_v1 : &devcgroup_v2;
	*ret = steal_ptr(cgroup);
	return 0;
}

/* The first place that is not covered; no object if all are. */
static int devcgroup_open_first(const struct devcgroup_search *search, const struct cgroup_places *places,
				struct devcgroup **ret)
{
	for (size_t i = 0; i < places->count; i++) {
		int r = devcgroup_open_place(search, &places->items[i], ret);

		if (r == 0 || r == -ENOMEM || r == -E2BIG)
			return r;
	}
	*ret = NULL;
	return 0;
}

/* True if some line names a cgroup below the root, which alone is never restricted. */
static bool devcgroup_contains(const char *membership)
{
	for (const char *line = membership; line && *line; line = strchr(line, '\n'), line += line ? 1 : 0) {
		const char *path = strstr(line, ":/");

		if ((strncmp(line, "0::", 3) == 0 || strstr(line, "devices")) && path && path[2] && path[2] != '\n')
			return true;
	}
	return false;
}

/*
 * Whether the kernel counts the process among the first of the cgroup that was opened; a new container has few. What is
 * known by its id needs no such check.
 */
static bool devcgroup_has(const struct devcgroup *cgroup, const struct devcgroup_search *search)
{
	_cleanup_free_ char *members = NULL;

	if (search->ids)
		return true;
	if (fd_read_kernel_file(cgroup->levels[cgroup->level_count - 1].fd, "cgroup.procs", MEMBERS_MAX, &members) < 0)
		return false;
	for (const char *line = members; line && *line; line = strchr(line, '\n'), line += line ? 1 : 0)
		if (strtol(line, NULL, 10) == search->pid)
			return true;
	return false;
}

/*
 * Looks where every distribution mounts it, which saves reading all mounts of the host. A process in a cgroup of
 * version 1 is not looked for in version 2. Return: 0, with no object if it is not there; -ENOMEM.
 */
static int devcgroup_find_usual(const struct devcgroup_search *search, struct devcgroup **ret)
{
	static const char *const points[] = {"/sys/fs/cgroup/devices", "/sys/fs/cgroup"};
	/* A root cgroup restricts no process, so what is below the other version's root comes first. */
	static const struct {
		int version;
		bool root;
	} tries[] = {{1, false}, {2, false}, {1, true}, {2, true}};

	*ret = NULL;
	for (size_t i = 0; i < ARRAY_SIZE(tries); i++) {
		_cleanup_(devcgroup_freep) struct devcgroup *cgroup = NULL;
		_cleanup_free_ char *path = cgroup_membership(search->membership, tries[i].version);
		const struct cgroup_place place = {
			.version = tries[i].version,
			.point = (char *)(uintptr_t)points[tries[i].version - 1],
			.below = path ? path + 1 : NULL,
		};
		int r;

		if (!path || tries[i].root == (path[1] != '\0'))
			continue;
		r = devcgroup_open_place(search, &place, &cgroup);
		if (r == 0 && devcgroup_has(cgroup, search))
			*ret = steal_ptr(cgroup);
		if (r == -ENOMEM || *ret || !tries[i].root)
			return r == -ENOMEM ? r : 0;
	}
	return 0;
}

/* Finds the cgroup and opens it. Return: 0, with no object if no mount shows it; negative errno. */
static int devcgroup_find(const struct devcgroup_search *search, struct devcgroup **ret)
{
	_cleanup_cgroup_places_ struct cgroup_places places = {0};
	_cleanup_free_ char *mountinfo = NULL;
	int r = devcgroup_find_usual(search, ret);

	if (r < 0 || *ret)
		return r;
	r = fd_read_file_at(AT_FDCWD, "/proc/self/mountinfo", MOUNTINFO_MAX, &mountinfo, NULL);
	if (r == 0)
		r = cgroup_places_find(mountinfo, search->membership, &places);
	return r < 0 ? r : devcgroup_open_first(search, &places, ret);
}

static bool devcgroup_is_in_kernel(void)
{
	return access("/proc/self/cgroup", F_OK) == 0 || access("/proc/self/stat", F_OK) < 0;
}

/* Return: as devcgroup_open(). @cgroup: NULL: no mount shows it */
static int devcgroup_begin(struct devcgroup *cgroup, struct devcgroup **ret, struct err *err)
{
	int r = cgroup->version->open(cgroup, err);

	*ret = r == 1 ? cgroup : NULL;
	if (r != 1)
		devcgroup_free(cgroup);
	return r == 1 ? 0 : r;
}

/* The engine has made the cgroups up to the container's own; below that it is the container itself. */
static int devcgroup_explain_depth(pid_t pid, struct err *err)
{
	return err_set_advised(err, CTR_GPU_E_NO_CGROUP,
			       ("the cgroup of process %d is more than %d below its systemd unit's:", (int)pid,
				DEVCGROUP_LEVELS_MAX - 1),
			       ("move the process up, or start the container anew with the GPU"));
}

int devcgroup_open(pid_t pid, int process, struct devcgroup **ret, struct err *err)
{
	struct devcgroup_search search = {.pid = pid};
	_cleanup_free_ char *membership = NULL;
	struct devcgroup *cgroup = NULL;
	int r = devcgroup_read_membership(pid, process, &membership);

	*ret = NULL;
	if (r == -ENOENT && !devcgroup_is_in_kernel())
		return 0;
	search.membership = membership;
	if (r == 0)
		r = devcgroup_find(&search, &cgroup);
	if (r == -E2BIG)
		return devcgroup_is_privileged() ? devcgroup_explain_depth(pid, err) : 0;
	if (r < 0)
		return err_set(err, r, "cannot read the cgroup of process %d: %m", (int)pid);
	if (!cgroup && devcgroup_contains(membership) && devcgroup_is_privileged())
		return err_set_advised(err, CTR_GPU_E_NO_CGROUP,
				       ("no cgroup mount shows the device cgroup of process %d:", (int)pid),
				       ("mount the host's /sys/fs/cgroup where this runs"));
	return cgroup ? devcgroup_begin(cgroup, ret, err) : 0;
}

int devcgroup_open_again(pid_t pid, int process, const struct devcgroup_id *ids, size_t count, struct devcgroup **ret,
			 struct err *err)
{
	struct devcgroup_search search = {.pid = pid, .ids = ids, .id_count = count};
	_cleanup_free_ char *membership = NULL;
	struct devcgroup *cgroup = NULL;
	int r = count > 0 ? devcgroup_read_membership(pid, process, &membership) : 0;

	*ret = NULL;
	if (count == 0)
		return 0;
	search.membership = membership;
	if (r == 0)
		r = devcgroup_find(&search, &cgroup);
	if (r < 0)
		return err_set(err, r, "cannot read the cgroup of process %d: %m", (int)pid);
	if (!cgroup)
		return err_set_advised(
			err, CTR_GPU_E_NO_CGROUP,
			("process %d is not in, nor below, a cgroup that was given the devices:", (int)pid),
			("move it back, or end the container: what it was given ends with it"));
	return devcgroup_begin(cgroup, ret, err);
}

int devcgroup_directory(const struct devcgroup *cgroup, size_t *ret_depth)
{
	const struct devcgroup_level *own = &cgroup->levels[cgroup->level_count - 1];

	*ret_depth = 0;
	for (const char *slash = strchr(own->path, '/'); slash; slash = strchr(slash + 1, '/'))
		++*ret_depth;
	return own->fd;
}

void devcgroup_tidy(void)
{
	(void)devcgroup_remove_stale_drop_ins(DEVCGROUP_TRANSIENT, NULL);
}

/* Return: 0; 1 if a file was written; negative errno. */
static int devcgroup_notify_systemd(struct devcgroup *cgroup, const struct devcgroup_rule *rules, size_t count,
				    struct err *err)
{
	/* systemd has read that file for this unit, too, and would keep its rules beyond the next daemon-reload. */
	bool misled = devcgroup_remove_stale_drop_ins(DEVCGROUP_TRANSIENT, cgroup->unit);
	struct devcgroup_id id = {0};
	int r;

	if (!devcgroup_systemd_restricts(DEVCGROUP_TRANSIENT, cgroup->unit))
		return 0;
	/*
	 * An engine that has allowed the devices may not have passed them to systemd: before runc 1.1.5 or systemd 240
	 * it passes only devices with a link in /dev/char, which NVIDIA's nodes lack.
	 */
	if (!cgroup->unit_changed && devcgroup_systemd_knows(DEVCGROUP_TRANSIENT, cgroup->unit, rules, count))
		return 0;
	r = additions_identify(cgroup->levels[cgroup->level_count - 1].fd, &id);
	if (r < 0)
		return err_set(err, r, "cannot look at the container's cgroup: %m");
	r = devcgroup_write_drop_in(DEVCGROUP_TRANSIENT, cgroup->unit, &id, rules, count, cgroup->undo_log,
				    &cgroup->additions.drop_in, err);
	if (r < 0)
		return r;
	/* Now, as the container may have such a path, too. */
	if (cgroup->systemd_fd < 0 && !misled)
		cgroup->systemd_fd = devcgroup_systemd_connect();
	if (cgroup->systemd_fd >= 0 && !cgroup->told &&
	    devcgroup_drop_in_text(cgroup->unit, rules, count, &cgroup->told) < 0)
		return -ENOMEM;
	return 1;
}

int devcgroup_finish(struct devcgroup *cgroup, bool running)
{
	/* systemd empties the list of version 1 for an instant, in which processes that run could open nothing. */
	if (!cgroup || !cgroup->told || (running && cgroup->version == &devcgroup_v1))
		return 0;
	return devcgroup_systemd_ask(cgroup->systemd_fd, cgroup->unit, false, cgroup->told);
}

int devcgroup_allow(struct devcgroup *cgroup, const struct devcgroup_rule *rules, size_t count,
		    struct undo_log *undo_log, struct err *err)
{
	int r;

	if (!cgroup || !count)
		return 0;
	if (count > DEVCGROUP_RULES_MAX)
		return err_set(err, -E2BIG, "cannot allow %zu devices: %m", count);
	cgroup->undo_log = undo_log;
	r = cgroup->version->allow(cgroup, rules, count, err);
	if (r == 0 && cgroup->unit)
		r = devcgroup_notify_systemd(cgroup, rules, count, err);
	/* A daemon-reload before the file was there has taken away what was allowed. */
	return r == 1 ? cgroup->version->allow(cgroup, rules, count, err) : r;
}

int devcgroup_take_back(struct devcgroup *cgroup, const struct devcgroup_additions *additions, struct err *err)
{
	int r = 0;

	/* First, as systemd might write what is in it once more. */
	if (additions->drop_in)
		devcgroup_remove_drop_in(DEVCGROUP_TRANSIENT, additions->drop_in);
	if (cgroup)
		cgroup->rewritten = additions->drop_in != NULL;
	for (size_t i = additions->count; cgroup && i-- > 0 && r == 0;) {
		const struct devcgroup_level *level = devcgroup_find_level(cgroup, &additions->items[i].cgroup);

		r = level ? cgroup->version->take_back(cgroup, level, &additions->items[i], err)
			  : err_set(err, -ESTALE, "cannot take back device rules: %m");
	}
	return r;
}
